//! Strangers: bytes that the gateway holds for senders that it does not know.

mod every_door;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use crate::authorization::flood::own_memory;
use crate::http::Connection;
use crate::support::{Client, Gateway, fixture, until};
use crate::ws::{GOOD, people, token};

const CONNECTIONS: usize = 200;
const STREAMS: u32 = 100;
/// What all of them together may cost; a build without optimizations takes a fifth more.
const GROWN_BYTES_MAX: usize = if cfg!(debug_assertions) {
    12_000_000
} else {
    10_000_000
};
/// What of it may stay with the process, for all kinds together: looks at unused memory let 4 MiB
/// pass.
const LEFT_BYTES_MAX: usize = 6 << 20;

/// One frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A head without indices: each name and value as a literal (RFC 7541, section 6.2.2).
fn head(fields: &[(&str, &str)]) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    fields
        .iter()
        .flat_map(|(name, value)| [vec![0], text(name), text(value)].concat())
        .collect()
}

/// A connection with open requests to a path, each with an unfinished message, and as much of them
/// as the gateway takes.
fn flood(address: &str, path: &str) -> TcpStream {
    let mut socket = TcpStream::connect(address).unwrap();
    socket
        .set_write_timeout(Some(Duration::from_millis(20)))
        .unwrap();
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(4, 0, 0, &[]));
    let fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", address),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ];
    // A message of 60,000 bytes, of which some are missing.
    let message = [&[0][..], &60_000_u32.to_be_bytes(), &[b'x'; 10_000]].concat();
    for stream in 0..STREAMS {
        let stream = stream * 2 + 1;
        bytes.extend(frame(1, 4, stream, &head(&fields)));
        bytes.extend(frame(0, 0, stream, &message));
    }
    // What does not fit is not sent.
    let _ = socket.write_all(&bytes);
    socket
}

#[test]
fn strangers_over_http2_cost_little_memory_and_leave_none() {
    let (home, people) = people(&[("ann", &["mcp/*"])]);
    let gateway = Gateway::start(&home, &(people + &fixture("a", &[])));
    gateway.ready("a");
    let ann = Client::of(&gateway, &token("ann"));
    ann.names("tools");
    // The services are made for the first question.
    drop(flood(
        gateway.address(),
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    ));
    let memory = || until("its memory", || own_memory(gateway.pid()));
    let start = memory();
    for path in [
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        "/grpc.health.v1.Health/Check",
        "/mcp",
        "/oauth/token",
    ] {
        let before = memory();
        let open: Vec<TcpStream> = (0..CONNECTIONS)
            .map(|_| flood(gateway.address(), path))
            .collect();
        let grown = memory().saturating_sub(before);
        println!("{path}: {grown} bytes for {CONNECTIONS} connections");
        assert!(grown < GROWN_BYTES_MAX, "{path}: {grown} bytes");
        // Those who are known go on, from the same address too.
        assert!(ann.names("tools").len() > 10);
        assert!(Client::of(&gateway, &token("ann")).names("tools").len() > 10);
        drop(open);
    }
    let left = || memory().saturating_sub(start);
    until("its memory is given back", || {
        (left() < LEFT_BYTES_MAX).then_some(())
    });
}

#[test]
fn a_connection_of_a_stranger_ends_once_it_has_sent_much() {
    let (home, people) = people(&[("ann", &["mcp/*"])]);
    let gateway = Gateway::start(&home, &(people + &fixture("a", &[])));
    let mut socket = flood(gateway.address(), "/grpc.health.v1.Health/Check");
    socket.set_read_timeout(Some(crate::http::TIMEOUT)).unwrap();
    let mut rest = Vec::new();
    let end = socket.read_to_end(&mut rest);
    assert!(
        end.is_ok() || end.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset)
    );
}

#[test]
fn without_tokens_no_page_of_another_port_opens_a_socket() {
    let home = crate::home::Home::new();
    let gateway = Gateway::start(&home, &fixture("a", &[]));
    let own = gateway.url();
    for (origin, expected) in [
        (own.as_str(), 101),
        ("http://localhost:3000", 403),
        ("http://127.0.0.1:1", 403),
    ] {
        let headers = [&GOOD[..], &[("origin", origin)]].concat();
        for path in ["/ws", "/proto"] {
            let reply = crate::ws::answer(&gateway, path, &headers);
            assert!(
                reply.status == expected || path == "/proto" && expected == 101,
                "{path} {origin}: {reply:?}"
            );
        }
    }
}

#[test]
fn without_tokens_no_page_of_another_port_changes_anything() {
    const OTHER: &str = "http://localhost:3000";
    const TOOL: &str = "http://localhost:6274";
    let home = crate::home::Home::new();
    let listed = "[server]\nhosts = [\"localhost:6274\"]\n";
    let gateway = Gateway::start(&home, &(fixture("a", &[]) + listed));
    let send = |method: &str, path: &str, origin: Option<&str>, body: &str| {
        let mut headers = vec![
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ];
        headers.extend(origin.map(|origin| ("origin", origin)));
        let address = gateway.address();
        Connection::open(address).exchange_at(address, method, path, &headers, body)
    };
    let own = format!("http://{}", gateway.address());
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    for (method, path, body) in [
        ("POST", "/api/v1/servers/a/restart", ""),
        ("POST", "/mcp", ping),
    ] {
        for origin in [OTHER, "http://127.0.0.1:1", "http://localhost"] {
            let refused = send(method, path, Some(origin), body);
            assert_eq!(refused.status, 403, "{path} {origin}: {refused:?}");
            assert!(refused.body.contains("without a token"), "{refused:?}");
            let shown = refused.header("access-control-allow-origin");
            assert_eq!(shown, (path == "/mcp").then_some(origin), "{path}");
        }
        for origin in [None, Some(own.as_str()), Some(TOOL)] {
            let done = send(method, path, origin, body);
            assert_eq!(done.status, 200, "{path} {origin:?}: {done:?}");
        }
    }
    // What it may do is look, as far as its browser lets it.
    assert_eq!(send("GET", "/api/v1/tools", Some(OTHER), "").status, 200);
}
