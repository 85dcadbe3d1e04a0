//! Decisions at the inbox: approvals, edits, rules for later calls, withdrawals.

use super::{NONE, at_inbox, harmless, like_rule, names, unsaid};
use crate::api::ApiRefusal;
use crate::inbox::SETTLE_MS;
use crate::state::{Action, ChatEvent, Prompt};
use crate::tests_support::proposal;
use serde_json::{Value, json};

#[test]
fn what_is_harmless_needs_one_key_and_all_else_a_second_one() {
    let mut stage = at_inbox(&[harmless("a")]);
    assert_eq!(names(&stage.press(&["a"])), ["approve a aa None None"]);
    for tool in [
        json!({ "name": "echo" }),
        json!({ "annotations": { "destructiveHint": true } }),
        Value::Null,
    ] {
        let mut stage = at_inbox(&[proposal("a", &json!({ "tool": tool }))]);
        assert_eq!(names(&stage.press(&["a"])), NONE, "{tool}");
        // The same key again is not the second key, and drops the question.
        assert_eq!(names(&stage.press(&["a"])), NONE);
        assert!(stage.state.prompt.is_none());
        assert_eq!(
            names(&stage.press(&["a", "y"])),
            ["approve a aa None None"],
            "{tool}"
        );
    }
}

#[test]
fn nothing_is_approved_that_was_not_shown_in_full() {
    let lines: Vec<String> = (0..60).map(|number| format!("line {number}")).collect();
    let arguments = json!({ "lines": lines });
    let more = json!({ "params": { "name": "echo", "arguments": arguments },
        "tool": { "annotations": { "readOnlyHint": true } } });
    let mut stage = at_inbox(&[proposal("a", &more)]);
    for keys in [
        &["a"][..],
        &["A"],
        &["e"],
        &["E"],
        &["h"],
        &["End", "a"],
        &["Home", "Space", "a"],
    ] {
        assert_eq!(names(&stage.press(keys)), NONE, "{keys:?}");
        assert!(stage.state.prompt.is_none(), "{keys:?}");
        assert!(
            stage.state.notice().unwrap().contains("not shown yet"),
            "{keys:?}"
        );
    }
    stage.press(&["Space", "Space", "Space", "Space"]);
    assert_eq!(names(&stage.press(&["a"])), ["approve a aa None None"]);
    // At another width other rows are shown.
    stage.press(&["Home"]);
    stage.take(ChatEvent::Resize {
        columns: 61,
        rows: 24,
    });
    assert_eq!(names(&stage.press(&["a"])), NONE);
    // Rejecting needs no reading.
    assert_eq!(
        names(&stage.press(&["r", "no", "Enter"])),
        ["end a false \"no\""]
    );
}

#[test]
fn a_card_that_opens_by_itself_is_not_decided_by_a_key_for_another() {
    let mut stage = at_inbox(&[harmless("a"), harmless("b")]);
    stage.take(ChatEvent::Inbox(Ok(vec![harmless("b")])));
    for key in ["a", "A", "r", "e", "E", "h"] {
        assert_eq!(names(&stage.press(&[key])), NONE, "{key}");
        assert!(stage.state.prompt.is_none(), "{key}");
    }
    stage.now_ms += SETTLE_MS;
    assert_eq!(names(&stage.press(&["a"])), ["approve b bb None None"]);
}

#[test]
fn a_note_goes_with_an_approval_and_a_claim_decides_nothing() {
    let mut stage = at_inbox(&[harmless("a")]);
    assert_eq!(
        names(&stage.press(&["A", "this once", "Enter"])),
        ["approve a aa None None with this once"]
    );
    assert_eq!(
        names(&stage.press(&["A", "Enter"])),
        ["approve a aa None None"]
    );
    // What may be destructive needs its second key all the same.
    let mut stage = at_inbox(&[unsaid("a")]);
    assert_eq!(names(&stage.press(&["A", "once", "Enter"])), NONE);
    assert_eq!(
        names(&stage.press(&["y"])),
        ["approve a aa None None with once"]
    );
    assert_eq!(names(&stage.press(&["c"])), ["claim a"]);
    assert_eq!(names(&stage.press(&["t"])), ["extend a"]);
    stage.state.me.id = "scout".to_owned();
    assert_eq!(names(&stage.press(&["c"])), NONE);
    assert!(stage.state.notice().unwrap().contains("your own"));
}

