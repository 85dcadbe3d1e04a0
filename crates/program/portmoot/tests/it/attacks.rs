//! Attacks on a room: refused envelopes, forwarded envelopes that no participant executes, effects
//! on others. The audit log records each attack with sender, kind, verdict and cause. Tests by
//! attack:
//!
//! | attack | test |
//! |---|---|
//! | forged `from`; `system/...` with full access | `attacks::forged_senders_and_reserved_kinds_are_refused` |
//! | a kind that differs from its payload | `attacks::envelopes_whose_kind_and_payload_disagree_are_forwarded_but_not_executed` |
//! | a call inside a proposal; a request for another | `attacks::only_requests_are_executed_and_only_by_their_addressees` |
//! | a request to a server without a grant | `intruders::a_capability_for_one_server_reaches_no_other` |
//! | an answer to a request that another received | `intruders::an_answer_from_a_participant_that_was_not_asked_settles_no_request` |
//! | a repeated envelope | `attacks::a_repeated_envelope_is_executed_once` |
//! | the token of another topic, or an unknown token | `intruders::refused_connections_are_recorded` |
//! | a second connection | `rooms::a_second_connection_replaces_the_first` |
//! | oversized messages | `frames::the_longest_message_passes_and_a_longer_one_closes_the_connection` |
//! | a flood | `attacks::a_flood_is_refused_and_does_not_affect_other_participants` |
//! | fragments | `frames::fragments_are_joined_to_one_message`, `frames::protocol_violations_close_the_connection_with_their_code` |
//! | garbage | `frames::sixteen_malformed_messages_in_a_row_close_the_connection` |
//! | a receiver that never reads | `frames::load::a_participant_that_never_reads_is_disconnected_without_delaying_others` |
//! | 10,000 joins and leaves | `frames::load::ten_thousand_joins_and_leaves_leave_no_state` |
//! | approving one's own proposal | `proposals::own_proposals_cannot_be_approved` |
//! | approving after the arguments, or the tool, have changed | `proposals::approvals_need_the_shown_digest`, `workflows::a_changed_tool_does_not_run_for_a_fulfilment_either` |
//! | replaying an approval | `proposals::a_request_that_names_the_proposal_approves_it_once` |
//! | deciding about a call without the capability for it | `proposals::participants_without_the_capability_neither_see_nor_decide_proposals` |
//! | control and bidi characters in texts for reviewers | `reviewing::deceptive_characters_are_shown_to_the_reviewer` |

use serde_json::{Value, json};

use crate::audit_log::AuditLog;
use crate::support::{Gateway, fixture, until};
use crate::ws::{Socket, envelope, people};

const FULL: &[&str] = &["mcp/*", "chat", "acme/*"];

/// A gateway with the fixture as `tools`, `mallory` with full access, a `watcher`, and a `scout`
/// that may call only `echo`.
struct Stage {
    gateway: Gateway,
    watcher: Socket,
    mallory: Socket,
    home: crate::home::Home,
}

impl Stage {
    fn new() -> Stage {
        let (home, config) = people(&[
            ("mallory", FULL),
            ("watcher", FULL),
            (
                "scout",
                &[
                    "mcp/request:tools/call:echo",
                    "mcp/proposal:*",
                    "mcp/response:*",
                    "chat",
                ],
            ),
        ]);
        let gateway = Gateway::start(&home, &(fixture("tools", &[]) + &config));
        gateway.ready("tools");
        let mut watcher = Socket::enter(&gateway, "watcher", "");
        let mallory = Socket::enter(&gateway, "mallory", "?echo=false&mode=directed");
        watcher.receive();
        Stage {
            gateway,
            watcher,
            mallory,
            home,
        }
    }

    /// The number of calls that the server has executed, by its own count.
    #[track_caller]
    fn executed(&mut self, id: &str) -> u64 {
        self.watcher.call(id, &["tools"], "record", json!({}));
        loop {
            let received = self.watcher.receive_message();
            if received["correlation_id"] == id {
                return received["payload"]["result"]["structuredContent"]["calls"]
                    .as_u64()
                    .unwrap();
            }
        }
    }

