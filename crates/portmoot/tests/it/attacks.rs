//! Attacks on a room: what is refused, what is forwarded but carried out by nobody, and that the others go on. Each is in the
//! audit log, with who, what, the verdict and why. Where which attack is tried:
//!
//! | attack | test |
//! |---|---|
//! | forged `from`; `system/...` by somebody with full access | `attacks::nobody_speaks_for_another_or_for_the_gateway` |
//! | a kind that differs from its payload | `attacks::a_kind_that_its_payload_denies_is_forwarded_and_carried_out_by_nobody` |
//! | a call inside a proposal; a request for another | `attacks::only_requests_are_carried_out_and_only_by_whom_they_name` |
//! | a request for somebody who is not granted | `intruders::a_capability_for_one_server_reaches_no_other` |
//! | an answer to what another was asked | `intruders::an_answer_of_somebody_who_was_not_asked_ends_nothing` |
//! | the same envelope again | `attacks::the_same_envelope_is_custom_out_once` |
//! | the token of another topic, or nobody's | `intruders::who_is_not_let_in_is_recorded` |
//! | a second connection | `rooms::a_second_connection_takes_the_place_of_the_first` |
//! | oversized | `frames::the_longest_message_passes_and_a_longer_one_ends_its_connection` |
//! | a flood | `attacks::a_flood_is_refused_and_troubles_nobody_else` |
//! | fragments | `frames::fragments_are_one_message`, `frames::who_breaks_the_protocol_is_closed_with_the_code_that_says_so` |
//! | garbage | `frames::sixteen_malformed_messages_in_a_row_are_too_many` |
//! | a receiver that never reads | `frames::who_never_reads_is_cut_off_and_costs_the_others_nothing` |
//! | 10,000 comings and goings | `frames::ten_thousand_comings_and_goings_leave_nothing_behind` |
//! | approving one's own proposal | `proposals::nobody_approves_what_is_its_own` |
//! | approving after the arguments, or the tool, have changed | `proposals::only_what_was_shown_is_approved`, `workflows::a_tool_that_has_changed_is_not_run_for_an_envelope_either` |
//! | replaying an approval | `proposals::a_request_that_names_the_proposal_approves_it_once` |
//! | deciding about what one may not do | `proposals::who_may_not_make_the_call_neither_sees_nor_decides` |
//! | control and bidi characters in what a reviewer is shown | `reviewing::what_would_deceive_a_reviewer_is_shown_as_it_is` |

use serde_json::{Value, json};

use crate::ledger::Ledger;
use crate::support::{Gateway, fixture, until};
use crate::ws::{Socket, envelope, people};

const FULL: &[&str] = &["mcp/*", "chat", "acme/*"];

/// A gateway with the fixture as `tools`, a full-access `mallory`, a `watcher`, and a `scout` who may call `echo` only.
struct Stage {
    gateway: Gateway,
    watcher: Socket,
    mallory: Socket,
    home: crate::runner::Home,
}

impl Stage {
    fn new() -> Stage {
        let (home, config) = people(&[
            ("mallory", FULL),
            ("watcher", FULL),
            ("scout", &["mcp/request:tools/call:echo", "mcp/proposal:*", "mcp/response:*", "chat"]),
        ]);
        let gateway = Gateway::start(&home, &(fixture("tools", &[]) + &config));
        gateway.ready("tools");
        let mut watcher = Socket::enter(&gateway, "watcher", "");
        let mallory = Socket::enter(&gateway, "mallory", "?echo=false&mode=directed");
        watcher.hear();
        Stage { gateway, watcher, mallory, home }
    }

    /// How many calls the server has carried out, by its own count; what it is asked for that is heard by the watcher.
    #[track_caller]
    fn executed(&mut self, id: &str) -> u64 {
        self.watcher.call(id, &["tools"], "record", json!({}));
        loop {
            let heard = self.watcher.hear_said();
            if heard["correlation_id"] == id {
                return heard["payload"]["result"]["structuredContent"]["calls"].as_u64().unwrap();
            }
        }
    }

