//! Views of one proposal in each of its states.

use std::sync::Arc;

use bytes::Bytes;
use model::Outcome;
use wire::mcp::result::words;
use wire::mcpx::payload;

use super::*;
use crate::fixture::{OPENED, opened};
use crate::proposals::content::Proposed;
use crate::proposals::kept::OpenedProposal;

fn proposal(method: &str, state: ProposalState) -> ProposalView {
    let opened = OpenedProposal {
        to: vec!["a".into()],
        method: method.into(),
        context: Some("echo".into()),
        held: true,
        approvals: None,
        at_ms: 5,
        expires_ms: 9,
        ..opened()
    };
    let id = |name: &str| ParticipantId::new(name).unwrap();
    ProposalView {
        id: OPENED,
        by: id("scout"),
        envelope: "p1".into(),
        content: Proposed::new(opened, None, 0, [None, None]),
        held: true,
        state,
        reason: None,
        expires_wall_ms: 9,
        extensions: 0,
        amendments: 0,
        plan: None,
        approvals: 1,
        approved_by: Vec::new(),
        notes: Vec::new(),
        decided_by: (state != ProposalState::Pending).then(|| id("boss")),
        ruling: None,
        fulfilment: None,
        answer: None,
        updated_ms: 0,
        claims: Vec::new(),
        deciders: Vec::new(),
        in_room: false,
        absent: Vec::new(),
    }
}

fn with_answer(proposal: ProposalView, frame: &'static str) -> ProposalView {
    ProposalView {
        answer: payload::read_answer(Bytes::from_static(frame.as_bytes())),
        ..proposal
    }
}

fn text(answer: &Answer) -> String {
    String::from_utf8(answer.payload.body_bytes().to_vec()).unwrap()
}

const RESULT: &str = r#"{"jsonrpc":"2.0","id":5,"result":{"content":[]}}"#;
const ERROR: &str = r#"{"jsonrpc":"2.0","id":5,"error":{"code":1,"message":"m"}}"#;

#[test]
fn a_caller_is_told_what_to_wait_for() {
    let mut pending = proposal("tools/call", ProposalState::Pending);
    let waiting = |pending: &ProposalView| View::at(pending, Form::Legacy, 0).waiting();
    for needed in [
        "needs approval",
        "`echo` of a",
        "no participant that could approve it",
        "wait_for_proposal",
        &pending.id.to_string(),
    ] {
        assert!(waiting(&pending).contains(needed), "{needed}");
    }
    let seen = View {
        shown_to: vec![ParticipantId::new("cy").unwrap()],
        ..View::at(&pending, Form::Legacy, 0)
    };
    let words = seen.waiting();
    assert!(
        words.contains("cy has seen it and can approve it"),
        "{words}"
    );
    pending.deciders = ["ann", "bob"]
        .map(|name| ParticipantId::new(name).unwrap())
        .to_vec();
    assert!(waiting(&pending).contains("any of ann, bob can approve it"));
    assert_eq!(
        View::at(&pending, Form::Legacy, 0).verdict(),
        waiting(&pending)
    );
    let running = waiting(&proposal("tools/call", ProposalState::Running));
    assert!(
        running.contains("runs now") && !running.contains("needs approval"),
        "{running}"
    );
    let body = View::at(&pending, Form::Legacy, 0).still_waiting();
    let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["_meta"]["portmoot/proposal"], pending.id.to_string());
    assert_eq!(body["isError"], true);
}

#[test]
fn each_end_has_its_words() {
    for (state, words) in [
        (ProposalState::Running, "was approved by boss and runs now"),
        (ProposalState::Completed, "is done"),
        (ProposalState::Failed, "failed: not today"),
        (
            ProposalState::Rejected,
            "rejected by boss, with the reason: not today. It was not run",
        ),
        (
            ProposalState::Withdrawn,
            "withdrawn, with the reason: not today. It was not run",
        ),
        (ProposalState::Expired, "not decided in time"),
    ] {
        let view = ProposalView {
            reason: Some(Arc::from("not today.")),
            ..proposal("tools/call", state)
        };
        let verdict = View::at(&view, Form::Legacy, 0).verdict();
        assert!(verdict.contains(words), "{state}: {verdict}");
    }
}

