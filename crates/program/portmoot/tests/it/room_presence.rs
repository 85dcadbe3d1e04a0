//! Presence of a room beyond joins and leaves of links: servers that go down and come back,
//! capabilities that change.

use std::process::Command;

use harness::Running;
use serde_json::{Value, json};

use crate::http::Connection;
use crate::support::{Gateway, below, fixture, signal};
use crate::ws::{Socket, people, token};

const FULL: &[&str] = &["mcp/*", "chat", "portmoot/grants"];

/// The next presence of this participant: the event, and its capabilities.
#[track_caller]
fn presence(socket: &mut Socket, participant: &str) -> (String, Value) {
    let received = socket.receive_until(|received| {
        received["kind"] == "system/presence"
            && received["payload"]["participant"]["id"] == participant
    });
    assert_eq!(
        (&received["from"], &received["to"]),
        (&json!("system:gateway"), &Value::Null),
        "{received}"
    );
    let payload = &received["payload"];
    (
        payload["event"].as_str().unwrap().to_owned(),
        payload["participant"]["capabilities"].clone(),
    )
}

/// The participants that a newcomer is shown, each with its capabilities.
fn welcomed(gateway: &Gateway, name: &str) -> Vec<(String, Value)> {
    let (socket, welcome) = Socket::welcomed(gateway, name, "");
    socket.leave();
    let all = welcome["payload"]["participants"]
        .as_array()
        .unwrap()
        .clone();
    all.iter()
        .map(|one| {
            (
                one["id"].as_str().unwrap().to_owned(),
                one["capabilities"].clone(),
            )
        })
        .collect()
}

fn names(gateway: &Gateway, name: &str) -> Vec<String> {
    welcomed(gateway, name)
        .into_iter()
        .map(|(id, _)| id)
        .collect()
}

#[test]
fn a_server_that_goes_down_leaves_the_room_and_joins_it_again() {
    let (home, config) = people(&[("ann", FULL), ("late", FULL)]);
    let broken = "[servers.broken]\ncommand = \"/no/such/program\"\n";
    // Of a server in both eras one process may run while the other is started again.
    let server = fixture("tools", &["--era", "legacy"]) + "start = \"always\"\n";
    let gateway = Gateway::start(&home, &(server + broken + &config));
    gateway.ready("tools");
    gateway.receive("down server=\"broken\"");
    let mut ann = Socket::enter(&gateway, "ann", "?echo=false");
    for id in ["call 1", "call 2"] {
        for child in below(gateway.pid(), "--stdio") {
            signal(u32::try_from(child).unwrap(), "KILL");
        }
        assert_eq!(
            presence(&mut ann, "tools"),
            ("leave".to_owned(), Value::Null)
        );
        let (event, capabilities) = presence(&mut ann, "tools");
        assert_eq!(event, "join");
        assert!(
            capabilities
                .as_array()
                .unwrap()
                .contains(&json!("mcp/response:*")),
            "{capabilities}"
        );
        assert_eq!(
            names(&gateway, "late"),
            ["ann", "portmoot", "tools"],
            "one has never run"
        );
        // It answers as before.
        ann.call(id, &["tools"], "echo", json!({ "text": "back" }));
        let answer = ann.receive_until(|received| received["from"] == "tools");
        assert_eq!(
            answer["payload"]["result"]["content"][0]["text"], "back",
            "{answer}"
        );
    }
}

#[test]
fn a_server_over_http_that_cannot_be_reached_leaves_the_room_and_joins_it_again() {
    for era in ["legacy", "modern"] {
        let web = Running::fixture(&["--era", era]);
        let address = web.address().to_owned();
        let (home, config) = people(&[("ann", FULL)]);
        let server = format!("[servers.web]\nurl = \"{}\"\n", web.url());
        let gateway = Gateway::start(&home, &(server + &config));
        gateway.ready("web");
        let mut ann = Socket::enter(&gateway, "ann", "?echo=false");
        drop(web);
        ann.call("call 1", &["web"], "echo", json!({ "text": "gone" }));
        assert_eq!(presence(&mut ann, "web").0, "leave", "{era}");
        let mut again = Command::new(harness::fixture_binary());
        again.args(["--listen", &address, "--era", era]);
        let _web = Running::start(again, "listening on ");
        // A call tries to reach it again, if nothing has before.
        ann.call("call 2", &["web"], "echo", json!({ "text": "back" }));
        assert_eq!(presence(&mut ann, "web").0, "join", "{era}");
    }
}

#[test]
fn new_capabilities_reach_the_others_of_the_topic_alone() {
    let (home, mut config) = people(&[
        ("ann", FULL),
        ("bob", &["chat"]),
        ("eve", FULL),
        ("late", FULL),
    ]);
    let elsewhere = "topics = [\"board\"]\n";
    config = config.replace(
        "[participants.eve]\n",
        &format!("[participants.eve]\n{elsewhere}"),
    );
    let both = "topics = [\"main\", \"board\"]\n";
    for name in ["ann", "bob"] {
        let table = format!("[participants.{name}]\n");
        config = config.replace(&table, &format!("{table}{both}"));
    }
    let gateway = Gateway::start(&home, &(config + "[topics.main]\n[topics.board]\n"));
    let mut ann = Socket::enter(&gateway, "ann", "?mode=directed");
    let mut eve = Socket::enter(&gateway, "eve", "?topic=board");
    let mut bob = Socket::enter(&gateway, "bob", "");
    assert_eq!(
        presence(&mut ann, "bob"),
        ("join".to_owned(), json!(["chat"]))
    );
    let change = |body: Value| {
        let bearer = format!("Bearer {}", token("ann"));
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
        ];
        let path = "/admin/participants/bob/capabilities";
        let reply =
            Connection::open(gateway.address()).exchange("POST", path, &headers, &body.to_string());
        assert_eq!(reply.status, 200, "{reply:?}");
    };
    let granted = json!(["chat", "mcp/request:tools/call:echo"]);
    change(json!({ "add": ["mcp/request:tools/call:echo"] }));
    assert_eq!(
        presence(&mut ann, "bob"),
        ("join".to_owned(), granted.clone())
    );
    // It learns of them first by another welcome, then like the others.
    let welcome = bob.receive_until(|received| received["kind"] == "system/welcome");
    assert_eq!(
        welcome["payload"]["you"]["capabilities"], granted,
        "{welcome}"
    );
    assert_eq!(
        presence(&mut bob, "bob"),
        ("join".to_owned(), granted.clone())
    );
    assert!(welcomed(&gateway, "late").contains(&("bob".to_owned(), granted)));
    // A participant that is absent is not announced.
    bob.leave();
    assert_eq!(presence(&mut ann, "bob").0, "leave");
    change(json!({ "remove": ["mcp/request:tools/call:echo"] }));
    ann.chat("the end");
    ann.receive_until(|received| {
        assert_ne!(
            received["payload"]["participant"]["id"], "bob",
            "{received}"
        );
        received["id"] == "the end"
    });
    // Nor do those of another topic learn of it.
    eve.chat("the end");
    assert_eq!(eve.receive()["id"], "the end");
}
