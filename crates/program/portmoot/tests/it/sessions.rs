//! Sessions with servers: sharing, questions to clients, lifetimes.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::home::Home;
use crate::http::Events;
use crate::support::{Client, Gateway, below, fixture, is_alive, modern, until};

fn sampling() -> Value {
    json!({ "sampling": {} })
}

/// Answers the next question on this call, and returns the call's result.
#[track_caller]
fn answered(client: &Client, call: &Events, method: &str, result: Value) -> Value {
    let question = call.next_of(method);
    client.answer(&question, result);
    call.next()["result"].clone()
}

fn sampled(text: &str) -> Value {
    json!({ "role": "assistant", "content": { "type": "text", "text": text }, "model": "m" })
}

/// What a server that was declared this may ask its client.
fn asks(declared: &Value) -> Vec<&'static str> {
    ["roots", "sampling", "elicitation"]
        .into_iter()
        .filter(|name| declared.get(name).is_some())
        .collect()
}

#[test]
fn ten_thousand_calls_of_twenty_clients_share_one_server_process() {
    let home = Home::new();
    let config = fixture("old", &["--era", "legacy"]) + &fixture("both", &[]);
    let gateway = Gateway::start(&home, &config);
    std::thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| {
                let client = Client::plain(&gateway);
                for round in 0..250 {
                    for server in ["old", "both"] {
                        let sum =
                            client.call(&format!("{server}_add"), json!({ "a": round, "b": 1 }));
                        assert_eq!(sum["structuredContent"]["sum"], round + 1);
                    }
                }
            });
        }
    });
    let client = Client::plain(&gateway);
    for server in ["old", "both"] {
        let record = client.record(server);
        assert!(
            record["calls"].as_u64().unwrap() > 5_000,
            "{server}: {}",
            record["calls"]
        );
        assert_eq!(record["initializes"], 1, "{server}");
        assert_eq!(asks(&record["clientCapabilities"]), [""; 0], "{server}");
        let seen = gateway.server(server);
        assert_eq!(seen["restarts"], 0, "{seen}");
    }
    // A legacy server has one process; one of both eras has one per era in use.
    assert_eq!(gateway.server("old")["sessions"], 1);
    assert_eq!(gateway.server("old")["pid"], client.record("old")["pid"]);
    assert_eq!(
        below(gateway.pid(), "--stdio").len(),
        3,
        "old, both in two eras"
    );
}

#[test]
fn a_client_with_sampling_has_its_own_server_process_until_it_leaves() {
    let home = Home::new();
    let gateway = Gateway::start(&home, &fixture("a", &["--era", "legacy"]));
    let shared = Client::plain(&gateway).record("a");
    let client = Client::open(&gateway, None, "/mcp", sampling());
    let own = client.record("a");
    assert_ne!(own["pid"], shared["pid"]);
    assert_eq!(
        (&own["initializes"], &own["clientCapabilities"]),
        (&json!(1), &sampling())
    );
    assert_eq!(
        client.record("a")["pid"],
        own["pid"],
        "the same child for all of its calls"
    );
    assert_eq!(
        Client::plain(&gateway).record("a")["initializes"],
        1,
        "the shared one is left alone"
    );
    assert_eq!(gateway.server("a")["sessions"], 2);
    assert_eq!(client.delete(), 204);
    until("its child ends", || {
        (!is_alive(own["pid"].as_u64().unwrap())).then_some(())
    });
    until("one session is left", || {
        (gateway.server("a")["sessions"] == 1).then_some(())
    });
    assert_eq!(Client::plain(&gateway).record("a")["pid"], shared["pid"]);
    assert_eq!(client.status("tools/list", json!({})), 404);
    assert_eq!(client.delete(), 404);
}

#[test]
fn a_question_reaches_only_the_client_whose_call_is_open() {
    let home = Home::new();
    let gateway = Gateway::start(&home, &fixture("a", &["--era", "legacy"]));
    let [one, other] = [(); 2].map(|()| {
        Client::open(
            &gateway,
            None,
            "/mcp",
            json!({ "sampling": {}, "elicitation": {} }),
        )
    });
    let plain = Client::plain(&gateway);
    let streams = [&one, &other, &plain].map(Client::listen);

    // Both have an open call; each receives its own question.
    let calls = [("one", &one), ("other", &other)]
        .map(|(name, client)| client.begin_call("a_test_sampling", json!({ "prompt": name })));
    for (at, (name, client)) in [("one", &one), ("other", &other)].into_iter().enumerate() {
        let question = calls[at].next_of("sampling/createMessage");
        assert_eq!(question["params"]["messages"][0]["content"]["text"], name);
        client.answer(&question, sampled(&format!("for {name}")));
        let result = calls[at].next();
        assert_eq!(
            result["result"]["content"][0]["text"],
            format!("LLM response: for {name}"),
            "{result}"
        );
    }
    // A client without capabilities receives no question; its call fails with the reason.
    let refused = plain.call("a_test_sampling", json!({ "prompt": "plain" }));
    assert_eq!(refused["isError"], true, "{refused}");
    for stream in streams {
        let received = stream.so_far();
        assert!(
            received.iter().all(|message| message.get("id").is_none()),
            "{received:?}"
        );
    }
}

