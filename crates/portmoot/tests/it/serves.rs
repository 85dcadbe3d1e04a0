//! Participants that serve: an agent dials out over a WebSocket, and every MCP client of its topic has its tools.

mod proposed;

use client::participant::{Mode, Tools};
use client::{Participant, ParticipantSpec};
use serde_json::{Value, json};

use crate::http::Events;
use crate::runner::Home;
use crate::support::{Client, Gateway, modern, until};
use crate::ws::{Socket, people, token};

const ALL: &[(&str, &[&str])] = &[
    ("worker", &["mcp/response:*", "mcp/request:notifications/*", "chat"]),
    ("ann", &["mcp/*", "chat", "portmoot/servers"]),
    ("scout", &["mcp/proposal:*"]),
    ("guest", &["mcp/request:tools/call:worker_add"]),
    ("mallory", &["mcp/*", "chat"]),
];

/// A home and a configuration in which `worker` serves, with these further lines of its own and of the file.
fn house(own: &str, more: &str) -> (Home, String) {
    let (home, config) = people(ALL);
    let serving = format!("[participants.worker]\nserves = true\n{own}");
    (home, config.replace("[participants.worker]\n", &serving) + more)
}

/// A gateway and the home that it needs.
struct House {
    gateway: Gateway,
    home: Home,
}

fn start(own: &str, more: &str) -> House {
    let (home, config) = house(own, more);
    House { gateway: Gateway::start(&home, &config), home }
}

impl House {
    fn client(&self, name: &str) -> Client {
        Client::open(&self.gateway, Some(&token(name)), "/mcp", json!({}))
    }

    /// What the API says of the worker as a server.
    fn state(&self) -> Value {
        self.gateway.get("/api/v1/servers/worker", Some(&token("ann"))).json()
    }

    fn wait_for(&self, state: &str) -> Value {
        until(&format!("the worker is {state}"), || Some(self.state()).filter(|now| now["state"] == state))
    }

    fn wait_listed(&self, tools: &[&str]) {
        until("its tools are listed", || {
            let listed = self.gateway.get("/api/v1/tools", Some(&token("ann"))).body;
            tools.iter().all(|name| listed.contains(&format!("worker_{name}"))).then_some(())
        });
    }

    fn proposals(&self, words: &[&str]) -> String {
        let (url, token) = (self.gateway.url(), token("ann"));
        self.home.run(&[&["proposals"], words, &["--url", &url, "--token", &token]].concat()).expect(0).stdout
    }

    /// The id of the one proposal that waits, once there is one.
    fn waiting(&self) -> String {
        self.gateway.pending(&self.home, &token("ann"))["id"].as_str().unwrap().to_owned()
    }
}

fn schema(name: &str) -> Value {
    json!({ "name": name, "description": "Does it", "inputSchema": { "type": "object" } })
}

/// A server that says each word as the test has it.
struct Worker(Socket);

impl Worker {
    /// Comes in; whatever it is asked waits.
    fn enter(house: &House) -> Worker {
        Worker(Socket::enter(&house.gateway, "worker", "?mode=directed&echo=false"))
    }

    /// Comes in and serves these tools.
    fn serving(house: &House, tools: &[&str]) -> Worker {
        let mut worker = Worker::enter(house);
        worker.greet(&tools.iter().map(|name| schema(name)).collect::<Vec<_>>());
        house.wait_for("ready");
        house.wait_listed(tools);
        worker
    }

    fn greet(&mut self, tools: &[Value]) {
        let asked = self.asked("initialize");
        assert_eq!((&asked["from"], &asked["to"]), (&json!("portmoot"), &json!(["worker"])), "{asked}");
        let info = json!({ "name": "raw", "version": "1" });
        let able = json!({ "tools": { "listChanged": true } });
        self.answer(
            &asked,
            json!({ "protocolVersion": "2025-11-25", "capabilities": able, "serverInfo": info }),
        );
        let told = self.0.hear_said();
        assert_eq!(told["kind"], "mcp/request:notifications/initialized", "{told}");
        self.list(tools);
    }