    /// Sends this envelope as `mallory`; the watcher receives it, and no server executes it.
    #[track_caller]
    fn harmless(&mut self, name: &str, kind: &str, to: &[&str], more: Value, payload: &Value) {
        let before = self.executed(&format!("{name} before"));
        self.mallory.send(kind, name, to, more, payload);
        assert_eq!(self.watcher.receive_message()["id"], name);
        // The server's only session processes calls in order, so an execution of it would be
        // counted before this.
        assert_eq!(
            self.executed(&format!("{name} after")),
            before + 1,
            "{name}"
        );
    }
}

fn call(tool: &str) -> Value {
    let params = json!({ "name": tool, "arguments": { "text": "x" } });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
}

#[test]
fn forged_senders_and_reserved_kinds_are_refused() {
    let Stage {
        mut watcher,
        mut mallory,
        gateway: _gateway,
        home,
    } = Stage::new();
    for (id, from) in [
        ("1", "watcher"),
        ("2", "tools"),
        ("3", "system:gateway"),
        ("4", "portmoot"),
        ("5", "Mallory"),
        ("6", "mallory "),
    ] {
        mallory.text(envelope(from, "chat", id, &[], json!({}), &json!({})));
        mallory.refused(id, "auth_violation");
    }
    for kind in [
        "system/welcome",
        "system/presence",
        "system/error",
        "system/x:y",
        "system",
        "presence",
        "presence/join",
        "system:x",
    ] {
        mallory.send(
            kind,
            kind,
            &["watcher"],
            json!({}),
            &json!({ "event": "leave", "participant": { "id": "watcher" } }),
        );
        mallory.refused(kind, "capability_violation");
    }
    // A kind that only resembles a reserved one is refused for lack of a capability.
    for kind in ["System/error", " system/error", "systems/x"] {
        mallory.send(kind, kind, &[], json!({}), &json!({}));
        let code = mallory.receive_message()["payload"]["error"].clone();
        assert!(
            code == "capability_violation" || code == "malformed_envelope",
            "{kind}: {code}"
        );
    }
    mallory.chat("end");
    watcher.expect("end");
    let audit_log = AuditLog(&home);
    for from in [
        "watcher",
        "tools",
        "system:gateway",
        "portmoot",
        "Mallory",
        "mallory ",
    ] {
        let why = format!("auth_violation: `from` was {from:?}");
        audit_log.has("mallory", "chat", "refused", &why);
    }
    for kind in [
        "system/welcome",
        "system/presence",
        "system/error",
        "system/x:y",
        "presence/join",
    ] {
        audit_log.has("mallory", kind, "refused", "reserved");
    }
    audit_log.has("mallory", "systems/x", "refused", "not_admitted");
    assert_eq!(
        audit_log.count("watcher", "chat", "admitted", ""),
        0,
        "no entry has the forged name"
    );
}

