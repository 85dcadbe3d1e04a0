//! Intrusions: servers without a grant, answers to requests of others, topics of others.

use serde_json::{Value, json};

use crate::audit_log::AuditLog;
use crate::support::{Client, Gateway, fixture, until};
use crate::ws::{GOOD, Socket, answer, people, token};

const FULL: &[&str] = &["mcp/*", "chat"];
const ECHO: &str = "mcp/request:tools/call:echo";
const ANSWER: &str = "mcp/response:tools/call:echo";
const CONNECTION: &str = "portmoot/connection";

fn result(text: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "result": { "content": [{ "type": "text", "text": text }] } })
}

fn call(text: &str) -> Value {
    let params = json!({ "name": "echo", "arguments": { "text": text } });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
}

#[test]
fn an_answer_from_a_participant_that_was_not_asked_settles_no_request() {
    let (home, config) = people(&[
        ("agent", &["mcp/proposal:*", "chat"]),
        ("boss", FULL),
        ("worker", &["mcp/response:*", "chat"]),
        ("mallory", &["mcp/response:*", "chat"]),
    ]);
    let gateway = Gateway::start(&home, &config);
    let [mut agent, mut boss, mut worker, mut mallory] = ["agent", "boss", "worker", "mallory"]
        .map(|name| Socket::enter(&gateway, name, "?echo=false"));
    // The boss approves a call of agent at worker: mallory receives everything and answers first,
    // to each and to all.
    let asks = json!({ "method": "tools/call", "params": { "name": "echo", "arguments": { "text": "x" } } });
    agent.send(
        "mcp/proposal:tools/call:echo",
        "p1",
        &["worker"],
        json!({}),
        &asks,
    );
    agent.receive_until(|received| received["payload"]["state"] == "pending");
    boss.send(
        ECHO,
        "f1",
        &["worker"],
        json!({ "correlation_id": "p1" }),
        &call("x"),
    );
    agent.receive_until(|received| received["payload"]["state"] == "running");
    mallory.receive_until(|received| received["id"] == "f1");
    let forged: [&[&str]; 3] = [&["boss"], &["boss", "agent"], &[]];
    for (number, to) in forged.iter().enumerate() {
        let id = format!("forged {number}");
        mallory.send(
            ANSWER,
            &id,
            to,
            json!({ "correlation_id": "f1" }),
            &result("forged"),
        );
        boss.receive_until(|received| received["id"] == id);
    }
    let url = gateway.url();
    let listed = || {
        let cli = [
            "proposals",
            "ls",
            "--all",
            "--json",
            "--url",
            &url,
            "--token",
            &token("boss"),
        ];
        let all: Value = serde_json::from_str(&home.run(&cli).expect(0).stdout).unwrap();
        all["proposals"][0].clone()
    };
    assert_eq!(
        (&listed()["state"], &listed()["answer"]),
        (&json!("running"), &Value::Null)
    );
    worker.receive_until(|received| received["id"] == "f1");
    worker.send(
        ANSWER,
        "real",
        &["boss"],
        json!({ "correlation_id": "f1" }),
        &result("real"),
    );
    agent.receive_until(|received| received["payload"]["state"] == "completed");
    assert_eq!(listed()["answer"]["result"]["content"][0]["text"], "real");
    let audit_log = AuditLog(&home);
    until("all are recorded", || {
        (audit_log.count(
            "mallory",
            ANSWER,
            "refused",
            "not_asked: \"f1\" named others",
        ) == 3)
            .then_some(())
    });
    audit_log.comes_to(3, "mallory", ANSWER, "admitted", "mcp/response:*");
    assert_eq!(audit_log.count("worker", ANSWER, "refused", ""), 0);
    audit_log.has("worker", ANSWER, "admitted", "mcp/response:*");
}

