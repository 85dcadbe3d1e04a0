use participant::{Event as TopicEvent, ParticipantInfo, ProposalState};
use serde_json::json;

use crate::api::{ApiRefusal, LikeRule};
use crate::entry::Tone;
use crate::keys::{KEYS, KeyContext};
use crate::state::{Action, ChatEvent, Connection, Focus, Later, ScreenMode};
use crate::suggested::Suggestions;
use crate::tests_support::{Stage, chat, pressed, proposal, seen};
use crate::typing::EARLIER_LINES_MAX;
use crate::update::topic::ANNOUNCED_MAX;
use crate::update::{REFRESH_MS, RULES_MS};
use review::ProposalDetails;

mod decide;
mod late;
mod suggested;

const NONE: &[&str] = &[];

fn harmless(id: &str) -> ProposalDetails {
    proposal(
        id,
        &json!({ "tool": { "name": "echo", "annotations": { "readOnlyHint": true } } }),
    )
}

fn unsaid(id: &str) -> ProposalDetails {
    proposal(id, &json!({ "tool": { "name": "echo" } }))
}

/// Actions by their names, with what matters of them.
fn names(actions: &[Action]) -> Vec<String> {
    let name = |action: &Action| match action {
        Action::FindSuggestions => "find suggestions".to_owned(),
        Action::ReadRules { asked } => format!("rules {asked}"),
        Action::DecideSuggestion { digest, accept } => format!("decide {digest} {accept}"),
        Action::Say { to, text } => format!("say {to:?} {text}"),
        Action::Call {
            target,
            name,
            arguments,
        } => format!("call {target} {name} {arguments}"),
        Action::ListTools { targets, is_one } => format!("tools {targets:?} {is_one}"),
        Action::Refresh => "refresh".to_owned(),
        Action::Approve(approval) => {
            let later = match &approval.later {
                None => "None".to_owned(),
                Some(Later::Grant(allow)) => {
                    format!(
                        "grant {} {} {}",
                        allow.participant, allow.capability, allow.seconds
                    )
                }
                Some(Later::Rule(rule)) => format!("rule {} {}", rule.text, rule.seconds),
            };
            let note = approval.note.as_deref();
            let note = note.map(|note| format!(" with {note}")).unwrap_or_default();
            format!(
                "approve {} {} {:?} {later}{note}",
                approval.id, approval.digest, approval.arguments
            )
        }
        Action::Extend { id, .. } => format!("extend {id}"),
        Action::Amend { id, arguments, .. } => format!("amend {id} {arguments}"),
        Action::Claim { id, .. } => format!("claim {id}"),
        Action::End {
            id,
            withdraw,
            reason,
            ..
        } => format!("end {id} {withdraw} {reason:?}"),
        Action::Brake {
            participant,
            resumes,
            reason,
        } => format!("brake {participant} {resumes} {reason:?}"),
        Action::FindCapability { proposal, seconds } => {
            format!("capability {} {seconds}", proposal.id)
        }
        Action::FindLike {
            proposal,
            seconds,
            when,
        } => format!("like {} {seconds} {when:?}", proposal.id),
        Action::Edit { id, text } => format!("edit {id} {text}"),
        Action::Bell => "bell".to_owned(),
        Action::Redraw => "redraw".to_owned(),
        Action::Quit => "quit".to_owned(),
    };
    actions.iter().map(name).collect()
}

fn at_inbox(proposals: &[ProposalDetails]) -> Stage {
    let mut stage = Stage::screen(80, 24);
    stage.pending(proposals);
    stage.press(&["F2"]);
    assert_eq!(stage.state.focus, Focus::Inbox);
    stage
}

fn like_rule(sentence: &str, seconds: u64) -> LikeRule {
    LikeRule {
        topic: "main".into(),
        sentence: sentence.into(),
        text: "its text".into(),
        tool: Some("echo".into()),
        seconds,
    }
}

