use super::*;
use crate::rpc::{self, Id};

fn text(bytes: Option<Vec<u8>>) -> String {
    String::from_utf8(bytes.unwrap()).unwrap()
}

/// Equal as JSON.
#[track_caller]
fn same(got: &str, expected: &str) {
    let canonical =
        |text: &str| String::from_utf8(json::canonical(text.as_bytes()).unwrap()).unwrap();
    assert_eq!(canonical(got), canonical(expected));
}

fn answer(result: &str, form: Form) -> Answer {
    let frame = rpc::result(&Id::number(1), result.as_bytes());
    Answer {
        outcome: Outcome::Ok,
        payload: relay::read_again(frame, form),
    }
}

const RELATED: &str = r#""io.modelcontextprotocol/related-task":{"taskId":"t"}"#;

#[test]
fn a_modern_task_is_an_object_of_2025() {
    let task = r#"{"resultType":"complete","taskId":"t","status":"completed","ttlMs":5,"pollIntervalMs":1e1,"x":-0.0,"result":{"content":[],"isError":true},"_meta":{"a":1}}"#;
    same(
        &text(to_legacy(task.as_bytes(), "mine")),
        r#"{"taskId":"mine","status":"failed","ttl":5,"pollInterval":1e1,"x":-0.0}"#,
    );
    let task = r#"{"taskId":"t","status":"input_required","inputRequests":{"k":{}}}"#;
    same(
        &text(to_legacy(task.as_bytes(), "t")),
        r#"{"taskId":"t","status":"input_required","ttl":null}"#,
    );
    assert!(
        text(to_legacy(br#"{"x":-0.0,"taskId":"t"}"#, "t")).contains(r#""x":-0.0"#),
        "spelled as it was"
    );
    assert_eq!(to_legacy(b"[]", "t"), None);
}

#[test]
fn a_task_of_2025_has_its_end_in_the_modern_form() {
    let task = br#"{"taskId":"t","status":"failed","ttl":null,"pollInterval":7,"x":1}"#;
    let result = format!(r#"{{"content":[],"isError":true,"_meta":{{{RELATED}}}}}"#);
    same(
        &text(got(
            task,
            "mine",
            Some(OperationState::Result(result.as_bytes())),
        )),
        r#"{"resultType":"complete","taskId":"mine","status":"completed","ttlMs":null,"pollIntervalMs":7,"x":1,"result":{"resultType":"complete","content":[],"isError":true}}"#,
    );
    same(
        &text(to_modern(
            task,
            "mine",
            Some(OperationState::Error(br#"{"code":1,"message":"m"}"#)),
        )),
        r#"{"taskId":"mine","status":"failed","ttlMs":null,"pollIntervalMs":7,"x":1,"error":{"code":1,"message":"m"}}"#,
    );
    same(
        &text(to_modern(task, "mine", Some(OperationState::Cancelled))),
        r#"{"taskId":"mine","status":"cancelled","ttlMs":null,"pollIntervalMs":7,"x":1}"#,
    );
    let asks = br#"{"taskId":"t","status":"input_required","ttl":9}"#;
    same(
        &text(to_modern(
            asks,
            "mine",
            Some(OperationState::InputRequired(b"{\"k\":{}}")),
        )),
        r#"{"taskId":"mine","status":"input_required","ttlMs":9,"inputRequests":{"k":{}}}"#,
    );
    let unasked = r#"{"taskId":"mine","status":"working","ttlMs":9}"#;
    same(&text(to_modern(asks, "mine", None)), unasked);
}

#[test]
fn a_made_task_is_nested_or_flat() {
    let immediate = r#""io.modelcontextprotocol/model-immediate-response":"w""#;
    let nested = format!(
        r#"{{"task":{{"taskId":"t","status":"working","ttl":9,"x":1}},"_meta":{{{immediate},"a":{{}}}}}}"#
    );
    let flat = made_in(&answer(&nested, Form::Legacy), Form::Modern, "mine").unwrap();
    let expected = r#"{"resultType":"task","taskId":"mine","status":"working","ttlMs":9,"x":1,"_meta":{"a":{}}}"#;
    same(
        std::str::from_utf8(flat.payload.body_bytes()).unwrap(),
        expected,
    );
    let flat = r#"{"resultType":"task","taskId":"t","status":"working","ttlMs":9,"x":1,"_meta":{"io.modelcontextprotocol/serverInfo":{},"a":{}}}"#;
    let nested = made_in(&answer(flat, Form::Modern), Form::Legacy, "mine").unwrap();
    let expected =
        r#"{"task":{"taskId":"mine","status":"working","ttl":9,"x":1},"_meta":{"a":{}}}"#;
    same(
        std::str::from_utf8(nested.payload.body_bytes()).unwrap(),
        expected,
    );
}

#[test]
fn the_end_of_a_modern_task_is_the_answer_of_its_call() {
    let end = end_of(br#"{"taskId":"t","status":"completed","result":{"content":[]}}"#).unwrap();
    assert_eq!(
        (end.outcome, end.payload.body_bytes()),
        (Outcome::Ok, &br#"{"content":[]}"#[..])
    );
    let end =
        end_of(br#"{"taskId":"t","status":"failed","error":{"code":1,"message":"m"}}"#).unwrap();
    assert_eq!(end.outcome, Outcome::Error);
    assert_eq!(
        standing_of(&end),
        OperationState::Error(br#"{"code":1,"message":"m"}"#)
    );
    for task in [
        r#"{"status":"working"}"#,
        r#"{"status":"cancelled"}"#,
        r#"{"status":"completed"}"#,
        "{}",
    ] {
        assert!(end_of(task.as_bytes()).is_none(), "{task}");
    }
    assert_eq!(
        (
            poll_ms(br#"{"pollIntervalMs":5}"#),
            poll_ms(br#"{"pollInterval":6}"#)
        ),
        (Some(5), Some(6))
    );
    assert_eq!(
        (poll_ms(b"{}"), poll_ms(br#"{"pollIntervalMs":-5}"#)),
        (None, None)
    );
}

#[test]
fn a_server_that_insists_on_tasks_is_recognised() {
    let error = |code: i64, needs: &str| {
        let raw = format!(
            r#"{{"code":{code},"message":"m","data":{{"requiredCapabilities":{{"extensions":{{"{needs}":{{}}}}}}}}}}"#
        );
        let frame = rpc::error_object(&Id::number(1), raw.as_bytes());
        Answer {
            outcome: Outcome::Error,
            payload: relay::read_again(frame, Form::Modern),
        }
    };
    assert!(wants_extension(&error(-32021, EXTENSION)));
    assert!(
        !wants_extension(&error(-32021, "other")) && !wants_extension(&error(-32020, EXTENSION))
    );
    assert!(!wants_extension(&answer("{}", Form::Modern)));
}

#[test]
fn messages_lose_the_task_that_they_belong_to() {
    let both = answer(
        &format!(r#"{{"content":[],"_meta":{{{RELATED},"a":1}}}}"#),
        Form::Legacy,
    );
    let fewer = unrelated(&both.payload).unwrap();
    same(
        std::str::from_utf8(fewer.body_bytes()).unwrap(),
        r#"{"content":[],"_meta":{"a":1}}"#,
    );
    let only = answer(
        &format!(r#"{{"content":[],"_meta":{{{RELATED}}}}}"#),
        Form::Legacy,
    );
    assert_eq!(
        unrelated(&only.payload).unwrap().body_bytes(),
        br#"{"content":[]}"#
    );
    assert!(unrelated(&fewer).is_none());
}

#[test]
fn tools_lose_what_they_say_about_tasks() {
    let tool = r#"{"name":"a","execution":{"taskSupport":"required"},"x":1.0}"#;
    assert_eq!(text(unmarked(tool.as_bytes())), r#"{"name":"a","x":1.0}"#);
    let tool = r#"{"execution":{"y":1,"taskSupport":"required"}}"#;
    same(&text(unmarked(tool.as_bytes())), r#"{"execution":{"y":1}}"#);
    assert_eq!(
        (unmarked(b"{}"), unmarked(br#"{"execution":{"y":1}}"#)),
        (None, None)
    );
}
