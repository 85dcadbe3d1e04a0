use crate::{
    AccessAnswer, AccessQuestion, AuthzenFault, NextStep, RequestStatus, RequestableDenial,
    read_evaluation, read_task,
};

fn question() -> AccessQuestion {
    AccessQuestion {
        subject: br#"{"type":"participant","id":"scout"}"#.to_vec(),
        action: "tools/call".to_owned(),
        resource: br#"{"type":"tool","id":"files/delete"}"#.to_vec(),
        context: br#"{"call":"ab"}"#.to_vec(),
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// A task that is approved, with this result.
fn approved(result: &str) -> String {
    format!(r#"{{"task":{{"id":"t","status":"approved"}},"result":{result}}}"#)
}

const REQUESTABLE: &str = r#"{"decision":false,"context":{"evaluation_id":"e1","evaluated_at":"2026-04-30T20:15:00Z",
    "reason":"approval_required","access_request":{"template":"m","expires_at":"2026-04-30T20:25:00Z","binding_token":"a.b.c"}}}"#;

fn requestable() -> RequestableDenial {
    let Ok(AccessAnswer::Denied(denial)) = read_evaluation(REQUESTABLE.as_bytes()) else {
        panic!("it is a denial");
    };
    let NextStep::Request(requestable) = denial.next else {
        panic!("{denial:?}");
    };
    requestable
}

#[test]
fn bodies_have_these_bytes() {
    let question = question();
    assert_eq!(
        text(&question.evaluation(None)),
        r#"{"subject":{"type":"participant","id":"scout"},"action":{"name":"tools/call"},"resource":{"type":"tool","id":"files/delete"},"context":{"call":"ab"}}"#
    );
    assert_eq!(
        text(&question.access_request(&requestable())),
        r#"{"subject":{"type":"participant","id":"scout"},"action":{"name":"tools/call"},"resource":{"type":"tool","id":"files/delete"},"context":{"call":"ab"},"client":{"id":"portmoot"},"denial":{"evaluation_id":"e1","evaluated_at":"2026-04-30T20:15:00Z","expires_at":"2026-04-30T20:25:00Z","reason":"approval_required","binding_token":"a.b.c","template":"m"}}"#
    );
}

#[test]
fn an_approval_goes_back_byte_for_byte() {
    let raw = r#"{ "id" : "apr","approved_until":"2026-05-01T00:42:00Z","state":{"n": 1.0e2,"é":"\u00e9"}}"#;
    let task =
        read_task(approved(&format!(r#"{{"mode":"reevaluate","approval":{raw}}}"#)).as_bytes());
    let RequestStatus::Approved(approval) = task.unwrap().status else {
        panic!("it is approved");
    };
    assert_eq!(
        (approval.id.as_str(), approval.until_ms),
        ("apr", 1_777_596_120_000)
    );
    let body = question().evaluation(Some(&approval));
    let expected = format!(r#""context":{{"call":"ab","approval":{raw}}}}}"#);
    assert!(text(&body).ends_with(&expected), "{}", text(&body));
}

/// The gist of an answer to an evaluation.
fn gist(raw: &str) -> String {
    match read_evaluation(raw.as_bytes()) {
        Ok(AccessAnswer::Permitted(None)) => "permitted".to_owned(),
        Ok(AccessAnswer::Permitted(Some(until))) => format!("permitted until {until}"),
        Ok(AccessAnswer::Denied(denial)) => match denial.next {
            NextStep::None => "denied".to_owned(),
            NextStep::Request(_) => "request".to_owned(),
            NextStep::Form => "form".to_owned(),
            NextStep::Retry(after) => format!("retry {after:?}"),
        },
        Err(AuthzenFault::Malformed(_)) => "malformed".to_owned(),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn only_a_plain_true_permits() {
    let offer = r#""access_request":{"expires_at":"2026-04-30T20:25:00Z","binding_token":"x"}"#;
    let denied = |context: &str| format!(r#"{{"decision":false,"context":{{{context}}}}}"#);
    for (raw, expect) in [
        (r#"{"decision":true}"#.to_owned(), "permitted"),
        (
            r#"{"decision":true,"context":{"approval":{"approved_until":"1970-01-01T00:00:01Z"}}}"#
                .to_owned(),
            "permitted until 1000",
        ),
        (
            r#"{"decision":true,"context":{"approval":{"approved_until":"soon"}}}"#.to_owned(),
            "malformed",
        ),
        (r#"{"decision":"true"}"#.to_owned(), "malformed"),
        (r#"{"decision":1}"#.to_owned(), "malformed"),
        (
            r#"{"decision":true,"decision":false}"#.to_owned(),
            "malformed",
        ),
        (
            r#"{"decision":false,"d\u0065cision":true}"#.to_owned(),
            "malformed",
        ),
        (r#"{"decision":true"#.to_owned(), "malformed"),
        (r#"[{"decision":true}]"#.to_owned(), "malformed"),
        (r#"{"decision":true,"context":"x"}"#.to_owned(), "malformed"),
        (String::new(), "malformed"),
        (r#"{"decision":false}"#.to_owned(), "denied"),
        (denied(""), "denied"),
        (denied(r#""reason":7"#), "malformed"),
        (denied(offer), "request"),
        // Neither a token nor an id binds.
        (
            denied(r#""access_request":{"expires_at":"2026-04-30T20:25:00Z"}"#),
            "malformed",
        ),
        (
            denied(r#""evaluation_id":"e","access_request":{"expires_at":"2026-04-30T20:25:00Z"}"#),
            "request",
        ),
        (
            denied(r#""evaluation_id":"e","access_request":{"expires_at":"tomorrow"}"#),
            "malformed",
        ),
        (
            denied(r#""evaluation_id":"e","access_request":{}"#),
            "malformed",
        ),
        (denied(r#""access_request":true"#), "malformed"),
        // A person would have to fill it in.
        (
            denied(
                r#""evaluation_id":"e","access_request":{"expires_at":"2026-04-30T20:25:00Z","request_schema_url":"https://x/"}"#,
            ),
            "form",
        ),
        // `next_action` first, then what a known reason means, then the offer.
        (
            denied(r#""next_action":"retry","retry_after":7"#),
            "retry Some(7)",
        ),
        (
            denied(r#""next_action":"retry"#.to_owned().as_str()),
            "malformed",
        ),
        (
            denied(r#""next_action":"retry","retry_after":-1"#),
            "malformed",
        ),
        (denied(r#""next_action":"request""#), "denied"),
        (
            denied(&format!(r#""next_action":"none",{offer}"#)),
            "denied",
        ),
        (
            denied(&format!(r#""next_action":"dance",{offer}"#)),
            "request",
        ),
        (denied(r#""reason":"grant_pending""#), "retry None"),
        (
            denied(&format!(r#""reason":"policy_denied",{offer}"#)),
            "denied",
        ),
        (
            denied(&format!(r#""reason":"approval_expired",{offer}"#)),
            "request",
        ),
        (denied(r#""reason":"approval_expired""#), "denied"),
    ] {
        assert_eq!(gist(&raw), expect, "{raw}");
    }
}

#[test]
fn only_a_result_to_evaluate_again_is_an_approval() {
    let approval = r#"{"id":"a","approved_until":"2026-05-01T00:42:00Z"}"#;
    let of_status = |status: &str| format!(r#"{{"task":{{"id":"t","status":"{status}"}}}}"#);
    let with_items = approved(&format!(r#"{{"mode":"reevaluate","approval":{approval}}}"#))
        .replace(r#""approved"}"#, r#""approved","items":[]}"#);
    for (raw, expect) in [
        (
            approved(&format!(r#"{{"mode":"reevaluate","approval":{approval}}}"#)),
            "approved",
        ),
        (
            approved(&format!(r#"{{"mode":"token","approval":{approval}}}"#)),
            "over",
        ),
        (
            approved(&format!(r#"{{"approval":{approval}}}"#)),
            "malformed",
        ),
        (approved(r#"{"mode":"reevaluate"}"#), "malformed"),
        (
            approved(r#"{"mode":"reevaluate","approval":{"id":"a"}}"#),
            "malformed",
        ),
        (
            approved(
                r#"{"mode":"reevaluate","approval":{"approved_until":"2026-05-01T00:42:00Z"}}"#,
            ),
            "malformed",
        ),
        (of_status("approved"), "malformed"),
        (with_items, "over"),
        (of_status("pending"), "pending"),
        (of_status("denied"), "denied"),
        (of_status("expired"), "over"),
        (of_status("cancelled"), "over"),
        (of_status("failed"), "over"),
        (of_status("partial"), "over"),
        (of_status("APPROVED"), "over"),
        (r#"{"task":{"id":"t"}}"#.to_owned(), "malformed"),
        (r#"{"task":{"status":"pending"}}"#.to_owned(), "malformed"),
        (
            r#"{"task":{"id":"t","status":"pending","expires_at":"x"}}"#.to_owned(),
            "malformed",
        ),
        (
            r#"{"task":{"id":"t","status":"pending","links":[]}}"#.to_owned(),
            "malformed",
        ),
        (r#"{"result":{}}"#.to_owned(), "malformed"),
    ] {
        let read = match read_task(raw.as_bytes()) {
            Ok(task) => match task.status {
                RequestStatus::Pending => "pending",
                RequestStatus::Approved(_) => "approved",
                RequestStatus::Denied => "denied",
                RequestStatus::Over => "over",
            },
            Err(AuthzenFault::Malformed(_)) => "malformed",
            Err(other) => panic!("{other}"),
        };
        assert_eq!(read, expect, "{raw}");
    }
}
