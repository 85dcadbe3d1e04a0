//! Who has no business somewhere: at a server that was not granted, in another's conversation, in a topic of others.

use serde_json::{Value, json};

use crate::ledger::Ledger;
use crate::support::{Client, Gateway, fixture, until};
use crate::ws::{GOOD, Socket, answer, people, encode_token};

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
fn an_answer_of_somebody_who_was_not_asked_ends_nothing() {
    let (home, config) = people(&[
        ("agent", &["mcp/proposal:*", "chat"]),
        ("boss", FULL),
        ("worker", &["mcp/response:*", "chat"]),
        ("mallory", &["mcp/response:*", "chat"]),
    ]);
    let gateway = Gateway::start(&home, &config);
    let [mut agent, mut boss, mut worker, mut mallory] =
        ["agent", "boss", "worker", "mallory"].map(|name| Socket::enter(&gateway, name, "?echo=false"));
    // What boss lets worker do for agent: mallory hears all of it and answers first, to each and to all.
    let asks = json!({ "method": "tools/call", "params": { "name": "echo", "arguments": { "text": "x" } } });
    agent.say("mcp/proposal:tools/call:echo", "p1", &["worker"], json!({}), &asks);
    agent.hear_until(|heard| heard["payload"]["state"] == "pending");
    boss.say(ECHO, "f1", &["worker"], json!({ "correlation_id": "p1" }), &call("x"));
    agent.hear_until(|heard| heard["payload"]["state"] == "running");
    mallory.hear_until(|heard| heard["id"] == "f1");
    let forged: [&[&str]; 3] = [&["boss"], &["boss", "agent"], &[]];
    for (number, to) in forged.iter().enumerate() {
        let id = format!("forged {number}");
        mallory.say(ANSWER, &id, to, json!({ "correlation_id": "f1" }), &result("forged"));
        boss.hear_until(|heard| heard["id"] == id);
    }
    let url = gateway.url();
    let listed = || {
        let cli = ["proposals", "ls", "--all", "--json", "--url", &url, "--token", &token("boss")];
        let all: Value = serde_json::from_str(&home.run(&cli).expect(0).stdout).unwrap();
        all["proposals"][0].clone()
    };
    assert_eq!((&listed()["state"], &listed()["answer"]), (&json!("running"), &Value::Null));
    worker.hear_until(|heard| heard["id"] == "f1");
    worker.say(ANSWER, "real", &["boss"], json!({ "correlation_id": "f1" }), &result("real"));
    agent.hear_until(|heard| heard["payload"]["state"] == "completed");
    assert_eq!(listed()["answer"]["result"]["content"][0]["text"], "real");
    let ledger = Ledger(&home);
    until("all are recorded", || {
        (ledger.count("mallory", ANSWER, "refused", "not_asked: \"f1\" named others") == 3).then_some(())
    });
    ledger.comes_to(3, "mallory", ANSWER, "admitted", "mcp/response:*");
    assert_eq!(ledger.count("worker", ANSWER, "refused", ""), 0);
    ledger.has("worker", ANSWER, "admitted", "mcp/response:*");
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
    ["tools", "more"].iter().for_each(|name| gateway.ready(name));
    let mut boss = Socket::enter(&gateway, "boss", "?mode=directed");
    let mut clerk = Socket::enter(&gateway, "clerk", "?mode=directed");
    let rows: [(&str, &[&str]); 4] =
        [("1", &["more"]), ("2", &["tools", "more"]), ("3", &[]), ("4", &["more", "more", "tools"])];
    for (id, to) in rows {
        clerk.say(ECHO, id, to, json!({}), &call("x"));
        clerk.refused(id, "capability_violation");
    }
    clerk.say(ECHO, "5", &["tools"], json!({}), &call("x"));
    assert_eq!(clerk.hear_said()["correlation_id"], "5");
    // The same over MCP, where what is not granted does not exist.
    let client = Client::open(&gateway, Some(&token("clerk")), "/mcp", json!({}));
    let refused = client.ask("tools/call", json!({ "name": "more_echo", "arguments": { "text": "x" } }));
    assert!(refused["error"].is_object(), "{refused}");
    boss.call("count", &["more"], "record", json!({}));
    let counted = boss.hear_until(|heard| heard["correlation_id"] == "count");
    assert_eq!(counted["payload"]["result"]["structuredContent"]["calls"], 1, "{counted}");
    let ledger = Ledger(&home);
    ledger.has("clerk", "mcp/request:tools/call:more_echo", "refused", "not_admitted");
    ledger.comes_to(4, "clerk", ECHO, "refused", "not_admitted");
    ledger.comes_to(1, "clerk", ECHO, "admitted", "");
}