    /// Says this as `mallory`; the watcher hears it, and nobody carries it out.
    #[track_caller]
    fn harmless(&mut self, name: &str, kind: &str, to: &[&str], more: Value, payload: &Value) {
        let before = self.executed(&format!("{name} before"));
        self.mallory.say(kind, name, to, more, payload);
        assert_eq!(self.watcher.hear_said()["id"], name);
        // Whatever was begun by it comes before this in the order of the server's only session.
        assert_eq!(self.executed(&format!("{name} after")), before + 1, "{name}");
    }
}

fn call(tool: &str) -> Value {
    let params = json!({ "name": tool, "arguments": { "text": "x" } });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
}

#[test]
fn nobody_speaks_for_another_or_for_the_gateway() {
    let Stage { mut watcher, mut mallory, gateway: _gateway, home } = Stage::new();
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
        mallory.say(
            kind,
            kind,
            &["watcher"],
            json!({}),
            &json!({ "event": "leave", "participant": { "id": "watcher" } }),
        );
        mallory.refused(kind, "capability_violation");
    }
    // What is not reserved but looks like it is refused for want of a capability.
    for kind in ["System/error", " system/error", "systems/x"] {
        mallory.say(kind, kind, &[], json!({}), &json!({}));
        let code = mallory.hear_said()["payload"]["error"].clone();
        assert!(code == "capability_violation" || code == "malformed_envelope", "{kind}: {code}");
    }
    mallory.chat("end");
    watcher.expect("end");
    let ledger = Ledger(&home);
    for from in ["watcher", "tools", "system:gateway", "portmoot", "Mallory", "mallory "] {
        let why = format!("auth_violation: `from` was {from:?}");
        ledger.has("mallory", "chat", "refused", &why);
    }
    for kind in ["system/welcome", "system/presence", "system/error", "system/x:y", "presence/join"] {
        ledger.has("mallory", kind, "refused", "reserved");
    }
    ledger.has("mallory", "systems/x", "refused", "not_admitted");
    assert_eq!(ledger.count("watcher", "chat", "admitted", ""), 0, "nothing stands under the forged name");
}

#[test]
fn what_two_readers_could_read_differently_is_refused() {
    let Stage { mut watcher, mut mallory, gateway: _gateway, home } = Stage::new();
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
    let ledger = Ledger(&home);
    ledger.has("mallory", "chat", "admitted", "chat");
    ledger.comes_to(twice.len() + 1, "mallory", "portmoot/malformed", "refused", "malformed");
}

#[test]
fn breaches_of_the_envelope_are_named() {
    let Stage { mut watcher, mut mallory, gateway: _gateway, home } = Stage::new();
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
        let heard = mallory.refused("id", "unsupported_protocol");
        assert!(heard["payload"]["message"].as_str().unwrap().contains("mcpx/v0.1"), "{heard}");
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
    Ledger(&home).has("mallory", "portmoot/malformed", "refused", "malformed");
    Ledger(&home).has("mallory", "portmoot/malformed", "refused", "unsupported");
}

