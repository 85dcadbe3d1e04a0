//! Guests and strangers: all guests have one share together, and those that do nothing make way.

use super::*;

const GUESTS: &str = "anonymous = \"reader\"\n[profiles.reader]\ncapabilities = [\"mcp/request:tools/call:tools_*\"]\n";

fn gateway(limits: &str) -> (Home, Gateway) {
    let home = home_of(&[(OTHER, &[])]);
    let person =
        "[participants.other]\ntoken_env = \"TOKEN_OTHER\"\ncapabilities = [\"mcp/*\", \"chat\"]\n";
    let topic = format!("[topics.main]\n{GUESTS}");
    let config = [
        person,
        &format!("[server.limits]\n{limits}\n"),
        &fixture("tools", &[]),
        &topic,
    ]
    .concat();
    let gateway = Gateway::start(&home, &config);
    gateway.ready("tools");
    (home, gateway)
}

fn echo(client: &Client) {
    assert_eq!(
        client.call("tools_echo", json!({ "text": "x" }))["content"][0]["text"],
        "x"
    );
}

#[test]
fn guests_that_come_once_lock_out_no_other() {
    let (_home, gateway) = gateway("");
    let guest = |capabilities| Client::open(&gateway, None, "/mcp", capabilities);
    // A guest with an open stream stays.
    let reading = guest(json!({}));
    let stream = reading.listen();
    for _ in 0..1_100 {
        assert_eq!(modern(&gateway, None, "tools/list", json!({})).status, 200);
    }
    echo(&guest(json!({})));
    // Nor do those that open a session and never come back.
    for number in 0..1_100 {
        let client = Client::resume(&gateway, None, "/mcp", "");
        let info = json!({ "name": "test", "version": "1" });
        let params =
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info });
        assert_eq!(client.status("initialize", params), 200, "{number}");
    }
    echo(&guest(json!({})));
    assert_eq!(modern(&gateway, None, "tools/list", json!({})).status, 200);
    drop(Socket::guest(&gateway, ""));
    echo(&reading);
    drop(stream);
}

#[test]
fn a_modern_guest_leaves_with_its_connection() {
    let (_home, gateway) = gateway("");
    let mut watcher = Socket::enter(&gateway, OTHER, "");
    // Its connection ends with the request.
    assert_eq!(modern(&gateway, None, "tools/list", json!({})).status, 200);
    let joined = watcher.receive_until(|envelope| envelope["kind"] == "system/presence");
    assert_eq!(joined["payload"]["event"], "join", "{joined}");
    let left = watcher.receive_until(|envelope| envelope["kind"] == "system/presence");
    assert_eq!(left["payload"]["event"], "leave", "{left}");
    assert_eq!(
        left["payload"]["participant"]["id"],
        joined["payload"]["participant"]["id"]
    );
}

/// A POST of this length, of which the last byte is missing.
fn slow(gateway: &Gateway, path: &str, authorization: &str, bytes: usize) -> TcpStream {
    let mut stream = TcpStream::connect(gateway.address()).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\naccept: application/json, text/event-stream\r\n{authorization}content-type: application/json\r\ncontent-length: {bytes}\r\n\r\n"
    );
    let _ = stream.write_all(&[head.as_bytes(), &vec![b' '; bytes - 1]].concat());
    stream
}

#[test]
fn slow_bodies_of_guests_refuse_only_guests() {
    let (_home, gateway) = gateway("held_bytes_max = \"1MiB\"\nbody_bytes_max = \"100KiB\"");
    let guests = [(); 2].map(|()| {
        let stream = slow(&gateway, "/mcp", "", 60 << 10);
        held_bytes(&gateway, |held| held >= (60 << 10) - 1);
        stream
    });
    let [_waits, mut refused] = guests;
    assert_eq!(status(&mut refused), 503, "all guests together have 64 KiB");
    let other = Client::of(&gateway, &token(OTHER));
    let text = "x".repeat(80 << 10);
    assert!(other.call("tools_echo", json!({ "text": text }))["content"].is_array());
}

#[test]
fn a_body_of_a_stranger_is_not_read() {
    let (_home, gateway) = gateway("held_bytes_max = \"1MiB\"");
    let wrong = "authorization: Bearer wrong-but-long-enough\r\n";
    for path in [
        "/mcp",
        "/messages?sessionId=x",
        "/api/v1/proposals/00/approve",
        "/api/v1/tokens",
    ] {
        for _ in 0..8 {
            let status = status(&mut slow(&gateway, path, wrong, 200 << 10));
            assert!([401, 404].contains(&status), "{path}: {status}");
        }
    }
    let other = Client::of(&gateway, &token(OTHER));
    echo(&other);
}