#[test]
fn a_question_ends_with_its_proposal() {
    for keys in [&["a"][..], &["A"], &["r"], &["e"], &["h"]] {
        let mut stage = at_inbox(&[unsaid("a"), harmless("b")]);
        stage.press(keys);
        assert!(stage.state.prompt.is_some(), "{keys:?}");
        stage.take(ChatEvent::Inbox(Ok(vec![harmless("b")])));
        assert!(stage.state.prompt.is_none(), "{keys:?}");
        assert!(
            stage
                .state
                .notice()
                .unwrap()
                .starts_with("#1 has been decided"),
            "{keys:?}"
        );
        assert_eq!(names(&stage.press(&["y", "Enter"])), NONE);
    }
}

#[test]
fn arguments_are_edited_in_place_and_outside() {
    let hidden = json!({ "params": { "name": "echo", "arguments": { "text": "a\u{202e}" } } });
    let mut stage = at_inbox(&[proposal("a", &hidden)]);
    stage.press(&["e"]);
    let Some(Prompt::Arguments { line, .. }) = &stage.state.prompt else {
        panic!()
    };
    assert_eq!(line.text(), r#"{"text":"a\u202e"}"#);
    stage.press(&["Ctrl-U", "[1]", "Enter"]);
    assert!(stage.state.notice().unwrap().contains("one JSON object"));
    stage.press(&["e", "Ctrl-U", r#"{"text":"b"}"#, "Enter"]);
    let Some(Prompt::Sure { question, .. }) = &stage.state.prompt else {
        panic!()
    };
    assert!(
        question.iter().any(|line| line.text == r#"  "text": "b""#),
        "{question:?}"
    );
    assert_eq!(
        names(&stage.press(&["y"])),
        [r#"approve a aa Some("{\"text\":\"b\"}") None"#]
    );
    // Unchanged ones are an approval like any other.
    stage.press(&["e", "Enter"]);
    assert!(
        matches!(&stage.state.prompt, Some(Prompt::Sure { approval, .. }) if approval.arguments.is_none())
    );
    stage.press(&["Esc"]);
    assert_eq!(
        names(&stage.press(&["E"])),
        ["edit a {\n  \"text\": \"a\\u202e\"\n}\n"]
    );
    let edited = |text: Result<&str, &str>| ChatEvent::Edited {
        id: "a".into(),
        text: text.map(str::to_owned).map_err(str::to_owned),
    };
    stage.take(edited(Err("the text was left as it was")));
    assert_eq!(
        stage.state.notice(),
        Some("Nothing was decided: the text was left as it was")
    );
    stage.take(edited(Ok("{\n \"text\": \"c\"\n}\n")));
    assert_eq!(
        names(&stage.press(&["y"])),
        [r#"approve a aa Some("{\n \"text\": \"c\"\n}") None"#]
    );
    let mut reads = at_inbox(&[proposal(
        "a",
        &json!({ "method": "resources/read", "context": "file:///a" }),
    )]);
    reads.press(&["e"]);
    assert_eq!(
        reads.state.notice(),
        Some("Only the arguments of a tool's call can be edited.")
    );
}

#[test]
fn the_like_of_a_call_is_approved_after_a_question_that_says_all_of_the_rule() {
    for (key, seconds, until) in [
        ("1", 900, "12:46"),
        ("2", 3_600, "13:31"),
        ("3", 28_800, "20:31"),
    ] {
        let mut stage = at_inbox(&[harmless("a")]);
        assert_eq!(
            names(&stage.press(&["h", key])),
            [format!("like a {seconds} \"\"")]
        );
        assert_eq!(stage.state.notice(), Some("Making the rule ..."));
        let sentence = "scout may call echo of tools when text is hi";
        stage.take(ChatEvent::Like {
            id: "a".into(),
            digest: "aa".into(),
            found: Ok(like_rule(sentence, seconds)),
        });
        assert_eq!(stage.state.notice(), None, "nothing is being made any more");
        let Some(Prompt::Sure { question, .. }) = &stage.state.prompt else {
            panic!()
        };
        let texts: Vec<&str> = question.iter().map(|line| line.text.as_str()).collect();
        assert!(texts[0].contains("the like of it until"), "{texts:?}");
        assert!(texts[0].contains(until), "{texts:?}");
        assert_eq!(texts[1], sentence);
        let expect = format!("approve a aa None rule its text {seconds}");
        assert_eq!(names(&stage.press(&["y"])), [expect]);
    }
    let mut stage = at_inbox(&[harmless("a")]);
    assert_eq!(names(&stage.press(&["h", "4"])), NONE);
    stage.press(&["h", "1"]);
    let refused = ApiRefusal {
        code: None,
        message: "no rule can say that".into(),
        hint: None,
    };
    stage.take(ChatEvent::Like {
        id: "a".into(),
        digest: "aa".into(),
        found: Err(refused),
    });
    assert_eq!(
        stage.state.notice(),
        Some("Nothing was decided: no rule can say that. All calls of the tool: /allow 1 1h")
    );
    assert!(stage.state.prompt.is_none());
}

#[test]
fn conditions_take_the_place_of_values_before_the_rule_is_asked_about_again() {
    let mut stage = at_inbox(&[harmless("a")]);
    stage.press(&["h", "2"]);
    stage.take(ChatEvent::Like {
        id: "a".into(),
        digest: "aa".into(),
        found: Ok(like_rule("exactly this", 3_600)),
    });
    assert_eq!(names(&stage.press(&["e"])), NONE);
    assert!(matches!(
        stage.state.prompt,
        Some(Prompt::Conditions { .. })
    ));
    for key in "x;y".chars() {
        stage.press(&[&key.to_string()]);
    }
    assert_eq!(names(&stage.press(&["Enter"])), ["like a 3600 \"x\\ny\""]);
    assert!(
        stage.state.prompt.is_none(),
        "nothing is asked before the rule is known"
    );
}

#[test]
fn all_calls_of_a_tool_are_allowed_after_a_question_that_names_the_capability() {
    let mut stage = at_inbox(&[harmless("a")]);
    stage.take(ChatEvent::Capability {
        id: "a".into(),
        digest: "aa".into(),
        seconds: 900,
        found: Ok("mcp/request:tools/call:echo".to_owned()),
    });
    let Some(Prompt::Sure { question, .. }) = &stage.state.prompt else {
        panic!()
    };
    let texts: Vec<&str> = question.iter().map(|line| line.text.as_str()).collect();
    assert!(
        texts[0].contains("let scout make this call in topic main without asking"),
        "{texts:?}"
    );
    assert!(texts[0].contains("15m (until 12:46)"), "{texts:?}");
    assert_eq!(texts[1], "mcp/request:tools/call:echo");
    // It is no rule: there are no conditions to write.
    stage.press(&["e"]);
    assert!(stage.state.prompt.is_none());
    stage.take(ChatEvent::Capability {
        id: "a".into(),
        digest: "aa".into(),
        seconds: 900,
        found: Ok("mcp/request:tools/call:echo".to_owned()),
    });
    assert_eq!(
        names(&stage.press(&["y"])),
        ["approve a aa None grant scout mcp/request:tools/call:echo 900"]
    );
}

#[test]
fn a_question_that_does_not_fit_is_not_confirmed() {
    let mut stage = at_inbox(&[harmless("a")]);
    stage.press(&["h", "1"]);
    stage.take(ChatEvent::Like {
        id: "a".into(),
        digest: "aa".into(),
        found: Ok(like_rule(&"x".repeat(4_000), 900)),
    });
    assert_eq!(names(&stage.press(&["y"])), NONE);
    assert!(stage.state.notice().unwrap().contains("does not fit"));
}

#[test]
fn own_proposals_are_withdrawn_and_not_decided() {
    let own = proposal("a", &json!({ "by": "boss" }));
    let mut stage = at_inbox(&[own]);
    for key in ["a", "h"] {
        assert_eq!(names(&stage.press(&[key])), NONE);
        assert!(
            stage.state.notice().unwrap().contains("your own proposal"),
            "{key}"
        );
    }
    stage.press(&["r"]);
    assert_eq!(
        stage.state.notice(),
        Some("It is your own proposal: w withdraws it, e amends it.")
    );
    assert_eq!(names(&stage.press(&["w", "Enter"])), ["end a true \"\""]);
    let mut others = at_inbox(&[harmless("a")]);
    others.press(&["w"]);
    assert!(
        others.state.notice().unwrap().contains("r rejects it") && others.state.prompt.is_none()
    );
}

#[test]
fn own_proposals_are_amended_here_and_in_the_editor() {
    let own = || proposal("a", &json!({ "by": "boss" }));
    let mut stage = at_inbox(&[own()]);
    stage.press(&["e", "Backspace"]);
    // What is no object changes nothing.
    assert_eq!(names(&stage.press(&["Enter"])), NONE);
    assert!(
        stage
            .state
            .notice()
            .unwrap()
            .contains("nothing was changed")
    );
    stage.press(&["e", "Backspace", ",\"more\":1}"]);
    let amended = "amend a {\"text\":\"please\",\"more\":1}";
    assert_eq!(names(&stage.press(&["Enter"])), [amended]);
    // The same arguments are no amendment, and approve nothing.
    assert_eq!(names(&stage.press(&["e", "Enter"])), NONE);
    assert!(matches!(
        stage.press(&["E"]).as_slice(),
        [Action::Edit { .. }]
    ));
    let text = Ok("{\"text\": \"other\"}".to_owned());
    let edited = stage.take(ChatEvent::Edited {
        id: "a".to_owned(),
        text,
    });
    assert_eq!(names(&edited), ["amend a {\"text\": \"other\"}"]);
    // A key that was meant for the card before.
    let mut stage = at_inbox(&[harmless("b"), own()]);
    stage.take(ChatEvent::Inbox(Ok(vec![own()])));
    assert_eq!(names(&stage.press(&["e"])), NONE);
    assert!(stage.state.prompt.is_none());
}

#[test]
fn a_key_pauses_the_proposer_of_the_open_card() {
    let mut stage = at_inbox(&[harmless("a")]);
    assert_eq!(
        names(&stage.press(&["p", "too many", "Enter"])),
        ["brake scout false \"too many\""]
    );
    assert_eq!(names(&stage.press(&["p", "Esc"])), NONE);
    let mut stage = at_inbox(&[proposal("a", &json!({ "by": "boss" }))]);
    assert_eq!(names(&stage.press(&["p"])), NONE);
    assert!(stage.state.prompt.is_none());
}

#[test]
fn nothing_is_allowed_for_later_with_a_plan() {
    let step = json!({ "id": "s", "to": ["worker"], "method": "tools/call", "context": "echo",
        "params": { "name": "echo", "arguments": {} }, "tool": null, "digest": "d", "state": "pending" });
    let plan = proposal(
        "a",
        &json!({ "context": null, "params": null, "steps": [step.clone(), step],
        "plan": { "id": "a", "step": 1, "of": 2 } }),
    );
    let mut stage = at_inbox(&[plan]);
    stage.press(&["G", "Space"]);
    for key in ["h", "e", "E"] {
        assert_eq!(names(&stage.press(&[key])), NONE, "{key}");
        assert!(stage.state.prompt.is_none(), "{key}");
        let notice = stage.state.notice().unwrap();
        assert!(notice.contains("plan of several calls"), "{key}: {notice}");
    }
}