#[test]
fn a_kind_that_its_payload_denies_is_forwarded_and_carried_out_by_nobody() {
    let mut stage = Stage::new();
    let listing = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let doubled = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"greet","na\u006de":"echo","arguments":{}}}"#;
    let rows = [
        ("1", "mcp/request:tools/call:echo", call("add")),
        ("2", "mcp/request:tools/list", call("echo")),
        ("3", "mcp/request:tools/call", listing.clone()),
        ("4", "mcp/request:tools/call:echo", listing),
        ("5", "mcp/request:tools/list:echo", json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" })),
        ("6", "mcp/request:tools/call:echo", json!({ "jsonrpc": "2.0", "id": 1, "result": {} })),
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
            let told = stage.mallory.hear_said();
            assert_eq!((&told["from"], &told["correlation_id"]), (&json!(host), &json!(name)), "{told}");
            assert!(told["payload"]["error"]["message"].is_string(), "{told}");
        }
    }
    let before = stage.executed("doubled before");
    let text =
        envelope("mallory", "mcp/request:tools/call:echo", "doubled", &["tools"], json!({}), &json!({}));
    stage.mallory.text(text.replace("\"payload\":{}", &format!("\"payload\":{doubled}")));
    assert!(stage.mallory.hear_said()["payload"]["error"].is_object());
    assert_eq!(stage.executed("doubled after"), before + 1);
    let ledger = Ledger(&stage.home);
    for host in ["tools", "portmoot"] {
        let all = |kind: &str| {
            let entries = ledger.entries(&["--participant", "mallory", "--verdict", "refused", kind]);
            entries.iter().filter(|entry| entry["to"] == json!([host])).count()
        };
        until("all are recorded", || {
            let calls = all("mcp/request:tools/call");
            (all("mcp/request:tools/list") == 2 && calls >= 6).then_some(())
        });
    }
}

#[test]
fn only_requests_are_carried_out_and_only_by_whom_they_name() {
    let mut stage = Stage::new();
    let to_tools: &[&str] = &["tools"];
    let rows: [(&str, &str, &[&str], Value, Value); 8] = [
        ("in a proposal", "mcp/proposal:tools/call:echo", to_tools, json!({}), call("echo")),
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
        ("in something else", "mcp/execute:tools/call:echo", to_tools, json!({}), call("echo")),
        ("to another", "mcp/request:tools/call:echo", &["watcher"], json!({}), call("echo")),
        (
            "to nobody known",
            "mcp/request:tools/call:echo",
            &["Tools", "tools ", "tools\u{0}", "*"],
            json!({}),
            call("echo"),
        ),
        ("to all", "mcp/request:tools/call:echo", &[], json!({}), call("echo")),
    ];
    for (name, kind, to, more, payload) in rows {
        stage.harmless(name, kind, to, more, &payload);
    }
    stage.harmless("to all, said so", "mcp/request:tools/call:echo", &[], json!({ "to": [] }), &call("echo"));
    // Nothing of all this was answered either.
    stage.mallory.call("real", to_tools, "echo", json!({ "text": "now" }));
    assert_eq!(stage.mallory.hear_said()["correlation_id"], "real");
    let ledger = Ledger(&stage.home);
    let real = ledger.has("mallory", "mcp/request:tools/call:echo", "admitted", "mcp/*");
    assert!(real["to"].is_array(), "{real}");
    // What is in a proposal waits for somebody who may let it happen; the rest is what it says it is, for whom it names.
    let proposal = ledger.has("mallory", "mcp/proposal:tools/call:echo", "held", "");
    assert_eq!((&proposal["to"], proposal["digest"].is_string()), (&json!(["tools"]), true));
    ledger.comes_to(1, "tools", "mcp/response:tools/call:echo", "admitted", "");
    let all = ledger.entries(&["--participant", "mallory", "mcp/request:tools/call:echo"]);
    assert!(all.iter().any(|entry| entry["to"] == json!(["watcher"])), "{all:?}");
    assert!(all.iter().all(|entry| entry["verdict"] == "admitted"), "{all:?}");
}

