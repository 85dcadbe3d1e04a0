//! Lists: answered from what the gateway knows, without a start and without a wait.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::starts::{all_ended, all_starts, fixture, marked, running, starts};
use super::{all_listed, asked, echoing, of_modern, pages, tools};
use crate::home::Home;
use crate::listed_server::ListedServer;
use crate::socket::Piped;
use crate::support::{Client, Gateway, until};

/// Far less than a start of one of the servers takes, and far more than a list.
const AT_ONCE: Duration = Duration::from_secs(1);

fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("s{number:02}")).collect()
}

fn configuration(home: &Home, server: &str, names: &[String], arguments: &str) -> String {
    let tables = names.iter().map(|name| fixture(home, name, arguments));
    format!("[server]\n{server}\n{}", tables.collect::<String>())
}

/// Asks for every list as clients of all kinds; each answer comes at once and has all servers.
#[track_caller]
fn lists_come_at_once(gateway: &Gateway, names: &[String]) {
    let timed = |what: &str, list: &dyn Fn() -> Vec<String>| {
        let asked_at = Instant::now();
        let listed = list();
        let took = asked_at.elapsed();
        println!("{what}: {took:?}");
        assert!(took < AT_ONCE, "{what} took {took:?}");
        listed
    };
    let first = asked(gateway);
    let listed = timed(
        "the first list of tools of a client that declares everything",
        &|| tools(&first),
    );
    assert_eq!(echoing(&listed, names).len(), names.len(), "{listed:?}");
    for list in ["prompts", "resources", "templates"] {
        let listed = timed(list, &|| first.names(list));
        assert!(listed.len() >= names.len(), "{list}: {listed:?}");
    }
    let of_plain = timed("the list of a plain client", &|| {
        tools(&Client::plain(gateway))
    });
    assert_eq!(echoing(&of_plain, names).len(), names.len());
    let modern = timed("the list of a modern client", &|| {
        pages(|params| of_modern(gateway, "tools/list", params))
    });
    assert_eq!(echoing(&modern, names).len(), names.len());
}

#[test]
fn thirty_slow_servers_are_listed_at_once_and_none_is_started_for_it() {
    let (home, names) = (Home::new(), names(30));
    let server = "starts_at_once = 30\nprobes_at_once = 0";
    let config = configuration(&home, server, &names, "--start-delay-ms 2000");
    let gateway = Gateway::start(&home, &config);
    // This gateway knows none of them: it starts each once.
    all_listed(&gateway, &names);
    assert_eq!(all_starts(&home).len(), names.len());
    lists_come_at_once(&gateway, &names);
    assert_eq!(
        all_starts(&home).len(),
        names.len(),
        "a list has started a server"
    );
    gateway.stop().expect(0);
    all_ended(&home);
    // This one knows all of them from the one before.
    let gateway = Gateway::start(&home, &config);
    lists_come_at_once(&gateway, &names);
    for name in &names {
        assert_eq!(gateway.server(name)["state"], "idle", "{name}");
    }
    assert_eq!(
        all_starts(&home).len(),
        names.len(),
        "a list has started a server"
    );
    // What is used starts, and that alone.
    assert_eq!(
        asked(&gateway).call("s07_echo", json!({ "text": "hi" }))["content"][0]["text"],
        "hi"
    );
    assert_eq!(running(&home, "s07").len(), starts(&home, "s07").len() - 1);
    assert!(
        all_starts(&home).len() <= names.len() + 2,
        "only `s07` starts"
    );
}

