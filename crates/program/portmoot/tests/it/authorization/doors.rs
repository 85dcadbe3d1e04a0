//! The same identity, and the same refusals, at every door.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use super::provider::Provider;
use super::{challenge, initialize, initialize_message, post, resource, start};
use crate::http::{Connection, TIMEOUT};
use crate::support::modern;

fn get(gateway: &crate::support::Gateway, path: &str, token: Option<&str>) -> crate::http::Reply {
    gateway.get(path, token)
}

#[test]
fn metadata_and_challenges_name_the_endpoint_that_was_asked() {
    let provider = Provider::start(600);
    let (_home, gateway) = start(
        &provider,
        "legacy_sse = true\n[scopes.\"mcp:read\"]\nbaseline = true\ncapabilities = [\"mcp/*\"]\n",
    );
    for (path, of) in [
        ("/.well-known/oauth-protected-resource/gw/mcp", "/mcp"),
        ("/gw/.well-known/oauth-protected-resource/mcp", "/mcp"),
        ("/.well-known/oauth-protected-resource", "/mcp"),
        (
            "/.well-known/oauth-protected-resource/gw/mcp/ops",
            "/mcp/ops",
        ),
        (
            "/.well-known/oauth-protected-resource/gw/mcp/no-such-topic",
            "/mcp/no-such-topic",
        ),
        ("/.well-known/oauth-protected-resource/gw/sse", "/sse"),
    ] {
        let document = get(&gateway, path, None).json();
        let expected = json!({"resource": resource(of), "authorization_servers": [provider.issuer()],
            "scopes_supported": ["mcp:read"], "bearer_methods_supported": ["header"], "resource_name": "Portmoot"});
        assert_eq!(document, expected, "{path}");
    }
    let expect = |endpoint: &str| {
        format!(
            "Bearer resource_metadata=\"https://mcp.example.com/.well-known/oauth-protected-resource/gw{endpoint}\", scope=\"mcp:read\""
        )
    };
    for (path, endpoint) in [
        ("/mcp", "/mcp"),
        ("/gw/mcp", "/mcp"),
        ("/mcp/ops", "/mcp/ops"),
        ("/mcp/no-such-topic", "/mcp/no-such-topic"),
    ] {
        for method in ["POST", "GET", "DELETE"] {
            let body = initialize_message().to_string();
            let reply = Connection::open(gateway.address()).exchange(method, path, &[], &body);
            assert_eq!(
                (reply.status, challenge(&reply)),
                (401, expect(endpoint).as_str()),
                "{method} {path}"
            );
        }
    }
    let upgrade = [
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "AAAAAAAAAAAAAAAAAAAAAA=="),
    ];
    for (path, endpoint) in [
        ("/ws?topic=ops", "/mcp/ops"),
        ("/ws", "/mcp"),
        ("/proto/ops", "/mcp/ops"),
        ("/sse", "/sse"),
        ("/api/v1/servers", "/mcp"),
    ] {
        let reply = Connection::open(gateway.address()).exchange("GET", path, &upgrade, "");
        assert_eq!(
            (reply.status, challenge(&reply)),
            (401, expect(endpoint).as_str()),
            "{path}"
        );
    }
    assert_eq!(
        modern(&gateway, None, "server/discover", json!({})).status,
        401
    );
    let reply = get(&gateway, "/mcp?access_token=canary-in-query", None);
    assert_eq!(reply.status, 400);
    assert!(
        challenge(&reply).starts_with("Bearer error=\"invalid_request\"")
            && !gateway.log().contains("canary-in-query")
    );
    let twice = [("authorization", "Bearer a"), ("authorization", "Bearer b")];
    assert_eq!(
        Connection::open(gateway.address())
            .exchange("POST", "/mcp", &twice, "{}")
            .status,
        400
    );
}

