//! Dial-in servers: a participant with `serves = true` connects over a WebSocket, and MCP clients
//! of its topic use its tools.

mod checked;
mod proposed;
mod worker;

use participant::{Mode, Participant, ParticipantSpec, Tools};
use serde_json::{Value, json};

use crate::home::Home;
use crate::http::Events;
use crate::support::{Client, Gateway, modern, until};
use crate::ws::{Socket, people, token};
use worker::{Worker, text_result};

const ALL: &[(&str, &[&str])] = &[
    (
        "worker",
        &["mcp/response:*", "mcp/request:notifications/*", "chat"],
    ),
    ("ann", &["mcp/*", "chat", "portmoot/servers"]),
    ("scout", &["mcp/proposal:*"]),
    ("guest", &["mcp/request:tools/call:worker_add"]),
    ("mallory", &["mcp/*", "chat"]),
];

/// A home and a configuration in which `worker` serves, with more lines in its table and in the
/// file.
fn setup(own: &str, more: &str) -> (Home, String) {
    let (home, config) = people(ALL);
    let serving = format!("[participants.worker]\nserves = true\n{own}");
    (
        home,
        config.replace("[participants.worker]\n", &serving) + more,
    )
}

/// A gateway and its home directory.
struct Started {
    gateway: Gateway,
    home: Home,
}

fn start(own: &str, more: &str) -> Started {
    let (home, config) = setup(own, more);
    Started {
        gateway: Gateway::start(&home, &config),
        home,
    }
}

impl Started {
    fn client(&self, name: &str) -> Client {
        Client::of(&self.gateway, &token(name))
    }

    /// The state of the worker as a server, from the API.
    fn state(&self) -> Value {
        self.gateway
            .get("/api/v1/servers/worker", Some(&token("ann")))
            .json()
    }

    fn wait_for(&self, state: &str) -> Value {
        until(&format!("the worker is {state}"), || {
            Some(self.state()).filter(|now| now["state"] == state)
        })
    }

    fn wait_listed(&self, tools: &[&str]) {
        until("its tools are listed", || {
            let listed = self.gateway.get("/api/v1/tools", Some(&token("ann"))).body;
            tools
                .iter()
                .all(|name| listed.contains(&format!("worker_{name}")))
                .then_some(())
        });
    }

    fn proposals(&self, words: &[&str]) -> String {
        let (url, token) = (self.gateway.url(), token("ann"));
        self.home
            .run(&[&["proposals"], words, &["--url", &url, "--token", &token]].concat())
            .expect(0)
            .stdout
    }

    /// Waits for a pending proposal and returns its id.
    fn waiting(&self) -> String {
        self.gateway.pending(&self.home, &token("ann"))["id"]
            .as_str()
            .unwrap()
            .to_owned()
    }
}

fn schema(name: &str) -> Value {
    json!({ "name": name, "description": "Does it", "inputSchema": { "type": "object" } })
}

/// Begins a call whose answer arrives later.
fn begin(client: &Client, tool: &str, arguments: Value) -> Events {
    client.begin(&client.request(
        "tools/call",
        json!({ "name": tool, "arguments": arguments }),
    ))
}

/// The error in the next answer.
#[track_caller]
fn error(events: &Events) -> Value {
    let answer = events.next();
    assert!(answer["error"].is_object(), "{answer}");
    answer["error"].clone()
}

fn text(answer: &Value) -> &Value {
    &answer["result"]["content"][0]["text"]
}