/// Two suggestions, each longer than a screen of 24 rows.
fn two_suggestions() -> Suggestions {
    let made_up: Vec<String> = (0..40).map(|number| format!("call {number}")).collect();
    let one =
        |digest: &str| json!({ "digest": digest, "sentence": "Approve it", "made_up": made_up });
    Suggestions::read(&json!({ "offers": [one("d1"), one("d2")] }))
}

/// What a key can change.
fn seen_by(stage: &Stage) -> String {
    let state = &stage.state;
    let selected = state.inbox.selected().map(|item| item.number);
    let prompt = state
        .prompt
        .as_ref()
        .map(|prompt| format!("{prompt:?}").chars().take(80).collect::<String>());
    format!(
        "{:?} {:?} {:?} {:?} {:?} {} {selected:?} {} {prompt:?} {:?}",
        state.focus,
        state.suggestions,
        state.line.shown(40),
        state.help,
        state.calls,
        state.talk.scroll,
        state.inbox.scroll,
        state.notice(),
    )
}

#[test]
fn a_late_reviewer_sees_what_waits_and_is_called() {
    for (mode, expect) in [
        (
            ScreenMode::Screen,
            "? #1 waits for a decision: scout asks for echo (F2)",
        ),
        (
            ScreenMode::Lines(None),
            "? proposal #1 by scout at worker: tools/call echo\n",
        ),
    ] {
        let mut stage = Stage::new(mode);
        let own = proposal("b", &json!({ "by": "boss" }));
        assert_eq!(names(&stage.pending(&[harmless("a"), own])), ["bell"]);
        assert!(stage.last().starts_with(expect), "{}", stage.last());
    }
}

#[test]
fn a_proposal_that_is_for_others_is_shown_once_the_inbox_is_known() {
    use participant::IncomingProposal;
    use wire::mcpx::check::{Act, strict};
    use wire::mcpx::{Draft, Envelope, envelope};
    let propose = |id: &str| {
        let params = json!({ "name": "echo", "arguments": {} });
        let payload = json!({ "method": "tools/call", "params": params })
            .to_string()
            .into_bytes();
        let kind = "mcp/proposal:tools/call:echo";
        let to = &["worker"][..];
        let draft = Draft {
            id,
            ts: None,
            from: "scout",
            to,
            kind,
            correlation_id: None,
            payload: &payload,
        };
        let envelope = Envelope::read(envelope(&draft)).unwrap();
        let Ok(Act::Proposal(call)) = strict(kind, payload.into()) else {
            panic!()
        };
        TopicEvent::Proposal(Box::new(IncomingProposal { envelope, call }))
    };
    let mut stage = Stage::new(ScreenMode::Screen);
    assert_eq!(names(&stage.topic(propose("e-a"))), ["refresh"]);
    // One more while the inbox is being read: it is read again.
    assert_eq!(names(&stage.topic(propose("e-b"))), NONE);
    assert_eq!(names(&stage.pending(&[harmless("a")])), ["bell", "refresh"]);
    assert_eq!(names(&stage.pending(&[harmless("a")])), NONE);
    // It may not be on disk yet. The report about it says that it is; without one, some time does.
    assert!(
        !stage
            .entries()
            .iter()
            .any(|entry| entry.starts_with("? scout proposes"))
    );
    stage.now_ms += 2_000;
    assert_eq!(names(&stage.take(ChatEvent::Tick)), ["refresh"]);
    stage.pending(&[harmless("a")]);
    let shown = stage.entries();
    let of = |text: &str| shown.iter().filter(|entry| entry.starts_with(text)).count();
    assert_eq!(
        (
            of("? #1 waits"),
            of("? scout proposes to worker: tools/call echo")
        ),
        (1, 1),
        "{shown:?}"
    );
    // Announcements beyond the limit are not kept; the inbox shows what is in it all the same.
    for number in 0..=ANNOUNCED_MAX {
        stage.topic(propose(&format!("e-{number}")));
    }
    assert_eq!(stage.state.announced.len(), ANNOUNCED_MAX);
}