#[test]
fn ambiguous_json_is_refused() {
    let Stage {
        mut watcher,
        mut mallory,
        gateway: _gateway,
        home,
    } = Stage::new();
    let good = envelope("mallory", "chat", "id", &[], json!({}), &json!({}));
    let with = |members: &str| good.replacen('{', &format!("{{{members},"), 1);
    let twice = [
        r#""kind":"mcp/request:tools/call:echo""#,
        r#""from":"watcher""#,
        r#""k\u0069nd":"system/error""#,
        r#""\u0066rom":"watcher""#,
        r#""protocol":"mcpx/v0.1""#,
        r#""payload":{}"#,
        r#""x":1,"x":1"#,
        r#""\u0078":1,"x":1"#,
        r#""ts":"a","ts":"b""#,
    ];
    for members in twice {
        mallory.text(with(members));
        mallory.refused("id", "malformed_envelope");
        mallory.chat("between");
        watcher.expect("between");
    }
    mallory.text(with(r#""id":"other""#));
    mallory.refused("", "malformed_envelope");
    mallory.chat("end");
    watcher.expect("end");
    let audit_log = AuditLog(&home);
    audit_log.has("mallory", "chat", "admitted", "chat");
    audit_log.comes_to(
        twice.len() + 1,
        "mallory",
        "portmoot/malformed",
        "refused",
        "malformed",
    );
}

#[test]
fn envelope_violations_are_reported_with_their_cause() {
    let Stage {
        mut watcher,
        mut mallory,
        gateway: _gateway,
        home,
    } = Stage::new();
    let text = envelope("mallory", "chat", "id", &[], json!({}), &json!({}));
    let good: Value = serde_json::from_str(&text).unwrap();
    let with = |key: &str, value: Value| {
        let mut bad = good.clone();
        bad[key] = value;
        bad.to_string()
    };
    let without = |key: &str| {
        let mut bad = good.clone();
        bad.as_object_mut().unwrap().remove(key);
        bad.to_string()
    };
    let both = |kind: &str, correlation: Value| {
        let mut bad = good.clone();
        bad["kind"] = json!(kind);
        bad["correlation_id"] = correlation;
        bad.to_string()
    };
    let malformed = [
        with("kind", json!("mcp/response:tools/call")),
        both("mcp/proposal:tools/call:echo", json!("earlier")),
        both("chat", json!(["one"])),
        both("chat", json!("")),
        with("from", json!(1)),
        without("from"),
        without("kind"),
        with("kind", json!("")),
        with("kind", json!("x".repeat(5000))),
        without("payload"),
        with("payload", json!([])),
        with("payload", json!("{}")),
        with("to", json!("watcher")),
        with("to", json!([1])),
        with("to", json!([""])),
        with("to", json!(vec!["watcher"; 65])),
        with("to", Value::Null),
        with("ts", json!(1)),
    ];
    for (at, bad) in malformed.iter().enumerate() {
        mallory.text(bad);
        mallory.refused("id", "malformed_envelope");
        if at % 8 == 7 {
            mallory.chat("between");
            watcher.expect("between");
        }
    }
    for protocol in ["mcpx/v0.2", "mcp-x/v0", "MCPX/v0.1", "mcpx/v0.1 "] {
        mallory.text(with("protocol", json!(protocol)));
        let received = mallory.refused("id", "unsupported_protocol");
        assert!(
            received["payload"]["message"]
                .as_str()
                .unwrap()
                .contains("mcpx/v0.1"),
            "{received}"
        );
    }
    mallory.chat("between");
    watcher.expect("between");
    for bad in [
        "",
        " ",
        "null",
        "[]",
        "\"x\"",
        "{",
        "{}",
        "{}{}",
        "[{}]",
        &without("id"),
        &with("id", json!(7)),
        &with("id", json!("x".repeat(300))),
        "{\"id\":\"id\",}",
    ] {
        mallory.text(bad);
        mallory.refused("", "malformed_envelope");
    }
    mallory.chat("end");
    watcher.expect("end");
    AuditLog(&home).has("mallory", "portmoot/malformed", "refused", "malformed");
    AuditLog(&home).has("mallory", "portmoot/malformed", "refused", "unsupported");
}

#[test]
fn envelopes_whose_kind_and_payload_disagree_are_forwarded_but_not_executed() {
    let mut stage = Stage::new();
    let listing = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let doubled = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"greet","na\u006de":"echo","arguments":{}}}"#;
    let rows = [
        (
            "0",
            "mcp/request:tools/call:echo",
            json!({ "id": "of no version", "method": 5 }),
        ),
        ("1", "mcp/request:tools/call:echo", call("add")),
        ("2", "mcp/request:tools/list", call("echo")),
        ("3", "mcp/request:tools/call", listing.clone()),
        ("4", "mcp/request:tools/call:echo", listing),
        (
            "5",
            "mcp/request:tools/list:echo",
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }),
        ),
        (
            "6",
            "mcp/request:tools/call:echo",
            json!({ "jsonrpc": "2.0", "id": 1, "result": {} }),
        ),
        (
            "7",
            "mcp/request:tools/call:echo",
            json!({ "method": "tools/call", "params": { "name": "echo", "arguments": { "text": "x" } } }),
        ),
        ("8", "mcp/request:tools/call:echo", json!({})),
        (
            "9",
            "mcp/request:tools/call:echo",
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "echo", "Name": "add", "arguments": {} } }),
        ),
    ];
    for (name, kind, payload) in rows {
        for host in ["tools", "portmoot"] {
            let name = format!("{name} to {host}");
            stage.harmless(&name, kind, &[host], json!({}), &payload);
            let notice = stage.mallory.receive_message();
            assert_eq!(
                (&notice["from"], &notice["correlation_id"]),
                (&json!(host), &json!(name)),
                "{notice}"
            );
            assert!(
                notice["payload"]["error"]["message"].is_string(),
                "{notice}"
            );
            // JSON-RPC: the same id, where the payload has one.
            assert_eq!(notice["payload"]["id"], payload["id"], "{notice}");
        }
    }
    let before = stage.executed("doubled before");
    let text = envelope(
        "mallory",
        "mcp/request:tools/call:echo",
        "doubled",
        &["tools"],
        json!({}),
        &json!({}),
    );
    stage
        .mallory
        .text(text.replace("\"payload\":{}", &format!("\"payload\":{doubled}")));
    let notice = stage.mallory.receive_message();
    assert!(
        notice["payload"]["error"].is_object() && notice["payload"]["id"] == 1,
        "{notice}"
    );
    assert_eq!(stage.executed("doubled after"), before + 1);
    let audit_log = AuditLog(&stage.home);
    for host in ["tools", "portmoot"] {
        let all = |kind: &str| {
            let entries =
                audit_log.entries(&["--participant", "mallory", "--verdict", "refused", kind]);
            entries
                .iter()
                .filter(|entry| entry["to"] == json!([host]))
                .count()
        };
        until("all are recorded", || {
            let calls = all("mcp/request:tools/call");
            (all("mcp/request:tools/list") == 2 && calls >= 6).then_some(())
        });
    }
}