#[test]
fn a_token_for_one_endpoint_is_none_for_another_at_any_door() {
    let provider = Provider::start(600);
    let (_home, gateway) = start(&provider, "");
    let main = provider.forged(json!({}), json!({}), "a");
    let ops = provider.forged(json!({}), json!({"aud": resource("/mcp/ops")}), "a");
    let both = provider.forged(
        json!({}),
        json!({"aud": [resource("/mcp"), resource("/mcp/ops")]}),
        "a",
    );
    let status = |path: &str, token: &str| initialize(&gateway, path, Some(token)).status;
    for (path, token, expect) in [
        ("/mcp", &main, 200),
        ("/mcp/ops", &main, 401),
        ("/mcp", &ops, 401),
        ("/mcp/ops", &ops, 200),
        ("/mcp", &both, 200),
        ("/mcp/ops", &both, 200),
    ] {
        assert_eq!(status(path, token), expect, "{path}");
    }
    let upgrade = |path: &str, token: &str| {
        let bearer = format!("Bearer {token}");
        let headers = [
            ("connection", "Upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "AAAAAAAAAAAAAAAAAAAAAA=="),
            ("authorization", bearer.as_str()),
        ];
        Connection::open(gateway.address())
            .exchange("GET", path, &headers, "")
            .status
    };
    for (path, token, expect) in [
        ("/ws", &main, 101),
        ("/ws?topic=ops", &main, 401),
        ("/ws?topic=ops", &ops, 101),
        ("/ws", &ops, 401),
        ("/proto", &ops, 401),
        ("/proto/ops", &main, 401),
    ] {
        assert_eq!(upgrade(path, token), expect, "{path}");
    }
    assert_eq!(get(&gateway, "/api/v1/servers", Some(&main)).status, 200);
    let reply = get(&gateway, "/api/v1/servers", Some(&ops));
    assert_eq!(
        (reply.status, reply.json()["code"].as_str()),
        (401, Some("token_foreign"))
    );
    assert!(challenge(&reply).contains("error=\"invalid_token\""));
    // One participant on all of them; by the API, too, a token shows what it is good for.
    for (token, topics) in [(&main, &["main"][..]), (&both, &["main", "ops"])] {
        let people = get(&gateway, "/api/v1/participants", Some(token)).json();
        let people = people["participants"].as_array().unwrap().iter();
        let seen: Vec<_> = people
            .filter(|one| one["id"] == "corp:ann")
            .map(|one| one["topic"].clone())
            .collect();
        assert_eq!(seen, topics, "{seen:?}");
    }
}

#[test]
fn a_private_topic_cannot_be_told_from_none() {
    let provider = Provider::start(600);
    let (_home, gateway) = start(&provider, "");
    let token = |topic: &str| {
        provider.forged(
            json!({}),
            json!({"sub": "m", "preferred_username": "m", "groups": ["machines"], "aud": resource(topic)}),
            "a",
        )
    };
    let (there, none) = (token("/mcp/ops"), token("/mcp/ops-no"));
    for given in [Some((&there, &none)), None] {
        let ask = |path: &str, token: Option<&String>| {
            let reply = initialize(&gateway, path, token.map(String::as_str));
            let strip = |text: &str| text.replace("/mcp/ops-no", "X").replace("/mcp/ops", "X");
            let headers: Vec<_> = reply
                .headers
                .iter()
                .filter(|(name, _)| name != "date")
                .map(|(name, value)| (name.clone(), strip(value)))
                .collect();
            // One is longer by the length of its name, in the header alone.
            (reply.status, headers, reply.body)
        };
        let one = ask("/mcp/ops", given.map(|given| given.0));
        let other = ask("/mcp/ops-no", given.map(|given| given.1));
        assert_eq!(one, other);
        assert_eq!(one.0, if given.is_some() { 403 } else { 401 });
    }
}

#[test]
fn the_token_is_seen_by_no_server_log_or_metric() {
    let provider = Provider::start(600);
    let (home, gateway) = start(&provider, "");
    let token = provider.forged(json!({}), json!({"jti": "canary"}), "a");
    let opened = initialize(&gateway, "/mcp", Some(&token));
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let bearer = format!("Bearer {token}");
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-session-id", session.as_str()),
        ("authorization", bearer.as_str()),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    let mut connection = Connection::open(gateway.address());
    let call: Value = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "a_echo", "arguments": {"text": "hello"}}});
    let reply = connection.exchange("POST", "/mcp", &headers, &call.to_string());
    assert_eq!(reply.status, 200, "{reply:?}");
    assert!(reply.json()["result"].is_object(), "{reply:?}");
    assert_eq!(
        post(
            &gateway,
            "/mcp",
            Some(&format!("{token}x")),
            &initialize_message()
        )
        .status,
        401
    );
    let metrics = get(&gateway, "/metrics", Some(&token)).body;
    let secret = token.rsplit('.').next().unwrap();
    let log = gateway.log();
    drop(gateway.stop());
    let mut texts = vec![metrics, log];
    let mut folders = vec![home.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            match entry.file_type().unwrap() {
                kind if kind.is_dir() => folders.push(entry.path()),
                kind if kind.is_file() => texts.push(
                    String::from_utf8_lossy(&std::fs::read(entry.path()).unwrap()).into_owned(),
                ),
                _ => {}
            }
        }
    }
    assert!(texts.len() > 3);
    assert!(texts.iter().all(|text| !text.contains(secret)));
}

