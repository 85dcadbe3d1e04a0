//! One path for all: retries are admitted like requests, refusals leave nothing open, and a
//! server's configured capabilities judge it.

use std::sync::Barrier;
use std::time::Instant;

use serde_json::{Value, json};

use crate::audit_log::AuditLog;
use crate::http::TIMEOUT;
use crate::peer::{Peer, answer, small, tool};
use crate::program::Program;
use crate::reviewed::Reviewed;
use crate::support::{Client, Gateway, fixture, modern, modern_stream, until};
use crate::ws::{people, token};

const TOOL: &str = "mcp/request:tools/call:tools_echo";

fn call(state: Option<&Value>) -> Value {
    let mut params = json!({ "name": "tools_echo", "arguments": { "text": "x" } });
    if let Some(state) = state {
        params["requestState"] = state.clone();
    }
    params
}

/// The scout's call, answered for now; returns the state by which it comes back.
#[track_caller]
fn parked(reviewed: &Reviewed) -> Value {
    let answer = modern(
        &reviewed.gateway,
        Some(&token("scout")),
        "tools/call",
        call(None),
    )
    .json();
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    answer["result"]["requestState"].clone()
}

fn retry(reviewed: &Reviewed, state: &Value) -> Value {
    modern(
        &reviewed.gateway,
        Some(&token("scout")),
        "tools/call",
        call(Some(state)),
    )
    .json()
}

/// A gateway with a scout that may only propose, with this line in its table and these limits.
fn with_scout(line: &str, limits: &str) -> Reviewed {
    Reviewed::configured(&[("scout", &["mcp/proposal:*"])], |config| {
        let table = "[participants.scout]\n";
        config.replace(table, &format!("{table}{line}\n")) + "[server.limits]\n" + limits + "\n"
    })
}

#[test]
fn a_retry_of_a_held_call_is_rate_limited_and_recorded() {
    let reviewed = with_scout(
        "rate = { limit = \"1/min\", burst = 3 }",
        "hold = \"100ms\"",
    );
    let state = parked(&reviewed);
    for _ in 0..2 {
        let again = retry(&reviewed, &state);
        assert_eq!(again["result"]["resultType"], "input_required", "{again}");
    }
    let refused = retry(&reviewed, &state);
    assert_eq!(
        refused["error"]["data"]["code"], "rate_limited",
        "{refused}"
    );
    let audit_log = AuditLog(&reviewed.home);
    audit_log.comes_to(1, "scout", TOOL, "held", "");
    audit_log.comes_to(2, "scout", TOOL, "admitted", "");
    audit_log.comes_to(1, "scout", TOOL, "refused", "rate_limited");
    assert_eq!(reviewed.executed(), 0);
}

#[test]
fn retries_of_a_held_call_are_limited_like_calls() {
    let reviewed = with_scout("", "hold = \"3s\"\nparticipant_calls_max = 2");
    let state = parked(&reviewed);
    let open = || {
        modern_stream(
            &reviewed.gateway,
            Some(&token("scout")),
            "tools/call",
            call(Some(&state)),
        )
    };
    let held = [open(), open()];
    let audit_log = AuditLog(&reviewed.home);
    audit_log.comes_to(2, "scout", TOOL, "admitted", "");
    let refused = retry(&reviewed, &state);
    assert_eq!(refused["error"]["data"]["code"], "overloaded", "{refused}");
    for held in &held {
        assert_eq!(held.next()["result"]["resultType"], "input_required");
    }
    // They are over, so another may wait.
    let again = open();
    audit_log.comes_to(3, "scout", TOOL, "admitted", "");
    assert_eq!(again.next()["result"]["resultType"], "input_required");
}