#[test]
fn only_requests_are_executed_and_only_by_their_addressees() {
    let mut stage = Stage::new();
    let to_tools: &[&str] = &["tools"];
    let rows: [(&str, &str, &[&str], Value, Value); 8] = [
        (
            "in a proposal",
            "mcp/proposal:tools/call:echo",
            to_tools,
            json!({}),
            call("echo"),
        ),
        (
            "a proposal",
            "mcp/proposal:tools/call:echo",
            to_tools,
            json!({}),
            json!({ "method": "tools/call", "params": { "name": "echo", "arguments": { "text": "x" } } }),
        ),
        (
            "in a response",
            "mcp/response:tools/call:echo",
            to_tools,
            json!({ "correlation_id": "x" }),
            call("echo"),
        ),
        ("in a chat", "chat", to_tools, json!({}), call("echo")),
        (
            "in something else",
            "mcp/execute:tools/call:echo",
            to_tools,
            json!({}),
            call("echo"),
        ),
        (
            "to another",
            "mcp/request:tools/call:echo",
            &["watcher"],
            json!({}),
            call("echo"),
        ),
        (
            "to unknown participants",
            "mcp/request:tools/call:echo",
            &["Tools", "tools ", "tools\u{0}", "*"],
            json!({}),
            call("echo"),
        ),
        (
            "to all",
            "mcp/request:tools/call:echo",
            &[],
            json!({}),
            call("echo"),
        ),
    ];
    for (name, kind, to, more, payload) in rows {
        stage.harmless(name, kind, to, more, &payload);
    }
    stage.harmless(
        "to all, said so",
        "mcp/request:tools/call:echo",
        &[],
        json!({ "to": [] }),
        &call("echo"),
    );
    // None of these envelopes was answered, but for the one to those who are not there.
    stage
        .mallory
        .refused("to unknown participants", "upstream_failed");
    stage
        .mallory
        .call("real", to_tools, "echo", json!({ "text": "now" }));
    assert_eq!(stage.mallory.receive_message()["correlation_id"], "real");
    let audit_log = AuditLog(&stage.home);
    let real = audit_log.has(
        "mallory",
        "mcp/request:tools/call:echo",
        "admitted",
        "mcp/*",
    );
    assert!(real["to"].is_array(), "{real}");
    // A call in a proposal needs an approval; the other envelopes are delivered to their
    // addressees.
    let proposal = audit_log.has("mallory", "mcp/proposal:tools/call:echo", "held", "");
    assert_eq!(
        (&proposal["to"], proposal["digest"].is_string()),
        (&json!(["tools"]), true)
    );
    audit_log.comes_to(1, "tools", "mcp/response:tools/call:echo", "admitted", "");
    let all = audit_log.entries(&["--participant", "mallory", "mcp/request:tools/call:echo"]);
    assert!(
        all.iter().any(|entry| entry["to"] == json!(["watcher"])),
        "{all:?}"
    );
    assert!(
        all.iter().all(|entry| entry["verdict"] == "admitted"),
        "{all:?}"
    );
}

