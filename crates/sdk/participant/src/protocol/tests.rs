mod outcomes;

use bytes::Bytes;
use model::ProposalState;
use serde_json::{Value, json};
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::oneshot;

use super::*;
use crate::error::CallError;
use crate::pending::{PENDING_MAX, PendingRequest, ProposalUpdate, RequestOutcome};

/// The protocol of `me`, welcomed, in a topic with `worker`.
fn welcomed(is_filtered: bool) -> Protocol {
    let mut protocol = Protocol::new(is_filtered, "mine-");
    let you = json!({ "id": "me", "capabilities": ["mcp/*", "chat"] });
    let payload = json!({ "you": you, "participants": [{ "id": "worker", "capabilities": [] }] });
    assert_eq!(
        receive(
            &mut protocol,
            "w",
            "system:gateway",
            &["me"],
            "system/welcome",
            None,
            payload
        ),
        ["welcomed"]
    );
    protocol
}

fn envelope(
    id: &str,
    from: &str,
    to: &[&str],
    kind: &str,
    about: Option<&str>,
    payload: &Value,
) -> Envelope {
    let payload = payload.to_string();
    let draft = wire::mcpx::Draft {
        id,
        ts: None,
        from,
        to,
        kind,
        correlation_id: about,
        payload: payload.as_bytes(),
    };
    Envelope::receive(wire::mcpx::envelope(&draft)).unwrap()
}

/// What follows from an envelope, in one word each.
fn receive(
    protocol: &mut Protocol,
    id: &str,
    from: &str,
    to: &[&str],
    kind: &str,
    about: Option<&str>,
    payload: Value,
) -> Vec<String> {
    let reactions = protocol.receive(envelope(id, from, to, kind, about, &payload));
    reactions.iter().map(word).collect()
}

fn word(reaction: &Reaction) -> String {
    match reaction {
        Reaction::Event(event) => match &**event {
            Event::Welcomed { .. } => "welcomed".into(),
            Event::Joined(seen) => format!("joined {}", seen.id),
            Event::Changed(seen) => format!("changed {}: {}", seen.id, seen.capabilities.join(",")),
            Event::Left(seen) => format!("left {}", seen.id),
            Event::Chat { from, text, .. } => format!("{from}: {text}"),
            Event::Proposal(proposed) => format!("proposal {}", proposed.request_kind().unwrap()),
            Event::ProposalState {
                proposal,
                to,
                state,
                by,
                ..
            } => {
                let by = by
                    .as_ref()
                    .map(|by| format!(" by {by}"))
                    .unwrap_or_default();
                format!("{proposal} of {to} is {state}{by}")
            }
            Event::Refused { error, .. } => format!("refused {}", error.error),
            Event::Other(envelope) => format!("other {}", envelope.kind()),
            Event::Violation { from, .. } => format!("violation {from}"),
            Event::History { past, is_cut } => {
                let past: Vec<String> = past
                    .iter()
                    .map(|event| word(&Reaction::Event(Box::new(event.clone()))))
                    .collect();
                format!(
                    "history {}{}",
                    past.join(", "),
                    if *is_cut { ", cut" } else { "" }
                )
            }
            Event::Disconnected { .. } | Event::Lagged(_) => unreachable!(),
        },
        Reaction::Job(job) => {
            format!(
                "job {} to {:?} as {}",
                job.request.call.method(),
                job.reply_to.to,
                job.reply_to.kind
            )
        }
        Reaction::Refuse(reply_to, error) => {
            format!(
                "refuse {} {} {}",
                reply_to.envelope_id, reply_to.kind, error.code
            )
        }
    }
}

fn call(name: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": { "name": name } })
}

const CALL: &str = "mcp/request:tools/call:echo";
const RESPONSE: &str = "mcp/response:tools/call:echo";

