//! Limit tests: a value at the limit passes, one above it is refused with its code, and later calls
//! work.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use harness::Running;
use serde_json::{Value, json};

use crate::peer::{Peer, answer, small, tool};
use crate::socket::{Gateway, LEGACY, Piped, Session, call, fixture_server, initialize, until};
use crate::support::below;

fn limited(limits: &str) -> Gateway {
    Gateway::serve(&format!(
        "[server.limits]\n{limits}\n{}",
        fixture_server("fixture", "", &[])
    ))
}

fn works(session: &Session<'_>) {
    assert_eq!(
        session
            .call("echo", &json!({"text": "x"}))
            .pointer("/result/content/0/text"),
        Some(&json!("x"))
    );
}

fn code(answer: &Value) -> Option<&str> {
    answer.pointer("/error/data/code").and_then(Value::as_str)
}

#[test]
fn headers() {
    let gateway = limited("header_bytes_max = \"16KiB\"");
    let session = gateway.session();
    for (bytes, status) in [(15 * 1024, 200), (16 * 1024, 431), (1 << 20, 431)] {
        let long = "x".repeat(bytes);
        let headers = [session.headers(), vec![("x-long", long.as_str())]].concat();
        let status_got = gateway
            .post(&headers, call("1", "echo", r#"{"text":"x"}"#))
            .status;
        // With very long headers the connection may close before the answer is read.
        assert!(
            status_got == status || (bytes > 1 << 19 && status_got == 0),
            "{bytes}: {status_got}"
        );
    }
    works(&session);
}

#[test]
fn connections() {
    let gateway = limited("connections_max = 4\nparticipant_connections_max = 4");
    let held: Vec<_> = (0..4).map(|_| gateway.connect()).collect();
    let mut waiting = gateway.connect();
    waiting
        .write_all(
            format!(
                "GET /healthz HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n",
                gateway.address()
            )
            .as_bytes(),
        )
        .unwrap();
    waiting
        .set_read_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    assert!(waiting.read(&mut [0; 16]).is_err(), "it waits for a place");
    drop(held);
    waiting
        .set_read_timeout(Some(crate::http::TIMEOUT))
        .unwrap();
    assert!(waiting.read(&mut [0; 16]).unwrap() > 0, "and has it then");
}

#[test]
fn slow_request_heads_do_not_block_other_connections() {
    let gateway = limited("");
    // Many connections that never finish their head do not block others.
    let mut slow: Vec<_> = (0..200).map(|_| gateway.connect()).collect();
    for stream in &mut slow {
        stream
            .write_all(b"POST /mcp HTTP/1.1\r\nhost: localhost\r\nx: ")
            .unwrap();
    }
    let session = gateway.session();
    works(&session);
}

#[test]
fn lines_of_a_client() {
    let config = format!(
        "[server.limits]\nline_bytes_max = \"64KiB\"\n{}",
        fixture_server("fixture", "", &[])
    );
    let mut piped = Piped::initialized(&config, LEGACY);
    let rest = call("1", "echo", r#"{"text":""}"#).len();
    let with = |bytes: usize| {
        call(
            "1",
            "echo",
            &format!(r#"{{"text":"{}"}}"#, "x".repeat(bytes - rest)),
        )
    };
    piped.send(with(64 * 1024 + 1));
    assert_eq!(
        piped.json().pointer("/error/code"),
        Some(&json!(-32600)),
        "above it"
    );
    piped.send(with(32 * 1024));
    assert_eq!(
        piped.json()["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .len(),
        32 * 1024 - rest
    );
}

#[test]
fn lines_of_a_server() {
    let gateway = limited("line_bytes_max = \"64KiB\"");
    let session = gateway.session();
    assert!(session.call("big", &json!({"bytes": 60_000}))["result"].is_object());
    assert_eq!(
        code(&session.call("big", &json!({"bytes": 70_000}))),
        Some("upstream_failed")
    );
    works(&session);
    let served = Running::fixture(&[]);
    let gateway = Gateway::serve(&format!(
        "[server.limits]\nline_bytes_max = \"64KiB\"\n[servers.fixture]\nurl = \"{}\"\nprefix = \"\"\n",
        served.url()
    ));
    let session = gateway.session();
    assert!(session.call("big", &json!({"bytes": 60_000}))["result"].is_object());
    assert_eq!(
        code(&session.call("big", &json!({"bytes": 70_000}))),
        Some("upstream_failed")
    );
    works(&session);
}

#[test]
fn batches() {
    let gateway = limited("batch_len_max = 2");
    let session = gateway.session_as(&[], "2025-03-26", "{}");
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    assert_eq!(session.post(format!("[{ping},{ping}]")).status, 200);
    assert_eq!(session.post(format!("[{ping},{ping},{ping}]")).status, 400);
}

/// A server that never answers a call of `hang`.
fn hanging() -> Peer {
    Peer::stdio(|message| {
        if message["params"]["name"] == "hang" || message.get("id").is_none() {
            return Vec::new();
        }
        let said = small(message, &format!("[{},{}]", tool("hang"), tool("fine")));
        vec![
            said.unwrap_or_else(|| answer(message, r#"{"content":[]}"#))
                .into_bytes(),
        ]
    })
}

#[test]
fn calls_of_a_participant() {
    let peer = hanging();
    let config = format!(
        "[server.limits]\nparticipant_calls_max = 2\n{}",
        peer.child("peer", "")
    );
    let gateway = Gateway::serve(&config);
    // Two sessions of one participant: the limit is per participant, not per connection.
    let (one, other) = (gateway.session(), gateway.session());
    let held = [
        one.send(call("7", "hang", "{}")),
        other.send(call("7", "hang", "{}")),
    ];
    until("both are open", || peer.calls("hang") == 2);
    for session in [&one, &other] {
        assert_eq!(code(&session.call("fine", &json!({}))), Some("overloaded"));
    }
    for session in [&one, &other] {
        session.post(
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#,
        );
        assert!(session.call("fine", &json!({}))["result"].is_object());
    }
    drop(held);
}

#[test]
fn calls_at_an_upstream() {
    let peer = hanging();
    let config = format!(
        "[server.limits]\nupstream_calls_max = 2\nparticipant_upstream_calls_max = 2\n{}",
        peer.child("peer", "")
    );
    let gateway = Gateway::serve(&config);
    let session = gateway.session();
    let held = [
        session.send(call("7", "hang", "{}")),
        session.send(call("8", "hang", "{}")),
    ];
    until("both are open", || peer.calls("hang") == 2);
    assert_eq!(
        code(&session.call("fine", &json!({}))),
        Some("upstream_busy")
    );
    session
        .post(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#);
    assert!(session.call("fine", &json!({}))["result"].is_object());
    drop(held);
}

#[test]
fn sessions() {
    for limits in [
        "sessions_max = 3\nparticipant_sessions_max = 3",
        "participant_sessions_max = 3",
    ] {
        let gateway = limited(limits);
        let first = gateway.session();
        let calls = first.send(call("7", "hang", "{}"));
        let others: Vec<Session<'_>> = (0..6).map(|_| gateway.session()).collect();
        // Idle sessions were evicted for them; the busy one stayed.
        works(&others[5]);
        works(&first);
        // An evicted session resumes by its id.
        works(&others[0]);
        drop(calls);
        // When all sessions are busy, a new one is refused.
        let busy: Vec<_> = [&first, &others[0], &others[5]]
            .iter()
            .map(|session| session.send(call("9", "hang", "{}")))
            .collect();
        until("all are busy", || {
            gateway.post(&[], initialize(LEGACY, "{}")).status == 503
        });
        drop(busy);
    }
}

#[test]
fn idle_sessions_end() {
    let gateway = limited("session_idle = \"100ms\"");
    let session = gateway.session_as(&[], LEGACY, "{\"sampling\":{}}");
    works(&session);
    // Its own server process ends with it; the id stays valid.
    let before = below(gateway.pid(), "").len();
    until("its server has gone", || {
        below(gateway.pid(), "").len() < before
    });
    works(&session);
}

/// 10,000 idle sessions: memory is bounded, and a new one is accepted.
#[test]
fn ten_thousand_abandoned_sessions() {
    let gateway = limited("sessions_max = 1000\nparticipant_sessions_max = 1000");
    let first = gateway.session();
    works(&first);
    let open_many = |count: usize| {
        let body = initialize(LEGACY, "{}");
        let request = format!(
            "POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\naccept: */*\r\ncontent-length: {}\r\n\r\n{body}",
            gateway.address(),
            body.len()
        );
        let mut stream = std::io::BufReader::new(gateway.connect());
        for _ in 0..count {
            stream.get_mut().write_all(request.as_bytes()).unwrap();
            let (mut head, mut line) = (String::new(), String::new());
            while std::io::BufRead::read_line(&mut stream, &mut line).unwrap() > 2 {
                head.push_str(&std::mem::take(&mut line));
            }
            assert!(head.starts_with("HTTP/1.1 200"), "{head}");
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .unwrap()
                .parse()
                .unwrap();
            let mut body = vec![0; length];
            stream.read_exact(&mut body).unwrap();
        }
    };
    open_many(2_000);
    let before = gateway.resident();
    open_many(8_000);
    let grown = gateway.resident().saturating_sub(before);
    assert!(
        grown < 8 << 20,
        "{} KiB more for 8,000 sessions above the bound",
        grown >> 10
    );
    works(&gateway.session());
    works(&first);
}

/// A server that sends this many log messages in each call.
fn chatty(messages: usize, bytes: usize) -> Peer {
    Peer::stdio(move |message| {
        if message.get("id").is_none() {
            return Vec::new();
        }
        let mut said = Vec::new();
        if message["params"]["name"] == "talk" {
            for number in 0..messages {
                said.push(format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":"{number}{}"}}}}"#, "x".repeat(bytes)));
            }
        }
        said.push(
            small(message, &format!("[{},{}]", tool("talk"), tool("fine")))
                .unwrap_or_else(|| answer(message, r#"{"content":[]}"#)),
        );
        said.into_iter().map(String::into_bytes).collect()
    })
}

/// Drops a stream after its first event, then resumes it; returns the status and the number of
/// messages.
fn resumed(limits: &str, peer: &Peer) -> (u16, usize) {
    let gateway = Gateway::serve(&format!(
        "[server.limits]\n{limits}\n{}",
        peer.child("peer", "")
    ));
    let session = gateway.session();
    let mut events = session.begin(call("1", "talk", "{}"));
    let (first, _) = events.next().unwrap();
    while events.next().is_some() {}
    events.close();
    let mut again = session.listen(first.as_deref());
    let mut count = 0;
    while again.status == 200 && again.next().is_some() {
        count += 1;
    }
    assert_eq!(
        session.call("fine", &json!({}))["result"],
        json!({"content": []})
    );
    (again.status, count)
}

#[test]
fn resumable_events() {
    let peer = chatty(10, 10);
    assert_eq!(
        resumed("resume_events_max = 10", &peer),
        (200, 10),
        "ten of eleven follow the first"
    );
    assert_eq!(
        resumed("resume_events_max = 9", &peer),
        (400, 0),
        "the second is forgotten"
    );
    assert_eq!(resumed("resume_bytes_max = 500", &peer).0, 400);
}

#[test]
fn queued_messages() {
    // No client reads them: a GET stream that was never opened queues a bounded number.
    let peer = chatty(100, 10);
    let gateway = Gateway::serve(&format!(
        "[server.limits]\nqueue_len_max = 50\n{}",
        peer.child("peer", "")
    ));
    let session = gateway.session();
    let mut stream = session.send(call("1", "talk", "{}"));
    let mut text = String::new();
    stream
        .set_read_timeout(Some(Duration::from_secs(2)))
        .unwrap();
    let _ = stream.read_to_string(&mut text);
    // Either all messages were read, or the stream ended: a stream is never complete with a gap.
    let received = text.matches("notifications/message").count();
    assert!(
        received == 100 || !text.contains("\"result\""),
        "{received} received"
    );
    assert_eq!(
        session.call("fine", &json!({}))["result"],
        json!({"content": []})
    );
}

#[test]
fn held_bytes() {
    let gateway = limited("held_bytes_max = \"256KiB\"");
    let session = gateway.session();
    assert_eq!(
        code(&session.call("big", &json!({"bytes": 300_000}))),
        Some("overloaded")
    );
    // Request bodies count while they are read.
    let body = call(
        "1",
        "echo",
        &format!(r#"{{"text":"{}"}}"#, "x".repeat(300_000)),
    );
    assert_eq!(session.post(body).status, 503);
    assert!(session.call("big", &json!({"bytes": 200_000}))["result"].is_object());
    works(&session);
}

/// The GET stream of a session, on a keep-alive connection.
fn held(gateway: &Gateway, session: &Session<'_>) -> std::net::TcpStream {
    let mut stream = gateway.connect();
    let head = format!(
        "GET /mcp HTTP/1.1\r\nhost: {}\r\naccept: text/event-stream\r\nmcp-session-id: {}\r\n\r\n",
        gateway.address(),
        session.id
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

#[test]
fn keep_alive_comments() {
    let gateway = limited("keep_alive = \"50ms\"");
    let session = gateway.session();
    let mut stream = held(&gateway, &session);
    let mut text = String::new();
    until("three comments", || {
        let mut some = [0; 256];
        let count = stream.read(&mut some).unwrap();
        text.push_str(&String::from_utf8_lossy(&some[..count]));
        text.matches(": \n\n").count() >= 3
    });
}

#[test]
fn a_held_stream_ends_its_connection() {
    let gateway = limited("");
    let session = gateway.session();
    let mut stream = held(&gateway, &session);
    let mut first = [0; 1024];
    let count = stream.read(&mut first).unwrap();
    let mut text = String::from_utf8_lossy(&first[..count]).into_owned();
    assert!(text.contains("\r\nconnection: close\r\n"), "{text}");
    assert_eq!(
        gateway
            .request("DELETE /mcp", &[("mcp-session-id", &session.id)], b"")
            .status,
        204
    );
    stream.read_to_string(&mut text).unwrap();
    assert!(text.ends_with("\r\n: \n\n\r\n0\r\n\r\n"), "{text}");
}

#[test]
fn participants_of_a_topic() {
    let who = |name: &str| {
        format!("[participants.{name}]\ntoken_env = \"T_{name}\"\ncapabilities = [\"mcp/*\"]\n")
    };
    let config = [
        "[server.limits]\ntopic_participants_max = 3\n".to_owned(),
        fixture_server("fixture", "", &[]),
        who("a"),
        who("b"),
    ]
    .concat();
    let env = [
        ("T_a", "aaaaaaaaaaaaaaaaaaaa"),
        ("T_b", "bbbbbbbbbbbbbbbbbbbb"),
    ];
    let gateway = Gateway::serve_with(&config, &env);
    // The gateway, the server and one more participant.
    let session = gateway.session_as(
        &[("authorization", "Bearer aaaaaaaaaaaaaaaaaaaa")],
        LEGACY,
        "{}",
    );
    let reply = gateway.post(
        &[("authorization", "Bearer bbbbbbbbbbbbbbbbbbbb")],
        initialize(LEGACY, "{}"),
    );
    assert_eq!(reply.status, 503, "{reply:?}");
    works(&session);
}