#[test]
fn a_retry_on_a_pipe_is_cancelled_by_its_name() {
    let reviewed = with_scout("", "hold = \"2s\"");
    let mut command = reviewed
        .home
        .command(&["stdio", "--url", &reviewed.gateway.url()]);
    command.env("PORTMOOT_TOKEN", token("scout"));
    let mut client = Program::start(command);
    let request = |id: u64, state: Option<&Value>| {
        let mut params = call(state);
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()
    };
    client.type_line(&request(1, None));
    let first: Value = serde_json::from_str(&client.wait_for_line("input_required")).unwrap();
    let proposal = reviewed.gateway.pending(&reviewed.home, &token("boss"));
    client.type_line(&request(2, Some(&first["result"]["requestState"])));
    AuditLog(&reviewed.home).comes_to(1, "scout", TOOL, "admitted", "");
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 2 } });
    client.type_line(&cancelled.to_string());
    let id = proposal["envelope"].as_str().unwrap();
    until("it is withdrawn", || {
        (reviewed.shown(id)["state"] == "withdrawn").then_some(())
    });
    assert_eq!(client.wait_for_exit().0, 0);
    assert_eq!(reviewed.executed(), 0);
}

#[test]
fn giving_up_a_retry_withdraws_its_proposal() {
    let reviewed = with_scout("", "hold = \"1s\"");
    let state = parked(&reviewed);
    let envelope = reviewed.gateway.pending(&reviewed.home, &token("boss"))["envelope"].clone();
    let open = modern_stream(
        &reviewed.gateway,
        Some(&token("scout")),
        "tools/call",
        call(Some(&state)),
    );
    AuditLog(&reviewed.home).comes_to(1, "scout", TOOL, "admitted", "");
    drop(open);
    let shown = until("it is withdrawn", || {
        Some(reviewed.shown(envelope.as_str().unwrap())).filter(|shown| shown["state"] != "pending")
    });
    assert_eq!(shown["state"], "withdrawn", "{shown}");
}

