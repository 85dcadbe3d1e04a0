//! Life of a process: it starts where it is used, stays while its user is connected, and ends after
//! `idle_stop`.

use serde_json::{Value, json};

use super::starts::{all_ended, all_running, all_starts, ended, fixture, running, starts};
use super::{able, all_listed, asked};
use crate::home::Home;
use crate::support::{Client, Gateway, modern_stream, until};

/// Short enough for a test, long enough for a busy machine to answer a call within it.
const SOON: &str = "[server]\nidle_stop = \"1s\"\nprobes_at_once = 0\n";

/// The same where sessions that nothing ends are soon over too, those of clients and those of
/// single callers at servers.
const SOON_ALL: &str = "[server]\nidle_stop = \"1s\"\nprobes_at_once = 0\n[server.limits]\nupstream_session_idle = \"1s\"\nsession_idle = \"2s\"\n";

fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("s{number:02}")).collect()
}

/// A gateway that knows these servers, none of which runs.
#[track_caller]
fn idle(home: &Home, server: &str, names: &[String]) -> Gateway {
    let tables: String = names.iter().map(|name| fixture(home, name, "")).collect();
    let gateway = Gateway::start(home, &format!("{server}{tables}"));
    all_listed(&gateway, names);
    all_ended(home);
    gateway
}

#[test]
fn a_process_runs_while_its_user_is_connected_and_ends_after_it() {
    let (home, names) = (Home::new(), names(2));
    let gateway = idle(&home, SOON, &names);
    until("it says so", || {
        names
            .iter()
            .all(|name| gateway.server(name)["state"] == "idle")
            .then_some(())
    });
    let (stays, leaves) = (Client::plain(&gateway), Client::plain(&gateway));
    let first = stays.record("s00")["pid"].as_u64().unwrap();
    leaves.record("s01");
    assert_eq!(
        (running(&home, "s00").len(), running(&home, "s01").len()),
        (1, 1)
    );
    assert_eq!(leaves.delete(), 204);
    // When the one ends, the time of the other is over too: but its client is still there.
    ended(&home, "s01");
    assert_eq!(running(&home, "s00"), [first]);
    assert_eq!(stays.record("s00")["pid"].as_u64(), Some(first));
    assert_eq!(stays.delete(), 204);
    ended(&home, "s00");
    until("both are idle", || {
        names
            .iter()
            .all(|name| gateway.server(name)["state"] == "idle")
            .then_some(())
    });
    // It is listed as before, and starts at its next use.
    let back = asked(&gateway);
    assert!(back.names("tools").contains(&"s00_echo".to_owned()));
    assert_ne!(back.record("s00")["pid"].as_u64(), Some(first));
}

#[test]
fn one_client_that_uses_three_of_eleven_servers_costs_at_most_six_processes() {
    let (home, names) = (Home::new(), names(11));
    let gateway = idle(&home, SOON, &names);
    let client = asked(&gateway);
    for list in ["tools", "prompts", "resources", "templates"] {
        client.names(list);
    }
    assert_eq!(all_running(&home), 0, "lists start nothing");
    for name in &names[..3] {
        client.record(name);
    }
    assert!(all_running(&home) <= 6, "{:?}", all_starts(&home));
    assert!(
        names[3..]
            .iter()
            .all(|name| running(&home, name).is_empty()),
        "only what is used runs"
    );
    assert_eq!(client.delete(), 204);
    all_ended(&home);
}

#[test]
fn seven_clients_one_after_the_other_leave_no_process() {
    let (home, names) = (Home::new(), names(11));
    let gateway = idle(&home, SOON, &names);
    for _ in 0..7 {
        let client = asked(&gateway);
        client.names("tools");
        names[..3].iter().for_each(|name| drop(client.record(name)));
        assert_eq!(client.delete(), 204);
    }
    assert!(
        names[3..].iter().all(|name| starts(&home, name).len() == 1),
        "{:?}",
        all_starts(&home)
    );
    all_ended(&home);
}

#[test]
fn clients_that_vanish_leave_no_process() {
    let (home, names) = (Home::new(), names(3));
    let gateway = idle(&home, SOON_ALL, &names);
    // Most clients end without a word: their streams close, and nothing ends their sessions.
    for _ in 0..7 {
        let (client, plain) = (asked(&gateway), Client::plain(&gateway));
        let streams = [client.listen(), plain.listen()];
        client.record("s00");
        plain.record("s01");
        drop(streams);
    }
    all_ended(&home);
}

#[test]
fn what_is_always_on_stays_on() {
    let home = Home::new();
    let always = fixture(&home, "always", "") + "start = \"always\"\n";
    let gateway = Gateway::start(
        &home,
        &format!("{SOON}{}{always}", fixture(&home, "other", "")),
    );
    all_listed(&gateway, &["always", "other"].map(str::to_owned));
    ended(&home, "other");
    assert_eq!(running(&home, "always").len(), 1);
    gateway.stop().expect(0);
    // It starts with the gateway, known or not.
    let gateway = Gateway::start(
        &home,
        &format!("{SOON}{}{always}", fixture(&home, "other", "")),
    );
    gateway.wait_for("always", "ready");
    assert_eq!(
        (starts(&home, "always").len(), starts(&home, "other").len()),
        (2, 1)
    );
    gateway.stop().expect(0);
    // The same for all, but one.
    let all = format!("{SOON}start = \"always\"\n{}", fixture(&home, "always", ""));
    let other = fixture(&home, "other", "") + "start = \"demand\"\n";
    let gateway = Gateway::start(&home, &(all + &other));
    gateway.wait_for("always", "ready");
    assert_eq!(
        (starts(&home, "always").len(), starts(&home, "other").len()),
        (3, 1)
    );
    assert_eq!(gateway.server("other")["state"], "idle");
}

