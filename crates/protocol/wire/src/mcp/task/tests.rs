use bytes::Bytes;
use json::Span;
use model::Form;

use super::*;
use crate::mcp::Params;
use crate::rpc::Message;

const TASK: TaskView<'_> = TaskView {
    id: "0f",
    standing: OperationState::Working,
    message: None,
    created_ms: 1_756_216_800_000,
    updated_ms: 1_756_216_801_500,
    ttl_ms: Some(300_000),
    poll_ms: None,
    awaits_approval: false,
};
/// The times that all tasks of these tests have.
const TIMES: &str =
    r#""createdAt":"2025-08-26T14:00:00.000Z","lastUpdatedAt":"2025-08-26T14:00:01.500Z""#;

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_created_task_is_nested_or_flat() {
    let task = TaskView {
        message: Some("waits for \"approval\""),
        poll_ms: Some(500),
        ..TASK
    };
    assert_eq!(
        text(created(&task, Form::Legacy, None)),
        format!(
            r#"{{"task":{{"taskId":"0f","status":"working","statusMessage":"waits for \"approval\"",{TIMES},"ttl":300000,"pollInterval":500}}}}"#
        )
    );
    assert_eq!(
        text(created(&TASK, Form::Legacy, Some("wait"))),
        format!(
            r#"{{"task":{{"taskId":"0f","status":"working",{TIMES},"ttl":300000}},"_meta":{{"io.modelcontextprotocol/model-immediate-response":"wait"}}}}"#
        )
    );
    assert_eq!(
        text(created(&task, Form::Modern, Some("wait"))),
        format!(
            r#"{{"resultType":"task","taskId":"0f","status":"working","statusMessage":"waits for \"approval\"",{TIMES},"ttlMs":300000,"pollIntervalMs":500}}"#
        )
    );
}