#[test]
fn a_repeated_envelope_is_executed_once() {
    let mut stage = Stage::new();
    let before = stage.executed("before");
    for _ in 0..5 {
        stage
            .mallory
            .call("again", &["tools", "tools"], "echo", json!({ "text": "x" }));
    }
    stage
        .mallory
        .call("another", &["tools"], "echo", json!({ "text": "x" }));
    let mut answered =
        [(); 2].map(|()| stage.mallory.receive_message()["correlation_id"].to_string());
    answered.sort();
    assert_eq!(answered, ["\"again\"", "\"another\""]);
    assert_eq!(stage.executed("after"), before + 3);
    // Ids are per sender: another sender can use the same id.
    stage
        .watcher
        .call("again", &["tools"], "echo", json!({ "text": "x" }));
    loop {
        let received = stage.watcher.receive_message();
        if received["from"] == "tools" && received["to"] == json!(["watcher"]) {
            assert_eq!(received["correlation_id"], "again");
            break;
        }
    }
    // Reconnecting does not reset the known ids.
    let before = stage.executed("before coming back");
    let mut mallory = Socket::enter(&stage.gateway, "mallory", "?mode=directed&echo=false");
    mallory.call("again", &["tools"], "echo", json!({ "text": "x" }));
    mallory.call("new", &["tools"], "echo", json!({ "text": "x" }));
    assert_eq!(mallory.receive_message()["correlation_id"], "new");
    assert_eq!(stage.executed("after coming back"), before + 2);
    let audit_log = AuditLog(&stage.home);
    let entry = audit_log.has(
        "mallory",
        "mcp/request:tools/call:echo",
        "refused",
        "repeat: \"again\"",
    );
    assert_eq!(entry["to"], json!(["tools"]), "each receiver once");
    audit_log.comes_to(
        5,
        "mallory",
        "mcp/request:tools/call:echo",
        "refused",
        "repeat",
    );
}

#[test]
fn a_flood_is_refused_and_does_not_affect_other_participants() {
    let (home, mut config) = people(&[("flooder", FULL), ("other", FULL)]);
    config = config.replace(
        "[participants.flooder]\n",
        "[participants.flooder]\nrate = { limit = \"6/min\", burst = 10 }\n",
    );
    let mut gateway = Gateway::start(&home, &config);
    let mut other = Socket::enter(&gateway, "other", "");
    let mut flooder = Socket::enter(&gateway, "flooder", "?echo=false");
    other.receive();
    for number in 0..500 {
        flooder.chat(&number.to_string());
    }
    for number in 0..10 {
        other.expect(&number.to_string());
    }
    for number in 10..500 {
        let received = flooder.refused(&number.to_string(), "rate_limited");
        let wait = received["payload"]["retry_after_ms"].as_u64().unwrap();
        assert!((1..=10_000).contains(&wait), "{received}");
    }
    // A new connection has no new allowance.
    let mut flooder = Socket::enter(&gateway, "flooder", "?echo=false");
    flooder.chat("again");
    flooder.refused("again", "rate_limited");
    for number in 0..100 {
        other.chat(&number.to_string());
        assert_eq!(other.receive_message()["id"], number.to_string());
    }
    // The first refusals have entries of their own; the others are counted in one entry, at the
    // latest when the gateway stops.
    let audit_log = AuditLog(&home);
    audit_log.has("flooder", "chat", "refused", "rate_limited");
    gateway.signal("TERM");
    gateway.wait();
    audit_log.comes_to(10, "flooder", "chat", "admitted", "chat");
    audit_log.comes_to(256, "flooder", "chat", "refused", "rate_limited");
    assert_eq!(
        audit_log.counted("flooder", "chat", "refused", "rate_limited"),
        491
    );
    audit_log.comes_to(100, "other", "chat", "admitted", "chat");
    audit_log.is_whole();
}

#[test]
fn flood_counts_are_written_during_the_flood() {
    let stage = Stage::new();
    let Stage {
        gateway: _gateway,
        mut mallory,
        watcher: _watcher,
        home,
    } = stage;
    for number in 0..600 {
        let kind = if number % 2 == 0 {
            "system/error"
        } else {
            "nothing"
        };
        mallory.send(kind, &number.to_string(), &[], json!({}), &json!({}));
        mallory.refused(&number.to_string(), "capability_violation");
    }
    // 44 of each of two causes are left: after ten seconds the log has their counts.
    let entry = AuditLog(&home).has("mallory", "portmoot/flood", "refused", "counted: ");
    assert_eq!(
        entry["why"], "counted: not_admitted 44, reserved 44",
        "{entry}"
    );
}