#[test]
fn a_capability_for_one_server_reaches_no_other() {
    let (home, config) = people(&[("boss", FULL)]);
    let config = fixture("tools", &[])
        + &fixture("more", &[])
        + &config
        + "[participants.clerk]\ntoken_env = \"TOKEN_CLERK\"\n\
           capabilities = [{ kind = \"mcp/request:tools/call\", to = [\"tools\"] }]\n";
    let home = home.env("TOKEN_CLERK", &token("clerk"));
    let gateway = Gateway::start(&home, &config);
    ["tools", "more"]
        .iter()
        .for_each(|name| gateway.ready(name));
    let mut boss = Socket::enter(&gateway, "boss", "?mode=directed");
    let mut clerk = Socket::enter(&gateway, "clerk", "?mode=directed");
    let rows: [(&str, &[&str]); 4] = [
        ("1", &["more"]),
        ("2", &["tools", "more"]),
        ("3", &[]),
        ("4", &["more", "more", "tools"]),
    ];
    for (id, to) in rows {
        clerk.send(ECHO, id, to, json!({}), &call("x"));
        clerk.refused(id, "capability_violation");
    }
    clerk.send(ECHO, "5", &["tools"], json!({}), &call("x"));
    assert_eq!(clerk.receive_message()["correlation_id"], "5");
    // The same over MCP, where a target without a grant is unknown.
    let client = Client::of(&gateway, &token("clerk"));
    let refused = client.ask(
        "tools/call",
        json!({ "name": "more_echo", "arguments": { "text": "x" } }),
    );
    assert!(refused["error"].is_object(), "{refused}");
    boss.call("count", &["more"], "record", json!({}));
    let counted = boss.receive_until(|received| received["correlation_id"] == "count");
    assert_eq!(
        counted["payload"]["result"]["structuredContent"]["calls"], 1,
        "{counted}"
    );
    let audit_log = AuditLog(&home);
    audit_log.has(
        "clerk",
        "mcp/request:tools/call:more_echo",
        "refused",
        "not_admitted",
    );
    audit_log.comes_to(4, "clerk", ECHO, "refused", "not_admitted");
    audit_log.comes_to(1, "clerk", ECHO, "admitted", "");
}

#[test]
fn refused_connections_are_recorded() {
    let (home, mut config) = people(&[("insider", FULL), ("outsider", FULL)]);
    config = config.replace(
        "[participants.outsider]\n",
        "[participants.outsider]\ntopics = [\"other\"]\n",
    );
    config = config.replace("[server]\n", "[server]\nlegacy_sse = true\n");
    let gateway = Gateway::start(&home, &(config + "[topics.main]\n[topics.other]\n"));
    let mut insider = Socket::enter(&gateway, "insider", "");
    let knock = |path: &str, bearer: Option<&str>| {
        let bearer = bearer.map(|token| format!("Bearer {token}"));
        let own = bearer.as_deref().map(|bearer| ("authorization", bearer));
        answer(&gateway, path, &[&GOOD[..], own.as_slice()].concat()).status
    };
    assert_eq!(knock("/ws?topic=main", Some(&token("outsider"))), 403);
    assert_eq!(knock("/ws?topic=nowhere", Some(&token("insider"))), 403);
    assert_eq!(
        knock("/ws?topic=main", Some("a-token-that-was-guessed")),
        401
    );
    assert_eq!(knock("/ws?topic=%E2%80%AEniam", None), 401);
    let client = Client::resume(&gateway, Some(&token("outsider")), "/mcp/main", "");
    assert_eq!(client.status("tools/list", json!({})), 403);
    let outsider = token("outsider");
    for (path, bearer, status) in [
        ("/api/v1/servers", Some("a-token-that-was-guessed"), 401),
        ("/metrics", None, 401),
        ("/api/v1/proposals", Some(outsider.as_str()), 200),
        ("/api/v1/tools?topic=main", Some(&outsider), 403),
        ("/sse", Some(&outsider), 403),
        ("/sse", Some("a-token-that-was-guessed"), 401),
    ] {
        assert_eq!(gateway.get(path, bearer).status, status, "{path}");
    }
    insider.chat("undisturbed");
    insider.expect("undisturbed");
    let audit_log = AuditLog(&home);
    // In the room, as an MCP client of both eras, and over the API.
    audit_log.comes_to(
        4,
        "outsider",
        CONNECTION,
        "refused",
        "forbidden: for topic \"main\"",
    );
    audit_log.comes_to(
        2,
        "system:nobody",
        CONNECTION,
        "refused",
        "unauthenticated: for the API",
    );
    audit_log.comes_to(
        2,
        "system:nobody",
        CONNECTION,
        "refused",
        "unauthenticated: for topic \"main\"",
    );
    audit_log.has(
        "insider",
        CONNECTION,
        "refused",
        "forbidden: for topic \"nowhere\"",
    );
    audit_log.has(
        "system:nobody",
        CONNECTION,
        "refused",
        "unauthenticated: for topic \"\u{202e}niam\"",
    );
    assert_eq!(audit_log.count("outsider", CONNECTION, "admitted", ""), 0);
    // The printed log has no direction marks and no token.
    let shown = home
        .run(&["audit", "query", CONNECTION, "--data-dir", "data"])
        .expect(0)
        .stdout;
    assert!(
        shown.contains(r"\u{202e}niam") && !shown.contains('\u{202e}'),
        "{shown}"
    );
    let log =
        std::fs::read_to_string(home.path().join("data/audit/00000000000000000001.jsonl")).unwrap();
    assert!(
        !log.contains("a-token-that-was-guessed") && !log.contains("token-of-"),
        "{log}"
    );
}

