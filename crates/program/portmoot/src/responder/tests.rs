//! Responder tests with a scripted terminal.

use super::*;
use crate::scripted::ScriptedTerminal;

fn respond(
    method: &str,
    params: Value,
    answers: &[&'static str],
) -> (Result<Value, (i64, String)>, String) {
    let mut script = ScriptedTerminal::new(true, answers);
    let mut responder = TerminalResponder::new(&mut script, Output::new(false, true, true));
    let answer = responder.answer(method, &params.to_string());
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
    let (answer, shown) = respond(
        "elicitation/create",
        form(),
        &["y", "zero", "0", "7", "", "", "y"],
    );
    assert_eq!(
        answer,
        Ok(json!({ "action": "accept", "content": { "age": 7, "color": "green" } }))
    );
    assert!(shown.contains("it must be at least 1"), "{shown}");
    assert!(
        shown.contains(r#"This will be sent: {"age":7,"color":"green"}"#),
        "{shown}"
    );
}

#[test]
fn the_user_can_decline_or_cancel() {
    for (answers, expect) in [
        (&["n"][..], "decline"),
        (&[], "decline"),
        (&["y", "7", ""], "cancel"),
        (&["y", "7", "", "", "n"], "decline"),
        (&["y", "x", "x", "x", "x", "x"], "cancel"),
    ] {
        assert_eq!(
            respond("elicitation/create", form(), answers).0,
            Ok(action(expect)),
            "{answers:?}"
        );
    }
}

#[test]
fn requests_are_declined_without_a_terminal() {
    let mut script = ScriptedTerminal::default();
    let mut responder = TerminalResponder::new(&mut script, Output::new(false, true, true));
    assert_eq!(responder.capabilities(), json!({}));
    assert_eq!(
        responder.answer("elicitation/create", &form().to_string()),
        Ok(action("decline"))
    );
    assert_eq!(
        responder
            .answer("sampling/createMessage", "{}")
            .unwrap_err()
            .0,
        REJECTED
    );
}

#[test]
fn urls_are_shown_whole_with_a_warning_about_lookalikes() {
    let url = format!("https://xn--pple-43d.example/{}\u{202e}", "a".repeat(300));
    let params =
        json!({ "mode": "url", "message": "sign in\u{1b}[2J", "url": url, "elicitationId": "1" });
    let (answer, shown) = respond("elicitation/create", params, &["y"]);
    assert_eq!(answer, Ok(action("accept")));
    assert!(
        shown.contains(&format!("{}\\u{{202e}}", "a".repeat(300))),
        "{shown}"
    );
    assert!(shown.contains("sign in\\u{1b}[2J"), "{shown}");
}

#[test]
fn the_user_can_answer_a_sampling_request() {
    let params = json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": "2 + 2?" } }] });
    let (answer, shown) = respond("sampling/createMessage", params.clone(), &["4"]);
    assert_eq!(answer.unwrap()["content"]["text"], "4");
    assert!(shown.contains("user: 2 + 2?"));
    assert_eq!(
        respond("sampling/createMessage", params, &[""])
            .0
            .unwrap_err()
            .0,
        REJECTED
    );
}

#[test]
fn unsupported_requests_are_rejected() {
    assert_eq!(
        respond("roots/list", json!({}), &[]).0.unwrap_err().0,
        -32601
    );
    assert_eq!(respond("ping", json!({}), &[]).0, Ok(json!({})));
}