    fn list(&mut self, tools: &[Value]) {
        let asked = self.asked("tools/list");
        self.answer(&asked, json!({ "tools": tools }));
    }

    /// The next request, which is for this method.
    #[track_caller]
    fn asked(&mut self, method: &str) -> Value {
        let heard = self.0.hear_said();
        assert_eq!(heard["payload"]["method"], method, "{heard}");
        heard
    }

    /// The next request, whatever else is said in the room.
    #[track_caller]
    fn next_request(&mut self) -> Value {
        loop {
            let heard = self.0.hear_said();
            if heard["kind"].as_str().unwrap().starts_with("mcp/request") {
                return heard;
            }
        }
    }

    fn say(&mut self, asked: &Value, kind: &str, payload: &Value) {
        let about = json!({ "correlation_id": asked["id"] });
        let id = format!("{kind} {}", asked["id"]);
        self.0.say(kind, &id, &[asked["from"].as_str().unwrap()], about, payload);
    }

    fn answer(&mut self, asked: &Value, result: Value) {
        let kind = asked["kind"].as_str().unwrap().replace("mcp/request", "mcp/response");
        let payload = json!({ "jsonrpc": "2.0", "id": asked["payload"]["id"], "result": result });
        self.say(asked, &kind, &payload);
    }

    fn answer_text(&mut self, asked: &Value, text: &str) {
        self.answer(asked, said(text));
    }
}

