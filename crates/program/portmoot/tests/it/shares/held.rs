//! Bytes that are held: of bodies, of the requests of open calls, of unfinished messages.

use super::*;

/// Waits until the bytes that all participants hold are so many.
pub(super) fn held_bytes(gateway: &Gateway, enough: impl Fn(usize) -> bool) {
    until("so many bytes are held", || {
        let metrics = gateway.get("/metrics", Some(&token(OTHER)));
        let line = metrics
            .body
            .lines()
            .find_map(|line| line.strip_prefix("portmoot_held_bytes "));
        line.and_then(|held| held.parse().ok())
            .filter(|held| enough(*held))
            .map(drop)
    });
}

/// A body of which the last byte is missing.
fn slow_body(stage: &Stage, path: &str) -> TcpStream {
    let head = format!(
        "accept: application/json, text/event-stream\r\ncontent-type: application/json\r\ncontent-length: {BODY_BYTES}\r\n\r\n"
    );
    begun(
        stage,
        &format!("POST {path}"),
        &[head.as_bytes(), &vec![b' '; BODY_BYTES - 1]].concat(),
    )
}

pub(super) fn bodies(stage: &mut Stage) -> Held {
    let mut held = Vec::new();
    // Wherever a body is read.
    for path in ["/mcp", "/mcp/second", "/api/v1/proposals/00/approve"] {
        let first = slow_body(stage, "/mcp");
        held_bytes(&stage.gateway, |held| held >= BODY_BYTES - 1);
        let mut second = slow_body(stage, path);
        assert_eq!(status(&mut second), 503, "{path}");
        held.push(first);
        if held.len() < 3 {
            held.clear();
            held_bytes(&stage.gateway, |held| held < BODY_BYTES / 2);
        }
    }
    Box::new(held)
}

pub(super) fn requests_of_open_calls(stage: &mut Stage) -> Held {
    let client = stage.greedy("/mcp", json!({}));
    let large = json!({ "text": "x".repeat(150 << 10) });
    let held = client.begin_call("tools_hang", large.clone());
    stage.open_at("tools", 1);
    // The body alone has no room any more.
    assert_eq!(
        client.status(
            "tools/call",
            json!({ "name": "tools_echo", "arguments": large })
        ),
        503
    );
    Box::new((client, held))
}

pub(super) fn unfinished_messages(stage: &mut Stage) -> Held {
    let mut socket = Socket::enter(&stage.gateway, GREEDY, "?mode=directed");
    let frame = masked(0x80 | TEXT, &vec![b'x'; HELD_BYTES + (64 << 10)]);
    socket.raw(&frame[..frame.len() - 1]);
    assert_eq!(socket.closed(), 1013);
    // Just below its share it may keep.
    let mut socket = Socket::enter(&stage.gateway, GREEDY, "?mode=directed");
    socket.raw(&frame[..HELD_BYTES - (16 << 10)]);
    Box::new(socket)
}