#[test]
fn a_pipe_lists_what_the_gateway_before_it_knew() {
    let (home, names) = (Home::new(), names(3));
    let config = configuration(&home, "probes_at_once = 0", &names, "--start-delay-ms 2000");
    let gateway = Gateway::start_with(&home, {
        home.write("portmoot.toml", &config);
        &["--config", "portmoot.toml", "--data-dir", "state"]
    });
    all_listed(&gateway, &names);
    gateway.stop().expect(0);
    let mut pipe = Piped::with(
        Home::beside(&home),
        &["stdio", "--config", "portmoot.toml", "--data-dir", "state"],
    );
    let opened = Instant::now();
    pipe.send(crate::socket::initialize(
        "2025-11-25",
        &super::able().to_string(),
    ));
    assert!(pipe.receive().contains("serverInfo"));
    pipe.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    pipe.send(r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#);
    let listed = pipe.receive();
    assert!(opened.elapsed() < AT_ONCE, "it took {:?}", opened.elapsed());
    assert!(
        names
            .iter()
            .all(|name| listed.contains(&format!("\"{name}_echo\""))),
        "{listed}"
    );
    assert_eq!(
        all_starts(&home).len(),
        names.len(),
        "a list has started a server"
    );
}

#[test]
fn a_server_that_starts_for_the_first_time_is_announced_when_it_is_ready() {
    let home = Home::new();
    let slow = fixture(&home, "slow", "--start-delay-ms 9000");
    let gateway = Gateway::start(&home, &(fixture(&home, "quick", "") + &slow));
    let client = asked(&gateway);
    let events = client.listen();
    let both = ["quick", "slow"].map(str::to_owned);
    // The list of a client that comes while the gateway starts may wait for a moment; not for this
    // server.
    until("the quick one is listed", || {
        let listed = client.names("tools");
        assert!(
            !listed.contains(&"slow_echo".to_owned()),
            "it is not ready yet"
        );
        listed.contains(&"quick_echo".to_owned()).then_some(())
    });
    until("the slow one is announced", || {
        events.next_of("notifications/tools/list_changed");
        (echoing(&client.names("tools"), &both).len() == 2).then_some(())
    });
    assert_eq!(all_starts(&home).len(), 2);
}

#[test]
fn a_manifest_is_not_used_for_another_configuration_of_the_server() {
    let home = Home::new();
    let config = |arguments: &str| {
        let table = fixture(&home, "changed", arguments) + &fixture(&home, "same", "");
        format!("[server]\nprobes_at_once = 0\n{table}")
    };
    let both = ["changed", "same"].map(str::to_owned);
    let gateway = Gateway::start(&home, &config(""));
    all_listed(&gateway, &both);
    let before = Client::plain(&gateway).names("prompts").len();
    gateway.stop().expect(0);
    let gateway = Gateway::start(&home, &config("--prompts 3"));
    let client = Client::plain(&gateway);
    until("the new prompts are listed", || {
        (client.names("prompts").len() == before + 3).then_some(())
    });
    assert_eq!(
        (starts(&home, "changed").len(), starts(&home, "same").len()),
        (2, 1)
    );
}

#[test]
fn a_changed_list_is_found_by_a_probe_and_announced() {
    let home = Home::new();
    let server = ListedServer::new(&home, "listed", &[("old", "")]);
    let config = format!("[server]\nidle_stop = \"1s\"\n{}", server.table());
    let gateway = Gateway::start(&home, &config);
    let listed = |client: &Client| {
        client
            .names("tools")
            .iter()
            .filter(|tool| tool.starts_with("listed_"))
            .count()
    };
    let client = Client::plain(&gateway);
    until("it is listed", || (listed(&client) == 1).then_some(()));
    gateway.stop().expect(0);
    server.list(&[("old", ""), ("new", "")]);
    let gateway = Gateway::start(&home, &config);
    let client = asked(&gateway);
    let events = client.listen();
    assert!(listed(&client) >= 1, "what was known is listed at once");
    if listed(&client) == 1 {
        events.next_of("notifications/tools/list_changed");
    }
    until("the new tool is listed", || {
        (listed(&client) == 2).then_some(())
    });
    gateway.wait_for("listed", "idle");
}

#[test]
fn a_damaged_manifest_costs_one_start_and_no_more() {
    let (home, names) = (Home::new(), names(3));
    let config = configuration(&home, "probes_at_once = 0", &names, "");
    let serve = || {
        home.write("portmoot.toml", &config);
        Gateway::start_with(&home, &["--config", "portmoot.toml", "--data-dir", "state"])
    };
    let gateway = serve();
    all_listed(&gateway, &names);
    gateway.stop().expect(0);
    let kept = std::fs::read_dir(home.path().join("state/manifests"))
        .expect("manifests are kept in the data directory");
    let mut files: Vec<_> = kept.flatten().map(|file| file.path()).collect();
    files.sort();
    assert!(files.len() >= names.len(), "{files:?}");
    for (file, damaged) in files.iter().zip(["", "{\"tools\": [", "\0\0\0\0"]) {
        std::fs::write(file, damaged).unwrap();
    }
    let gateway = serve();
    all_listed(&gateway, &names);
    assert!(all_starts(&home).len() <= 2 * names.len());
    gateway.stop().expect(0);
}

/// The shortest time between a start and the one so many places after it.
fn distance(home: &Home, places: usize) -> u64 {
    let all = all_starts(home);
    let pairs = all.iter().zip(all.iter().skip(places));
    pairs
        .map(|(before, after)| after.at_ms - before.at_ms)
        .min()
        .unwrap()
}

#[test]
fn first_starts_and_probes_are_paced() {
    let (home, names) = (Home::new(), names(6));
    let server = "starts_at_once = 2\nprobes_at_once = 1\nidle_stop = \"1s\"";
    let config = configuration(&home, server, &names, "--start-delay-ms 700");
    let gateway = Gateway::start(&home, &config);
    all_listed(&gateway, &names);
    let shortest = distance(&home, 2);
    assert!(
        shortest >= 700,
        "a third server was started after {shortest} ms, when the two before it still started"
    );
    gateway.stop().expect(0);
    all_ended(&home);
    let before = all_starts(&home).len();
    assert_eq!(before, names.len());
    let gateway = Gateway::start(&home, &config);
    until("all are probed", || {
        (all_starts(&home).len() == 2 * before).then_some(())
    });
    let probes: Vec<u64> = all_starts(&home)
        .iter()
        .skip(before)
        .map(|start| start.at_ms)
        .collect();
    let apart = probes
        .iter()
        .zip(probes.iter().skip(1))
        .map(|(one, next)| next - one)
        .min()
        .unwrap();
    assert!(apart >= 700, "two probes started within {apart} ms");
    // What was only probed ends again.
    all_ended(&home);
    let state = |name: &String| gateway.server(name)["state"] == json!("idle");
    until("all are idle", || names.iter().all(state).then_some(()));
    assert_eq!(all_starts(&home).len(), 2 * before);
}

#[test]
fn a_server_that_cannot_start_hides_no_other_and_is_not_tried_at_each_list() {
    let home = Home::new();
    let config = format!(
        "{}{}",
        fixture(&home, "good", ""),
        marked(&home, "bad", "false")
    );
    let gateway = Gateway::start(&home, &config);
    all_listed(&gateway, &["good".to_owned()]);
    until("the bad one has failed", || {
        (gateway.server("bad")["state"] == "down").then_some(())
    });
    let tried = starts(&home, "bad").len();
    let answers: Vec<Value> = (0..20)
        .map(|_| asked(&gateway).ask("tools/list", json!({})))
        .collect();
    assert!(
        answers
            .iter()
            .all(|answer| answer.to_string().contains("good_echo"))
    );
    assert!(
        starts(&home, "bad").len() < tried + 10,
        "twenty lists have tried it {} times",
        starts(&home, "bad").len()
    );
}