fn said(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

/// A call whose answer comes later.
fn begin(client: &Client, tool: &str, arguments: Value) -> Events {
    client.begin(&client.request("tools/call", json!({ "name": tool, "arguments": arguments })))
}

/// The error of the answer that comes next.
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
        .tool("echo", "Says a text again", object.clone(), |arguments| async move {
            arguments.get("text").cloned().ok_or_else(|| "`text` is missing".to_owned())
        })
        .tool("add", "Adds two numbers", object, |arguments| async move {
            let number = |name: &str| arguments[name].as_i64().ok_or("no number");
            Ok(json!({ "sum": number("a")? + number("b")? }))
        });
    let spec = ParticipantSpec::new(&gateway.url(), Some(&token("worker")), "main");
    Participant::connect(spec.serving(tools).receiving(Mode::Directed)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_sdk_server_that_dials_out_is_a_server_to_clients_of_both_eras() {
    let house = start("", "");
    let worker = sdk(&house.gateway).await;
    house.wait_for("ready");
    let url = format!("{}/mcp", house.gateway.url());
    for era in ["legacy", "modern"] {
        let ann = token("ann");
        let call = ["worker_echo", r#"{"text":"from Python"}"#];
        let words = [&url, "--era", era, "--token", &ann, "--tour", "real", "--call", call[0], call[1]];
        let report = harness::python_client(&words);
        assert_eq!(report["calls"]["worker_echo"]["text"], "from Python", "{era}: {report:#}");
        assert!(report["tools"].as_array().unwrap().contains(&json!("worker_add")), "{report:#}");
    }
    let ann = house.client("ann");
    assert_eq!(ann.names("tools"), ["worker_echo", "worker_add"]);
    assert_eq!(ann.call("worker_add", json!({ "a": 2, "b": 3 }))["structuredContent"], json!({ "sum": 5 }));
    let params = json!({ "name": "worker_add", "arguments": { "a": 20, "b": 3 } });
    let answer = modern(&house.gateway, Some(&token("ann")), "tools/call", params).json();
    assert_eq!(answer["result"]["structuredContent"], json!({ "sum": 23 }), "{answer}");
    let wrong = ann.call("worker_echo", json!({}));
    assert_eq!(
        (&wrong["isError"], &wrong["content"][0]["text"]),
        (&json!(true), &json!("`text` is missing"))
    );
    // Twenty at once, each its own answer.
    let calls: Vec<_> =
        (0..20).map(|number| begin(&ann, "worker_echo", json!({ "text": number.to_string() }))).collect();
    for (number, call) in calls.iter().enumerate() {
        assert_eq!(*text(&call.next()), number.to_string());
    }
    worker.close().await;
    house.wait_for("down");
}

#[test]
fn the_server_is_asked_in_the_callers_name_and_nobody_else_hears() {
    let house = start("", "[topics.main]\nmcp_calls = \"none\"\n");
    let mut watcher = Socket::enter(&house.gateway, "mallory", "?echo=false");
    let mut worker = Worker::serving(&house, &["look"]);
    let ann = house.client("ann");
    let call = begin(&ann, "worker_look", json!({ "at": "SECRET" }));
    let asked = worker.asked("tools/call");
    assert_eq!(asked["kind"], "mcp/request:tools/call:look");
    assert_eq!((&asked["from"], &asked["to"]), (&json!("ann"), &json!(["worker"])));
    assert_eq!(asked["payload"]["params"], json!({ "name": "look", "arguments": { "at": "SECRET" } }));
    worker.answer_text(&asked, "SECRET too");
    assert_eq!(*text(&call.next()), "SECRET too");
    // A second answer counts for nothing, and nobody hears it either.
    worker.answer_text(&asked, "SECRET again");
    worker.0.chat("the end");
    loop {
        let heard = watcher.hear();
        assert!(!heard.to_string().contains("SECRET"), "{heard}");
        assert!(!heard["kind"].as_str().unwrap().starts_with("mcp/"), "{heard}");
        if heard["id"] == "the end" {
            break;
        }
    }
}

#[test]
fn its_tools_come_change_and_go_and_every_client_is_told() {
    let house = start("", "[server.limits]\naway = \"100ms\"\n");
    let ann = house.client("ann");
    let changes = ann.listen();
    assert_eq!(ann.names("tools"), [""; 0]);
    let mut worker = Worker::serving(&house, &["one"]);
    changes.next_of("notifications/tools/list_changed");
    assert_eq!(ann.names("tools"), ["worker_one"]);
    let changed = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
    worker.0.say("mcp/request:notifications/tools/list_changed", "1", &[], json!({}), &changed);
    let broken = json!({ "name": "odd", "inputSchema": { "type": "banana" } });
    worker.list(&[schema("one"), schema("two"), broken]);
    changes.next_of("notifications/tools/list_changed");
    assert_eq!(ann.names("tools"), ["worker_one", "worker_two"]);
    assert_eq!(house.state()["quarantined"][0]["name"], "odd", "{}", house.state());
    worker.0.leave();
    changes.next_of("notifications/tools/list_changed");
    assert_eq!(ann.names("tools"), [""; 0]);
    let refused = ann.ask("tools/call", json!({ "name": "worker_one", "arguments": {} }));
    assert_eq!(refused["error"]["data"]["code"], "unknown_target", "{refused}");
}

#[test]
fn a_call_while_it_is_gone_is_told_that_it_is_not_here() {
    let house = start("", "");
    let down = house.state();
    assert_eq!((&down["state"], &down["transport"]), (&json!("down"), &json!("participant")), "{down}");
    Worker::serving(&house, &["one"]).0.leave();
    let ann = house.client("ann");
    until("it is gone", || (house.state()["state"] == "down").then_some(()));
    // Its last known tools stay listed for a while.
    assert_eq!(ann.names("tools"), ["worker_one"]);
    let refused = ann.ask("tools/call", json!({ "name": "worker_one", "arguments": {} }));
    assert_eq!(refused["error"]["data"]["code"], "upstream_down", "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("is not connected"), "{refused}");
    let mut worker = Worker::serving(&house, &["one"]);
    let call = begin(&ann, "worker_one", json!({}));
    let asked = worker.asked("tools/call");
    worker.answer_text(&asked, "back");
    assert_eq!(*text(&call.next()), "back");
}

#[test]
fn one_that_leaves_or_comes_again_ends_its_open_calls_at_once() {
    let house = start("", "[server.limits]\nenvelope_bytes_max = \"4KiB\"\n");
    let ann = house.client("ann");
    let mut worker = Worker::serving(&house, &["one"]);
    let call = begin(&ann, "worker_one", json!({}));
    worker.asked("tools/call");
    // A second connection takes its place.
    let mut second = Worker::serving(&house, &["one"]);
    let why = error(&call);
    assert_eq!(why["data"]["code"], "upstream_failed", "{why}");
    assert!(why["message"].as_str().unwrap().contains("disconnected before it answered"), "{why}");

    let call = begin(&ann, "worker_one", json!({}));
    let asked = second.asked("tools/call");
    second.answer_text(&asked, &"x".repeat(5000));
    assert_eq!(error(&call)["data"]["code"], "upstream_failed", "an answer beyond the limit ends the link");
    assert_eq!(second.0.closed(), 1009);

    let mut third = Worker::serving(&house, &["one"]);
    let large =
        ann.ask("tools/call", json!({ "name": "worker_one", "arguments": { "a": "x".repeat(5000) } }));
    assert_eq!(large["error"]["data"]["code"], "too_large", "{large}");
    let call = begin(&ann, "worker_one", json!({}));
    third.asked("tools/call");
    drop(third);
    assert_eq!(error(&call)["data"]["code"], "upstream_failed");
}

#[test]
fn nobody_answers_for_another() {
    let house = start("", "");
    let ann = house.client("ann");
    let mut worker = Worker::serving(&house, &["one"]);
    let mut mallory = Socket::enter(&house.gateway, "mallory", "?echo=false&mode=directed");
    let call = begin(&ann, "worker_one", json!({}));
    let asked = worker.asked("tools/call");
    let payload = json!({ "jsonrpc": "2.0", "id": asked["payload"]["id"], "result": said("FORGED") });
    let about = json!({ "correlation_id": asked["id"] });
    let kind = "mcp/response:tools/call:one";
    mallory.say(kind, "forged", &["ann"], about.clone(), &payload);
    mallory.call("after", &["portmoot"], "none", json!({}));
    let heard = mallory.hear_said();
    assert_eq!(heard["correlation_id"], "after", "all that came before was dealt with: {heard}");
    // Nor does an answer count whose `to` does not name the sender of the request.
    worker.0.say(kind, "astray", &["mallory"], about, &payload);
    assert_eq!(mallory.expect("astray")["from"], "worker");
    worker.answer_text(&asked, "true");
    assert_eq!(*text(&call.next()), "true");
    // One whose words differ ends the call.
    for (kind, id) in [("mcp/response:tools/call:two", None), (kind, Some(json!("another")))] {
        let call = begin(&ann, "worker_one", json!({}));
        let asked = worker.asked("tools/call");
        let id = id.unwrap_or_else(|| asked["payload"]["id"].clone());
        worker.say(&asked, kind, &json!({ "jsonrpc": "2.0", "id": id, "result": said("odd") }));
        assert_eq!(error(&call)["data"]["code"], "upstream_failed", "{kind}");
    }
    let data = house.home.path().join("data").display().to_string();
    let log = until("it is recorded", || {
        let words = ["audit", "query", "--json", "--data-dir", &data];
        let log = house.home.run(&words).expect(0).stdout;
        (log.matches("mismatch").count() >= 4).then_some(log)
    });
    assert!(log.contains("answers what another was asked"), "{log}");
    assert!(log.contains("does not name the sender of the request"), "{log}");
}

#[test]
fn only_clients_of_its_topic_see_it_and_only_what_they_may() {
    let (home, config) = house("", "[topics.main]\n[topics.lab]\naccess = \"public\"\n");
    let config = config.replace("[participants.ann]\n", "[participants.ann]\ntopics = [\"main\", \"lab\"]\n");
    let house = House { gateway: Gateway::start(&home, &config), home };
    let mut worker = Worker::serving(&house, &["add", "drop"]);
    assert_eq!(house.client("ann").names("tools"), ["worker_add", "worker_drop"]);
    let elsewhere = Client::open(&house.gateway, Some(&token("ann")), "/mcp/lab", json!({}));
    assert_eq!(elsewhere.names("tools"), [""; 0]);
    let guest = house.client("guest");
    assert_eq!(guest.names("tools"), ["worker_add"]);
    let refused = guest.ask("tools/call", json!({ "name": "worker_drop", "arguments": {} }));
    assert_eq!(refused["error"]["data"]["code"], "unknown_target", "{refused}");
    let call = begin(&guest, "worker_add", json!({}));
    let asked = worker.asked("tools/call");
    assert_eq!(asked["from"], "guest");
    worker.answer_text(&asked, "5");
    assert_eq!(*text(&call.next()), "5");
}

#[test]
fn progress_keeps_a_call_alive_and_silence_ends_it() {
    let house = start("request_timeout = \"1500ms\"\nmax_timeout = \"60s\"\n", "");
    let ann = house.client("ann");
    let mut worker = Worker::serving(&house, &["one"]);
    let call = ann.begin_call("worker_one", json!({}));
    let asked = worker.asked("tools/call");
    let progress =
        json!({ "progressToken": asked["payload"]["params"]["_meta"]["progressToken"], "progress": 1 });
    let payload = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": progress });
    worker.say(&asked, "mcp/request:notifications/progress", &payload);
    let told = call.next_of("notifications/progress");
    assert_eq!(told["params"]["progressToken"], "p1", "{told}");
    let why = error(&call);
    assert_eq!(why["data"]["code"], "upstream_timeout", "{why}");
    let cancelled = worker.asked("notifications/cancelled");
    assert_eq!((&cancelled["from"], &cancelled["correlation_id"]), (&json!("ann"), &asked["id"]));
    assert_eq!(cancelled["payload"]["params"]["requestId"], asked["payload"]["id"]);
}

#[test]
fn one_that_cannot_be_greeted_stays_a_plain_participant() {
    let house = start("start_timeout = \"500ms\"\n", "");
    let mut worker = Worker::enter(&house);
    let asked = worker.asked("initialize");
    worker.answer(&asked, json!({ "protocolVersion": "banana", "capabilities": {} }));
    let state = until("it is known", || {
        let state = house.state();
        state["reason"].as_str().is_some_and(|why| why.contains("unusable answer")).then_some(state)
    });
    assert_eq!(state["tools"], 0, "{state}");
    let mut mallory = Socket::enter(&house.gateway, "mallory", "?echo=false");
    worker.0.chat("hello");
    assert_eq!(mallory.expect("hello")["from"], "worker");
    // Asked again, it keeps silent.
    worker.asked("initialize");
    until("the silence is known", || {
        house.state()["reason"].as_str().is_some_and(|why| why.contains("in time")).then_some(())
    });
    assert_eq!(house.client("ann").names("tools"), [""; 0]);
    worker.0.chat("still here");
    assert_eq!(mallory.expect("still here")["from"], "worker");
}

#[test]
fn serves_takes_effect_and_ends_while_it_is_here() {
    let (home, on) = house("", "");
    let off = on.replace("serves = true\n", "");
    let house = House { gateway: Gateway::start(&home, &off), home };
    let mut worker = Worker::enter(&house);
    let ann = house.client("ann");
    let changes = ann.listen();
    assert_eq!(house.state()["code"], "unknown_target", "{}", house.state());
    house.home.write("portmoot.toml", &on);
    house.gateway.signal("HUP");
    worker.greet(&[schema("one")]);
    changes.next_of("notifications/tools/list_changed");
    assert_eq!(ann.names("tools"), ["worker_one"]);
    let call = begin(&ann, "worker_one", json!({}));
    let asked = worker.asked("tools/call");
    house.home.write("portmoot.toml", &off);
    house.gateway.signal("HUP");
    assert!(error(&call)["data"]["code"].as_str().unwrap().starts_with("upstream_"));
    changes.next_of("notifications/tools/list_changed");
    assert_eq!(ann.names("tools"), [""; 0]);
    // It is still in the room.
    let mut mallory = Socket::enter(&house.gateway, "mallory", "?echo=false");
    // What it was asked while it served is answered to nobody, whether it serves no more or again.
    worker.answer_text(&asked, "secret");
    worker.0.chat("hello");
    assert_eq!(mallory.hear_said()["id"], "hello");
    house.home.write("portmoot.toml", &on);
    house.gateway.signal("HUP");
    while worker.next_request()["payload"]["method"] != "initialize" {}
    worker.answer_text(&asked, "secret");
    worker.0.chat("again");
    assert_eq!(mallory.hear_said()["id"], "again");
}
