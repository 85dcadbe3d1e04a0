//! REST API: calls of tools, servers that are added, changed and removed, and the document's
//! validity.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use harness::deps;
use serde_json::{Value, json};

use crate::audit_log::AuditLog;
use crate::home::Home;
use crate::http::{Connection, Reply};
use crate::support::{Gateway, fixture, until};
use crate::ws::{people, token};

/// Sends one request with JSON, by the bearer of this token.
#[track_caller]
fn send(gateway: &Gateway, method: &str, path: &str, token: Option<&str>, body: &str) -> Reply {
    send_with(gateway, method, path, token, &[], body)
}

#[track_caller]
fn send_with(
    gateway: &Gateway,
    method: &str,
    path: &str,
    token: Option<&str>,
    more: &[(&str, &str)],
    body: &str,
) -> Reply {
    let bearer = token.map(|token| format!("Bearer {token}"));
    let mut headers = vec![("content-type", "application/json")];
    headers.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
    headers.extend(more);
    Connection::open(gateway.address()).exchange(method, path, &headers, body)
}

#[test]
fn the_document_that_is_served_is_valid_openapi() {
    let home = Home::new();
    let gateway = Gateway::start_with(&home, &[]);
    let served = gateway.get("/api/v1/openapi.json", None).body;
    let mut validator = Command::new(deps().python());
    validator
        .args(["-m", "openapi_spec_validator", "-"])
        .stdin(Stdio::piped());
    let mut child = validator
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(served.as_bytes())
        .unwrap();
    let out = child.wait_with_output().unwrap();
    let said =
        String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && said.contains("OK"), "{said}");
    let document: Value = serde_json::from_str(&served).unwrap();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(
        document["servers"][0]["variables"]["gateway"]["default"],
        "http://127.0.0.1:7070"
    );
    assert_eq!(
        document["components"]["securitySchemes"]["bearer"]["scheme"],
        "bearer"
    );
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let security = operation["security"].as_array().unwrap();
            assert!(
                security.contains(&json!({ "bearer": [] })),
                "{method} {path}"
            );
            for response in operation["responses"].as_object().unwrap().values() {
                assert!(
                    !response["description"].as_str().unwrap().is_empty(),
                    "{method} {path}"
                );
            }
        }
    }
    gateway.stop().expect(0);
}