#[test]
fn open_work_keeps_a_server() {
    let (home, names) = (Home::new(), names(3));
    let gateway = idle(&home, SOON, &names);
    let modern = |method: &str, mut params: Value| {
        params["_meta"] = json!({ "io.modelcontextprotocol/clientCapabilities": able() });
        modern_stream(&gateway, None, method, params)
    };
    let hanging = modern("tools/call", json!({ "name": "s01_hang", "arguments": {} }));
    until("it is called", || {
        (gateway.server("s01")["calls"] == 1).then_some(())
    });
    let watched =
        json!({ "notifications": { "resourceSubscriptions": ["test://watched-resource"] } });
    let listening = modern("subscriptions/listen", watched);
    listening.next_of("notifications/subscriptions/acknowledged");
    // Of servers with one URI the first has it as it is.
    until("it is subscribed to", || {
        (!running(&home, "s00").is_empty()).then_some(())
    });
    // Another server shows that the time is over.
    let clock = Client::plain(&gateway);
    let last = &names[2];
    clock.record(last);
    assert_eq!(clock.delete(), 204);
    ended(&home, last);
    assert!(!running(&home, "s01").is_empty(), "a call is open");
    assert!(!running(&home, "s00").is_empty(), "a subscription is open");
    drop((hanging, listening));
}

#[test]
fn what_a_participant_used_lately_is_warm_when_it_comes_back() {
    let (home, names) = (Home::new(), names(3));
    let gateway = idle(&home, SOON, &names);
    let client = asked(&gateway);
    client.record("s01");
    assert_eq!(client.delete(), 204);
    all_ended(&home);
    let comes_back = |gateway: &Gateway| {
        let back = asked(gateway);
        until("it is warmed", || {
            (gateway.server("s01")["own_sessions"] == 1).then_some(())
        });
        let before = running(&home, "s01");
        assert!(
            before.contains(&back.record("s01")["pid"].as_u64().unwrap()),
            "the call finds it warm"
        );
        assert_eq!(
            [&names[0], &names[2]].map(|name| starts(&home, name).len()),
            [1, 1],
            "others are not used"
        );
        assert_eq!(back.delete(), 204);
        all_ended(&home);
    };
    comes_back(&gateway);
    // A gateway that starts anew remembers it.
    gateway.stop().expect(0);
    let tables: String = names.iter().map(|name| fixture(&home, name, "")).collect();
    comes_back(&Gateway::start(&home, &format!("{SOON}{tables}")));
}

#[test]
fn a_client_that_leaves_while_its_servers_are_warmed_leaves_no_process() {
    let home = Home::new();
    let gateway = Gateway::start(
        &home,
        &format!("{SOON}{}", fixture(&home, "slow", "--start-delay-ms 1000")),
    );
    all_listed(&gateway, &["slow".to_owned()]);
    let client = asked(&gateway);
    client.record("slow");
    assert_eq!(client.delete(), 204);
    all_ended(&home);
    // As `claude mcp list` does: it connects, lists, and is gone before the server has started.
    let before = starts(&home, "slow").len();
    let brief = asked(&gateway);
    brief.names("tools");
    until("it is being warmed", || {
        (starts(&home, "slow").len() > before).then_some(())
    });
    assert_eq!(brief.delete(), 204);
    all_ended(&home);
}

#[test]
fn the_list_of_servers_tells_processes_memory_and_users() {
    let (home, names) = (Home::new(), names(3));
    let gateway = idle(&home, SOON, &names);
    let row = |name: &str| {
        let ran = home
            .run(&["servers", "ls", "--json", "--url", &gateway.url()])
            .expect(0);
        let all: Value = serde_json::from_str(&ran.stdout).unwrap();
        let found = all["servers"]
            .as_array()
            .unwrap()
            .iter()
            .find(|server| server["name"] == name)
            .cloned();
        found.unwrap_or_else(|| panic!("no {name} in {all}"))
    };
    until("it is idle", || {
        (row("s00")["state"] == "idle").then_some(())
    });
    let of_idle = row("s00");
    let counted = |row: &Value| {
        (
            row["sessions"].as_u64().unwrap(),
            row["processes"].as_u64().unwrap(),
        )
    };
    assert_eq!(counted(&of_idle), (0, 0), "{of_idle}");
    assert_eq!(of_idle["memory_bytes"], 0, "{of_idle}");
    assert_eq!(of_idle["users"], json!([]), "{of_idle}");
    let (one, other) = (asked(&gateway), Client::plain(&gateway));
    one.record("s00");
    other.record("s00");
    let of_used = row("s00");
    assert_eq!(
        counted(&of_used).1,
        running(&home, "s00").len() as u64,
        "{of_used}"
    );
    assert_eq!(of_used["state"], "ready");
    assert!(
        of_used["memory_bytes"].as_u64().unwrap() > 1_000_000,
        "{of_used}"
    );
    assert!(of_used["users"].to_string().contains("local"), "{of_used}");
    assert_eq!(counted(&row("s01")), (0, 0));
    let screen = home
        .run(&["servers", "ls", "--url", &gateway.url()])
        .expect(0)
        .stdout;
    let head = screen.lines().next().unwrap();
    assert!(
        ["SESSIONS", "PROCESSES", "MEMORY"]
            .iter()
            .all(|column| head.contains(column)),
        "{screen}"
    );
}