#[test]
fn the_rules_of_the_topic_are_listed_and_what_becomes_of_them_is_said() {
    let mut stage = Stage::new(ScreenMode::Screen);
    let found = |state: &str| {
        let rule = json!({
            "rule": "r1.1", "author": "boss", "sentence": "scout may call pay of bank.",
            "state": state, "used": 3, "left": 0, "expires": "2026-08-02T12:00:00.000Z",
        });
        Ok(json!({ "rules": [rule] }))
    };
    let read = |asked, found| ChatEvent::Rules { asked, found };
    stage.take(read(false, found("in force")));
    let before = stage.entries().len();
    assert_eq!(names(&stage.take(ChatEvent::Tick)), NONE);
    stage.now_ms += RULES_MS;
    assert_eq!(
        names(&stage.take(ChatEvent::Tick)),
        ["refresh", "rules false"]
    );
    stage.take(read(false, found("in force")));
    assert_eq!(stage.entries().len(), before, "nothing has changed");
    stage.take(read(false, found("spent")));
    assert_eq!(stage.last(), "* rule r1.1 decides no more, it is spent");
    assert_eq!(
        names(&stage.take(ChatEvent::Line("/rules".into()))),
        ["rules true"]
    );
    stage.take(read(true, found("spent")));
    assert_eq!(
        stage.last(),
        "= r1.1  spent, 3 used, 0 left, ends 2026-08-02T12:00:00.000Z: scout may call pay of bank."
    );
    let refused = || {
        Err(ApiRefusal {
            code: None,
            message: "busy".into(),
            hint: None,
        })
    };
    let before = stage.entries().len();
    stage.take(read(false, refused()));
    assert_eq!(stage.entries().len(), before, "no person has asked");
    stage.take(read(true, refused()));
    assert!(
        stage.last().starts_with("! the rules cannot be read: busy"),
        "{}",
        stage.last()
    );
    // Without a connection nothing is asked for.
    stage.topic(TopicEvent::Disconnected {
        why: "gone".into(),
        is_final: false,
    });
    stage.now_ms += RULES_MS;
    assert!(!names(&stage.take(ChatEvent::Tick)).contains(&"rules false".to_owned()));
}

#[test]
fn the_inbox_is_read_again_when_something_happens_and_from_time_to_time() {
    let mut stage = Stage::new(ScreenMode::Screen);
    assert_eq!(names(&stage.take(ChatEvent::Tick)), NONE);
    stage.now_ms += REFRESH_MS;
    assert_eq!(names(&stage.take(ChatEvent::Tick)), ["refresh"]);
    stage.now_ms += REFRESH_MS;
    assert_eq!(
        names(&stage.take(ChatEvent::Tick)),
        NONE,
        "one question at a time"
    );
    stage.pending(&[]);
    stage.pending(&[]);
    let state = TopicEvent::ProposalState {
        proposal: "e-a".into(),
        to: "scout".into(),
        state: ProposalState::Rejected,
        by: Some("chief".into()),
        reason: None,
        fulfilment: None,
        edited: false,
        absent: Vec::new(),
        expiring: false,
        claims: Vec::new(),
        notes: Vec::new(),
    };
    stage.pending(&[harmless("a"), harmless("b")]);
    assert_eq!(names(&stage.topic(state)), ["refresh"]);
    // It does not wait any more, whatever the inbox says until then.
    let left: Vec<usize> = stage
        .state
        .inbox
        .items()
        .iter()
        .map(|item| item.number)
        .collect();
    assert_eq!(left, [2]);
    let refused = || {
        Err(ApiRefusal {
            code: None,
            message: "no".into(),
            hint: Some("ask".into()),
        })
    };
    stage.take(ChatEvent::Inbox(refused()));
    stage.take(ChatEvent::Inbox(refused()));
    let shown = stage.entries();
    let said = shown
        .iter()
        .filter(|text| **text == "! the inbox cannot be read: no (ask)")
        .count();
    assert_eq!(
        (said, stage.state.inbox_failure.as_deref()),
        (1, Some("no (ask)"))
    );
    stage.pending(&[]);
    assert_eq!(stage.state.inbox_failure, None);
}