#[test]
fn a_request_runs_only_if_it_names_the_participant_and_its_kind_agrees_with_its_payload() {
    let mut protocol = welcomed(false);
    let proposal = json!({ "method": "tools/call", "params": { "name": "echo" } });
    let job = format!("job tools/call to [\"a\"] as {RESPONSE}");
    for (id, to, kind, payload, expect) in [
        ("1", &["me"][..], CALL, call("echo"), vec![job.as_str()]),
        // A duplicate of (from, id).
        ("1", &["me"], CALL, call("echo"), vec![]),
        // The short kind is answered with the long one.
        (
            "2",
            &["worker", "me"],
            "mcp/request:tools/call",
            call("echo"),
            vec![&job],
        ),
        // For another participant, or without an addressee.
        (
            "3",
            &["worker"],
            CALL,
            call("echo"),
            vec!["other mcp/request:tools/call:echo"],
        ),
        (
            "4",
            &[],
            CALL,
            call("echo"),
            vec!["other mcp/request:tools/call:echo"],
        ),
        // The kind and the payload disagree.
        (
            "5",
            &["me"],
            CALL,
            call("rm"),
            vec![
                "violation a",
                "refuse 5 mcp/response:tools/call:echo -32600",
            ],
        ),
        (
            "6",
            &["me"],
            "mcp/request:ping",
            call("echo"),
            vec!["violation a", "refuse 6 mcp/response:ping -32600"],
        ),
        ("7", &["me"], CALL, json!({}), vec!["violation a"]),
        (
            "7 with an id",
            &["me"],
            CALL,
            json!({ "id": "x", "method": 5 }),
            vec![
                "violation a",
                "refuse 7 with an id mcp/response:tools/call:echo -32600",
            ],
        ),
        // A proposal is never run, not even one whose payload is a request.
        (
            "8",
            &["me"],
            "mcp/proposal:tools/call:echo",
            call("echo"),
            vec!["proposal mcp/request:tools/call:echo"],
        ),
        (
            "9",
            &["me"],
            "mcp/proposal:tools/call:echo",
            proposal,
            vec!["proposal mcp/request:tools/call:echo"],
        ),
        (
            "10",
            &["me"],
            "mcp/proposal:tools/call:rm",
            call("echo"),
            vec!["violation a"],
        ),
        (
            "11",
            &["me"],
            "system/welcome",
            json!({}),
            vec!["violation a"],
        ),
        (
            "12",
            &["me"],
            "portmoot/proposal",
            json!({}),
            vec!["violation a"],
        ),
        ("13", &[], "chat", json!({ "text": "hi" }), vec!["a: hi"]),
        (
            "14",
            &[],
            "chat",
            json!({ "words": "hi" }),
            vec!["violation a"],
        ),
        (
            "15",
            &[],
            "my/kind",
            json!({ "x": 1 }),
            vec!["other my/kind"],
        ),
    ] {
        assert_eq!(
            receive(&mut protocol, id, "a", to, kind, None, payload),
            expect,
            "{id}"
        );
    }
    assert_eq!(protocol.violations.0["a"], 8);
}

