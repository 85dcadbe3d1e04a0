//! Operator key: on the gateway's machine its owner needs no token, and all other callers do.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::home::Home;
use crate::support::{Gateway, fixture, until};

const CONFIG: &str = "[participants.ci]\ncapabilities = [\"mcp/request:tools/call:a_echo\"]\n";
const GAMER: &str =
    "[participants.gamer]\ncapabilities = [\"game/*\"]\nserves = true\nwires = [\"ws\"]\n";

fn key(home: &Home) -> String {
    std::fs::read_to_string(home.path().join("data/operator.key")).unwrap()
}

fn config(home: &Home, server: &str) -> String {
    let data = home.path().join("data");
    format!(
        "[server]\ndata_dir = {data:?}\n{server}{CONFIG}{}",
        fixture("a", &[])
    )
}

#[test]
fn commands_of_the_operator_need_no_token_where_the_gateway_runs() {
    let home = Home::new();
    let mut gateway = Gateway::start(&home, &config(&home, ""));
    gateway.ready("a");
    let data = ["--data-dir", "data"];
    let run = |args: &[&str]| home.run(&[args, &data].concat());
    let token = run(&["token", "new", "ci"]).expect(0).stdout;
    for args in [
        &["tools", "call", "a_echo", "text=hi"][..],
        &["servers", "ls"],
        &["proposals", "ls"],
        &["participants", "grant", "ci", "chat"],
        &["token", "rotate", "ci"],
        &["status"],
    ] {
        run(args).expect(0);
    }
    // It acts as the local user, which lists of participants do not show.
    let listed = run(&["participants", "ls"]).expect(0).stdout;
    assert!(
        listed.contains("+chat by local") && !listed.contains(" local  "),
        "{listed}"
    );
    until("both changes of tokens are recorded", || {
        let audit = run(&["audit", "query", "portmoot/tokens", "--json"])
            .expect(0)
            .stdout;
        let audit: Value = serde_json::from_str(&audit).unwrap();
        let entries = audit["entries"].as_array().unwrap();
        assert!(
            entries.iter().all(|entry| entry["from"] == "local"),
            "{audit}"
        );
        (entries.len() == 2).then_some(())
    });
    // Only the owner can read the key. A token that is given wins over it.
    let mode = std::fs::metadata(home.path().join("data/operator.key"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    run(&["servers", "ls", "--token", token.trim()]).expect(3);
    run(&["servers", "ls", "--token", "wrong"]).expect(4);
    // Every other caller needs a token, on loopback too: an address is not a data directory.
    home.run(&["servers", "ls", "--url", &gateway.url()])
        .expect(4);
    for path in ["/mcp", "/api/v1/tools", "/metrics"] {
        assert_eq!(gateway.get(path, None).status, 401, "{path}");
    }
    let first = key(&home);
    assert_eq!(gateway.get("/api/v1/servers", Some(&first)).status, 200);
    // A reload keeps it, a restart does not.
    home.write("portmoot.toml", &(config(&home, "") + GAMER));
    gateway.signal("HUP");
    gateway.receive("reloaded");
    run(&["servers", "ls"]).expect(0);
    // The operator issues tokens for whatever is configured.
    run(&["token", "new", "gamer"]).expect(0);
    run(&["token", "revoke", "gamer"]).expect(0);
    gateway.signal("TERM");
    gateway.wait();
    let gateway = Gateway::start(&home, &config(&home, ""));
    assert_ne!(key(&home), first);
    assert_eq!(gateway.get("/api/v1/servers", Some(&first)).status, 401);
    run(&["servers", "ls"]).expect(0);
}

#[test]
fn a_gateway_can_keep_no_operator_key() {
    let home = Home::new();
    Gateway::start(&home, &config(&home, "")).stop().expect(0);
    assert!(key(&home).starts_with("pm_"));
    let gateway = Gateway::start(&home, &config(&home, "operator_key = false\n"));
    assert!(!home.path().join("data/operator.key").exists());
    home.run(&["servers", "ls", "--data-dir", "data"]).expect(4);
    drop(gateway);
}

#[test]
fn pipes_in_a_data_directory_delay_no_command() {
    let home = Home::new();
    let config = config(&home, "");
    home.write("own.toml", &config);
    let run = |args: &[&str]| home.run(&[args, &["--config", "own.toml"]].concat());
    for (file, args) in [
        ("lock", &["token", "new", "ci"][..]),
        ("journal.jsonl", &["token", "ls"]),
    ] {
        let path = home.fifo(&format!("data/{file}"));
        let failed = run(args).expect(1).stderr;
        assert!(
            failed.contains("it is not a regular file"),
            "{file}: {failed}"
        );
        std::fs::remove_file(path).unwrap();
    }
    let gateway = Gateway::start(&home, &config);
    gateway.ready("a");
    home.fifo("data/operator.key");
    run(&["servers", "ls"]).expect(4);
}