#[test]
fn a_connection_goes_on_after_a_refusal_however_late_the_body_comes() {
    let provider = Provider::start(600);
    let (_home, gateway) = start(&provider, "");
    let body = initialize_message().to_string();
    let open = || {
        let stream = TcpStream::connect(gateway.address()).unwrap();
        stream.set_nodelay(true).unwrap();
        BufReader::new(stream)
    };
    let head = |length: usize, more: &str| {
        format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n\
             {more}content-length: {length}\r\n\r\n"
        )
    };
    // The head of the answer, once it is there.
    let answer = |stream: &mut BufReader<TcpStream>| {
        let (mut head, mut length) = (String::new(), 0);
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(
                stream.read_line(&mut head).unwrap(),
                0,
                "the connection ended: {head}"
            );
            let line = head.lines().last().unwrap_or_default();
            length = line
                .strip_prefix("content-length: ")
                .map_or(length, |bytes| bytes.parse().unwrap());
        }
        stream.read_exact(&mut vec![0; length]).unwrap();
        head
    };
    let mut stream = open();
    stream
        .get_mut()
        .write_all(head(body.len(), "").as_bytes())
        .unwrap();
    // The gateway knows that it refuses, and waits for the body.
    stream
        .get_ref()
        .set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    assert!(
        stream.read(&mut [0]).is_err(),
        "nothing is sent before the body"
    );
    stream.get_ref().set_read_timeout(Some(TIMEOUT)).unwrap();
    stream.get_mut().write_all(body.as_bytes()).unwrap();
    let refused = answer(&mut stream);
    assert!(
        refused.starts_with("HTTP/1.1 401") && !refused.contains("connection: close"),
        "{refused}"
    );
    let good = format!(
        "authorization: Bearer {}\r\n",
        provider.forged(json!({}), json!({}), "a")
    );
    stream
        .get_mut()
        .write_all((head(body.len(), &good) + &body).as_bytes())
        .unwrap();
    assert!(
        answer(&mut stream).starts_with("HTTP/1.1 200"),
        "on the same connection"
    );
    // A body that is too long to be thrown away is not read.
    let mut stream = open();
    stream
        .get_mut()
        .write_all(head(1 << 20, "").as_bytes())
        .unwrap();
    stream.get_ref().set_read_timeout(Some(TIMEOUT)).unwrap();
    let refused = answer(&mut stream);
    assert!(
        refused.starts_with("HTTP/1.1 401") && refused.contains("connection: close"),
        "{refused}"
    );
}