#[test]
fn the_answer_to_a_fulfilment_reaches_the_proposer_too() {
    let mut protocol = welcomed(false);
    let proposal = json!({ "method": "tools/call", "params": { "name": "echo" } });
    receive(
        &mut protocol,
        "p",
        "scout",
        &["me"],
        "mcp/proposal:tools/call:echo",
        None,
        proposal,
    );
    for (id, about, expect) in [
        ("1", "p", r#"["boss", "scout"]"#),
        ("2", "unseen", r#"["boss"]"#),
    ] {
        let reactions = receive(
            &mut protocol,
            id,
            "boss",
            &["me"],
            CALL,
            Some(about),
            call("echo"),
        );
        assert_eq!(
            reactions,
            [format!("job tools/call to {expect} as {RESPONSE}")]
        );
    }
}

#[test]
fn presence_and_refusals() {
    let mut protocol = welcomed(false);
    let seen = |id: &str| json!({ "id": id, "capabilities": ["chat"] });
    let error = json!({ "error": "capability_violation", "message": "no" });
    for (kind, about, payload, expect) in [
        (
            "system/presence",
            None,
            json!({ "event": "join", "participant": seen("b") }),
            vec!["joined b"],
        ),
        (
            "system/presence",
            None,
            json!({ "event": "join", "participant": seen("b") }),
            vec!["changed b: chat"],
        ),
        (
            "system/presence",
            None,
            json!({ "event": "leave", "participant": { "id": "b" } }),
            vec!["left b"],
        ),
        (
            "system/error",
            Some("x"),
            error.clone(),
            vec!["refused capability_violation"],
        ),
        (
            "system/error",
            None,
            error,
            vec!["refused capability_violation"],
        ),
        ("system/new", None, json!({}), vec![]),
        ("system/presence", None, json!({ "event": 1 }), vec![]),
    ] {
        assert_eq!(
            receive(
                &mut protocol,
                "s",
                "system:gateway",
                &["me"],
                kind,
                about,
                payload
            ),
            expect
        );
    }
    assert_eq!(protocol.roster.others.len(), 1);
}

/// A pending request with envelope id `q` and JSON-RPC id 7.
fn request(protocol: &mut Protocol) -> oneshot::Receiver<RequestOutcome> {
    let (outcome, receiver) = oneshot::channel();
    let rpc_id = Id::number(7);
    let request = PendingRequest {
        to: vec!["worker".into()],
        kind: CALL.into(),
        rpc_id,
        outcome,
    };
    protocol.pending.add_request("q", request).unwrap();
    receiver
}

#[test]
fn only_an_addressee_of_a_request_may_answer_it() {
    let result = || json!({ "jsonrpc": "2.0", "id": 7, "result": { "ok": true } });
    for (from, to, kind, payload, expect) in [
        ("worker", &["me"][..], RESPONSE, result(), &[][..]),
        ("worker", &[], "mcp/response:tools/call", result(), &[]),
        (
            "worker",
            &["me"],
            RESPONSE,
            json!({ "jsonrpc": "2.0", "error": { "code": 1, "message": "" } }),
            &[],
        ),
        (
            "mallory",
            &["me"],
            RESPONSE,
            result(),
            &["violation mallory"],
        ),
        (
            "worker",
            &["other"],
            RESPONSE,
            result(),
            &["violation worker"],
        ),
        (
            "worker",
            &["me"],
            "mcp/response:tools/call:rm",
            result(),
            &["violation worker"],
        ),
        (
            "worker",
            &["me"],
            "mcp/response:tools/list",
            result(),
            &["violation worker"],
        ),
        (
            "worker",
            &["me"],
            RESPONSE,
            json!({ "jsonrpc": "2.0", "id": 8, "result": {} }),
            &["violation worker"],
        ),
        (
            "worker",
            &["me"],
            RESPONSE,
            json!({ "jsonrpc": "2.0", "id": "7", "result": {} }),
            &["violation worker"],
        ),
        (
            "worker",
            &["me"],
            RESPONSE,
            call("echo"),
            &["violation worker"],
        ),
    ] {
        let mut protocol = welcomed(false);
        let mut outcome = request(&mut protocol);
        assert_eq!(
            receive(
                &mut protocol,
                "r",
                from,
                to,
                kind,
                Some("q"),
                payload.clone()
            ),
            expect,
            "{from} {payload}"
        );
        assert_eq!(
            outcome.try_recv().is_ok(),
            expect.is_empty(),
            "{from} {payload}"
        );
    }
}

#[test]
fn requests_end_with_a_refusal_or_the_connection() {
    let mut protocol = welcomed(false);
    let mut outcome = request(&mut protocol);
    let payload = json!({ "error": "rate_limited", "message": "slower", "retry_after_ms": 5 });
    assert!(
        receive(
            &mut protocol,
            "e",
            "system:gateway",
            &["me"],
            "system/error",
            Some("q"),
            payload
        )
        .is_empty()
    );
    assert!(
        matches!(outcome.try_recv(), Ok(Err(CallError::Refused(error))) if error.retry_after_ms == Some(5))
    );
    let mut outcome = request(&mut protocol);
    protocol.pending.fail_requests();
    assert_eq!(outcome.try_recv().unwrap().unwrap_err(), CallError::Lost);
}

#[test]
fn pending_requests_and_proposals_are_bounded() {
    let mut protocol = welcomed(false);
    let mut all = Vec::new();
    for number in 0..PENDING_MAX {
        all.push(
            protocol
                .pending
                .add_proposal(&number.to_string(), vec![], CALL.into())
                .unwrap(),
        );
    }
    assert_eq!(
        protocol
            .pending
            .add_proposal("x", vec![], CALL.into())
            .unwrap_err(),
        CallError::Busy
    );
    protocol.pending.remove("0");
    assert!(
        protocol
            .pending
            .add_proposal("x", vec![], CALL.into())
            .is_ok()
    );
}

#[test]
fn answers_are_written_as_json_rpc() {
    let result = serde_json::value::to_raw_value(&json!({ "n": 1 })).unwrap();
    let error = RpcError {
        code: -32602,
        message: "no \"x\"".into(),
        data: json!([1]),
    };
    for (answer, expect) in [
        (Ok(result), r#"{"jsonrpc":"2.0","id":7,"result":{"n":1}}"#),
        (
            Err(error),
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"no \"x\"","data":[1]}}"#,
        ),
    ] {
        assert_eq!(payload(&Id::number(7), &answer), Bytes::from(expect));
    }
}

#[test]
fn a_call_that_is_only_mirrored_to_the_topic_is_neither_run_nor_a_violation() {
    let mut protocol = welcomed(false);
    let parsed = |bytes: Bytes| serde_json::from_slice::<Value>(&bytes).unwrap();
    let request = || {
        parsed(wire::mcpx::mirror::request(
            "tools/call",
            Some("echo"),
            "admitted",
        ))
    };
    let response = || parsed(wire::mcpx::mirror::response(true, "ok"));
    let whole = json!({ "jsonrpc": "2.0", "id": 1, "result": {} });
    for (id, from, to, kind, about, payload) in [
        ("s1", "worker", "server", CALL, None, request()),
        ("s2", "server", "worker", RESPONSE, Some("s1"), response()),
        ("s3", "server", "worker", RESPONSE, Some("s1"), whole),
        ("s4", "worker", "server", CALL, None, call("echo")),
        // Not even if it names the participant by mistake, or is a call of another connection of
        // the participant.
        ("s5", "worker", "me", CALL, None, request()),
        ("s6", "server", "me", RESPONSE, Some("s7"), response()),
    ] {
        assert_eq!(
            receive(&mut protocol, id, from, &[to], kind, about, payload),
            [format!("other {kind}")],
            "{id}"
        );
    }
    assert_eq!(protocol.violations.0, [].into());
}

#[test]
fn a_second_join_has_new_capabilities() {
    let joined = |protocol: &mut Protocol, id: &str, capabilities: &[&str]| {
        let participant = json!({ "id": id, "capabilities": capabilities });
        let payload = json!({ "event": "join", "participant": participant });
        receive(
            protocol,
            "p",
            "system:gateway",
            &[],
            "system/presence",
            None,
            payload,
        )
    };
    let mut protocol = welcomed(false);
    assert_eq!(
        joined(&mut protocol, "me", &["mcp/*", "chat"]),
        ["joined me"]
    );
    assert_eq!(
        joined(&mut protocol, "worker", &["chat"]),
        ["changed worker: chat"]
    );
    assert_eq!(protocol.roster.others["worker"].capabilities, ["chat"]);
    // Its own new capabilities come with another welcome, before the join.
    let you = json!({ "id": "me", "capabilities": ["chat"] });
    let payload = json!({ "you": you, "participants": [] });
    let renewed = receive(
        &mut protocol,
        "w",
        "system:gateway",
        &["me"],
        "system/welcome",
        None,
        payload,
    );
    assert_eq!(renewed, ["welcomed"]);
    assert_eq!(joined(&mut protocol, "me", &["chat"]), ["changed me: chat"]);
    assert_eq!(
        joined(&mut protocol, "worker", &["chat"]),
        ["joined worker"],
        "it had left meanwhile"
    );
}

/// A welcome with this history, and the reactions to it.
fn history(protocol: &mut Protocol, complete: bool, envelopes: &[Envelope]) -> Vec<String> {
    let envelopes: Vec<Value> = envelopes
        .iter()
        .map(|one| serde_json::from_slice(one.frame()).unwrap())
        .collect();
    let history = json!({ "epoch": 5, "offset": 9, "complete": complete, "envelopes": envelopes });
    let you = json!({ "id": "me", "capabilities": ["mcp/*"] });
    let payload = json!({ "you": you, "participants": [], "history": history });
    receive(
        protocol,
        "w",
        "system:gateway",
        &["me"],
        "system/welcome",
        None,
        payload,
    )
}

#[test]
fn past_envelopes_are_events_and_nothing_among_them_is_run() {
    let mut protocol = Protocol::new(false, "mine-");
    assert_eq!(protocol.cursor, None);
    let chat = |id: &str, from: &str| envelope(id, from, &[], "chat", None, &json!({ "text": id }));
    let wrong = envelope("5", "a", &[], "chat", None, &json!({ "words": 1 }));
    let asked = envelope("2", "a", &["me"], CALL, None, &call("echo"));
    let proposed = json!({ "method": "tools/call", "params": { "name": "echo" } });
    let proposal = envelope(
        "3",
        "scout",
        &["me"],
        "mcp/proposal:tools/call:echo",
        None,
        &proposed,
    );
    let all = [
        chat("1", "a"),
        asked.clone(),
        proposal,
        chat("4", "me"),
        wrong,
    ];
    let request = format!("other {CALL}");
    let expected = [
        "welcomed".to_owned(),
        format!("history a: 1, {request}, proposal {CALL}, me: 4, other chat"),
    ];
    // The first join begins with the latest envelopes: that there were earlier ones is no news.
    assert_eq!(history(&mut protocol, false, &all), expected);
    assert_eq!(
        protocol.cursor,
        Some(Cursor {
            epoch: 5,
            offset: 9
        })
    );
    assert!(protocol.violations.0.is_empty());
    // The same request does not run either when it comes again.
    let again = protocol.receive(asked);
    assert!(again.is_empty(), "{again:?}");
    // Another connect: what was received or sent before is left out.
    protocol.disconnected();
    receive(
        &mut protocol,
        "6",
        "a",
        &[],
        "chat",
        None,
        json!({ "text": "6" }),
    );
    let all = [
        chat("1", "a"),
        chat("6", "a"),
        chat("mine-1", "me"),
        chat("7", "a"),
    ];
    assert_eq!(
        history(&mut protocol, true, &all),
        ["welcomed", "history a: 7"]
    );
    assert_eq!(history(&mut protocol, true, &all), ["welcomed"]);
    assert_eq!(
        history(&mut protocol, false, &all),
        ["welcomed", "history , cut"]
    );
}

#[test]
fn past_envelopes_answer_what_is_pending() {
    let mut protocol = welcomed(false);
    let mut updates = protocol
        .pending
        .add_proposal("p", vec!["worker".into()], CALL.into())
        .unwrap();
    protocol.disconnected();
    let state = json!({ "proposal": "p", "state": "completed", "by": "boss" });
    let result = json!({ "jsonrpc": "2.0", "id": 7, "result": {} });
    let past = [
        envelope("f", "boss", &["worker"], CALL, Some("p"), &call("echo")),
        envelope("r", "worker", &["boss"], RESPONSE, Some("f"), &result),
        envelope(
            "s",
            "portmoot",
            &["me"],
            "portmoot/proposal",
            Some("p"),
            &state,
        ),
    ];
    history(&mut protocol, true, &past);
    assert!(matches!(updates.try_recv(), Ok(ProposalUpdate::Answer(_))));
    assert!(matches!(
        updates.try_recv(),
        Ok(ProposalUpdate::State(ProposalState::Completed, None))
    ));
}
