//! Keys and answers that are late: what they were meant for has changed meanwhile.

use serde_json::json;

use super::{NONE, at_inbox, harmless, like_rule, names, two_suggestions, unsaid};
use crate::inbox::{REREAD_MS, SETTLE_MS};
use crate::keys::Deed;
use crate::state::{ChatEvent, Focus, Prompt, ScreenMode};
use crate::suggested::Suggestions;
use crate::tests_support::{Stage, proposal};
use crate::update::suggest;
use review::ProposalDetails;

/// Suggestions that fit on a screen.
fn short_suggestions(digests: &[&str]) -> ChatEvent {
    let one = |digest: &&str| json!({ "digest": digest, "sentence": "Approve it" });
    let offers: Vec<_> = digests.iter().map(one).collect();
    ChatEvent::Suggestions(Ok(Suggestions::read(&json!({ "offers": offers }))))
}

fn at_suggestions(digests: &[&str]) -> Stage {
    let mut stage = at_inbox(&[]);
    stage.take(short_suggestions(digests));
    stage
}

fn put_in_force(stage: &mut Stage, digest: &str) {
    stage.take(ChatEvent::SuggestionDecided {
        digest: digest.to_owned(),
        done: Ok("= done".to_owned()),
    });
}

fn open_rule(stage: &Stage) -> Option<&str> {
    stage.state.suggestions.as_ref()?.digest()
}

/// The proposal `id` as another request than before.
fn amended(id: &str) -> ProposalDetails {
    ProposalDetails {
        digest: "other".into(),
        ..unsaid(id)
    }
}

#[test]
fn a_yes_to_one_suggested_rule_does_not_put_the_next_one_in_force() {
    let mut stage = at_suggestions(&["d1", "d2"]);
    assert_eq!(names(&stage.press(&["a", "y"])), ["decide d1 true"]);
    // The gateway is slow: the same keys ask nothing until it has answered.
    for key in ["a", "r"] {
        assert_eq!(names(&stage.press(&[key])), NONE);
        assert!(stage.state.notice().unwrap().contains("on its way"));
    }
    put_in_force(&mut stage, "d1");
    assert_eq!(open_rule(&stage), Some("d2"));
    assert_eq!(names(&stage.press(&["y", "a", "y", "r", "y"])), NONE);
    stage.press(&["a"]);
    assert!(stage.state.notice().unwrap().contains("has just opened"));
    stage.now_ms += SETTLE_MS;
    assert_eq!(names(&stage.press(&["y"])), NONE);
    assert_eq!(names(&stage.press(&["a", "y"])), ["decide d2 true"]);
}

#[test]
fn a_question_about_a_rule_ends_with_it() {
    let mut stage = at_suggestions(&["d1", "d2"]);
    stage.press(&["a", "y"]);
    // The page is read again before the answer, and the rule is asked about once more.
    stage.press(&["Esc", "s"]);
    stage.take(short_suggestions(&["d1", "d2"]));
    stage.press(&["a"]);
    let shown = stage.state.suggestions.as_ref().unwrap();
    assert_eq!(shown.asked.as_ref().unwrap().digest, "d1");
    put_in_force(&mut stage, "d1");
    assert!(stage.state.suggestions.as_ref().unwrap().asked.is_none());
    stage.now_ms += SETTLE_MS;
    assert_eq!(names(&stage.press(&["y"])), NONE);
}

#[test]
fn the_open_rule_stays_open_when_another_one_is_decided() {
    let mut stage = at_suggestions(&["d1", "d2", "d3"]);
    stage.press(&["a", "y", "j"]);
    put_in_force(&mut stage, "d1");
    assert_eq!(open_rule(&stage), Some("d2"));
    // The last one is decided: the one before it opens.
    stage.now_ms += SETTLE_MS;
    stage.press(&["j", "a", "y"]);
    put_in_force(&mut stage, "d3");
    assert_eq!(open_rule(&stage), Some("d2"));
}

/// Answers of the look-ups for `h` and `/allow`, about the request `aa` of the proposal `a`.
fn looked_up() -> [ChatEvent; 2] {
    let (id, digest) = ("a".to_owned(), "aa".to_owned());
    [
        ChatEvent::Like {
            id: id.clone(),
            digest: digest.clone(),
            found: Ok(like_rule("scout may call echo", 900)),
        },
        ChatEvent::Capability {
            id,
            digest,
            seconds: 900,
            found: Ok("mcp/request:tools/call:echo".to_owned()),
        },
    ]
}

/// Takes both answers, each of which must ask nothing and say so.
fn nothing_is_asked(mut prepare: impl FnMut() -> Stage, words: &str) {
    for answer in looked_up() {
        let mut stage = prepare();
        let before = format!("{:?}", stage.state.prompt);
        stage.take(answer);
        assert_eq!(format!("{:?}", stage.state.prompt), before);
        let said = stage.state.notice().unwrap();
        assert!(said.contains(words), "{said}");
        assert_eq!(names(&stage.press(&["y"])), NONE);
    }
}

