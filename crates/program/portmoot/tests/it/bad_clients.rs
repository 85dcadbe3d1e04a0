//! Bad input from clients: the right error, nothing executed, and the next call works.

mod bodies;

use serde_json::{Value, json};

use crate::socket::{
    Gateway, LEGACY, MODERN, MODERN_META, Piped, Session, call, fixture_server, initialize,
    modern_body,
};

fn fixture() -> Gateway {
    Gateway::serve(&fixture_server("fixture", "", &[]))
}

/// The number of calls that the upstream has executed, this one included.
fn executed(session: &Session<'_>) -> u64 {
    session.record("record")["calls"].as_u64().unwrap()
}

const ECHO: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}}}"#;

#[test]
fn a_notification_with_an_id_is_a_request_and_an_id_may_be_huge() {
    let gateway = fixture();
    let session = gateway.session();
    let id = "9".repeat(400);
    let reply = session.post(call(&id, "echo", r#"{"text":"x"}"#));
    assert!(
        reply.text().contains(&format!("\"id\":{id},")),
        "{}",
        reply.text()
    );
    let reply = session.post(r#"{"jsonrpc":"2.0","id":7,"method":"notifications/initialized"}"#);
    assert_eq!(
        (reply.status, reply.code(), reply.json()["id"].clone()),
        (200, Some(-32601), json!(7))
    );
}

/// Requests with a bad head: description, request line, headers, statuses.
#[test]
fn heads_over_http() {
    let gateway = fixture();
    let session = gateway.session();
    let mut calls = executed(&session);
    let id = session.id.clone();
    let kind = ("content-type", "application/json");
    let accept = ("accept", "application/json, text/event-stream");
    let mine = ("mcp-session-id", id.as_str());
    let long = "x".repeat(100_000);
    let many: Vec<(&str, &str)> = std::iter::repeat_n(("x-y", "z"), 200).collect();
    let cases: Vec<(&str, &str, Vec<(&str, &str)>, &[u16])> = vec![
        ("no content type", "POST /mcp", vec![accept, mine], &[415]),
        (
            "wrong content type",
            "POST /mcp",
            vec![("content-type", "text/plain"), accept, mine],
            &[415],
        ),
        (
            "a longer type",
            "POST /mcp",
            vec![("content-type", "application/jsonx"), accept, mine],
            &[415],
        ),
        ("no Accept", "POST /mcp", vec![kind, mine], &[406]),
        (
            "half an Accept",
            "POST /mcp",
            vec![kind, ("accept", "application/json"), mine],
            &[406],
        ),
        ("no session", "POST /mcp", vec![kind, accept], &[400]),
        (
            "unknown session",
            "POST /mcp",
            vec![kind, accept, ("mcp-session-id", "unknown")],
            &[404],
        ),
        (
            "two sessions",
            "POST /mcp",
            vec![kind, accept, mine, mine],
            &[404],
        ),
        (
            "unknown version",
            "POST /mcp",
            vec![kind, accept, mine, ("mcp-protocol-version", "1999-01-01")],
            &[400],
        ),
        (
            "modern version",
            "POST /mcp",
            vec![kind, accept, mine, ("mcp-protocol-version", MODERN)],
            &[400],
        ),
        (
            "foreign origin",
            "POST /mcp",
            vec![kind, accept, mine, ("origin", "http://evil.example")],
            &[403],
        ),
        (
            "opaque origin",
            "POST /mcp",
            vec![kind, accept, mine, ("origin", "null")],
            &[403],
        ),
        (
            "second host",
            "POST /mcp",
            vec![kind, accept, mine, ("host", "evil.example")],
            &[403, 400],
        ),
        (
            "long header",
            "POST /mcp",
            vec![kind, accept, mine, ("x-long", &long)],
            &[431, 0],
        ),
        (
            "many headers",
            "POST /mcp",
            [vec![kind, accept, mine], many].concat(),
            &[431, 0],
        ),
        ("another method", "PUT /mcp", vec![mine], &[405]),
        (
            "another topic",
            "POST /mcp/other",
            vec![kind, accept, mine],
            &[403, 404],
        ),
        (
            "path tricks",
            "POST /mcp/../api/v1/tokens",
            vec![kind, accept, mine],
            &[400, 403, 404, 405],
        ),
        (
            "garbage event id",
            "GET /mcp",
            vec![accept, mine, ("last-event-id", "garbage")],
            &[400],
        ),
        (
            "event of no stream",
            "GET /mcp",
            vec![accept, mine, ("last-event-id", "77-1")],
            &[400],
        ),
        (
            "event of the future",
            "GET /mcp",
            vec![accept, mine, ("last-event-id", "0-18446744073709551615")],
            &[400],
        ),
        (
            "stream of an unknown session",
            "GET /mcp",
            vec![accept, ("mcp-session-id", "unknown")],
            &[404],
        ),
        (
            "end of an unknown session",
            "DELETE /mcp",
            vec![("mcp-session-id", "unknown")],
            &[404],
        ),
    ];
    for (what, line, headers, statuses) in cases {
        let reply = gateway.request(line, &headers, ECHO.as_bytes());
        assert!(statuses.contains(&reply.status), "{what}: {reply:?}");
        calls += 1;
        assert_eq!(executed(&session), calls, "{what} was executed");
    }
}

#[test]
fn bodies_have_a_limit_with_and_without_a_length() {
    let config = format!(
        "[server.limits]\nbody_bytes_max = \"64KiB\"\n{}",
        fixture_server("fixture", "", &[])
    );
    let gateway = Gateway::serve(&config);
    let session = gateway.session();
    let with = |bytes: usize| {
        let rest = call("1", "echo", r#"{"text":""}"#).len();
        call(
            "1",
            "echo",
            &format!(r#"{{"text":"{}"}}"#, "x".repeat(bytes - rest)),
        )
    };
    assert_eq!(session.post(with(64 * 1024)).status, 200, "at the limit");
    assert_eq!(session.post(with(64 * 1024 + 1)).status, 413, "above it");
    // Chunked, without a length; and a length that is too large.
    let head = |more: &str| {
        format!(
            "POST /mcp HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\naccept: */*\r\nmcp-session-id: {}\r\n{more}\r\n\r\n",
            gateway.address(),
            session.id
        )
    };
    let body = with(64 * 1024 + 1);
    let chunked = format!(
        "{}{:x}\r\n{body}\r\n0\r\n\r\n",
        head("transfer-encoding: chunked"),
        body.len()
    );
    assert_eq!(
        crate::socket::Reply::read(&gateway.raw(chunked.as_bytes())).status,
        413
    );
    let promise = head("content-length: 99999999999");
    assert_eq!(
        crate::socket::Reply::read(&gateway.raw(promise.as_bytes())).status,
        413
    );
    assert_eq!(executed(&session), 2, "only the one at the limit ran");
}

/// Two requests in one: at most one is served, however an intermediary would split the bytes.
#[test]
fn requests_cannot_be_smuggled() {
    let gateway = fixture();
    let session = gateway.session();
    let inner = format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\naccept: */*\r\nmcp-session-id: {}\r\ncontent-length: {}\r\n\r\n{ECHO}",
        gateway.address(),
        session.id,
        ECHO.len()
    );
    let ways = [
        format!("content-length: 0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n{inner}"),
        format!(
            "transfer-encoding: chunked\r\ncontent-length: {}\r\n\r\n0\r\n\r\n{inner}",
            inner.len() + 5
        ),
        format!(
            "content-length: 0\r\ncontent-length: {}\r\n\r\n{inner}",
            inner.len()
        ),
        format!("transfer-encoding: xchunked\r\n\r\n0\r\n\r\n{inner}"),
        format!("transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n{inner}"),
        format!("content-length: +0\r\n\r\n{inner}"),
        format!("transfer-encoding : chunked\r\n\r\n0\r\n\r\n{inner}"),
        format!("x: y\r\n folded: z\r\ncontent-length: 0\r\n\r\n{inner}"),
    ];
    let mut calls = executed(&session);
    for way in ways {
        let outer = format!(
            "POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\naccept: */*\r\nmcp-session-id: {}\r\n{way}",
            gateway.address(),
            session.id
        );
        let mut stream = gateway.connect();
        stream
            .set_read_timeout(Some(std::time::Duration::from_millis(300)))
            .unwrap();
        std::io::Write::write_all(&mut stream, outer.as_bytes()).unwrap();
        let mut answer = Vec::new();
        let _ = std::io::Read::read_to_end(&mut stream, &mut answer);
        let answers = String::from_utf8_lossy(&answer)
            .matches("HTTP/1.1 ")
            .count();
        assert!(answers <= 1, "{way}: {}", String::from_utf8_lossy(&answer));
        assert!(!String::from_utf8_lossy(&answer).contains(" 200 "), "{way}");
        calls += 1;
        assert_eq!(executed(&session), calls, "{way} was executed");
    }
}

/// Modern requests whose headers and body disagree: description, headers, body, status, error code.
#[test]
fn modern_heads_and_bodies() {
    let gateway = fixture();
    let session = gateway.session();
    let mut calls = executed(&session);
    let version = ("mcp-protocol-version", MODERN);
    let method = ("mcp-method", "tools/call");
    let name = ("mcp-name", "echo");
    let echo = modern_body("tools/call", r#""name":"echo","arguments":{"text":"x"}"#);
    let header = modern_body(
        "tools/call",
        r#""name":"test_custom_header","arguments":{"value":"\u00e9 x"}"#,
    );
    let no_argument = modern_body(
        "tools/call",
        r#""name":"test_custom_header","arguments":{"value":null}"#,
    );
    let tool = ("mcp-name", "test_custom_header");
    let old = echo.replace(MODERN, "2025-11-25");
    let future = echo.replace(MODERN, "2099-01-01");
    let newest = "2099-01-01";
    let bare = echo.replace(MODERN_META, "\"x\":1");
    let no_capabilities = echo.replace(",\"io.modelcontextprotocol/clientCapabilities\":{}", "");
    let twice = echo.replace(
        "\"_meta\":{",
        "\"_meta\":{\"io.modelcontextprotocol\\u002fprotocolVersion\":\"2026-07-28\",",
    );
    let ping = modern_body("ping", "");
    let b64 = "=?base64?ZWNobw==?=";
    let cases: Vec<(&str, Vec<(&str, &str)>, &str, u16, i64)> = vec![
        ("no version header", vec![method, name], &echo, 400, -32020),
        (
            "another version header",
            vec![("mcp-protocol-version", newest), method, name],
            &echo,
            400,
            -32020,
        ),
        (
            "a version of the future",
            vec![("mcp-protocol-version", newest), method, name],
            &future,
            400,
            -32022,
        ),
        (
            "a legacy version in both",
            vec![("mcp-protocol-version", "2025-11-25"), method, name],
            &old,
            400,
            -32022,
        ),
        (
            "version twice",
            vec![version, version, method, name],
            &echo,
            400,
            -32020,
        ),
        ("no _meta", vec![version, method, name], &bare, 400, -32602),
        (
            "no capabilities",
            vec![version, method, name],
            &no_capabilities,
            400,
            -32602,
        ),
        (
            "_meta names it twice",
            vec![version, method, name],
            &twice,
            400,
            -32600,
        ),
        ("no method header", vec![version, name], &echo, 400, -32020),
        (
            "another method",
            vec![version, ("mcp-method", "tools/list"), name],
            &echo,
            400,
            -32020,
        ),
        (
            "method in capitals",
            vec![version, ("mcp-method", "TOOLS/CALL"), name],
            &echo,
            400,
            -32020,
        ),
        (
            "method twice",
            vec![version, method, method, name],
            &echo,
            400,
            -32020,
        ),
        ("no name", vec![version, method], &echo, 400, -32020),
        (
            "another name",
            vec![version, method, ("mcp-name", "record")],
            &echo,
            400,
            -32020,
        ),
        (
            "name twice",
            vec![version, method, name, name],
            &echo,
            400,
            -32020,
        ),
        (
            "broken base64",
            vec![version, method, ("mcp-name", "=?base64?!!!?=")],
            &echo,
            400,
            -32020,
        ),
        (
            "base64 of another",
            vec![version, method, ("mcp-name", "=?base64?cmVjb3Jk?=")],
            &echo,
            400,
            -32020,
        ),
        (
            "base64 of no UTF-8",
            vec![version, method, ("mcp-name", "=?base64?//79?=")],
            &echo,
            400,
            -32020,
        ),
        (
            "no param header",
            vec![version, method, tool],
            &header,
            400,
            -32020,
        ),
        (
            "another param",
            vec![version, method, tool, ("mcp-param-value", "x")],
            &header,
            400,
            -32020,
        ),
        (
            "param twice",
            vec![
                version,
                method,
                tool,
                ("mcp-param-value", "=?base64?w6kgeA==?="),
                ("mcp-param-value", "=?base64?w6kgeA==?="),
            ],
            &header,
            400,
            -32020,
        ),
        (
            "a param of null",
            vec![version, method, tool, ("mcp-param-value", "x")],
            &no_argument,
            400,
            -32020,
        ),
        (
            "a method of the past",
            vec![version, ("mcp-method", "ping")],
            &ping,
            404,
            -32601,
        ),
    ];
    for (what, headers, body, status, code) in cases {
        let reply = gateway.post(&headers, body);
        assert_eq!(
            (reply.status, reply.code()),
            (status, Some(code)),
            "{what}: {}",
            reply.text()
        );
        if code == -32022 {
            let supported = reply
                .json()
                .pointer("/error/data/supported")
                .cloned()
                .unwrap_or_default();
            assert!(
                supported
                    .as_array()
                    .is_some_and(|all| all.contains(&json!(MODERN))),
                "{}",
                reply.text()
            );
        }
        calls += 1;
        assert_eq!(executed(&session), calls, "{what} was executed");
    }
    // The same calls with correct headers, in both spellings.
    for headers in [
        vec![version, method, name],
        vec![version, method, ("mcp-name", b64)],
    ] {
        assert_eq!(
            gateway
                .post(&headers, &echo)
                .json()
                .pointer("/result/content/0/text"),
            Some(&json!("x"))
        );
    }
    let reply = gateway.post(
        &[
            version,
            method,
            tool,
            ("mcp-param-value", "=?base64?w6kgeA==?="),
        ],
        &header,
    );
    assert_eq!(
        reply.json().pointer("/result/content/0/text"),
        Some(&json!("é x")),
        "{}",
        reply.text()
    );
}

#[test]
fn sessions_and_cursors_of_other_participants_are_unknown() {
    let who = |name: &str| {
        format!("[participants.{name}]\ntoken_env = \"T_{name}\"\ncapabilities = [\"mcp/*\"]\n")
    };
    let config = [
        fixture_server("fixture", "", &[]),
        who("alice"),
        who("mallory"),
    ]
    .concat();
    let tokens = [
        ("T_alice", "alice-alice-alice-alice"),
        ("T_mallory", "mallory-mallory-mallory"),
    ];
    let gateway = Gateway::serve_with(&config, &tokens);
    let alice = [("authorization", "Bearer alice-alice-alice-alice")];
    let mallory = ("authorization", "Bearer mallory-mallory-mallory");
    assert_eq!(gateway.post(&[], initialize(LEGACY, "{}")).status, 401);
    assert_eq!(
        gateway
            .post(
                &[("authorization", "Bearer wrong")],
                initialize(LEGACY, "{}")
            )
            .status,
        401
    );
    let hers = gateway.session_as(&alice, LEGACY, "{}");
    // An event in her session.
    let reply = hers.post(call(
        "1",
        "slow",
        r#"{"ms":10},"_meta":{"progressToken":1}"#,
    ));
    let event = reply
        .text()
        .lines()
        .find_map(|line| line.strip_prefix("id: "))
        .unwrap()
        .to_owned();
    let calls = executed(&hers);
    let id = ("mcp-session-id", hers.id.as_str());
    let accept = ("accept", "text/event-stream");
    assert_eq!(gateway.post(&[mallory, id], ECHO).status, 404);
    for last in [event.as_str(), "0-0", "1-0"] {
        let reply = gateway.request(
            "GET /mcp",
            &[mallory, id, accept, ("last-event-id", last)],
            b"",
        );
        assert_eq!(reply.status, 404, "{last}");
    }
    assert_eq!(
        gateway.request("DELETE /mcp", &[mallory, id], b"").status,
        404
    );
    let his = gateway.session_as(&[mallory], LEGACY, "{}");
    // In his own session her event id is unknown.
    let reply = gateway.request(
        "GET /mcp",
        &[
            mallory,
            ("mcp-session-id", &his.id),
            accept,
            ("last-event-id", &event),
        ],
        b"",
    );
    assert_eq!(reply.status, 400);
    assert_eq!(
        executed(&hers),
        calls + 1,
        "her session is whole, and his call was not made"
    );
    // A session id with one changed character is unknown.
    let forged = format!("{}A", &hers.id[..hers.id.len() - 1]);
    let forged = if forged == hers.id {
        format!("{}B", &hers.id[..hers.id.len() - 1])
    } else {
        forged
    };
    assert_eq!(
        gateway
            .post(&[alice[0], ("mcp-session-id", &forged)], ECHO)
            .status,
        404
    );
    // Cursors belong to a participant: hers is not valid for him, and garbage is valid for neither.
    let reply =
        his.post(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":""}}"#);
    assert_eq!(reply.code(), Some(-32602));
}

#[test]
fn batches_belong_to_one_revision() {
    let gateway = fixture();
    let batch = format!(
        r#"[{ECHO},{{"jsonrpc":"2.0","method":"notifications/initialized"}},7,{},{{"jsonrpc":"2.0","id":3,"method":"ping","id":4}}]"#,
        initialize(LEGACY, "{}")
    );
    for version in ["2024-11-05", "2025-06-18", LEGACY] {
        let session = gateway.session_as(&[], version, "{}");
        let reply = session.post(&batch);
        assert_eq!(
            (reply.status, reply.code()),
            (400, Some(-32600)),
            "{version}"
        );
    }
    let session = gateway.session_as(&[], "2025-03-26", "{}");
    let calls = executed(&session);
    let reply = session.post(&batch);
    let answers: Vec<Value> = crate::socket::events(&reply.text())
        .iter()
        .map(|text| serde_json::from_str(text).unwrap())
        .collect();
    let codes: Vec<i64> = answers
        .iter()
        .filter_map(|answer| answer.pointer("/error/code")?.as_i64())
        .collect();
    assert_eq!(
        (answers.len(), codes),
        (4, vec![-32600, -32600, -32600]),
        "{}",
        reply.text()
    );
    assert_eq!(executed(&session), calls + 2, "the good one ran");
    for bad in [
        "[]",
        &format!("[{}]", vec![ECHO; 65].join(",")),
        "[1",
        &format!("[{ECHO}],"),
    ] {
        let reply = session.post(bad);
        assert_eq!(reply.status, 400, "{}", reply.text());
    }
    assert_eq!(executed(&session), calls + 3);
}