#[test]
fn the_same_envelope_is_custom_out_once() {
    let mut stage = Stage::new();
    let before = stage.executed("before");
    for _ in 0..5 {
        stage.mallory.call("again", &["tools", "tools"], "echo", json!({ "text": "x" }));
    }
    stage.mallory.call("another", &["tools"], "echo", json!({ "text": "x" }));
    let mut answered = [(); 2].map(|()| stage.mallory.hear_said()["correlation_id"].to_string());
    answered.sort();
    assert_eq!(answered, ["\"again\"", "\"another\""]);
    assert_eq!(stage.executed("after"), before + 3);
    // It is one sender's id: another may use it.
    stage.watcher.call("again", &["tools"], "echo", json!({ "text": "x" }));
    loop {
        let heard = stage.watcher.hear_said();
        if heard["from"] == "tools" && heard["to"] == json!(["watcher"]) {
            assert_eq!(heard["correlation_id"], "again");
            break;
        }
    }
    // Coming back does not make it new.
    let before = stage.executed("before coming back");
    let mut mallory = Socket::enter(&stage.gateway, "mallory", "?mode=directed&echo=false");
    mallory.call("again", &["tools"], "echo", json!({ "text": "x" }));
    mallory.call("new", &["tools"], "echo", json!({ "text": "x" }));
    assert_eq!(mallory.hear_said()["correlation_id"], "new");
    assert_eq!(stage.executed("after coming back"), before + 2);
    let ledger = Ledger(&stage.home);
    let entry = ledger.has("mallory", "mcp/request:tools/call:echo", "refused", "repeat: \"again\"");
    assert_eq!(entry["to"], json!(["tools", "tools"]));
    ledger.comes_to(5, "mallory", "mcp/request:tools/call:echo", "refused", "repeat");
}

#[test]
fn a_flood_is_refused_and_troubles_nobody_else() {
    let (home, mut config) = people(&[("flooder", FULL), ("other", FULL)]);
    config = config.replace(
        "[participants.flooder]\n",
        "[participants.flooder]\nrate = { limit = \"6/min\", burst = 10 }\n",
    );
    let mut gateway = Gateway::start(&home, &config);
    let mut other = Socket::enter(&gateway, "other", "");
    let mut flooder = Socket::enter(&gateway, "flooder", "?echo=false");
    other.hear();
    for number in 0..500 {
        flooder.chat(&number.to_string());
    }
    for number in 0..10 {
        other.expect(&number.to_string());
    }
    for number in 10..500 {
        let heard = flooder.refused(&number.to_string(), "rate_limited");
        let wait = heard["payload"]["retry_after_ms"].as_u64().unwrap();
        assert!((1..=10_000).contains(&wait), "{heard}");
    }
    // Another connection begins with no new allowance.
    let mut flooder = Socket::enter(&gateway, "flooder", "?echo=false");
    flooder.chat("again");
    flooder.refused("again", "rate_limited");
    for number in 0..100 {
        other.chat(&number.to_string());
        assert_eq!(other.hear_said()["id"], number.to_string());
    }
    // Of what was refused the first are written out; the others are counted, and the count is there soon, or at the end.
    let ledger = Ledger(&home);
    ledger.has("flooder", "chat", "refused", "rate_limited");
    gateway.signal("TERM");
    gateway.wait();
    ledger.comes_to(10, "flooder", "chat", "admitted", "chat");
    ledger.comes_to(256, "flooder", "chat", "refused", "rate_limited");
    assert_eq!(ledger.counted("flooder", "chat", "refused", "rate_limited"), 491);
    ledger.comes_to(100, "other", "chat", "admitted", "chat");
    ledger.is_whole();
}

#[test]
fn a_count_is_written_while_the_flood_goes_on() {
    let stage = Stage::new();
    let Stage { gateway: _gateway, mut mallory, watcher: _watcher, home } = stage;
    for number in 0..600 {
        let kind = if number % 2 == 0 { "system/error" } else { "nothing" };
        mallory.say(kind, &number.to_string(), &[], json!({}), &json!({}));
        mallory.refused(&number.to_string(), "capability_violation");
    }
    // 44 of each cause are left, of two kinds: after ten seconds their count stands in the log.
    let entry = Ledger(&home).has("mallory", "portmoot/flood", "refused", "counted: ");
    assert_eq!(entry["why"], "counted: not_admitted 44, reserved 44", "{entry}");
}
