//! Slow readers: queues are bounded, then the stream ends and its call is cancelled; other clients
//! are not affected.

use std::sync::Mutex;

use serde_json::{Value, json};

use crate::peer::{Peer, answer, small, tool};
use crate::socket::{Events, Gateway, LEGACY, Session, call, until};

const QUEUE: usize = 20;
/// Capabilities of a client with its own server process. A change of its roots makes the server
/// continue.
const OWN: &str = r#"{"roots":{"listChanged":true}}"#;

fn log(text: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":"{text}"}}}}"#
    )
}

/// A log message that belongs to no call.
fn note(text: &str) -> String {
    log(text).replace("notifications/message", "notifications/note")
}

/// A server that sends one message in a call of `talk` and, when the roots have changed, `more`
/// messages of `bytes` bytes and the answer. Outside a call the messages belong to none.
fn talker(more: usize, bytes: usize) -> Peer {
    let talking = Mutex::new(None);
    Peer::stdio(move |message| {
        let mut said = Vec::new();
        match (
            message["method"].as_str(),
            message["params"]["name"].as_str(),
        ) {
            (Some("tools/call"), Some("talk")) => {
                said.push(log("first"));
                *talking.lock().unwrap() = Some(message.clone());
            }
            (Some("notifications/roots/list_changed"), _) => {
                let asked = talking.lock().unwrap().take();
                let send = if asked.is_some() { log } else { note };
                said.extend(
                    (0..more).map(|number| send(&format!("{number}:{}", "x".repeat(bytes)))),
                );
                said.extend(asked.map(|asked| answer(&asked, r#"{"content":[]}"#)));
            }
            _ if message.get("id").is_none() => {}
            _ => said.push(
                small(message, &format!("[{},{}]", tool("talk"), tool("fine")))
                    .unwrap_or_else(|| answer(message, r#"{"content":["fine"]}"#)),
            ),
        }
        said.into_iter().map(String::into_bytes).collect()
    })
}

fn go_on(session: &Session<'_>) {
    let reply = session.post(r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#);
    assert_eq!(reply.status, 202, "{reply:?}");
}

fn works(session: &Session<'_>) {
    assert_eq!(
        session.call("fine", &json!({}))["result"],
        json!({"content": ["fine"]})
    );
}

/// Waits until no call is open at the server.
fn ended(gateway: &Gateway) {
    until("the call has ended", || {
        gateway.request("GET /api/v1/servers/peer", &[], b"").json()["calls"] == 0
    });
}

fn cancelled(peer: &Peer) -> usize {
    peer.received()
        .iter()
        .filter(|line| line.contains("notifications/cancelled"))
        .count()
}

/// The numbers of the remaining messages, and whether an answer follows them.
fn rest(events: &mut Events) -> (Vec<usize>, bool) {
    let (mut numbers, mut answered) = (Vec::new(), false);
    while let Some((_, data)) = events.next() {
        let message: Value = serde_json::from_str(&data).unwrap();
        let text = message["params"]["data"].as_str();
        numbers.extend(text.and_then(|text| text.split_once(':')?.0.parse::<usize>().ok()));
        answered |= message.get("result").is_some();
    }
    (numbers, answered)
}

/// The server sends this many messages while the call's stream is not read; returns what the
/// resumed stream has.
fn unread(messages: usize) -> (Vec<usize>, bool, usize) {
    let peer = talker(messages, 0);
    // One connection at a time: when the next one is served, the previous one is closed.
    let limits = format!("[server.limits]\nqueue_len_max = {QUEUE}\nconnections_max = 1\n");
    let gateway = Gateway::serve(&format!("{limits}{}", peer.child("peer", "")));
    let session = gateway.session_as(&[], LEGACY, OWN);
    let mut events = session.begin(call("1", "talk", "{}"));
    let (first, _) = events.next().unwrap();
    events.close();
    go_on(&session);
    ended(&gateway);
    let mut again = session.listen(first.as_deref());
    assert_eq!(again.status, 200);
    let (numbers, answered) = rest(&mut again);
    again.close();
    works(&session);
    (numbers, answered, cancelled(&peer))
}

#[test]
fn a_full_message_queue_ends_the_call() {
    let all: Vec<usize> = (0..QUEUE).collect();
    assert_eq!(unread(QUEUE), (all.clone(), true, 0), "the last one fits");
    assert_eq!(
        unread(QUEUE + 1),
        (all, false, 1),
        "one too many: cancelled there, and ended here without a gap"
    );
}

/// More than the buffers between two processes hold.
const MANY: usize = 400;
const LARGE: usize = 64 * 1024;

#[test]
fn a_call_whose_stream_is_not_read_is_cancelled_without_affecting_others() {
    let peer = talker(MANY, LARGE);
    let limits = format!("[server.limits]\nqueue_len_max = {QUEUE}\n");
    let gateway = Gateway::serve(&format!("{limits}{}", peer.child("peer", "")));
    let (session, other) = (gateway.session_as(&[], LEGACY, OWN), gateway.session());
    let mut events = session.begin(call("1", "talk", "{}"));
    assert!(events.next().is_some());
    go_on(&session);
    works(&other);
    until("the server hears that it is cancelled", || {
        cancelled(&peer) == 1
    });
    works(&session);
    let (numbers, answered) = rest(&mut events);
    assert_eq!(numbers, (0..numbers.len()).collect::<Vec<_>>(), "no gap");
    assert!(
        numbers.len() < MANY && !answered,
        "{} read, answered: {answered}",
        numbers.len()
    );
}

#[test]
fn an_unread_get_stream_ends_and_can_be_reopened() {
    let peer = talker(MANY, LARGE);
    let limits = format!("[server.limits]\nqueue_len_max = {QUEUE}\n");
    let gateway = Gateway::serve(&format!("{limits}{}", peer.child("peer", "")));
    let session = gateway.session_as(&[], LEGACY, OWN);
    works(&session);
    let mut unread = session.listen(None);
    assert_eq!(unread.status, 200);
    go_on(&session);
    // By this answer, the gateway has read all earlier messages of the child.
    works(&session);
    let (numbers, _) = rest(&mut unread);
    assert_eq!(numbers, (0..numbers.len()).collect::<Vec<_>>(), "no gap");
    assert!(numbers.len() < MANY, "{} read", numbers.len());
    // A reopened stream receives later messages, after those of the first batch that the gateway
    // reads only now.
    let mut again = session.listen(None);
    assert_eq!(again.status, 200);
    go_on(&session);
    let begins = |(_, data): (_, String)| data.contains("\"data\":\"0:");
    assert!(
        std::iter::from_fn(|| again.next()).any(begins),
        "the stream is alive"
    );
}