#[test]
fn mentions_and_private_words_ring_the_bell() {
    let mut stage = Stage::new(ScreenMode::Screen);
    for (event, expect, tone) in [
        (chat("scout", &[], "hello all"), NONE, Tone::Said),
        (chat("scout", &[], "hello @boss"), &["bell"], Tone::Mention),
        (chat("scout", &["boss"], "psst"), &["bell"], Tone::Private),
        (chat("scout", &["worker"], "psst"), NONE, Tone::Private),
    ] {
        assert_eq!(names(&stage.topic(event)), expect);
        assert_eq!(stage.state.talk.since(0).last().unwrap().tone, tone);
    }
}

#[test]
fn presence_connection_and_history_are_shown() {
    let mut stage = Stage::new(ScreenMode::Lines(None));
    let begin = [
        "You are boss in topic main. Type /help for a list of commands.",
        "* here: scout, worker",
    ];
    assert_eq!(stage.entries(), begin);
    stage.topic(TopicEvent::History {
        past: vec![chat("worker", &[], "one\ntwo")],
        is_cut: true,
    });
    let entries = stage.entries();
    let expect = [
        "! more messages were missed than the topic keeps",
        "* earlier messages:",
        "one\ntwo",
        "* end of the earlier messages",
    ];
    assert_eq!(entries[2..], expect);
    // An earlier message has its own time.
    let times: Vec<String> = stage
        .state
        .talk
        .since(0)
        .map(|entry| stage.state.zone.minute(entry.at_ms))
        .collect();
    assert_eq!(times[4], "12:29");
    stage.topic(TopicEvent::Joined(seen("chief")));
    stage.topic(TopicEvent::Left(seen("scout")));
    assert_eq!(
        stage.state.others.keys().collect::<Vec<_>>(),
        ["chief", "worker"]
    );
    stage.pending(&[]);
    stage.topic(TopicEvent::Disconnected {
        why: "it broke".into(),
        is_final: false,
    });
    assert_eq!(
        (stage.last().as_str(), &stage.state.connection),
        ("! it broke; reconnecting", &Connection::Lost)
    );
    // Attempts that fail have one entry.
    let entries = stage.entries().len();
    stage.topic(TopicEvent::Disconnected {
        why: "no way".into(),
        is_final: false,
    });
    assert_eq!(stage.entries().len(), entries);
    let again = TopicEvent::Welcomed {
        you: seen("boss"),
        others: vec![seen("worker")],
    };
    assert_eq!(names(&stage.topic(again)), ["refresh", "rules false"]);
    assert_eq!(stage.last(), "* connected again");
    stage.topic(TopicEvent::Disconnected {
        why: "replaced".into(),
        is_final: true,
    });
    assert_eq!(stage.state.connection, Connection::Over("replaced".into()));
}

#[test]
fn the_end_of_a_pause_is_shown_as_that() {
    let mut stage = Stage::screen(80, 24);
    let paused = |id: &str| ParticipantInfo {
        paused: true,
        ..seen(id)
    };
    for id in ["worker", "boss"] {
        if id == "boss" {
            let you = paused("boss");
            let others = vec![seen("worker")];
            stage.topic(TopicEvent::Welcomed { you, others });
        }
        stage.topic(TopicEvent::Changed(paused(id)));
        assert!(stage.last().contains(&format!("{id} is paused")));
        if id == "boss" {
            let you = seen("boss");
            let others = vec![seen("worker")];
            stage.topic(TopicEvent::Welcomed { you, others });
        }
        stage.topic(TopicEvent::Changed(seen(id)));
        assert!(
            stage.last().contains(&format!("{id} is resumed")),
            "{}",
            stage.last()
        );
        // Another change is one of capabilities.
        stage.topic(TopicEvent::Changed(seen(id)));
        assert!(stage.last().contains("capabilities"), "{}", stage.last());
    }
}