#[test]
fn reconnecting_guests_do_not_fill_the_log() {
    let (home, config) = people(&[("boss", FULL)]);
    let config = config
        + "[profiles.reader]\ncapabilities = [\"chat\"]\n[topics.main]\n[topics.lobby]\naccess = \"public\"\nanonymous = \"reader\"\n";
    let mut gateway = Gateway::start(&home, &config);
    let mut last = String::new();
    for _ in 0..3 {
        let (mut guest, welcome) = Socket::guest(&gateway, "?topic=lobby&echo=false&mode=directed");
        guest.id = welcome["payload"]["you"]["id"].as_str().unwrap().to_owned();
        assert!(guest.id.starts_with("anonymous-"), "{welcome}");
        for number in 0..200 {
            guest.send("acme/x", &number.to_string(), &[], json!({}), &json!({}));
            // After a while the guest is rate limited.
            assert_eq!(guest.receive_message()["kind"], "system/error");
        }
        last.clone_from(&guest.id);
        guest.leave();
    }
    gateway.signal("TERM");
    gateway.wait();
    let audit_log = AuditLog(&home);
    let refused = audit_log.entries(&["--verdict", "refused", "--topic", "lobby"]);
    let (counts, written): (Vec<_>, Vec<_>) = refused
        .iter()
        .partition(|entry| entry["why"].as_str().unwrap().starts_with("counted"));
    assert_eq!(
        (&counts[0]["from"], &counts[0]["kind"]),
        (&json!("anonymous-"), &json!("acme/x"))
    );
    let mut all = 0;
    // The first entries of each cause are written one by one.
    for cause in ["not_admitted", "rate_limited"] {
        let of = written
            .iter()
            .filter(|entry| entry["why"].as_str().unwrap().starts_with(cause))
            .count();
        let counted = audit_log.counted("anonymous-", "acme/x", "refused", cause);
        assert!(
            of == 256 || (of < 256 && counted == 0),
            "{cause}: {of} and {counted}"
        );
        all += of as u64 + counted;
    }
    assert_eq!(all, 600, "{counts:?}");
    assert!(audit_log.count(&last, CONNECTION, "admitted", "opened") == 1);
}