#[test]
fn an_answer_about_a_former_request_approves_no_later_one() {
    let stage = || {
        let mut stage = at_inbox(&[unsaid("a")]);
        stage.press(&["h", "1"]);
        stage.take(ChatEvent::Inbox(Ok(vec![amended("a")])));
        stage.now_ms += REREAD_MS;
        stage
    };
    nothing_is_asked(stage, "#1 is not the request any more");
}

#[test]
fn an_answer_takes_no_key_that_is_meant_for_something_else() {
    for keys in [&["r"][..], &["F2"], &["j"]] {
        let stage = || {
            let mut stage = at_inbox(&[unsaid("a"), unsaid("b")]);
            stage.press(&["h", "1"]);
            stage.press(keys);
            stage
        };
        nothing_is_asked(stage, "you do something else now");
    }
    let suggestions = || {
        let mut stage = at_inbox(&[unsaid("a")]);
        stage.press(&["h", "1"]);
        stage.take(ChatEvent::Suggestions(Ok(two_suggestions())));
        stage
    };
    nothing_is_asked(suggestions, "you do something else now");
}

#[test]
fn an_answer_asks_nothing_about_a_card_that_is_not_read_any_more() {
    let lines: Vec<String> = (0..60).map(|number| format!("line {number}")).collect();
    let more = json!({ "params": { "name": "echo", "arguments": { "lines": lines } } });
    let stage = || {
        let mut stage = at_inbox(&[proposal("a", &more)]);
        let pages = ["Space", "Space", "Space", "Space"];
        stage.press(&pages);
        assert_eq!(names(&stage.press(&["h", "1"])), ["like a 900 \"\""]);
        stage.press(&["Home"]);
        let (columns, rows) = (61, 24);
        stage.take(ChatEvent::Resize { columns, rows });
        stage
    };
    nothing_is_asked(stage, "not shown yet");
}

/// Opens the prompt that these keys open, or that of conditions for none.
fn asking(stage: &mut Stage, keys: &[&str]) {
    if keys.is_empty() {
        let [like, _] = looked_up();
        stage.press(&["h", "1"]);
        stage.take(like);
        stage.press(&["e"]);
        let prompt = stage.state.prompt.as_ref();
        assert!(matches!(prompt, Some(Prompt::Conditions { .. })));
    }
    stage.press(keys);
    assert!(stage.state.prompt.is_some(), "{keys:?}");
}

#[test]
fn a_question_ends_when_its_proposal_is_another_request() {
    for keys in [&["a"][..], &["A"], &["r"], &["e"], &["h"], &[]] {
        let mut stage = at_inbox(&[unsaid("a"), unsaid("b")]);
        asking(&mut stage, keys);
        // That of another proposal changes nothing.
        stage.take(ChatEvent::Inbox(Ok(vec![unsaid("a"), amended("b")])));
        assert!(stage.state.prompt.is_some(), "{keys:?}");
        stage.take(ChatEvent::Inbox(Ok(vec![amended("a"), amended("b")])));
        assert!(stage.state.prompt.is_none(), "{keys:?}");
        let said = stage.state.notice().unwrap();
        assert!(said.starts_with("#1 is another request now"), "{said}");
        // What is typed on decides nothing.
        assert_eq!(names(&stage.press(&["y", "a", "r", "Enter"])), NONE);
        assert!(stage.state.prompt.is_none(), "{keys:?}");
    }
    let mut stage = at_inbox(&[unsaid("a")]);
    stage.take(ChatEvent::Inbox(Ok(vec![amended("a")])));
    stage.now_ms += REREAD_MS;
    assert_eq!(
        names(&stage.press(&["a", "y"])),
        ["approve a other None None"]
    );
    assert_eq!(names(&stage.press(&["r", "Enter"])), ["end a false \"\""]);
}

#[test]
fn without_a_screen_yes_confirms_no_later_request() {
    let mut stage = Stage::new(ScreenMode::Lines(None));
    stage.pending(&[unsaid("a")]);
    assert_eq!(
        names(&stage.take(ChatEvent::Line("/approve 1".into()))),
        NONE
    );
    stage.pending(&[amended("a")]);
    assert!(stage.last().starts_with("#1 is another request now"));
    stage.now_ms += REREAD_MS;
    assert_eq!(names(&stage.take(ChatEvent::Line("/yes".into()))), NONE);
}

#[test]
fn the_end_and_a_page_more_are_harmless_on_a_screen_that_is_too_small() {
    let mut stage = Stage::screen(23, 7);
    stage.pending(&[harmless("a")]);
    stage.press(&["F2", "End", "PgDn", "Space"]);
    stage.take(ChatEvent::Suggestions(Ok(two_suggestions())));
    // No key goes to the end there.
    suggest::deed(&mut stage.state, Deed::Bottom, 1);
    stage.press(&["PgDn", "Space"]);
    let (columns, rows) = (80, 24);
    stage.take(ChatEvent::Resize { columns, rows });
    assert!(stage.state.suggestions.as_ref().unwrap().scroll < 100);
    stage.press(&["Esc"]);
    assert_eq!(
        (stage.state.inbox.scroll, stage.state.focus),
        (0, Focus::Inbox)
    );
}