#[test]
fn typed_lines_are_commands_or_messages() {
    for (line, expect) in [
        ("hello", &["say None hello"][..]),
        ("/msg scout a b", &["say Some(\"scout\") a b"]),
        ("/pause scout a b", &["brake scout false \"a b\""]),
        ("/resume scout", &["brake scout true \"\""]),
        ("/msg gone a", &[]),
        ("/tools", &["tools [\"scout\", \"worker\"] false"]),
        ("/tools worker", &["tools [\"worker\"] true"]),
        (
            "/call worker echo {\"a\": 1}",
            &["call worker echo {\"a\": 1}"],
        ),
        ("/reject 1 too bold", &["end a false \"too bold\""]),
        ("/approve 2", &["approve b bb None None"]),
        (
            "/approve 2 only now",
            &["approve b bb None None with only now"],
        ),
        ("/approve 9", &[]),
        ("/allow 2 15m", &["capability b 900"]),
        ("/edit 1", &["edit a {\n  \"text\": \"please\"\n}\n"]),
        ("/withdraw 1", &["end a true \"\""]),
        ("/quit", &["quit"]),
        ("/who", &[]),
        ("", &[]),
    ] {
        let mut stage = Stage::new(ScreenMode::Lines(None));
        stage.pending(&[unsaid("a"), harmless("b")]);
        assert_eq!(
            names(&stage.take(ChatEvent::Line(line.into()))),
            expect,
            "{line}"
        );
    }
}

#[test]
fn without_a_screen_yes_confirms_and_any_other_line_drops_the_question() {
    let mut stage = Stage::new(ScreenMode::Lines(None));
    stage.pending(&[unsaid("a")]);
    let mut line = |line: &str| names(&stage.take(ChatEvent::Line(line.into())));
    assert_eq!(line("/yes"), NONE);
    assert_eq!(line("/approve 1"), NONE);
    assert_eq!(line("hello"), ["say None hello"]);
    assert_eq!(line("/yes"), NONE);
    assert_eq!(line("/approve 1"), NONE);
    assert_eq!(line("/yes"), ["approve a aa None None"]);
    assert_eq!(line("/edit 1 {\"text\": \"b\"}"), NONE);
    assert_eq!(
        line("/yes"),
        ["approve a aa Some(\"{\\\"text\\\": \\\"b\\\"}\") None"]
    );
    let asked = "Type /yes to approve it; any other line drops the question.";
    assert!(stage.entries().iter().any(|text| text.ends_with(asked)));
}

#[test]
fn on_the_screen_a_command_opens_the_card_and_decides_nothing() {
    let mut stage = Stage::screen(80, 24);
    stage.pending(&[harmless("a"), harmless("b")]);
    assert_eq!(names(&stage.press(&["/approve 2", "Enter"])), NONE);
    assert_eq!(
        (
            stage.state.focus,
            stage.state.inbox.selected().unwrap().number
        ),
        (Focus::Inbox, 2)
    );
    assert_eq!(names(&stage.press(&["a"])), ["approve b bb None None"]);
}

#[test]
fn pasted_text_is_typed_and_decides_nothing() {
    let mut stage = Stage::screen(80, 24);
    stage.take(ChatEvent::Paste("one\r\ntwo".into()));
    assert_eq!(stage.state.line.text(), "one\ntwo");
    assert_eq!(names(&stage.press(&["Enter"])), ["say None one\ntwo"]);
    let mut stage = at_inbox(&[unsaid("a")]);
    assert_eq!(names(&stage.take(ChatEvent::Paste("a".into()))), NONE);
    stage.press(&["a"]);
    assert_eq!(names(&stage.take(ChatEvent::Paste("y".into()))), NONE);
    stage.press(&["n", "r"]);
    stage.take(ChatEvent::Paste("because".into()));
    assert_eq!(names(&stage.press(&["Enter"])), ["end a false \"because\""]);
}