#[test]
fn a_tool_is_called_over_the_api() {
    let home = Home::new();
    let gateway = Gateway::start_with(&home, &[]);
    gateway.ready("demo");
    let call = |tool: &str, body: &str| {
        send(
            &gateway,
            "POST",
            &format!("/api/v1/tools/{tool}/call"),
            None,
            body,
        )
    };
    let reply = call("demo_echo", r#"{"arguments": {"text": "a\u00e9 1.0"}}"#);
    assert_eq!(
        (reply.status, reply.header("content-type")),
        (200, Some("application/json")),
        "{reply:?}"
    );
    assert_eq!(reply.json()["content"][0]["text"], "aé 1.0");
    // Without arguments there are none, and the tool says what is missing.
    let reply = call("demo_now", "{}");
    assert!(
        reply.json()["content"][0]["text"]
            .as_str()
            .unwrap()
            .parse::<u64>()
            .is_ok(),
        "{reply:?}"
    );
    for (tool, body, status, code) in [
        ("demo_nope", "{}", 404, "unknown_target"),
        ("demo_echo", r#"{"arguments": [1]}"#, 400, "malformed"),
        ("demo_echo", r#"{"argument": {}}"#, 400, "malformed"),
        ("demo_echo", "{", 400, "malformed"),
    ] {
        let reply = call(tool, body);
        assert_eq!(
            (reply.status, &reply.json()["code"]),
            (status, &json!(code)),
            "{tool} {body}: {reply:?}"
        );
    }
    let elsewhere = send(
        &gateway,
        "POST",
        "/api/v1/tools/demo_echo/call?topic=nowhere",
        None,
        "{}",
    );
    assert_eq!(
        (elsewhere.status, &elsewhere.json()["code"]),
        (403, &json!("forbidden"))
    );
    gateway.stop().expect(0);
}

const PEOPLE: &[(&str, &[&str])] = &[
    ("boss", &["mcp/*", "portmoot/*"]),
    ("scout", &["mcp/request:*/list", "mcp/proposal:*"]),
    ("reader", &["mcp/request:tools/call:demo_echo"]),
    ("roomer", &["mcp/*"]),
];

#[test]
fn a_call_over_the_api_has_the_rights_and_the_record_of_any_call() {
    let (home, config) = people(PEOPLE);
    let config = config.replace(
        "[participants.roomer]",
        "[participants.roomer]\nwires = [\"ws\"]",
    );
    let gateway = Gateway::start(&home, &(config + "[servers.demo]\ntype = \"demo\"\n"));
    gateway.ready("demo");
    let call = |tool: &str, who: Option<&str>, body: &str| {
        let token = who.map(token);
        send(
            &gateway,
            "POST",
            &format!("/api/v1/tools/{tool}/call"),
            token.as_deref(),
            body,
        )
    };
    let hello = r#"{"arguments": {"text": "hello"}}"#;
    let stranger = call("demo_echo", None, hello);
    assert_eq!(
        (
            stranger.status,
            stranger.header("www-authenticate").is_some()
        ),
        (401, true),
        "{stranger:?}"
    );
    assert_eq!(
        call("demo_echo", Some("reader"), hello).json()["content"][0]["text"],
        "hello"
    );
    // What a caller may not use does not exist for it; a wire that is closed to it is closed here
    // too.
    assert_eq!(call("demo_add", Some("reader"), "{}").status, 404);
    assert_eq!(call("demo_echo", Some("roomer"), hello).status, 403);
    // A call that may only be proposed waits, and runs once it is approved.
    let waits = call("demo_echo", Some("scout"), hello);
    assert_eq!(waits.status, 202, "{waits:?}");
    let id = waits.json()["proposal"].as_str().unwrap().to_owned();
    let place = format!("/api/v1/proposals/{id}");
    assert_eq!(waits.header("location"), Some(&*place));
    let look = |who: &str| gateway.get(&place, Some(&token(who))).json();
    assert_eq!(
        (&look("scout")["state"], &look("scout")["held"]),
        (&json!("pending"), &json!(true))
    );
    let own = json!({ "digest": look("scout")["digest"] }).to_string();
    assert_ne!(
        send(
            &gateway,
            "POST",
            &format!("{place}/approve"),
            Some(&token("scout")),
            &own
        )
        .status,
        200
    );
    let approval = json!({ "digest": look("boss")["digest"] }).to_string();
    let approved = send(
        &gateway,
        "POST",
        &format!("{place}/approve"),
        Some(&token("boss")),
        &approval,
    );
    assert_eq!(approved.status, 200, "{approved:?}");
    let done = until("the call has run", || {
        Some(look("scout")).filter(|one| one["state"] == "completed")
    });
    assert_eq!(
        done["answer"]["result"]["content"][0]["text"], "hello",
        "{done}"
    );
    let (log, kind) = (AuditLog(&home), "mcp/request:tools/call:demo_echo");
    log.has("reader", kind, "admitted", "");
    log.has("scout", kind, "held", "");
    log.has("reader", "mcp/request:tools/call:demo_add", "refused", "");
    gateway.stop().expect(0);
}

#[test]
fn a_caller_that_leaves_cancels_its_call() {
    let home = Home::new();
    let gateway = Gateway::start(&home, &fixture("f", &[]));
    gateway.ready("f");
    let open = || gateway.server("f")["calls"].as_u64();
    let caller = Connection::open(gateway.address());
    let headers = [("content-type", "application/json")];
    let stream = caller.stream(
        "POST",
        "/api/v1/tools/f_slow/call",
        &headers,
        r#"{"arguments": {"ms": 60000}}"#,
    );
    until("the call is open", || open().filter(|open| *open == 1));
    drop(stream);
    until("the call has ended", || open().filter(|open| *open == 0));
    gateway.stop().expect(0);
}

/// The operator key of a gateway whose data directory is this one.
fn operator_key(data: &Path) -> String {
    std::fs::read_to_string(data.join("operator.key")).unwrap()
}

#[test]
fn the_operator_adds_changes_and_removes_a_server() {
    let home = Home::new();
    let config =
        "# my gateway\n[server]\ndata_dir = \"data\"   # here\n\n[servers.demo]\ntype = \"demo\"\n";
    let gateway = Gateway::start(&home, config);
    gateway.ready("demo");
    let file = || std::fs::read_to_string(home.path().join("portmoot.toml")).unwrap();
    let key = operator_key(&home.path().join("data"));
    let put = |name: &str, token: Option<&str>, more: &[(&str, &str)], body: &Value| {
        send_with(
            &gateway,
            "PUT",
            &format!("/api/v1/servers/{name}"),
            token,
            more,
            &body.to_string(),
        )
    };
    let own = json!({ "command": harness::fixture_binary(), "args": ["--stdio"], "env": { "API_TOKEN": "s3cret" } });
    // Callers need no token here, and are the local user; that is not enough.
    for token in [None, Some("pm_wrong")] {
        let refused = put("own", token, &[], &own);
        assert_eq!(
            (refused.status, &refused.json()["code"]),
            (403, &json!("capability_violation"))
        );
    }
    assert_eq!(file(), config);
    let added = put("own", Some(&key), &[], &own);
    assert_eq!(added.status, 201, "{added:?}");
    assert!(
        added.json()["notes"][0]
            .as_str()
            .unwrap()
            .contains("API_TOKEN"),
        "{added:?}"
    );
    // It is in force when the answer is there.
    assert!(
        ["starting", "idle", "ready"].contains(&gateway.server("own")["state"].as_str().unwrap())
    );
    gateway.wait_for("own", "ready");
    assert!(
        file().starts_with(config.trim_end()) && file().contains("[servers.own]\ncommand = "),
        "{}",
        file()
    );
    let again = put("own", Some(&key), &[], &own);
    assert_eq!(
        (again.status, &again.json()["changed"]),
        (200, &json!(false)),
        "{again:?}"
    );
    let new_only = put("own", Some(&key), &[("if-none-match", "*")], &own);
    assert_eq!(
        (new_only.status, &new_only.json()["code"]),
        (409, &json!("conflict")),
        "{new_only:?}"
    );
    let mut changed = own.clone();
    changed["prefix"] = json!("mine");
    assert_eq!(put("own", Some(&key), &[], &changed).status, 200);
    assert_eq!(gateway.server("own")["prefix"], "mine");
    let before = file();
    for (name, body, status, words) in [
        ("own", json!({ "comand": "x" }), 400, "comand"),
        (
            "own",
            json!({ "command": "x", "url": "http://127.0.0.1:1/mcp" }),
            400,
            "url",
        ),
        ("own", json!({ "command": null }), 400, "null"),
        ("own", json!(["x"]), 400, ""),
        ("portmoot", own.clone(), 400, "portmoot"),
        ("a%20b", own.clone(), 400, "name"),
        (
            "own2",
            json!({ "command": "x", "prefix": "mine" }),
            400,
            "prefix",
        ),
    ] {
        let refused = put(name, Some(&key), &[], &body);
        let message = refused.json()["message"].as_str().unwrap().to_owned();
        assert!(
            refused.status == status && message.contains(words),
            "{name} {body}: {refused:?}"
        );
    }
    assert_eq!(file(), before, "nothing was changed");
    let delete = |name: &str| {
        send(
            &gateway,
            "DELETE",
            &format!("/api/v1/servers/{name}"),
            Some(&key),
            "",
        )
    };
    assert_eq!(delete("nope").status, 404);
    assert_eq!(delete("own").status, 200);
    assert_eq!(gateway.get("/api/v1/servers/own", None).status, 404);
    assert_eq!(file(), config, "comments and order are as they were");
    let log = AuditLog(&home);
    for (verdict, why) in [
        ("refused", "capability_violation: configured"),
        ("admitted", "configured"),
        ("admitted", "removed"),
    ] {
        assert_eq!(
            log.has("local", "portmoot/configure", verdict, why)["to"][0],
            "own"
        );
    }
    gateway.stop().expect(0);
}

#[test]
fn a_flood_of_strangers_that_would_configure_servers_is_counted() {
    let home = Home::new();
    let gateway = Gateway::start(
        &home,
        "[server]\ndata_dir = \"data\"\n[servers.demo]\ntype = \"demo\"\n",
    );
    let mut connection = Connection::open(gateway.address());
    for _ in 0..300 {
        let headers = [("content-type", "application/json")];
        assert_eq!(
            connection
                .exchange("PUT", "/api/v1/servers/x", &headers, "{}")
                .status,
            403
        );
    }
    gateway.stop().expect(0);
    let log = AuditLog(&home);
    let refused = (
        "local",
        "portmoot/configure",
        "refused",
        "capability_violation",
    );
    assert_eq!(log.counted(refused.0, refused.1, refused.2, refused.3), 300);
    assert!(
        log.count(refused.0, refused.1, refused.2, refused.3) < 300,
        "they have an entry each"
    );
}

#[test]
fn a_gateway_without_a_file_gets_one_and_one_with_a_found_file_keeps_it() {
    let home = Home::new();
    let gateway = Gateway::start_with(&home, &[]);
    gateway.ready("demo");
    let key = operator_key(&home.path().join(".local/state/portmoot"));
    let demo = r#"{"type": "demo"}"#;
    let added = send(&gateway, "PUT", "/api/v1/servers/mine", Some(&key), demo);
    assert_eq!(added.status, 201, "{added:?}");
    assert!(home.path().join(".config/portmoot/portmoot.toml").exists());
    assert_eq!(gateway.server("mine")["transport"], "demo");
    gateway.stop().expect(0);
    // A file that the operator did not name stays as the operator has consented to it.
    let home = Home::new();
    home.write("portmoot.toml", "[servers.demo]\ntype = \"demo\"\n");
    let gateway = Gateway::start_with(&home, &["--yes"]);
    let key = operator_key(&home.path().join(".local/state/portmoot"));
    let refused = send(&gateway, "PUT", "/api/v1/servers/mine", Some(&key), demo);
    assert_eq!(&refused.json()["code"], "unsupported", "{refused:?}");
    gateway.stop().expect(0);
    // Servers of a client's file are changed there.
    let home = Home::new();
    let client = home.write(
        "client.json",
        r#"{"mcpServers": {"demo2": {"url": "http://127.0.0.1:9/mcp"}}}"#,
    );
    let gateway = Gateway::start_with(&home, &["--mcp-config", client.to_str().unwrap()]);
    let key = operator_key(&home.path().join(".local/state/portmoot"));
    for method in ["PUT", "DELETE"] {
        let refused = send(&gateway, method, "/api/v1/servers/demo2", Some(&key), demo);
        assert_eq!(
            (refused.status, &refused.json()["code"]),
            (409, &json!("conflict")),
            "{refused:?}"
        );
    }
    gateway.stop().expect(0);
}

#[test]
fn a_change_that_the_gateway_does_not_take_over_is_put_back() {
    let home = Home::new();
    let config = "[server]\ndata_dir = \"data\"\n[servers.demo]\ntype = \"demo\"\n";
    let file = home.write("portmoot.toml", config);
    let client = home.write("client.json", r#"{"mcpServers": {}}"#);
    let args = [
        "--config",
        "portmoot.toml",
        "--mcp-config",
        client.to_str().unwrap(),
    ];
    let gateway = Gateway::start_with(&home, &args);
    gateway.ready("demo");
    let key = operator_key(&home.path().join("data"));
    let put = || {
        send(
            &gateway,
            "PUT",
            "/api/v1/servers/mine",
            Some(&key),
            r#"{"type": "demo"}"#,
        )
    };
    // The file itself would be right; what the gateway reads beside it is not.
    home.write("client.json", "{");
    let refused = put();
    assert_eq!(
        (refused.status, &refused.json()["code"]),
        (409, &json!("conflict")),
        "{refused:?}"
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), config);
    // The file is broken by another hand: the change is refused, and touches nothing.
    home.write("client.json", r#"{"mcpServers": {}}"#);
    home.write("portmoot.toml", "[server\n");
    assert_eq!(put().status, 409);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "[server\n");
    home.write("portmoot.toml", config);
    assert_eq!(put().status, 201);
    gateway.stop().expect(0);
}