#[test]
fn a_shared_session_logs_at_the_lowest_level_and_filters_per_client() {
    let home = Home::new();
    let gateway = Gateway::start(&home, &fixture("a", &["--era", "legacy"]));
    let [all, alarms] = [(); 2].map(|()| Client::plain(&gateway));
    all.ask("logging/setLevel", json!({ "level": "debug" }));
    alarms.ask("logging/setLevel", json!({ "level": "emergency" }));
    for (client, lines) in [(&all, 3), (&alarms, 0)] {
        let received = client
            .begin_call("a_test_tool_with_logging", json!({}))
            .rest();
        let logged = received
            .iter()
            .filter(|message| message["method"] == "notifications/message")
            .count();
        assert_eq!(logged, lines, "{received:?}");
    }
}

#[test]
fn an_answer_of_another_client_is_ignored() {
    let home = Home::new();
    let gateway = Gateway::start(&home, &fixture("a", &["--era", "legacy"]));
    let [one, other] = [(); 2].map(|()| Client::open(&gateway, None, "/mcp", sampling()));
    let call = one.begin_call("a_test_sampling", json!({ "prompt": "?" }));
    let question = call.next_of("sampling/createMessage");
    other.answer(&question, sampled("smuggled"));
    one.answer(&question, sampled("mine"));
    assert_eq!(
        call.next()["result"]["content"][0]["text"],
        "LLM response: mine"
    );
}

#[test]
fn elicitation_completion_reaches_only_the_asked_client() {
    let home = Home::new();
    let gateway = Gateway::start(&home, &fixture("a", &["--era", "legacy"]));
    let capabilities = json!({ "elicitation": { "form": {}, "url": {} } });
    let [one, other] = [(); 2].map(|()| Client::open(&gateway, None, "/mcp", capabilities.clone()));
    let plain = Client::plain(&gateway);
    let (mine, others) = (one.listen(), [other.listen(), plain.listen()]);
    other.names("tools");
    let call = one.begin_call("a_ask_url", json!({}));
    let question = call.next_of("elicitation/create");
    one.answer(&question, json!({ "action": "accept" }));
    let mut messages = Vec::new();
    until("the notice and the answer", || {
        messages.extend(call.so_far());
        messages.extend(mine.so_far());
        let notice = messages
            .iter()
            .any(|message| message["method"] == "notifications/elicitation/complete");
        (notice
            && messages
                .iter()
                .any(|message| message.get("result").is_some()))
        .then_some(())
    });
    let notice = messages
        .iter()
        .find(|message| message["method"] == "notifications/elicitation/complete")
        .unwrap();
    assert_eq!(
        notice["params"]["elicitationId"],
        question["params"]["elicitationId"]
    );
    other.call(
        "a_echo",
        json!({ "text": "a round trip, after which nothing is on its way" }),
    );
    for stream in others {
        assert_eq!(stream.so_far(), Vec::<Value>::new());
    }
}

#[test]
fn a_question_outside_any_call_goes_to_the_sessions_owner() {
    let home = Home::new();
    let gateway = Gateway::start(&home, &fixture("a", &["--era", "legacy"]));
    let [one, other] =
        [(); 2].map(|()| Client::open(&gateway, None, "/mcp", json!({ "elicitation": {} })));
    let (mine, theirs) = (one.listen(), other.listen());
    one.call("a_ask_later", json!({ "ms": 50 }));
    let question = mine.next_of("elicitation/create");
    one.answer(&question, json!({ "action": "decline" }));
    assert_eq!(theirs.so_far(), Vec::<Value>::new());
}

