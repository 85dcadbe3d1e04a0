//! Interviews with a scripted person.

use super::*;
use crate::terminal::Script;

fn asked(method: &str, params: Value, answers: &[&'static str]) -> (Result<Value, (i64, String)>, String) {
    let mut script = Script::new(true, answers);
    let question = Question { method: method.into(), params: params.to_string() };
    let answer = Interview::new(&mut script, Output::new(false, true, true)).answer(&question);
    (answer, script.shown)
}

fn form() -> Value {
    json!({
        "mode": "form",
        "message": "Who are you?",
        "requestedSchema": {
            "type": "object",
            "properties": {
                "age": { "type": "integer", "minimum": 1 },
                "color": { "type": "string", "enum": ["red", "green"], "default": "green" },
                "name": { "type": "string" },
            },
            "required": ["age"],
        },
    })
}

#[test]
fn a_form_is_filled_in_shown_and_sent() {
    let (answer, shown) = asked("elicitation/create", form(), &["y", "zero", "0", "7", "", "", "y"]);
    assert_eq!(answer, Ok(json!({ "action": "accept", "content": { "age": 7, "color": "green" } })));
    assert!(shown.contains("it must be at least 1"), "{shown}");
    assert!(shown.contains(r#"This is sent: {"age":7,"color":"green"}"#), "{shown}");
}

#[test]
fn a_person_may_decline_or_stop() {
    for (answers, expect) in [
        (&["n"][..], "decline"),
        (&[], "decline"),
        (&["y", "7", ""], "cancel"),
        (&["y", "7", "", "", "n"], "decline"),
        (&["y", "x", "x", "x", "x", "x"], "cancel"),
    ] {
        assert_eq!(asked("elicitation/create", form(), answers).0, Ok(action(expect)), "{answers:?}");
    }
}

#[test]
fn nobody_at_the_terminal_declines() {
    let mut script = Script::default();
    let mut interview = Interview::new(&mut script, Output::new(false, true, true));
    assert_eq!(interview.capabilities(), json!({ "elicitation": { "form": {}, "url": {} } }));
    let question = Question { method: "elicitation/create".into(), params: form().to_string() };
    assert_eq!(interview.answer(&question), Ok(action("decline")));
    let question = Question { method: "sampling/createMessage".into(), params: "{}".into() };
    assert_eq!(interview.answer(&question).unwrap_err().0, REJECTED);
}

#[test]
fn urls_are_shown_whole_and_lookalikes_are_named() {
    let url = format!("https://xn--pple-43d.example/{}\u{202e}", "a".repeat(300));
    let params = json!({ "mode": "url", "message": "sign in\u{1b}[2J", "url": url, "elicitationId": "1" });
    let (answer, shown) = asked("elicitation/create", params, &["y"]);
    assert_eq!(answer, Ok(action("accept")));
    assert!(shown.contains(&format!("{}\\u{{202e}}", "a".repeat(300))), "{shown}");
    assert!(shown.contains("sign in\\u{1b}[2J"), "{shown}");
}

#[test]
fn a_person_may_answer_for_a_model() {
    let params = json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": "2 + 2?" } }] });
    let (answer, shown) = asked("sampling/createMessage", params.clone(), &["4"]);
    assert_eq!(answer.unwrap()["content"]["text"], "4");
    assert!(shown.contains("user: 2 + 2?"));
    assert_eq!(asked("sampling/createMessage", params, &[""]).0.unwrap_err().0, REJECTED);
}

#[test]
fn what_was_not_offered_is_refused() {
    assert_eq!(asked("roots/list", json!({}), &[]).0.unwrap_err().0, -32601);
    assert_eq!(asked("ping", json!({}), &[]).0, Ok(json!({})));
}