#[test]
fn who_is_not_let_in_is_recorded() {
    let (home, mut config) = people(&[("insider", FULL), ("outsider", FULL)]);
    config = config.replace("[participants.outsider]\n", "[participants.outsider]\ntopics = [\"other\"]\n");
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
    assert_eq!(knock("/ws?topic=main", Some("a-token-that-was-guessed")), 401);
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
    let ledger = Ledger(&home);
    // In the room, as an MCP client of both kinds, and over the API.
    ledger.comes_to(4, "outsider", CONNECTION, "refused", "forbidden: for topic \"main\"");
    ledger.comes_to(2, "system:nobody", CONNECTION, "refused", "unauthenticated: for the API");
    ledger.comes_to(2, "system:nobody", CONNECTION, "refused", "unauthenticated: for topic \"main\"");
    ledger.has("insider", CONNECTION, "refused", "forbidden: for topic \"nowhere\"");
    ledger.has("system:nobody", CONNECTION, "refused", "unauthenticated: for topic \"\u{202e}niam\"");
    assert_eq!(ledger.count("outsider", CONNECTION, "admitted", ""), 0);
    // Shown to people, nothing in it turns the line around; and no token is in it.
    let shown = home.run(&["audit", "query", CONNECTION, "--data-dir", "data"]).expect(0).stdout;
    assert!(shown.contains(r"\u{202e}niam") && !shown.contains('\u{202e}'), "{shown}");
    let log = std::fs::read_to_string(home.path().join("data/audit/00000000000000000001.jsonl")).unwrap();
    assert!(!log.contains("a-token-that-was-guessed") && !log.contains("token-of-"), "{log}");
}

#[test]
fn guests_who_come_again_and_again_do_not_fill_the_log() {
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
            guest.say("acme/x", &number.to_string(), &[], json!({}), &json!({}));
            // After a while because it is too much.
            assert_eq!(guest.hear_said()["kind"], "system/error");
        }
        last.clone_from(&guest.id);
        guest.leave();
    }
    gateway.signal("TERM");
    gateway.wait();
    let ledger = Ledger(&home);
    let refused = ledger.entries(&["--verdict", "refused", "--topic", "lobby"]);
    let (counts, written): (Vec<_>, Vec<_>) =
        refused.iter().partition(|entry| entry["why"].as_str().unwrap().starts_with("counted"));
    assert_eq!((&counts[0]["from"], &counts[0]["kind"]), (&json!("anonymous-"), &json!("acme/x")));
    let mut all = 0;
    // The first of each cause are written out.
    for cause in ["not_admitted", "rate_limited"] {
        let of = written.iter().filter(|entry| entry["why"].as_str().unwrap().starts_with(cause)).count();
        let counted = ledger.counted("anonymous-", "acme/x", "refused", cause);
        assert!(of == 256 || (of < 256 && counted == 0), "{cause}: {of} and {counted}");
        all += of as u64 + counted;
    }
    assert_eq!(all, 600, "{counts:?}");
    assert!(ledger.count(&last, CONNECTION, "admitted", "opened") == 1);
}