/// A server with a call that never ends, and one that is answered at once.
fn hanging() -> Peer {
    Peer::stdio(|message| {
        let said = match (
            message["method"].as_str(),
            message["params"]["name"].as_str(),
        ) {
            (Some("tools/call"), Some("hang")) => None,
            (Some("tools/call"), _) => Some(answer(message, r#"{"content":[]}"#)),
            _ => small(message, &format!("[{},{}]", tool("hang"), tool("fine"))),
        };
        said.into_iter().map(String::into_bytes).collect()
    })
}

#[test]
fn calls_that_are_refused_after_admission_leave_nothing_open() {
    let (home, config) = people(&[("ann", &["mcp/*"]), ("ben", &["mcp/*"])]);
    let peer = hanging();
    let limits = "[server.limits]\nupstream_calls_max = 1\nparticipant_calls_max = 3\n";
    let gateway = Gateway::start(&home, &(config + limits + &peer.child("peer", "peer")));
    gateway.ready("peer");
    let [ann, ben] = ["ann", "ben"].map(|who| Client::of(&gateway, &token(who)));
    let fine = || {
        ben.ask(
            "tools/call",
            json!({ "name": "peer_fine", "arguments": {} }),
        )
    };
    let _open = ann.begin_call("peer_hang", json!({}));
    until("it is open", || (peer.calls("hang") == 1).then_some(()));
    for _ in 0..12 {
        let refused = fine();
        assert_eq!(
            refused["error"]["data"]["code"], "upstream_busy",
            "{refused}"
        );
    }
    // The same with a modern client.
    for _ in 0..6 {
        let params = json!({ "name": "peer_fine", "arguments": {} });
        let refused = modern(&gateway, Some(&token("ben")), "tools/call", params).json();
        assert_eq!(
            refused["error"]["data"]["code"], "upstream_busy",
            "{refused}"
        );
    }
    ann.delete();
    let answered = until("it is free again", || {
        Some(fine()).filter(|answer| answer["result"].is_object())
    });
    assert!(answered["result"]["content"].is_array(), "{answered}");
}

/// The topic may know a server, or know it no more, before the rest of the gateway does, or after
/// it: whatever a call is answered then, it is over. In most rounds no call meets that moment, so
/// there are many.
#[test]
fn calls_that_meet_a_server_as_it_joins_leave_nothing_open() {
    const CALLERS: usize = 16;
    const ROUNDS: usize = 30;
    let (home, config) = people(&[("ann", &["mcp/*", "portmoot/servers"])]);
    // More threads than cores: any may be stopped between two lines, at the worst of times.
    let home = home.env("TOKIO_WORKER_THREADS", "8");
    // It is ready in one topic before it joins the other.
    let config =
        config + &fixture("tools", &[]) + "[topics.side]\nservers = [\"tools\"]\n[topics.main]\n";
    let [without, with] =
        ["[]", "[\"tools\"]"].map(|servers| format!("{config}servers = {servers}\n"));
    let gateway = Gateway::start(&home, &without);
    gateway.ready("tools");
    let take_over = |config: &str| {
        home.write("portmoot.toml", config);
        gateway.signal("HUP");
    };
    let open = || {
        let metrics = gateway.get("/metrics", Some(&token("ann"))).body;
        let count = metrics.lines().find_map(|line| {
            line.strip_prefix("portmoot_topic_operations{topic=\"main\"} ")
                .map(str::to_owned)
        });
        count.unwrap_or_else(|| panic!("{metrics}"))
    };
    let mut callers: Vec<_> = (0..CALLERS)
        .map(|_| Client::of(&gateway, &token("ann")))
        .collect();
    let succeeds = |client: &Client| client.ask("tools/call", call(None))["result"].is_object();
    for round in 0..ROUNDS {
        let call_until = |client: &Client, wanted| {
            let end = Instant::now() + TIMEOUT;
            while succeeds(client) != wanted {
                assert!(
                    Instant::now() < end,
                    "the server did not join or leave in time"
                );
            }
        };
        for (config, wanted) in [(&with, true), (&without, false)] {
            let calling = Barrier::new(CALLERS + 1);
            std::thread::scope(|scope| {
                for client in &mut callers {
                    let (calling, call_until) = (&calling, &call_until);
                    scope.spawn(move || {
                        call_until(client, !wanted);
                        calling.wait();
                        call_until(client, wanted);
                    });
                }
                calling.wait();
                take_over(config);
            });
            assert_eq!(open(), "0", "every call of round {round} has its answer");
        }
    }
}

#[test]
fn a_servers_questions_reach_only_the_addressees_of_its_capabilities() {
    let (home, config) = people(&[("ann", &["mcp/*"]), ("ben", &["mcp/*"])]);
    let capabilities = "capabilities = [\"mcp/response:*\", \"mcp/request:notifications/*\", \
        { kind = \"mcp/request:elicitation/create\", to = [\"ann\"] }]\n";
    let server = fixture("tools", &["--era", "legacy"]) + capabilities;
    let gateway = Gateway::start(&home, &(config + &server));
    gateway.ready("tools");
    let able = json!({ "elicitation": {}, "sampling": {} });
    let [ann, ben] =
        ["ann", "ben"].map(|who| Client::open(&gateway, Some(&token(who)), "/mcp", able.clone()));
    let asks = ann.begin_call("tools_test_elicitation", json!({ "message": "Who?" }));
    let question = asks.next_of("elicitation/create");
    ann.answer(
        &question,
        json!({ "action": "accept", "content": { "username": "a", "email": "a@b.c" } }),
    );
    assert!(asks.next()["result"].is_object());
    let end = ben
        .begin_call("tools_test_elicitation", json!({ "message": "Who?" }))
        .rest();
    assert!(
        end.iter()
            .all(|message| message["method"] != "elicitation/create"),
        "{end:?}"
    );
    // Sampling is in no capability of the server.
    let end = ann
        .begin_call("tools_test_sampling", json!({ "prompt": "Hello" }))
        .rest();
    assert!(
        end.iter()
            .all(|message| message["method"] != "sampling/createMessage"),
        "{end:?}"
    );
}
