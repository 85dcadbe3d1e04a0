//! Suggested rules: each is decided when all of it was shown.

use super::{two_suggestions, unsaid};
use crate::api::ApiRefusal;
use crate::inbox::SETTLE_MS;
use crate::state::{Action, ChatEvent, Focus};
use crate::tests_support::Stage;

#[test]
fn a_suggested_rule_is_decided_when_all_of_it_was_shown_with_a_second_key() {
    let mut stage = Stage::screen(80, 24);
    stage.pending(&[unsaid("a")]);
    let asked = stage.press(&["F2", "s"]);
    assert!(
        matches!(asked.as_slice(), [Action::FindSuggestions]),
        "{asked:?}"
    );
    stage.take(ChatEvent::Suggestions(Ok(two_suggestions())));
    // No key of the inbox decides the proposal behind it.
    assert!(stage.press(&["a", "y", "w", "h", "e", "c"]).is_empty());
    assert!(stage.state.prompt.is_none());
    let notice = stage
        .press(&["a"])
        .is_empty()
        .then(|| stage.state.notice().unwrap().to_owned());
    assert!(
        notice
            .unwrap()
            .contains("rows of the rule were not shown yet")
    );
    stage.press(&["Space", "Space", "Space"]);
    // What was seen at another width is not what is shown now.
    let (columns, rows) = (60, 24);
    stage.take(ChatEvent::Resize { columns, rows });
    stage.press(&["b", "b", "b", "a"]);
    assert!(stage.state.suggestions.as_ref().unwrap().asked.is_none());
    stage.press(&["b", "b", "b", "Space", "Space", "Space", "Space"]);
    // Any other key than y drops the question.
    assert!(stage.press(&["a", "n", "y"]).is_empty());
    for (key, accepts, digest) in [("a", true, "d1"), ("r", false, "d2")] {
        stage.press(&["Space", "Space", "Space", key]);
        let actions = stage.press(&["y"]);
        let [Action::DecideSuggestion { digest: of, accept }] = actions.as_slice() else {
            panic!("{actions:?}");
        };
        assert_eq!((of.as_str(), *accept), (digest, accepts));
        // One that was not decided stays.
        let failed = Err("! no".to_owned());
        stage.take(ChatEvent::SuggestionDecided {
            digest: of.clone(),
            done: failed,
        });
        assert_eq!(stage.state.notice(), Some("! no"));
        assert_eq!(
            stage.state.suggestions.as_ref().unwrap().digest(),
            Some(digest)
        );
        let done = Ok("= done".to_owned());
        stage.take(ChatEvent::SuggestionDecided {
            digest: of.clone(),
            done,
        });
        assert_eq!(stage.last(), "= done");
        stage.now_ms += SETTLE_MS;
    }
    assert!(stage.state.suggestions.as_ref().unwrap().is_empty());
    assert!(stage.press(&["a"]).is_empty());
    // Back at the proposals, and then in the talk.
    stage.press(&["Esc"]);
    assert!(stage.state.suggestions.is_none() && stage.state.focus == Focus::Inbox);
    stage.take(ChatEvent::Suggestions(Err(ApiRefusal {
        code: None,
        message: "no".into(),
        hint: None,
    })));
    assert_eq!(stage.state.notice(), Some("No rules can be shown: no"));
}
