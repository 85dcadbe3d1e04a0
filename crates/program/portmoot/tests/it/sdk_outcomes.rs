//! Outcomes on the SDK: none is there to answer, and an answer to a request that was no approval.

use model::ProposalState;
use participant::CallError;
use serde_json::json;

use crate::http::TIMEOUT;
use crate::participants::{config, echo, home, join};
use crate::support::Gateway;
use crate::ws::Socket;

const ECHO: &str = "mcp/request:tools/call:echo";

#[tokio::test(flavor = "multi_thread")]
async fn a_request_to_absent_participants_is_refused_at_once() {
    let home = home();
    let gateway = Gateway::start(&home, &config(&home));
    let (boss, _) = join(&gateway, "boss").await;
    let refused = |outcome: Result<_, CallError>| match outcome {
        Err(CallError::Refused(error)) => (error.error, error.message),
        other => panic!("{other:?}"),
    };
    for absent in ["worker", "nowhere"] {
        let (code, message) = refused(
            boss.request(absent, "tools/call", &echo("hi"))
                .await
                .map(drop),
        );
        assert_eq!(code, "upstream_failed", "{message}");
        assert!(
            message.contains(&format!("{absent} is not in the topic")),
            "{message}"
        );
    }
    // Those who watch receive it all the same; and one of several is enough to wait for.
    let mut mute = Socket::enter(&gateway, "mute", "");
    let mut raw = Socket::enter(&gateway, "mallory", "?echo=false");
    raw.call("r1", &["worker"], "echo", json!({}));
    raw.refused("r1", "upstream_failed");
    assert_eq!(
        mute.receive_until(|seen| seen["id"] == "r1")["to"],
        json!(["worker"])
    );
    raw.call("r2", &["worker", "mute"], "echo", json!({}));
    raw.call("r3", &["worker", "nowhere"], "echo", json!({}));
    let error = raw.receive_until(|seen| seen["kind"] == "system/error");
    assert_eq!(error["correlation_id"], "r3", "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_to_a_request_that_was_no_approval_is_no_outcome() {
    let home = home();
    let gateway = Gateway::start(&home, &config(&home));
    let (scout, _) = join(&gateway, "scout").await;
    let mut worker = Socket::enter(&gateway, "worker", "?mode=directed");
    let _mallory = Socket::enter(&gateway, "mallory", "?mode=directed");
    let mut boss = Socket::enter(&gateway, "boss", "?echo=false");
    let mut proposal = scout
        .propose(&["worker", "mallory"], "tools/call", &echo("hi"))
        .unwrap();
    let id = proposal.id().to_owned();
    let pending = boss.receive_until(|seen| seen["id"] == id.as_str());
    assert_eq!(pending["from"], "scout");
    // Only one of the two participants that the proposal names.
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": echo("hi") });
    boss.send(
        ECHO,
        "f1",
        &["worker"],
        json!({ "correlation_id": id }),
        &call,
    );
    let refused = boss.receive_until(|seen| seen["kind"] == "system/error");
    assert_eq!(refused["payload"]["error"], "conflict", "{refused}");
    let result = json!({ "jsonrpc": "2.0", "id": 1, "result": { "content": [] } });
    let about = json!({ "correlation_id": "f1" });
    worker.send(
        "mcp/response:tools/call:echo",
        "a1",
        &["boss", "scout"],
        about,
        &result,
    );
    boss.receive_until(|seen| seen["id"] == "a1");
    boss.call(
        "j1",
        &["portmoot"],
        "reject_proposal",
        json!({ "proposal": id, "reason": "no" }),
    );
    match proposal.outcome(TIMEOUT).await {
        Err(CallError::Ended {
            state: ProposalState::Rejected,
            ..
        }) => {}
        other => panic!("{other:?}"),
    }
    // The same with an approval.
    let mut proposal = scout
        .propose(&["worker"], "tools/call", &echo("hi"))
        .unwrap();
    let id = proposal.id().to_owned();
    boss.receive_until(|seen| seen["id"] == id.as_str());
    boss.send(
        ECHO,
        "f2",
        &["worker"],
        json!({ "correlation_id": id }),
        &call,
    );
    worker.receive_until(|seen| seen["id"] == "f2");
    let about = json!({ "correlation_id": "f2" });
    worker.send(
        "mcp/response:tools/call:echo",
        "a2",
        &["boss"],
        about,
        &result,
    );
    proposal.outcome(TIMEOUT).await.unwrap();
}