#[test]
fn a_task_has_the_answer_of_its_form_and_else_words() {
    let standing = |proposal: &ProposalView, form| match View::at(proposal, form, 0).task().standing
    {
        OperationState::Working => "working".to_owned(),
        OperationState::Cancelled => "cancelled".to_owned(),
        OperationState::Result(raw)
        | OperationState::Error(raw)
        | OperationState::InputRequired(raw) => String::from_utf8(raw.to_vec()).unwrap(),
    };
    for (state, expected) in [
        (ProposalState::Pending, "working"),
        (ProposalState::Running, "working"),
        (ProposalState::Withdrawn, "cancelled"),
    ] {
        assert_eq!(
            standing(
                &with_answer(proposal("tools/call", state), RESULT),
                Form::Modern
            ),
            expected
        );
    }
    let rejected = proposal("tools/call", ProposalState::Rejected);
    assert!(standing(&rejected, Form::Legacy).contains("rejected by boss"));
    let done = with_answer(proposal("tools/call", ProposalState::Completed), RESULT);
    assert_eq!(
        standing(&done, Form::Legacy),
        r#"{"content":[],"_meta":{"io.modelcontextprotocol/tool-approval-disposition":"approved-executed"}}"#
    );
    assert!(standing(&done, Form::Modern).contains(r#""resultType":"complete""#));
    let failed = with_answer(proposal("tools/call", ProposalState::Failed), ERROR);
    assert_eq!(
        standing(&failed, Form::Modern),
        r#"{"code":1,"message":"m"}"#
    );
    let task = View::at(&failed, Form::Legacy, 8);
    assert_eq!(
        (task.task().created_ms, task.task().updated_ms, task.id()),
        (5, 8, task.task().id)
    );
}

#[test]
fn a_task_that_is_over_names_what_became_of_its_call() {
    let disposition = |proposal: &ProposalView| {
        let view = View::at(proposal, Form::Modern, 0);
        let OperationState::Result(result) = view.task().standing else {
            return None;
        };
        let result: serde_json::Value = serde_json::from_slice(result).unwrap();
        let is_denied = result["_meta"]
            .get("io.modelcontextprotocol/authorization")
            .is_some();
        let name = &result["_meta"]["io.modelcontextprotocol/tool-approval-disposition"];
        assert_eq!(is_denied, name == "denied-not-executed", "{result}");
        name.as_str().map(str::to_owned)
    };
    let wrong = r#"{"jsonrpc":"2.0","id":5,"result":{"content":[],"isError":true}}"#;
    let of = |state| proposal("tools/call", state);
    for (proposal, name) in [
        (of(ProposalState::Rejected), Some("denied-not-executed")),
        (of(ProposalState::Expired), Some("denied-not-executed")),
        (of(ProposalState::Failed), Some("outcome-unknown")),
        (of(ProposalState::Completed), Some("approved-executed")),
        (
            with_answer(of(ProposalState::Completed), RESULT),
            Some("approved-executed"),
        ),
        (
            with_answer(of(ProposalState::Completed), wrong),
            Some("execution-error"),
        ),
        (with_answer(of(ProposalState::Failed), ERROR), None),
        (
            with_answer(proposal("prompts/get", ProposalState::Completed), RESULT),
            None,
        ),
        (of(ProposalState::Pending), None),
        (of(ProposalState::Withdrawn), None),
    ] {
        let state = proposal.state;
        assert_eq!(disposition(&proposal).as_deref(), name, "{state}");
    }
    // Of a run without an answer it says that, too.
    let words = View::at(&of(ProposalState::Failed), Form::Modern, 0).verdict();
    assert!(words.contains("is not known"), "{words}");
}

#[test]
fn the_state_of_a_task_names_nobody() {
    for state in [
        ProposalState::Pending,
        ProposalState::Running,
        ProposalState::Withdrawn,
    ] {
        let mut proposal = proposal("tools/call", state);
        proposal.reason = Some(Arc::from("not today"));
        proposal.deciders = vec![ParticipantId::new("boss").unwrap()];
        let view = View::at(&proposal, Form::Modern, 0);
        let task = view.task();
        let message = task.message.unwrap();
        for word in ["boss", "not today", "echo"] {
            assert!(!message.contains(word), "{state}: {message}");
        }
        assert_eq!(task.awaits_approval, state == ProposalState::Pending);
    }
}

#[test]
fn a_request_that_waited_gets_the_answer_or_the_reason() {
    let end =
        |proposal: &ProposalView, method: &str| View::at(proposal, Form::Modern, 0).end(method);
    for state in [ProposalState::Pending, ProposalState::Running] {
        assert!(end(&proposal("tools/call", state), "tools/call").is_none());
    }
    let done = with_answer(proposal("tools/call", ProposalState::Completed), RESULT);
    let answer = end(&done, "tools/call").unwrap().unwrap();
    // As its server wrote it: the door of the caller converts it.
    assert_eq!(Some(&answer), done.answer.as_ref());
    let read = with_answer(proposal("resources/read", ProposalState::Failed), ERROR);
    assert_eq!(
        end(&read, "resources/read").unwrap().unwrap().outcome,
        Outcome::Error
    );
    let by_tool = text(&end(&read, "tools/call").unwrap().unwrap());
    assert!(
        by_tool.contains(r#"\"code\":1"#) && by_tool.contains(r#""isError":true"#),
        "{by_tool}"
    );
    let expired = proposal("tools/call", ProposalState::Expired);
    let words = text(&end(&expired, "tools/call").unwrap().unwrap());
    assert!(
        words.contains("not decided in time") && words.contains("resultType"),
        "{words}"
    );
    let refusal = end(
        &proposal("prompts/get", ProposalState::Expired),
        "prompts/get",
    )
    .unwrap()
    .unwrap_err();
    assert_eq!(refusal.code, RefusalCode::CapabilityViolation);
}

#[test]
fn a_report_has_the_state_and_whether_there_is_an_answer() {
    let report = |proposal: &ProposalView| {
        let result = String::from_utf8(View::at(proposal, Form::Legacy, 0).report()).unwrap();
        result
            .split_once(r#""structuredContent":"#)
            .unwrap()
            .1
            .trim_end_matches('}')
            .to_owned()
            + "}"
    };
    let id = OPENED;
    let running = ProposalState::Running;
    let rejected = ProposalState::Rejected;
    let rejected = ProposalView {
        reason: Some("no \"x\"".into()),
        ..proposal("tools/call", rejected)
    };
    let done = with_answer(proposal("prompts/get", ProposalState::Completed), RESULT);
    for (proposal, expected) in [
        (
            proposal("tools/call", ProposalState::Pending),
            r#""state":"pending","answered":false"#,
        ),
        (
            proposal("tools/call", running),
            r#""state":"running","by":"boss","answered":false"#,
        ),
        (
            rejected,
            r#""state":"rejected","by":"boss","reason":"no \"x\"","answered":false"#,
        ),
        (done, r#""state":"completed","by":"boss","answered":true"#),
    ] {
        assert_eq!(report(&proposal), format!(r#"{{"id":"{id}",{expected}}}"#));
    }
}

#[test]
fn words_have_the_forms_of_the_protocol() {
    let legacy = r#"{"content":[{"type":"text","text":"a\"b"}],"isError":false}"#;
    assert_eq!(words("a\"b", false, Form::Legacy), legacy.as_bytes());
    assert!(words("", true, Form::Modern).ends_with(br#""isError":true,"resultType":"complete"}"#));
}
