//! Homes that end, and their successors.

use std::time::{Duration, Instant};

use harness::fixture_binary;
use serde_json::json;
use tempfile::TempDir;

use crate::socket::stdio_server;
use crate::support::{Client, fixture};
use crate::ws::{Socket, token};

use super::attempt::modern;
use super::nodes::{Nodes, SHORT};

/// The longest take-over, on a machine that does other things too.
const TAKEOVER_MAX: Duration = Duration::from_secs(15);
/// The homes that end by each signal.
const ROUNDS: usize = 2;

/// Asks one of the nodes that run, in turn, until one answers; returns how long that took.
#[track_caller]
fn time_until_served(nodes: &Nodes) -> Duration {
    let begun = Instant::now();
    for turn in 0.. {
        let address = nodes.book().in_turn(turn).unwrap();
        let params = json!({ "name": "a_add", "arguments": { "a": 1, "b": 1 } });
        let reply = modern(&address, SHORT, &token("boss"), "tools/call", params);
        if reply.is_some_and(|reply| reply.status == 200) {
            return begun.elapsed();
        }
        assert!(begun.elapsed() < 2 * TAKEOVER_MAX, "no node serves");
    }
    unreachable!()
}

#[test]
fn a_home_is_taken_over_in_time() {
    let mut nodes = Nodes::start(3, 1, &fixture("a", &[]));
    for signal in ["KILL", "TERM"] {
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            let home = nodes.home();
            nodes.end(home.node, signal);
            times.push(time_until_served(&nodes));
            assert!(nodes.next_home(home.epoch).node != home.node);
            nodes.restart(home.node);
            nodes.wait_until_served(home.node);
        }
        println!("after {signal}: {times:?}");
        assert!(times.iter().max() < Some(&TAKEOVER_MAX), "{times:?}");
    }
}

#[test]
fn a_session_outlives_its_node() {
    let mut nodes = Nodes::start(3, 1, &fixture("a", &["--era", "legacy"]));
    let boss = token("boss");
    let home = nodes.home();
    let [ends, stays] = [1, 2].map(|more| (home.node + more) % 3);
    // Another node ends: those of the others are untouched.
    let session = Client::of(nodes.node(ends), &boss).session;
    let stream = Client::resume(nodes.node(stays), Some(&boss), "/mcp", &session).listen();
    let mut room = Socket::enter(nodes.node(home.node), "ann", "");
    nodes.kill(ends);
    let stayed = Client::resume(nodes.node(stays), Some(&boss), "/mcp", &session);
    stayed.call("a_toggle_tool", json!({}));
    stream.next_of("notifications/tools/list_changed");
    room.call("sum", &["a"], "add", json!({ "a": 1, "b": 2 }));
    room.receive_until(|received| received["correlation_id"] == "sum");
    assert_eq!(nodes.home(), home);
    nodes.restart(ends);
    // The home ends.
    nodes.kill(home.node);
    let begun = Instant::now();
    let moved = Client::resume(nodes.node(stays), Some(&boss), "/mcp", &session);
    let sum = moved.call("a_add", json!({ "a": 1, "b": 2 }));
    let elapsed = begun.elapsed();
    println!("the next answer came after {elapsed:?}");
    assert_eq!(sum["structuredContent"]["sum"], 3);
    assert!(elapsed < TAKEOVER_MAX, "{elapsed:?}");
    let other = Client::resume(nodes.node(ends), Some(&boss), "/mcp", &session);
    assert_eq!(other.delete(), 204);
    assert_eq!(moved.status("tools/list", json!({})), 404);
}

/// A server that works on after its input has ended, and then says in a file that it has ended.
const SLOW_END: &str = r#""$0" --stdio; sleep 0.5; touch "$1""#;

#[test]
fn a_node_that_stops_ends_its_rooms_and_servers_first() {
    let folder = TempDir::new().unwrap();
    let ended = folder.path().join("ended");
    let fixture = fixture_binary();
    let words = [fixture.to_str().unwrap(), ended.to_str().unwrap()];
    let words = [&["-c", SLOW_END], &words[..]].concat();
    let slow = stdio_server("slow", "slow", "sh", &words);
    let mut nodes = Nodes::start(2, 1, &slow);
    let home = nodes.home().node;
    Client::of(nodes.node(home), &token("boss")).call("slow_add", json!({ "a": 1, "b": 1 }));
    let (mut room, _) = Socket::welcomed(nodes.node(home), "ann", "");
    nodes.end(home, "TERM");
    assert!(ended.exists());
    let mut frames = std::iter::from_fn(|| room.next());
    // RFC 6455, section 7.4.1: the server goes away.
    assert_eq!(frames.find_map(|frame| frame.code()), Some(1001));
}
