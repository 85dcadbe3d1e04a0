//! Descriptors: the limit is raised at start, and connections leave enough for files and children.

use std::process::Command;

use super::*;

/// A gateway under a limit of descriptors, as `ulimit` takes it.
pub(super) fn limited(home: &Home, config: &str, ulimit: &str) -> Gateway {
    home.write("portmoot.toml", config);
    let plain = home.command(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--config",
        "portmoot.toml",
    ]);
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("ulimit {ulimit}; exec \"$0\" \"$@\"")])
        .arg(plain.get_program());
    command
        .args(plain.get_args())
        .current_dir(home.path())
        .env_clear();
    command.envs(
        plain
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    Gateway::serve(command)
}

/// Soft and hard limit of descriptors of a process.
fn limits(pid: u32) -> (u64, u64) {
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))
        .unwrap();
    let mut numbers = line
        .split_whitespace()
        .map(|word| word.parse().unwrap_or(u64::MAX));
    (numbers.next().unwrap(), numbers.next().unwrap())
}

#[test]
fn the_soft_limit_of_descriptors_is_raised() {
    let home = Home::new();
    let gateway = limited(&home, &fixture("tools", &[]), "-S -n 64");
    let (soft, hard) = limits(gateway.pid());
    assert!(soft > 10_000 || soft == hard, "{soft} of {hard}");
}

/// Idle connections leave descriptors for files and children.
pub(super) fn descriptors(stage: &mut Stage) -> Held {
    assert_eq!(limits(stage.gateway.pid()), (256, 256));
    let idle: Vec<TcpStream> = (0..400)
        .map(|_| TcpStream::connect(stage.gateway.address()).unwrap())
        .collect();
    stage.is_served("beside idle connections");
    // A new child needs pipes.
    let server = || stage.get(OTHER, "/api/v1/servers/tools").json();
    let before = server()["pid"].clone();
    crate::support::signal(u32::try_from(before.as_u64().unwrap()).unwrap(), "KILL");
    until("it is started again", || {
        let now = server();
        (now["state"] == "ready" && now["pid"] != before).then_some(())
    });
    stage
        .gateway
        .receive("128 connections are accepted instead of 10000");
    Box::new(idle)
}

#[test]
fn silent_connections_of_one_address_make_way() {
    let home = Home::new();
    let config = format!(
        "[server.limits]\nconnections_max = 40\n{}",
        fixture("tools", &[])
    );
    let gateway = Gateway::start(&home, &config);
    gateway.ready("tools");
    let known = Client::plain(&gateway);
    for _ in 0..4 {
        let silent: Vec<TcpStream> = (0..60)
            .map(|_| TcpStream::connect(gateway.address()).unwrap())
            .collect();
        let begun = Instant::now();
        let new = Client::plain(&gateway);
        assert_eq!(
            new.call("tools_echo", json!({ "text": "x" }))["content"][0]["text"],
            "x"
        );
        assert_eq!(
            known.call("tools_echo", json!({ "text": "x" }))["content"][0]["text"],
            "x"
        );
        assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
        drop((silent, new));
    }
}