#[test]
fn earlier_lines_come_back_and_words_are_completed() {
    let mut stage = Stage::screen(80, 24);
    stage.press(&["one", "Enter", "two", "Enter", "one", "Enter"]);
    let mut line = |keys: &[&str]| {
        stage.press(keys);
        stage.state.line.text().to_owned()
    };
    assert_eq!(line(&["Up"]), "one");
    assert_eq!(line(&["Up"]), "two");
    assert_eq!(line(&["Up", "Up"]), "two");
    assert_eq!(line(&["Down", "Down"]), "");
    assert_eq!(line(&["/to", "Tab"]), "/tools ");
    assert_eq!(line(&["w", "Tab"]), "/tools worker ");
    assert_eq!(line(&["Ctrl-U", "/ca", "Tab"]), "/call");
    stage.press(&["Tab"]);
    assert_eq!(stage.state.notice(), Some("/call  /calls"));
    for number in 0..=EARLIER_LINES_MAX {
        stage.press(&["Ctrl-U", &format!("line {number}"), "Enter"]);
    }
    let earlier = &stage.state.earlier;
    assert_eq!(
        (earlier.len(), earlier[0].as_str()),
        (EARLIER_LINES_MAX, "line 1")
    );
}

#[test]
fn every_key_of_the_table_does_something() {
    let lines: Vec<String> = (0..60).map(|number| format!("line {number}")).collect();
    for binding in KEYS {
        for key in binding.keys {
            let mut stage = Stage::screen(80, 24);
            (0..60).for_each(|_| drop(stage.topic(chat("scout", &[], "words"))));
            let long = json!({ "params": { "name": "echo", "arguments": { "lines": lines } } });
            let own = proposal("d", &json!({ "by": "boss" }));
            stage.pending(&[unsaid("a"), proposal("b", &long), unsaid("c"), own]);
            let before: &[&str] = match (binding.place, *key) {
                (KeyContext::Inbox, "w") => &["F2", "j", "j", "j"],
                (KeyContext::Inbox, "Space" | "PgDn" | "G" | "End" | "k" | "Up") => &["F2", "j"],
                (KeyContext::Inbox, "b" | "PgUp" | "g" | "Home") => &["F2", "j", "Space"],
                (KeyContext::Inbox, _) => &["F2"],
                (KeyContext::Suggestions, "k" | "Up") => &["F2", "j"],
                (KeyContext::Suggestions, "b" | "PgUp") => &["F2", "Space"],
                (KeyContext::Suggestions, _) => &["F2"],
                (KeyContext::Talk, "Down") => &["one", "Enter", "two", "Enter", "Up", "Up"],
                (KeyContext::Talk, "Up") => &["one", "Enter"],
                (KeyContext::Talk, "PgDn" | "Ctrl-End" | "Esc") => &["PgUp"],
                (KeyContext::Talk, "Enter") => &["words"],
                (KeyContext::Line, _) => &["one two", "Left"],
                (KeyContext::Talk | KeyContext::Anywhere, _) => &[],
            };
            if binding.place == KeyContext::Suggestions {
                stage.press(&["F2"]);
                stage.take(ChatEvent::Suggestions(Ok(two_suggestions())));
                stage.press(&before[1..]);
            } else {
                stage.press(before);
            }
            let was = seen_by(&stage);
            let actions = stage.take(ChatEvent::Key(pressed(key).unwrap()));
            assert!(
                was != seen_by(&stage) || !actions.is_empty(),
                "{:?} {key}: {was}",
                binding.place
            );
        }
    }
}
