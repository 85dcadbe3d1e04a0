//! Servers that are killed and started again: subscriptions and listen streams of their callers go
//! on.

use std::process::Command;

use harness::Running;
use serde_json::{Value, json};

use crate::home::Home;
use crate::http::Events;
use crate::support::{Client, Gateway, below, fixture, modern, modern_stream, signal, until};

const URI: &str = "test://watched-resource";

/// Has the resource touched until its update arrives: a server that has just started learns what is
/// subscribed after its start.
fn follows(what: &str, stream: &Events, touch: impl Fn()) {
    until(what, || {
        touch();
        let received = stream.so_far();
        received
            .iter()
            .any(|one| one["method"] == "notifications/resources/updated")
            .then_some(())
    });
}

fn check(gateway: &Gateway, what: &str, kill: impl FnOnce()) {
    // One caller with a session of its own, where the server has sessions, and two that share one.
    let own = Client::open(gateway, None, "/mcp", json!({ "sampling": {} }));
    let plain = Client::plain(gateway);
    let streams = [own.listen(), plain.listen()];
    for client in [&own, &plain] {
        let answer = client.ask("resources/subscribe", json!({ "uri": URI }));
        assert!(answer["result"].is_object(), "{what}: {answer}");
    }
    let wanted = json!({ "notifications": { "resourceSubscriptions": [URI] } });
    let listening = modern_stream(gateway, None, "subscriptions/listen", wanted);
    listening.next_of("notifications/subscriptions/acknowledged");
    let call = |params: Value| modern(gateway, None, "tools/call", params).json();
    let touch = || {
        drop(call(
            json!({ "name": "a_touch_watched_resource", "arguments": {} }),
        ))
    };
    let touch_own = || {
        drop(own.ask(
            "tools/call",
            json!({ "name": "a_touch_watched_resource", "arguments": {} }),
        ))
    };
    let follow = |round: &str| {
        follows(&format!("{what}: {round}, own"), &streams[0], touch_own);
        follows(&format!("{what}: {round}, shared"), &streams[1], touch);
        follows(&format!("{what}: {round}, listening"), &listening, touch);
    };
    follow("before");
    kill();
    until("it runs again", || {
        let echo = json!({ "name": "a_echo", "arguments": { "text": "x" } });
        call(echo)["result"].is_object().then_some(())
    });
    // What has arrived until now is of the killed server.
    streams
        .iter()
        .chain([&listening])
        .for_each(|stream| drop(stream.so_far()));
    follow("after");
}

#[test]
fn callers_follow_a_server_through_its_restart() {
    for era in ["legacy", "modern"] {
        let homes = [Home::new(), Home::new()];
        let gateway = Gateway::start(&homes[0], &fixture("a", &["--era", era]));
        gateway.ready("a");
        check(&gateway, &format!("{era}, on a pipe"), || {
            for child in below(gateway.pid(), "--stdio") {
                signal(u32::try_from(child).unwrap(), "KILL");
            }
        });
        let running = Running::fixture(&["--era", era]);
        let address = running.address().to_owned();
        let gateway = Gateway::start(
            &homes[1],
            &format!("[servers.a]\nurl = \"{}\"\n", running.url()),
        );
        gateway.ready("a");
        let mut again = None;
        check(&gateway, &format!("{era}, over HTTP"), || {
            drop(running);
            let mut command = Command::new(harness::fixture_binary());
            command.args(["--listen", &address, "--era", era]);
            again = Some(Running::start(command, "listening on "));
        });
    }
}