#[test]
fn session_policies_decide_about_sharing() {
    let home = Home::new();
    let config = ["shared", "caller", "call"].map(|policy| {
        fixture(policy, &["--era", "legacy"]) + &format!("sessions = \"{policy}\"\n")
    });
    let gateway = Gateway::start(&home, &config.concat());
    let (plain, sampler) = (
        Client::plain(&gateway),
        Client::open(&gateway, None, "/mcp", sampling()),
    );
    let pid = |client: &Client, server: &str| client.record(server)["pid"].as_u64().unwrap();

    assert_eq!(pid(&plain, "shared"), pid(&sampler, "shared"));
    assert_eq!(asks(&plain.record("shared")["clientCapabilities"]), [""; 0]);

    let (one, two) = (pid(&plain, "caller"), pid(&sampler, "caller"));
    assert_ne!(one, two);
    assert_eq!((pid(&plain, "caller"), pid(&sampler, "caller")), (one, two));

    let (first, second) = (pid(&plain, "call"), pid(&plain, "call"));
    assert_ne!(first, second);
    until("children of single calls end", || {
        (!is_alive(first) && !is_alive(second)).then_some(())
    });
    plain.delete();
    until("a caller's child ends with it", || {
        (!is_alive(one)).then_some(())
    });
    assert!(is_alive(two));
}

#[test]
fn modern_callers_share_a_modern_server_whatever_they_declare() {
    let home = Home::new();
    let gateway = Gateway::start(&home, &fixture("a", &["--era", "modern"]));
    let record = || {
        let reply = modern(
            &gateway,
            None,
            "tools/call",
            json!({ "name": "a_record", "arguments": {} }),
        );
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json()["result"]["structuredContent"].clone()
    };
    let (one, two) = (record(), record());
    assert_eq!(one["pid"], two["pid"]);
    assert_eq!(two["initializes"], 0);
    assert_eq!(gateway.server("a")["sessions"], 1);
}

#[test]
fn session_ids_are_unique_and_visible_ascii() {
    let home = Home::new();
    let gateway = Gateway::start(&home, &fixture("a", &[]));
    let all: Vec<String> = (0..200).map(|_| Client::plain(&gateway).session).collect();
    let is_visible = |id: &String| id.bytes().all(|byte| (0x21..=0x7E).contains(&byte));
    assert!(all.iter().all(is_visible), "{all:?}");
    // Not only unique as a whole: every part that varies is new each time.
    for half in [0, 1] {
        let part = |id: &String| id[id.len() / 2 * half..][..id.len() / 2].to_owned();
        assert_eq!(
            all.iter().map(part).collect::<BTreeSet<_>>().len(),
            all.len()
        );
    }
}

#[test]
fn a_session_outlives_the_gateway_but_not_its_delete() {
    let home = Home::new();
    let config = format!(
        "[server]\ndata_dir = \"{}\"\n",
        home.path().join("data").display()
    ) + &fixture("a", &["--era", "legacy"]);
    let mut gateway = Gateway::start(&home, &config);
    let kept = Client::open(&gateway, None, "/mcp", sampling());
    let closed = Client::plain(&gateway);
    let before = kept.record("a")["pid"].clone();
    assert_eq!(closed.delete(), 204);
    // Closed sessions are recorded with a delay, and when the gateway stops.
    let journal = home.path().join("data/journal.jsonl");
    let written = || {
        std::fs::read_to_string(&journal)
            .unwrap()
            .contains("sessions_ended")
            .then_some(())
    };
    until("it is written down", written);
    gateway.signal("KILL");
    gateway.wait();

    let mut gateway = Gateway::start(&home, &config);
    let is_over = |gateway: &Gateway, client: &Client| {
        let after = Client::resume(gateway, None, "/mcp", &client.session);
        assert_eq!(after.status("tools/list", json!({})), 404);
    };
    is_over(&gateway, &closed);
    let again = Client::resume(&gateway, None, "/mcp", &kept.session);
    let record = again.record("a");
    assert_ne!(record["pid"], before);
    assert_eq!(
        record["clientCapabilities"],
        sampling(),
        "what it declared is still known"
    );
    let call = again.begin_call("a_test_sampling", json!({ "prompt": "?" }));
    let result = answered(&again, &call, "sampling/createMessage", sampled("still me"));
    assert_eq!(result["content"][0]["text"], "LLM response: still me");
    assert_eq!(again.delete(), 204);
    assert_eq!(again.status("tools/list", json!({})), 404);
    for unknown in [
        "x".to_owned(),
        kept.session.clone() + "x",
        kept.session.replace('.', "_"),
    ] {
        let stranger = Client::resume(&gateway, None, "/mcp", &unknown);
        assert_eq!(stranger.status("tools/list", json!({})), 404, "{unknown}");
    }
    let third = Client::plain(&gateway);
    gateway.signal("TERM");
    gateway.wait();
    let gateway = Gateway::start(&home, &config);
    is_over(&gateway, &closed);
    is_over(&gateway, &kept);
    Client::resume(&gateway, None, "/mcp", &third.session).names("tools");
}