async fn sdk(gateway: &Gateway) -> Participant {
    let object = json!({ "type": "object" });
    let tools = Tools::new("echo-server", "1")
        .tool(
            "echo",
            "Says a text again",
            object.clone(),
            |arguments| async move {
                arguments
                    .get("text")
                    .cloned()
                    .ok_or_else(|| "`text` is missing".to_owned())
            },
        )
        .tool("add", "Adds two numbers", object, |arguments| async move {
            let number = |name: &str| arguments[name].as_i64().ok_or("no number");
            Ok(json!({ "sum": number("a")? + number("b")? }))
        });
    let spec = ParticipantSpec::new(&gateway.url(), Some(&token("worker")), "main");
    Participant::connect(spec.serving(tools).receiving(Mode::Directed))
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_sdk_server_that_dials_in_serves_clients_of_both_eras() {
    let setup = start("", "");
    let worker = sdk(&setup.gateway).await;
    setup.wait_for("ready");
    let url = format!("{}/mcp", setup.gateway.url());
    for era in ["legacy", "modern"] {
        let ann = token("ann");
        let call = ["worker_echo", r#"{"text":"from Python"}"#];
        let words = [
            &url, "--era", era, "--token", &ann, "--tour", "real", "--call", call[0], call[1],
        ];
        let report = harness::python_client(&words);
        assert_eq!(
            report["calls"]["worker_echo"]["text"], "from Python",
            "{era}: {report:#}"
        );
        assert!(
            report["tools"]
                .as_array()
                .unwrap()
                .contains(&json!("worker_add")),
            "{report:#}"
        );
    }
    let ann = setup.client("ann");
    assert_eq!(ann.names("tools"), ["worker_echo", "worker_add"]);
    assert_eq!(
        ann.call("worker_add", json!({ "a": 2, "b": 3 }))["structuredContent"],
        json!({ "sum": 5 })
    );
    let params = json!({ "name": "worker_add", "arguments": { "a": 20, "b": 3 } });
    let answer = modern(&setup.gateway, Some(&token("ann")), "tools/call", params).json();
    assert_eq!(
        answer["result"]["structuredContent"],
        json!({ "sum": 23 }),
        "{answer}"
    );
    let wrong = ann.call("worker_echo", json!({}));
    assert_eq!(
        (&wrong["isError"], &wrong["content"][0]["text"]),
        (&json!(true), &json!("`text` is missing"))
    );
    // Twenty calls at once, each with its own answer.
    let calls: Vec<_> = (0..20)
        .map(|number| begin(&ann, "worker_echo", json!({ "text": number.to_string() })))
        .collect();
    for (number, call) in calls.iter().enumerate() {
        assert_eq!(*text(&call.next()), number.to_string());
    }
    worker.close().await;
    setup.wait_for("down");
}

#[test]
fn calls_to_a_dialed_in_server_are_private_and_carry_the_callers_name() {
    let setup = start("", "[topics.main]\nmcp_calls = \"none\"\n");
    let mut watcher = Socket::enter(&setup.gateway, "mallory", "?echo=false");
    let mut worker = Worker::serving(&setup, &["look"]);
    let ann = setup.client("ann");
    let call = begin(&ann, "worker_look", json!({ "at": "SECRET" }));
    let asked = worker.asked("tools/call");
    assert_eq!(asked["kind"], "mcp/request:tools/call:look");
    assert_eq!(
        (&asked["from"], &asked["to"]),
        (&json!("ann"), &json!(["worker"]))
    );
    assert_eq!(
        asked["payload"]["params"],
        json!({ "name": "look", "arguments": { "at": "SECRET" } })
    );
    worker.answer_text(&asked, "SECRET too");
    assert_eq!(*text(&call.next()), "SECRET too");
    // A second answer has no effect, and is not delivered.
    worker.answer_text(&asked, "SECRET again");
    worker.0.chat("the end");
    loop {
        let received = watcher.receive();
        assert!(!received.to_string().contains("SECRET"), "{received}");
        assert!(
            !received["kind"].as_str().unwrap().starts_with("mcp/"),
            "{received}"
        );
        if received["id"] == "the end" {
            break;
        }
    }
}

#[test]
fn tool_changes_of_a_dialed_in_server_are_announced_to_clients() {
    let setup = start("", "[server.limits]\naway = \"100ms\"\n");
    let ann = setup.client("ann");
    let changes = ann.listen();
    assert_eq!(ann.names("tools"), [""; 0]);
    let mut worker = Worker::serving(&setup, &["one"]);
    changes.next_of("notifications/tools/list_changed");
    assert_eq!(ann.names("tools"), ["worker_one"]);
    let changed = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
    worker.0.send(
        "mcp/request:notifications/tools/list_changed",
        "1",
        &[],
        json!({}),
        &changed,
    );
    let broken = json!({ "name": "odd", "inputSchema": { "type": "banana" } });
    worker.list(&[schema("one"), schema("two"), broken]);
    changes.next_of("notifications/tools/list_changed");
    assert_eq!(ann.names("tools"), ["worker_one", "worker_two"]);
    assert_eq!(
        setup.state()["unlisted_tools"][0]["name"],
        "odd",
        "{}",
        setup.state()
    );
    worker.0.leave();
    changes.next_of("notifications/tools/list_changed");
    assert_eq!(ann.names("tools"), [""; 0]);
    let refused = ann.ask(
        "tools/call",
        json!({ "name": "worker_one", "arguments": {} }),
    );
    assert_eq!(
        refused["error"]["data"]["code"], "unknown_target",
        "{refused}"
    );
}

#[test]
fn a_call_to_a_disconnected_server_is_refused_with_the_reason() {
    let setup = start("", "");
    let down = setup.state();
    assert_eq!(
        (&down["state"], &down["transport"]),
        (&json!("down"), &json!("participant")),
        "{down}"
    );
    Worker::serving(&setup, &["one"]).0.leave();
    let ann = setup.client("ann");
    until("it is gone", || {
        (setup.state()["state"] == "down").then_some(())
    });
    // Its last known tools stay listed for a while.
    assert_eq!(ann.names("tools"), ["worker_one"]);
    let refused = ann.ask(
        "tools/call",
        json!({ "name": "worker_one", "arguments": {} }),
    );
    assert_eq!(
        refused["error"]["data"]["code"], "upstream_down",
        "{refused}"
    );
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("is not connected"),
        "{refused}"
    );
    let mut worker = Worker::serving(&setup, &["one"]);
    let call = begin(&ann, "worker_one", json!({}));
    let asked = worker.asked("tools/call");
    worker.answer_text(&asked, "back");
    assert_eq!(*text(&call.next()), "back");
}

#[test]
fn a_removed_topic_closes_its_servers_with_a_reason() {
    let (home, config) = setup("", "[server.limits]\naway = \"10m\"\n");
    let gateway = Gateway::start(
        &home,
        &(config.clone() + "[topics.side]\naccess = \"public\"\n"),
    );
    let setup = Started { gateway, home };
    let mut worker = Worker(Socket::open(
        &setup.gateway,
        "worker",
        "?topic=side&mode=directed&echo=false",
    ));
    worker
        .0
        .receive_until(|received| received["kind"] == "system/welcome");
    worker.greet(&[schema("one")]);
    setup.wait_for("ready");
    let ann = Client::open(&setup.gateway, Some(&token("ann")), "/mcp/side", json!({}));
    until("its tool is listed", || {
        (ann.names("tools") == ["worker_one"]).then_some(())
    });
    let call = begin(&ann, "worker_one", json!({}));
    worker.asked("tools/call");

    setup.home.write("portmoot.toml", &config);
    setup.gateway.signal("HUP");
    let why = error(&call);
    assert_eq!(why["data"]["code"], "upstream_down", "{why}");
    assert_eq!(worker.0.closed(), 4002);
    assert_eq!(
        setup.state()["topic"],
        "main",
        "the topic's server is gone: {}",
        setup.state()
    );
}

#[test]
fn leaving_or_reconnecting_ends_open_calls() {
    let setup = start("", "[server.limits]\nenvelope_bytes_max = \"4KiB\"\n");
    let ann = setup.client("ann");
    let mut worker = Worker::serving(&setup, &["one"]);
    let call = begin(&ann, "worker_one", json!({}));
    worker.asked("tools/call");
    // A second connection replaces it.
    let mut second = Worker::serving(&setup, &["one"]);
    let why = error(&call);
    assert_eq!(why["data"]["code"], "upstream_failed", "{why}");
    assert!(
        why["message"]
            .as_str()
            .unwrap()
            .contains("disconnected before it answered"),
        "{why}"
    );

    let call = begin(&ann, "worker_one", json!({}));
    let asked = second.asked("tools/call");
    second.answer_text(&asked, &"x".repeat(5000));
    assert_eq!(
        error(&call)["data"]["code"],
        "upstream_failed",
        "an answer beyond the limit ends the link"
    );
    assert_eq!(second.0.closed(), 1009);

    let mut third = Worker::serving(&setup, &["one"]);
    let large = ann.ask(
        "tools/call",
        json!({ "name": "worker_one", "arguments": { "a": "x".repeat(5000) } }),
    );
    assert_eq!(large["error"]["data"]["code"], "too_large", "{large}");
    let call = begin(&ann, "worker_one", json!({}));
    third.asked("tools/call");
    drop(third);
    assert_eq!(error(&call)["data"]["code"], "upstream_failed");
}

#[test]
fn answers_of_other_participants_are_ignored() {
    let setup = start("", "");
    let ann = setup.client("ann");
    let mut worker = Worker::serving(&setup, &["one"]);
    let mut mallory = Socket::enter(&setup.gateway, "mallory", "?echo=false&mode=directed");
    let call = begin(&ann, "worker_one", json!({}));
    let asked = worker.asked("tools/call");
    let payload =
        json!({ "jsonrpc": "2.0", "id": asked["payload"]["id"], "result": text_result("FORGED") });
    let about = json!({ "correlation_id": asked["id"] });
    let kind = "mcp/response:tools/call:one";
    mallory.send(kind, "forged", &["ann"], about.clone(), &payload);
    mallory.call("after", &["portmoot"], "none", json!({}));
    let received = mallory.receive_message();
    assert_eq!(
        received["correlation_id"], "after",
        "all earlier envelopes were processed: {received}"
    );
    // An answer whose `to` does not name the sender of the request has no effect either.
    worker.0.send(kind, "astray", &["mallory"], about, &payload);
    worker.answer_text(&asked, "true");
    assert_eq!(*text(&call.next()), "true");
    mallory.call("later", &["portmoot"], "none", json!({}));
    let received = mallory.receive_message();
    assert_eq!(
        received["correlation_id"], "later",
        "answers to the gateway are not published: {received}"
    );
    // An answer whose kind and payload disagree fails the call.
    for (kind, id) in [
        ("mcp/response:tools/call:two", None),
        (kind, Some(json!("another"))),
    ] {
        let call = begin(&ann, "worker_one", json!({}));
        let asked = worker.asked("tools/call");
        let id = id.unwrap_or_else(|| asked["payload"]["id"].clone());
        worker.send(
            &asked,
            kind,
            &json!({ "jsonrpc": "2.0", "id": id, "result": text_result("odd") }),
        );
        assert_eq!(error(&call)["data"]["code"], "upstream_failed", "{kind}");
    }
    let data = setup.home.path().join("data").display().to_string();
    let log = until("it is recorded", || {
        let words = ["audit", "query", "--json", "--data-dir", &data];
        let log = setup.home.run(&words).expect(0).stdout;
        (log.matches("mismatch").count() >= 4).then_some(log)
    });
    assert!(log.contains("answers what another was asked"), "{log}");
    assert!(
        log.contains("does not name the sender of the request"),
        "{log}"
    );
}

#[test]
fn a_dialed_in_server_is_visible_only_in_its_topic_and_by_capability() {
    let (home, config) = setup("", "[topics.main]\n[topics.lab]\naccess = \"public\"\n");
    let config = config.replace(
        "[participants.ann]\n",
        "[participants.ann]\ntopics = [\"main\", \"lab\"]\n",
    );
    let setup = Started {
        gateway: Gateway::start(&home, &config),
        home,
    };
    let mut worker = Worker::serving(&setup, &["add", "drop"]);
    assert_eq!(
        setup.client("ann").names("tools"),
        ["worker_add", "worker_drop"]
    );
    let elsewhere = Client::open(&setup.gateway, Some(&token("ann")), "/mcp/lab", json!({}));
    assert_eq!(elsewhere.names("tools"), [""; 0]);
    let guest = setup.client("guest");
    assert_eq!(guest.names("tools"), ["worker_add"]);
    let refused = guest.ask(
        "tools/call",
        json!({ "name": "worker_drop", "arguments": {} }),
    );
    assert_eq!(
        refused["error"]["data"]["code"], "unknown_target",
        "{refused}"
    );
    let call = begin(&guest, "worker_add", json!({}));
    let asked = worker.asked("tools/call");
    assert_eq!(asked["from"], "guest");
    worker.answer_text(&asked, "5");
    assert_eq!(*text(&call.next()), "5");
}

#[test]
fn progress_keeps_a_call_alive_and_silence_ends_it() {
    let setup = start("request_timeout = \"1500ms\"\nmax_timeout = \"60s\"\n", "");
    let ann = setup.client("ann");
    let mut worker = Worker::serving(&setup, &["one"]);
    let call = ann.begin_call("worker_one", json!({}));
    let asked = worker.asked("tools/call");
    let progress = json!({ "progressToken": asked["payload"]["params"]["_meta"]["progressToken"], "progress": 1 });
    let payload =
        json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": progress });
    worker.send(&asked, "mcp/request:notifications/progress", &payload);
    let notice = call.next_of("notifications/progress");
    assert_eq!(notice["params"]["progressToken"], "p1", "{notice}");
    let why = error(&call);
    assert_eq!(why["data"]["code"], "upstream_timeout", "{why}");
    let cancelled = worker.asked("notifications/cancelled");
    assert_eq!(
        (&cancelled["from"], &cancelled["correlation_id"]),
        (&json!("ann"), &asked["id"])
    );
    assert_eq!(
        cancelled["payload"]["params"]["requestId"],
        asked["payload"]["id"]
    );
}

#[test]
fn a_participant_without_a_handshake_serves_no_tools() {
    let setup = start("start_timeout = \"500ms\"\n", "");
    let mut worker = Worker::enter(&setup);
    let asked = worker.asked("initialize");
    worker.answer(
        &asked,
        json!({ "protocolVersion": "banana", "capabilities": {} }),
    );
    let state = until("it is known", || {
        let state = setup.state();
        state["reason"]
            .as_str()
            .is_some_and(|why| why.contains("unusable answer"))
            .then_some(state)
    });
    assert_eq!(state["tools"], 0, "{state}");
    let mut mallory = Socket::enter(&setup.gateway, "mallory", "?echo=false");
    worker.0.chat("hello");
    assert_eq!(mallory.expect("hello")["from"], "worker");
    // It does not answer the next handshake.
    worker.asked("initialize");
    until("the silence is known", || {
        setup.state()["reason"]
            .as_str()
            .is_some_and(|why| why.contains("in time"))
            .then_some(())
    });
    assert_eq!(setup.client("ann").names("tools"), [""; 0]);
    worker.0.chat("still here");
    assert_eq!(mallory.expect("still here")["from"], "worker");
}

#[test]
fn the_serves_setting_can_change_while_connected() {
    let (home, on) = setup("", "");
    let off = on.replace("serves = true\n", "");
    let setup = Started {
        gateway: Gateway::start(&home, &off),
        home,
    };
    let mut worker = Worker::enter(&setup);
    let ann = setup.client("ann");
    let changes = ann.listen();
    assert_eq!(setup.state()["code"], "unknown_target", "{}", setup.state());
    setup.home.write("portmoot.toml", &on);
    setup.gateway.signal("HUP");
    worker.greet(&[schema("one")]);
    changes.next_of("notifications/tools/list_changed");
    assert_eq!(ann.names("tools"), ["worker_one"]);
    let call = begin(&ann, "worker_one", json!({}));
    let asked = worker.asked("tools/call");
    setup.home.write("portmoot.toml", &off);
    setup.gateway.signal("HUP");
    assert!(
        error(&call)["data"]["code"]
            .as_str()
            .unwrap()
            .starts_with("upstream_")
    );
    changes.next_of("notifications/tools/list_changed");
    assert_eq!(ann.names("tools"), [""; 0]);
    // It is still in the room.
    let mut mallory = Socket::enter(&setup.gateway, "mallory", "?echo=false");
    // Late answers to requests from the time when it served are not delivered, whether it serves
    // again or not.
    worker.answer_text(&asked, "secret");
    worker.0.chat("hello");
    assert_eq!(mallory.receive_message()["id"], "hello");
    setup.home.write("portmoot.toml", &on);
    setup.gateway.signal("HUP");
    while worker.next_request()["payload"]["method"] != "initialize" {}
    worker.answer_text(&asked, "secret");
    worker.0.chat("again");
    assert_eq!(mallory.receive_message()["id"], "again");
}

#[test]
fn servers_ls_names_the_topics_of_a_participant_that_serves() {
    let setup = start(
        "topics = [\"main\", \"board\"]\n",
        "[topics.main]\n[topics.board]\naccess = \"public\"\n",
    );
    let _worker = Worker::serving(&setup, &["look"]);
    let (url, ann) = (setup.gateway.url(), token("ann"));
    let listed = setup
        .home
        .run(&["servers", "ls", "--url", &url, "--token", &ann])
        .expect(0)
        .stdout;
    let words = |line: &str| {
        line.split_whitespace()
            .take(4)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let rows: Vec<Vec<String>> = listed.lines().map(words).collect();
    assert_eq!(rows[0], ["NAME", "TOPIC", "STATE", "TRANSPORT"], "{listed}");
    for (topic, state) in [("main", "ready"), ("board", "down")] {
        let row = ["worker", topic, state, "participant"]
            .map(str::to_owned)
            .to_vec();
        assert_eq!(
            rows.iter().filter(|one| **one == row).count(),
            1,
            "{listed}"
        );
    }
    // Without such participants there is no such column.
    let (home, config) = people(&[("ann", &["portmoot/servers"])]);
    let gateway = Gateway::start(&home, &config);
    let listed = home
        .run(&["servers", "ls", "--url", &gateway.url(), "--token", &ann])
        .expect(0)
        .stdout;
    assert!(!listed.contains("TOPIC"), "{listed}");
}
