use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::oneshot;

use super::*;
use crate::participant::error::CallError;
use crate::participant::waiting::{News, Open, Verdict};

/// A desk of `me`, welcomed, in a topic with `worker`.
fn desk(hears_part: bool) -> Desk {
    let mut desk = Desk::new(hears_part);
    let you = json!({ "id": "me", "capabilities": ["mcp/*", "chat"] });
    let payload = json!({ "you": you, "participants": [{ "id": "worker", "capabilities": [] }] });
    assert_eq!(
        hear(&mut desk, "w", "system:gateway", &["me"], "system/welcome", None, payload),
        ["welcomed"]
    );
    desk
}

fn envelope(id: &str, from: &str, to: &[&str], kind: &str, about: Option<&str>, payload: &Value) -> Envelope {
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
fn hear(
    desk: &mut Desk,
    id: &str,
    from: &str,
    to: &[&str],
    kind: &str,
    about: Option<&str>,
    payload: Value,
) -> Vec<String> {
    let reactions = desk.hear(envelope(id, from, to, kind, about, &payload));
    reactions.iter().map(word).collect()
}

fn word(reaction: &Reaction) -> String {
    match reaction {
        Reaction::Event(event) => match &**event {
            Event::Welcomed { .. } => "welcomed".into(),
            Event::Joined(seen) => format!("joined {}", seen.id),
            Event::Left(seen) => format!("left {}", seen.id),
            Event::Chat { from, text, .. } => format!("{from}: {text}"),
            Event::Proposal(proposed) => format!("proposal {}", proposed.request_kind().unwrap()),
            Event::ProposalState { proposal, state, .. } => format!("{proposal} is {state}"),
            Event::Refused { told, .. } => format!("refused {}", told.error),
            Event::Heard(envelope) => format!("heard {}", envelope.kind()),
            Event::Misbehaved { from, .. } => format!("misbehaved {from}"),
            Event::Away { .. } | Event::Missed(_) => unreachable!(),
        },
        Reaction::Job(job) => {
            format!("job {} to {:?} as {}", job.asked.call.method(), job.reply.to, job.reply.kind)
        }
        Reaction::Refuse(reply, error) => format!("refuse {} {} {}", reply.about, reply.kind, error.code),
    }
}

fn call(name: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": { "name": name } })
}

const CALL: &str = "mcp/request:tools/call:echo";
const SAID: &str = "mcp/response:tools/call:echo";

#[test]
fn only_requests_that_name_it_and_fit_are_executed() {
    let mut desk = desk(false);
    let proposal = json!({ "method": "tools/call", "params": { "name": "echo" } });
    let job = format!("job tools/call to [\"a\"] as {SAID}");
    for (id, to, kind, payload, expect) in [
        ("1", &["me"][..], CALL, call("echo"), vec![job.as_str()]),
        // A repeat of (from, id).
        ("1", &["me"], CALL, call("echo"), vec![]),
        // The short kind is answered with the long one.
        ("2", &["worker", "me"], "mcp/request:tools/call", call("echo"), vec![&job]),
        // For another, or for nobody in particular.
        ("3", &["worker"], CALL, call("echo"), vec!["heard mcp/request:tools/call:echo"]),
        ("4", &[], CALL, call("echo"), vec!["heard mcp/request:tools/call:echo"]),
        // The kind says less than the payload does.
        (
            "5",
            &["me"],
            CALL,
            call("rm"),
            vec!["misbehaved a", "refuse 5 mcp/response:tools/call:echo -32600"],
        ),
        (
            "6",
            &["me"],
            "mcp/request:ping",
            call("echo"),
            vec!["misbehaved a", "refuse 6 mcp/response:ping -32600"],
        ),
        ("7", &["me"], CALL, json!({}), vec!["misbehaved a"]),
        // A proposal is never executed, not even one that carries a request.
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
        ("10", &["me"], "mcp/proposal:tools/call:rm", call("echo"), vec!["misbehaved a"]),
        ("11", &["me"], "system/welcome", json!({}), vec!["misbehaved a"]),
        ("12", &["me"], "portmoot/proposal", json!({}), vec!["misbehaved a"]),
        ("13", &[], "chat", json!({ "text": "hi" }), vec!["a: hi"]),
        ("14", &[], "chat", json!({ "words": "hi" }), vec!["misbehaved a"]),
        ("15", &[], "my/kind", json!({ "x": 1 }), vec!["heard my/kind"]),
    ] {
        assert_eq!(hear(&mut desk, id, "a", to, kind, None, payload), expect, "{id}");
    }
    assert_eq!(desk.conduct.all()["a"], 7);
}

#[test]
fn the_answer_to_a_fulfilment_reaches_the_proposer_too() {
    let mut desk = desk(false);
    let proposal = json!({ "method": "tools/call", "params": { "name": "echo" } });
    hear(&mut desk, "p", "scout", &["me"], "mcp/proposal:tools/call:echo", None, proposal);
    for (id, about, expect) in [("1", "p", r#"["boss", "scout"]"#), ("2", "unseen", r#"["boss"]"#)] {
        let reactions = hear(&mut desk, id, "boss", &["me"], CALL, Some(about), call("echo"));
        assert_eq!(reactions, [format!("job tools/call to {expect} as {SAID}")]);
    }
}

#[test]
fn presence_and_refusals() {
    let mut desk = desk(false);
    let seen = |id: &str| json!({ "id": id, "capabilities": ["chat"] });
    let told = json!({ "error": "capability_violation", "message": "no" });
    for (kind, about, payload, expect) in [
        ("system/presence", None, json!({ "event": "join", "participant": seen("b") }), vec!["joined b"]),
        ("system/presence", None, json!({ "event": "leave", "participant": { "id": "b" } }), vec!["left b"]),
        ("system/error", Some("x"), told.clone(), vec!["refused capability_violation"]),
        ("system/error", None, told, vec!["refused capability_violation"]),
        ("system/new", None, json!({}), vec![]),
        ("system/presence", None, json!({ "event": 1 }), vec![]),
    ] {
        assert_eq!(hear(&mut desk, "s", "system:gateway", &["me"], kind, about, payload), expect);
    }
    assert_eq!(desk.roster.others().count(), 1);
}

/// Waits for a request with envelope id `q` and JSON-RPC id 7.
fn asks(desk: &mut Desk) -> oneshot::Receiver<Verdict> {
    let (tell, told) = oneshot::channel();
    let open = Open { to: vec!["worker".into()], kind: CALL.into(), rpc: Id::number(7), tell };
    desk.waiting.request("q", open).unwrap();
    told
}

#[test]
fn answers_count_only_from_whoever_was_asked() {
    let result = || json!({ "jsonrpc": "2.0", "id": 7, "result": { "ok": true } });
    for (from, to, kind, payload, expect) in [
        ("worker", &["me"][..], SAID, result(), &[][..]),
        ("worker", &[], "mcp/response:tools/call", result(), &[]),
        ("worker", &["me"], SAID, json!({ "jsonrpc": "2.0", "error": { "code": 1, "message": "" } }), &[]),
        ("mallory", &["me"], SAID, result(), &["misbehaved mallory"]),
        ("worker", &["other"], SAID, result(), &["misbehaved worker"]),
        ("worker", &["me"], "mcp/response:tools/call:rm", result(), &["misbehaved worker"]),
        ("worker", &["me"], "mcp/response:tools/list", result(), &["misbehaved worker"]),
        ("worker", &["me"], SAID, json!({ "jsonrpc": "2.0", "id": 8, "result": {} }), &["misbehaved worker"]),
        (
            "worker",
            &["me"],
            SAID,
            json!({ "jsonrpc": "2.0", "id": "7", "result": {} }),
            &["misbehaved worker"],
        ),
        ("worker", &["me"], SAID, call("echo"), &["misbehaved worker"]),
    ] {
        let mut desk = desk(false);
        let mut told = asks(&mut desk);
        assert_eq!(
            hear(&mut desk, "r", from, to, kind, Some("q"), payload.clone()),
            expect,
            "{from} {payload}"
        );
        assert_eq!(told.try_recv().is_ok(), expect.is_empty(), "{from} {payload}");
    }
}

#[test]
fn requests_end_with_a_refusal_or_the_connection() {
    let mut desk = desk(false);
    let mut told = asks(&mut desk);
    let payload = json!({ "error": "rate_limited", "message": "slower", "retry_after_ms": 5 });
    assert!(hear(&mut desk, "e", "system:gateway", &["me"], "system/error", Some("q"), payload).is_empty());
    assert!(matches!(told.try_recv(), Ok(Err(CallError::Refused(told))) if told.retry_after_ms == Some(5)));
    let mut told = asks(&mut desk);
    desk.waiting.lost();
    assert_eq!(told.try_recv().unwrap().unwrap_err(), CallError::Lost);
}

/// What a proposer learns when `boss` (or somebody else) fulfils its proposal `p` like this and `from` answers.
fn outcome(
    hears_part: bool,
    fulfilment: Option<(&[&str], &str, &str)>,
    from: &str,
    to: &[&str],
) -> &'static str {
    let mut desk = desk(hears_part);
    let mut news = desk.waiting.propose("p", vec!["worker".into()], CALL.into()).unwrap();
    if let Some((to, kind, name)) = fulfilment {
        hear(&mut desk, "f", "boss", to, kind, Some("p"), call(name));
    }
    let result = json!({ "jsonrpc": "2.0", "id": 7, "result": {} });
    let heard = hear(&mut desk, "r", from, to, SAID, Some("f"), result);
    match (news.try_recv(), heard.first().map(String::as_str)) {
        (Ok(News::Answer(_)), None) => "answer",
        (Err(TryRecvError::Empty), Some(word)) if word.starts_with("misbehaved") => "misbehaved",
        (Err(TryRecvError::Empty), Some(_)) => "nothing",
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_proposal_has_the_outcome_of_what_fulfils_it() {
    let worker = &["worker"][..];
    let both = &["boss", "me"][..];
    for (fulfilment, from, to, expect) in [
        (Some((worker, CALL, "echo")), "worker", both, "answer"),
        // The answer counts although it leaves the proposer out: the room hears it.
        (Some((worker, CALL, "echo")), "worker", &["boss"], "answer"),
        (Some((worker, "mcp/request:tools/call", "echo")), "worker", both, "answer"),
        (Some((worker, CALL, "echo")), "portmoot", both, "answer"),
        (Some((worker, CALL, "echo")), "mallory", both, "misbehaved"),
        // Another call, another target, a kind that lies: no fulfilment, so no outcome.
        (Some((worker, "mcp/request:tools/call:rm", "rm")), "worker", both, "nothing"),
        (Some((&["mallory"], CALL, "echo")), "mallory", both, "nothing"),
        (Some((worker, CALL, "rm")), "worker", both, "nothing"),
        (None, "worker", both, "nothing"),
    ] {
        assert_eq!(outcome(false, fulfilment, from, to), expect, "{fulfilment:?} {from}");
    }
    // Whoever does not hear requests of others takes the answer that names it.
    for (from, to, expect) in [
        ("worker", both, "answer"),
        ("portmoot", both, "answer"),
        ("worker", &["boss"], "nothing"),
        ("mallory", both, "nothing"),
    ] {
        assert_eq!(outcome(true, None, from, to), expect, "{from}");
    }
}

#[test]
fn the_gateway_tells_what_becomes_of_a_proposal() {
    let mut desk = desk(false);
    let mut news = desk.waiting.propose("p", vec![], CALL.into()).unwrap();
    let payload = json!({ "proposal": "p", "state": "rejected", "reason": "too bold" });
    let heard = hear(&mut desk, "1", "portmoot", &["me"], "portmoot/proposal", None, payload.clone());
    assert_eq!(heard, ["p is rejected"]);
    let Ok(News::State(state, reason)) = news.try_recv() else { panic!() };
    assert_eq!((state.as_str(), reason.as_deref()), ("rejected", Some("too bold")));
    let heard = hear(&mut desk, "2", "mallory", &["me"], "portmoot/proposal", None, payload);
    assert_eq!((heard, news.try_recv().is_err()), (vec!["misbehaved mallory".to_owned()], true));
}

#[test]
fn what_waits_is_bounded() {
    let mut desk = desk(false);
    let mut all = Vec::new();
    for number in 0..crate::participant::OPEN_MAX {
        all.push(desk.waiting.propose(&number.to_string(), vec![], CALL.into()).unwrap());
    }
    assert_eq!(desk.waiting.propose("x", vec![], CALL.into()).unwrap_err(), CallError::Busy);
    desk.waiting.forget("0");
    assert!(desk.waiting.propose("x", vec![], CALL.into()).is_ok());
}

#[test]
fn answers_as_they_are_written() {
    let result = serde_json::value::to_raw_value(&json!({ "n": 1 })).unwrap();
    let error = RpcError { code: -32602, message: "no \"x\"".into(), data: json!([1]) };
    for (answer, expect) in [
        (Ok(result), r#"{"jsonrpc":"2.0","id":7,"result":{"n":1}}"#),
        (Err(error), r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"no \"x\"","data":[1]}}"#),
    ] {
        assert_eq!(payload(&Id::number(7), &answer), Bytes::from(expect));
    }
}

#[test]
fn what_is_only_shown_of_a_call_is_neither_done_nor_held_against_anybody() {
    let mut desk = desk(false);
    let parsed = |bytes: Bytes| serde_json::from_slice::<Value>(&bytes).unwrap();
    let request = || parsed(wire::mcpx::shown::request("tools/call", Some("echo"), "admitted"));
    let response = || parsed(wire::mcpx::shown::response(&Id::number(1), true, "ok"));
    let whole = json!({ "jsonrpc": "2.0", "id": 1, "result": {} });
    for (id, from, to, kind, about, payload) in [
        ("s1", "worker", "server", CALL, None, request()),
        ("s2", "server", "worker", SAID, Some("s1"), response()),
        ("s3", "server", "worker", SAID, Some("s1"), whole),
        ("s4", "worker", "server", CALL, None, call("echo")),
        // Not even if it were called this by mistake, or is a call of its own other connection.
        ("s5", "worker", "me", CALL, None, request()),
        ("s6", "server", "me", SAID, Some("s7"), response()),
    ] {
        assert_eq!(hear(&mut desk, id, from, &[to], kind, about, payload), [format!("heard {kind}")], "{id}");
    }
    assert_eq!(desk.conduct.all(), [].into());
}