#[test]
fn a_task_that_waits_for_approval_says_that_its_call_is_denied_until_then() {
    let task = TaskView {
        awaits_approval: true,
        ..TASK
    };
    let denial = r#""io.modelcontextprotocol/authorization":{"reason":"insufficient_authorization","remediation":"available","remediationHints":[{"type":"task"}]}"#;
    let both = format!(
        r#""_meta":{{"io.modelcontextprotocol/model-immediate-response":"wait",{denial}}}"#
    );
    let alone = format!(r#""_meta":{{{denial}}}"#);
    for (written, form, meta) in [
        (
            created(&task, Form::Legacy, Some("wait")),
            "{\"task\":{",
            &both,
        ),
        (
            created(&task, Form::Modern, Some("wait")),
            "{\"resultType\":\"task\",",
            &alone,
        ),
        (get(&task, Form::Legacy), "{\"taskId\":", &alone),
        (
            get(&task, Form::Modern),
            "{\"resultType\":\"complete\",",
            &alone,
        ),
    ] {
        let written = text(written);
        assert!(
            written.starts_with(form) && written.ends_with(&format!("{meta}}}")),
            "{written}"
        );
    }
    // Notifications and lists have the task alone.
    assert!(!text(write::changed(&task, Form::Modern)).contains("_meta"));
    assert!(!text(cancelled(&task, Form::Legacy)).contains("_meta"));
}

#[test]
fn a_task_is_written_in_either_form() {
    let fine: &[u8] = br#"{"content":[]}"#;
    let wrong: &[u8] = br#"{"content":[],"isError":true}"#;
    let error: &[u8] = br#"{"code":-1,"message":"m"}"#;
    let asks: &[u8] = br#"{"q":{"method":"elicitation/create"}}"#;
    for (standing, legacy, modern) in [
        (OperationState::Working, "working", "working|"),
        (
            OperationState::InputRequired(asks),
            "input_required",
            r#"input_required|,"inputRequests":{"q":{"method":"elicitation/create"}}"#,
        ),
        (
            OperationState::Result(fine),
            "completed",
            r#"completed|,"result":{"content":[]}"#,
        ),
        (
            OperationState::Result(wrong),
            "failed",
            r#"completed|,"result":{"content":[],"isError":true}"#,
        ),
        (
            OperationState::Error(error),
            "failed",
            r#"failed|,"error":{"code":-1,"message":"m"}"#,
        ),
        (OperationState::Cancelled, "cancelled", "cancelled|"),
    ] {
        let task = TaskView {
            standing,
            ttl_ms: None,
            ..TASK
        };
        let old = format!(r#"{{"taskId":"0f","status":"{legacy}",{TIMES},"ttl":null}}"#);
        assert_eq!(text(get(&task, Form::Legacy)), old);
        assert_eq!(text(write::changed(&task, Form::Legacy)), old);
        assert_eq!(text(cancelled(&task, Form::Legacy)), old);
        let (status, more) = modern.split_once('|').unwrap();
        let new = format!(r#""taskId":"0f","status":"{status}",{TIMES},"ttlMs":null{more}}}"#);
        assert_eq!(
            text(get(&task, Form::Modern)),
            format!(r#"{{"resultType":"complete",{new}"#)
        );
        assert_eq!(
            text(write::changed(&task, Form::Modern)),
            format!("{{{new}")
        );
        assert_eq!(
            task.status(Form::Modern).is_over(),
            !matches!(status, "working" | "input_required")
        );
    }
}

#[test]
fn related_messages_name_their_task() {
    let id = r#""io.modelcontextprotocol/related-task":{"taskId":"0f"}"#;
    for (body, expect) in [
        ("{}", format!(r#"{{"_meta":{{{id}}}}}"#)),
        (
            r#"{"content":[1e400]}"#,
            format!(r#"{{"content":[1e400],"_meta":{{{id}}}}}"#),
        ),
        (
            r#"{"_meta":{"a":1}, "x":2}"#,
            format!(r#"{{"_meta":{{"a":1,{id}}}, "x":2}}"#),
        ),
        (r#"{"_meta":null}"#, format!(r#"{{"_meta":{{{id}}}}}"#)),
        (
            r#"{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"other"}}}"#,
            format!(r#"{{"_meta":{{{id}}}}}"#),
        ),
    ] {
        assert_eq!(
            related(body.as_bytes(), "0f").map(text),
            Ok(expect),
            "{body}"
        );
    }
    assert!(related(b"[]", "0f").is_err());
    assert!(related(br#"{"_meta":1}"#, "0f").is_err());
}

#[test]
fn tools_are_offered_as_tasks() {
    for (tool, expect) in [
        (
            r#"{"name":"x"}"#,
            r#"{"name":"x","execution":{"taskSupport":"optional"}}"#,
        ),
        (
            r#"{"execution":{"taskSupport":"required","v":1},"name":"x"}"#,
            r#"{"execution":{"taskSupport":"optional","v":1},"name":"x"}"#,
        ),
    ] {
        assert_eq!(offer(tool.as_bytes()).map(text), Ok(expect.to_owned()));
    }
}

/// The result of `read` for a request with these params.
fn with<T>(
    params: &str,
    read: impl Fn(&Params<'_>) -> Result<T, crate::rpc::Malformed>,
) -> Result<T, String> {
    let frame = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{params}}}"#);
    let message = Message::read(Bytes::from(frame)).unwrap();
    read(&Params::read(&message).unwrap()).map_err(|error| {
        assert_eq!((error.code, error.id.is_some()), (-32602, true));
        error.message
    })
}

#[test]
fn callers_ask_for_tasks() {
    for (params, expect) in [
        ("{}", Ok(())),
        (r#"{"task":{}}"#, Ok(())),
        (r#"{"task":{"ttl":null}}"#, Ok(())),
        (r#"{"task":{"ttl":60000,"v":1}}"#, Ok(())),
        (
            r#"{"task":{"ttl":-1}}"#,
            Err("`params.task.ttl` must be a number of milliseconds"),
        ),
        (
            r#"{"task":{"ttl":1.5}}"#,
            Err("`params.task.ttl` must be a number of milliseconds"),
        ),
        (
            r#"{"task":true}"#,
            Err("`params.task`: expected a JSON object"),
        ),
        (
            r#"{"task":{"ttl":1,"ttl":2}}"#,
            Err("`params.task`: the member \"ttl\" occurs twice"),
        ),
    ] {
        assert_eq!(
            with(params, check_params),
            expect.map_err(str::to_owned),
            "{params}"
        );
    }
}

#[test]
fn declarations_are_recognised() {
    let ours = format!(r#"{{"extensions":{ABILITIES}}}"#);
    let old = format!(r#"{{"tasks":{LEGACY_ABILITIES}}}"#);
    for (capabilities, modern, legacy) in [
        (ours.as_str(), true, false),
        (old.as_str(), false, true),
        (
            r#"{"extensions":{"io.modelcontextprotocol/ui":{}}}"#,
            false,
            false,
        ),
        (
            r#"{"extensions":{"io.modelcontextprotocol/tasks":null}}"#,
            false,
            false,
        ),
        (r#"{"extensions":[]}"#, false, false),
        ("{}", false, false),
        ("null", false, false),
        ("", false, false),
    ] {
        let found = (
            declares(capabilities.as_bytes()),
            read::within(capabilities.as_bytes(), &["tasks"]),
        );
        assert_eq!(found, (modern, legacy), "{capabilities}");
    }
    let all = ["{\"resultType\":\"complete\"}", LEGACY_ABILITIES, ABILITIES];
    assert!(
        all.iter()
            .all(|raw| json::members(raw.as_bytes(), Span::all(raw.as_bytes())).is_ok())
    );
}

#[test]
fn only_some_answers_contain_the_result() {
    use TaskStatus::{Completed, Failed, Working};
    for (form, method, is_ok, status, expected) in [
        (Form::Legacy, "tasks/result", true, Working, true),
        (Form::Legacy, "tasks/result", false, Completed, false),
        (Form::Legacy, "tasks/result", false, Failed, true),
        (Form::Legacy, "tasks/get", true, Completed, false),
        (Form::Modern, "tasks/get", true, Completed, true),
        (Form::Modern, "tasks/get", true, Working, false),
        (Form::Modern, "tasks/get", false, Completed, false),
        (Form::Modern, "tasks/cancel", true, Completed, false),
    ] {
        let got = has_result(form, method, is_ok, status);
        assert_eq!(got, expected, "{form:?} {method} {is_ok} {status:?}");
    }
}
