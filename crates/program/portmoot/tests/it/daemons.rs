//! Daemons of servers: no process that a server leaves behind outlives the server or the gateway.
#![cfg(target_os = "linux")]

use serde_json::json;

use crate::home::Home;
use crate::support::{Client, Gateway, is_alive, signal, until};

/// A server that starts a daemon: in a session of its own, without a parent, descriptors or
/// environment, deaf to SIGTERM. Once a daemon's process id is in the file `name`, the server runs
/// the fixture, or what `after` says.
fn with_daemon(home: &Home, name: &str, after: &str) -> String {
    let file = home.path().join(name).display().to_string();
    let daemon = format!(
        "trap \"\" TERM HUP; exec <&- >&- 2>&-; echo $$ >> {file}; while true; do sleep 0.1; done"
    );
    let leaver = format!("sh -c '{daemon}' &");
    let script = format!(
        "setsid env -i PATH=\"$PATH\" sh -c {}; until [ -s {file} ]; do sleep 0.01; done; {after}",
        quoted(&leaver)
    );
    format!("[servers.{name}]\ncommand = \"sh\"\nargs = [\"-c\", {script:?}]\n")
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn fixture() -> String {
    format!(
        "exec {} --stdio --era legacy",
        harness::fixture_binary().display()
    )
}

/// The daemons that a server has started so far.
fn daemons(home: &Home, name: &str, count: usize) -> Vec<u64> {
    until("the daemons have started", || {
        let text = std::fs::read_to_string(home.path().join(name)).ok()?;
        let all: Vec<u64> = text.lines().map(|line| line.parse().unwrap()).collect();
        (all.len() == count).then_some(all)
    })
}

#[track_caller]
fn ends(daemon: u64) {
    until("the daemon ends", || (!is_alive(daemon)).then_some(()));
}

fn pid(gateway: &Gateway, name: &str) -> u32 {
    u32::try_from(gateway.wait_for(name, "ready")["pid"].as_u64().unwrap()).unwrap()
}

#[test]
fn no_daemon_outlives_a_killed_gateway() {
    no_daemon_outlives_a_gateway("KILL");
}

#[test]
fn no_daemon_outlives_a_terminated_gateway() {
    no_daemon_outlives_a_gateway("TERM");
}

#[test]
fn no_daemon_outlives_an_interrupted_gateway() {
    no_daemon_outlives_a_gateway("INT");
}

fn no_daemon_outlives_a_gateway(how: &str) {
    let home = Home::new();
    let config = with_daemon(&home, "a", &fixture()) + &with_daemon(&home, "b", &fixture());
    let mut gateway = Gateway::start(&home, &config);
    let servers = ["a", "b"].map(|name| u64::from(pid(&gateway, name)));
    let daemons = ["a", "b"].map(|name| daemons(&home, name, 1)[0]);
    assert!(daemons.iter().all(|daemon| is_alive(*daemon)));
    gateway.signal(how);
    gateway.wait();
    daemons.into_iter().chain(servers).for_each(ends);
}

#[test]
fn no_daemon_outlives_its_server() {
    for how in ["KILL", "TERM"] {
        let home = Home::new();
        let config = with_daemon(&home, "a", &fixture()) + &with_daemon(&home, "b", &fixture());
        let gateway = Gateway::start(&home, &config);
        let (first, other) = (pid(&gateway, "a"), pid(&gateway, "b"));
        let (daemon, kept) = (daemons(&home, "a", 1)[0], daemons(&home, "b", 1)[0]);
        signal(first, how);
        ends(daemon);
        let client = Client::plain(&gateway);
        until("the server is started again", || {
            let answer = client.ask(
                "tools/call",
                json!({ "name": "a_echo", "arguments": { "text": "x" } }),
            );
            (answer["result"]["content"][0]["text"] == "x").then_some(())
        });
        assert!(
            is_alive(daemons(&home, "a", 2)[1]),
            "the daemon of the server that runs now"
        );
        assert!(
            is_alive(kept) && pid(&gateway, "b") == other,
            "the other server keeps its daemon"
        );
    }
}

#[test]
fn no_daemon_outlives_a_server_that_ends_by_itself() {
    let home = Home::new();
    let gateway = Gateway::start(&home, &with_daemon(&home, "a", "exit 3"));
    gateway.receive("exit code 3");
    daemons_so_far(&home, "a").into_iter().for_each(ends);
}

fn daemons_so_far(home: &Home, name: &str) -> Vec<u64> {
    let text = std::fs::read_to_string(home.path().join(name)).unwrap();
    assert!(!text.is_empty(), "a daemon has started");
    text.lines().map(|line| line.parse().unwrap()).collect()
}

#[test]
fn no_daemon_outlives_a_server_that_kills_its_own_group() {
    let home = Home::new();
    let gateway = Gateway::start(&home, &with_daemon(&home, "a", "kill -s KILL 0"));
    gateway.wait_for("a", "down");
    daemons_so_far(&home, "a").into_iter().for_each(ends);
}

#[test]
fn a_caller_takes_the_daemons_of_its_own_session_along() {
    let home = Home::new();
    let gateway = Gateway::start(&home, &with_daemon(&home, "a", &fixture()));
    let shared = pid(&gateway, "a");
    let client = Client::open(&gateway, None, "/mcp", json!({ "sampling": {} }));
    assert_ne!(client.record("a")["pid"], shared);
    let both = daemons(&home, "a", 2);
    client.delete();
    ends(both[1]);
    assert!(is_alive(both[0]));
}

#[test]
fn no_daemon_outlives_a_command() {
    let home = Home::new();
    home.write("portmoot.toml", &with_daemon(&home, "a", &fixture()));
    home.run(&[
        "tools",
        "call",
        "a_echo",
        "text=x",
        "--config",
        "portmoot.toml",
    ])
    .expect(0);
    daemons_so_far(&home, "a").into_iter().for_each(ends);
}

#[test]
fn a_server_ends_with_its_keeper() {
    let home = Home::new();
    let gateway = Gateway::start(&home, &with_daemon(&home, "a", &fixture()));
    let server = pid(&gateway, "a");
    let daemon = daemons(&home, "a", 1)[0];
    let keeper = keeper_of(server);
    assert_ne!(keeper, gateway.pid());
    let name = std::fs::read_to_string(format!("/proc/{keeper}/comm")).unwrap();
    assert_eq!(
        name.trim(),
        "keeper",
        "commands that end all processes of the gateway's name spare it"
    );
    // What a terminal sends to a process group does not end a keeper.
    for name in ["INT", "HUP", "QUIT"] {
        signal(keeper, name);
    }
    assert_eq!(
        Client::plain(&gateway).call("a_echo", json!({ "text": "x" }))["content"][0]["text"],
        "x"
    );
    signal(keeper, "KILL");
    ends(server.into());
    // Its daemon is out of reach without the keeper.
    signal(u32::try_from(daemon).unwrap(), "KILL");
}

fn keeper_of(server: u32) -> u32 {
    parent_of(server)
}

fn parent_of(process: u32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    stat.rsplit_once(") ")
        .unwrap()
        .1
        .split(' ')
        .nth(1)
        .unwrap()
        .parse()
        .unwrap()
}

#[test]
fn a_keeper_collects_what_ends_before_its_server() {
    let home = Home::new();
    let gateway = Gateway::start(&home, &with_daemon(&home, "a", &fixture()));
    let server = pid(&gateway, "a");
    let daemon = daemons(&home, "a", 1)[0];
    signal(u32::try_from(daemon).unwrap(), "KILL");
    // A zombie still has its folder.
    let folder = std::path::PathBuf::from(format!("/proc/{daemon}"));
    until("the daemon is collected", || {
        (!folder.exists()).then_some(())
    });
    assert_eq!(pid(&gateway, "a"), server);
    // There is a keeper for each server, so it is small: no runtime, no other thread.
    let status = std::fs::read_to_string(format!("/proc/{}/status", keeper_of(server))).unwrap();
    assert!(status.lines().any(|line| line == "Threads:\t1"), "{status}");
}

#[test]
fn servers_outlive_the_guard_process_that_forked_their_keepers() {
    let home = Home::new();
    let gateway = Gateway::start(&home, &with_daemon(&home, "a", &fixture()));
    let server = pid(&gateway, "a");
    let guard = parent_of(keeper_of(server));
    assert_eq!(parent_of(guard), gateway.pid());
    signal(guard, "KILL");
    assert_eq!(
        Client::plain(&gateway).call("a_echo", json!({ "text": "x" }))["content"][0]["text"],
        "x"
    );
    // The keeper of the next child has another guard process.
    let client = Client::open(&gateway, None, "/mcp", json!({ "sampling": {} }));
    let second = u32::try_from(client.record("a")["pid"].as_u64().unwrap()).unwrap();
    assert_ne!(second, server);
    let new_guard = parent_of(keeper_of(second));
    assert_ne!(new_guard, guard);
    assert_eq!(parent_of(new_guard), gateway.pid());
    let daemons = daemons(&home, "a", 2);
    signal(gateway.pid(), "KILL");
    // The keeper without a guard process sees the gateway's end too.
    [server, second]
        .into_iter()
        .map(u64::from)
        .chain(daemons)
        .for_each(ends);
}