#[test]
fn calls_time_out_progress_extends_the_time_up_to_a_maximum() {
    let home = Home::new();
    let config = fixture("a", &["--era", "legacy"])
        + "request_timeout = \"900ms\"\nmax_timeout = \"3s\"\ntool_timeouts = { hang = \"200ms\" }\n";
    let gateway = Gateway::start(&home, &config);
    let client = Client::plain(&gateway);
    client.names("tools");
    let timed_out = |call: &Events| {
        let messages = call.rest();
        let error = &messages.last().unwrap()["error"];
        assert_eq!(error["data"]["code"], "upstream_timeout", "{messages:?}");
        messages.len() - 1
    };
    // The timeout of the tool is shorter than the server's.
    let begun = std::time::Instant::now();
    assert_eq!(timed_out(&client.begin_call("a_hang", json!({}))), 0);
    assert!(
        begun.elapsed() < std::time::Duration::from_millis(850),
        "{:?}",
        begun.elapsed()
    );
    // Progress every 200 ms keeps the call alive for two seconds.
    let call = client.begin_call("a_slow", json!({ "ms": 2000 }));
    let messages = call.rest();
    assert_eq!(
        messages.last().unwrap()["result"]["content"][0]["text"],
        "2000 ms later",
        "{messages:?}"
    );
    assert_eq!(messages.len(), 11);
    // Progress every second is too slow: the call is cancelled at the server.
    assert_eq!(
        timed_out(&client.begin_call("a_slow", json!({ "ms": 10_000 }))),
        0
    );
    until("the server hears of it", || {
        (client.record("a")["cancelled"] == 1).then_some(())
    });
    // Progress arrives in time, but the maximum ends the call.
    assert!(timed_out(&client.begin_call("a_slow", json!({ "ms": 5_000 }))) >= 4);
    until("the server hears of it", || {
        (client.record("a")["cancelled"] == 2).then_some(())
    });
    // The client cancels a call.
    let call = client.begin(&client.request(
        "tools/call",
        json!({ "name": "a_slow", "arguments": { "ms": 9_000 } }),
    ));
    until("it is open", || {
        (gateway.server("a")["calls"] == 1).then_some(())
    });
    let request = client.request("ping", json!({}))["id"].as_u64().unwrap() - 1;
    client.notify("notifications/cancelled", json!({ "requestId": request }));
    until("the server hears of it", || {
        (client.record("a")["cancelled"] == 3).then_some(())
    });
    assert!(call.rest().is_empty(), "what was cancelled is not answered");
}

#[test]
fn the_servers_own_process_of_a_pipe_client_ends_with_the_client() {
    let home = Home::new();
    let gateway = Gateway::start(&home, &fixture("a", &["--era", "legacy"]));
    let shared = Client::plain(&gateway).record("a");
    let mut command = home.command(&["stdio", "--url", &gateway.url()]);
    let mut door = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut input, mut output) = (
        door.stdin.take().unwrap(),
        BufReader::new(door.stdout.take().unwrap()).lines(),
    );
    let info = json!({ "name": "test", "version": "1" });
    let params =
        json!({ "protocolVersion": "2025-11-25", "capabilities": sampling(), "clientInfo": info });
    let mut send = |message: Value| writeln!(input, "{message}").unwrap();
    let mut receive =
        || -> Value { serde_json::from_str(&output.next().unwrap().unwrap()).unwrap() };
    send(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }));
    assert_eq!(receive()["id"], 1);
    send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    let call = json!({ "name": "a_record", "arguments": {} });
    send(json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call }));
    let own = receive()["result"]["structuredContent"]["pid"]
        .as_u64()
        .unwrap();
    assert_ne!(own, shared["pid"].as_u64().unwrap());
    drop(input);
    until("the door ends", || door.try_wait().unwrap());
    until("its child ends", || (!is_alive(own)).then_some(()));
    until("one session is left", || {
        (gateway.server("a")["sessions"] == 1).then_some(())
    });
    assert_eq!(Client::plain(&gateway).record("a")["pid"], shared["pid"]);
}
