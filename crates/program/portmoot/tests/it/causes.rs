//! Causes of failures of servers: operators learn them from listings, health and checks, all others
//! get nothing but counts.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::home::Home;
use crate::peer::Peer;
use crate::support::{Client, Gateway, fixture, until};
use crate::ws::{people, token};

const BROKEN: &str = "[servers.absent]\ncommand = \"no-such-program-anywhere\"\n\
    [servers.quits]\ncommand = \"sh\"\nargs = [\"-c\", \"echo first >&2; printf 'cannot open \\\\033[31mstore' >&2; exit 3\"]\n";

fn setup() -> (Home, String, Peer) {
    let (home, config) = people(&[
        ("boss", &["mcp/*", "portmoot/*"]),
        ("narrow", &["mcp/request:tools/call:fine_echo"]),
    ]);
    let status = Peer::http(|_| {
        vec![b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n".to_vec()]
    });
    let http = format!("[servers.web]\nurl = {:?}\n", status.url());
    (
        home,
        config + BROKEN + &http + &fixture("fine", &[]),
        status,
    )
}

fn cli(home: &Home, gateway: &Gateway, who: &str, args: &[&str]) -> crate::home::Ran {
    home.run(&[args, &["--url", &gateway.url(), "--token", &token(who)]].concat())
}

/// The audit entries of refused connections.
fn connections(home: &Home) -> String {
    let query = [
        "audit",
        "query",
        "portmoot/connection",
        "--data-dir",
        "data",
    ];
    home.run(&query).expect(0).stdout
}

fn started() -> (Home, Gateway, Peer) {
    let (home, config, peer) = setup();
    let gateway = Gateway::start(&home, &config);
    gateway.ready("fine");
    for name in ["absent", "quits", "web"] {
        until("it is down", || {
            let path = format!("/api/v1/servers/{name}");
            let server = gateway.get(&path, Some(&token("boss"))).json();
            (server["state"] == "down").then_some(())
        });
    }
    (home, gateway, peer)
}

#[test]
fn operators_learn_why_a_server_is_down() {
    let (home, gateway, _peer) = started();
    let listed = cli(&home, &gateway, "boss", &["servers", "ls"])
        .expect(0)
        .stdout;
    let line = |name: &str| {
        listed
            .lines()
            .find(|line| line.starts_with(name))
            .unwrap()
            .to_owned()
    };
    assert!(
        line("absent").contains("the program `no-such-program-anywhere` was not found"),
        "{listed}"
    );
    let quits = line("quits");
    assert!(
        quits.contains("exit code 3") && quits.contains(r"stderr: cannot open \u{1b}[31mstore"),
        "{quits}"
    );
    assert!(line("web").contains("HTTP status 503"), "{listed}");
    assert!(line("fine").ends_with('-'), "{listed}");
    let shown = cli(&home, &gateway, "boss", &["servers", "show", "quits"])
        .expect(0)
        .stdout;
    assert!(
        shown.contains("cause: process ended (exit code 3)"),
        "{shown}"
    );
    assert!(
        shown.contains("stderr:\n  first\n  cannot open \\u{1b}[31mstore\n"),
        "{shown}"
    );
    // Not ready while a server is being started again.
    let status = cli(&home, &gateway, "boss", &["status"]).stdout;
    assert!(
        status.contains("servers    1 of 4 ready") && status.contains("quits is "),
        "{status}"
    );
    // The doctor asks the running gateway.
    let home = home.env("PORTMOOT_TOKEN", &token("boss"));
    let doctor = home
        .run(&["doctor", "--config", "portmoot.toml"])
        .expect(1)
        .stdout;
    for (name, word) in [
        ("quits", "wrong"),
        ("web", "wrong"),
        ("absent", "wrong"),
        ("fine", "ok"),
    ] {
        let line = doctor
            .lines()
            .find(|line| line.contains(&format!("server {name}:")))
            .unwrap();
        assert!(line.starts_with(word), "{doctor}");
    }
    assert!(
        doctor.contains("fix: see what it says: portmoot logs quits"),
        "{doctor}"
    );
    let home = home.env("PORTMOOT_TOKEN", &token("narrow"));
    let doctor = home
        .run(&["doctor", "--config", "portmoot.toml"])
        .expect(1)
        .stdout;
    assert!(
        doctor.contains("careful servers: the running gateway does not say"),
        "{doctor}"
    );
}

#[test]
fn servers_are_named_only_to_those_who_may_see_them() {
    let (home, gateway, _peer) = started();
    let names = ["absent", "quits", "web", "fine"];
    for (who, may) in [
        (None, false),
        (Some("narrow"), false),
        (Some("boss"), true),
        (Some("wrong"), false),
    ] {
        let bearer = who.map(token);
        let reply = gateway.get("/readyz", bearer.as_deref());
        // It is not ready while a server is being started again.
        assert!([200, 503].contains(&reply.status), "{reply:?}");
        assert_eq!(
            names.iter().any(|name| reply.body.contains(name)),
            may,
            "{who:?}: {}",
            reply.body
        );
        assert_eq!(reply.json()["servers_not_ready"], 3, "{}", reply.body);
        assert_eq!(reply.body.contains("exit code 3"), may, "{}", reply.body);
        if [None, Some("wrong")].contains(&who) {
            assert_eq!(gateway.get("/metrics", bearer.as_deref()).status, 401);
            continue;
        }
        let metrics = gateway.get("/metrics", bearer.as_deref()).body;
        assert_eq!(
            names.iter().any(|name| metrics.contains(name)),
            may,
            "{who:?}: {metrics}"
        );
        assert!(
            metrics.contains("portmoot_servers{state=\"down\"} "),
            "{metrics}"
        );
        assert!(
            metrics.contains("portmoot_servers{state=\"ready\"} 1"),
            "{metrics}"
        );
    }
    // A wrong token is recorded, also where none is needed.
    until("both are recorded", || {
        let recorded = connections(&home);
        (recorded.contains("for readiness") && recorded.contains("for the API")).then_some(())
    });
    // Callers learn nothing of causes.
    let client = Client::of(&gateway, &token("boss"));
    let refused = client
        .ask("tools/call", json!({ "name": "quits_x", "arguments": {} }))
        .to_string();
    assert!(
        !refused.contains("exit code") && !refused.contains("cannot open"),
        "{refused}"
    );
    for path in [
        "/api/v1/servers",
        "/api/v1/servers/quits",
        "/api/v1/servers/quits/logs",
    ] {
        assert_eq!(
            gateway.get(path, Some(&token("narrow"))).status,
            403,
            "{path}"
        );
        assert_eq!(gateway.get(path, None).status, 401, "{path}");
    }
    cli(&home, &gateway, "narrow", &["logs", "quits"]).expect(3);
    // Not ready while a server is being started again.
    let status = cli(&home, &gateway, "narrow", &["status"]).stdout;
    assert!(
        status.contains("3 not ready") && !names.iter().any(|name| status.contains(name)),
        "{status}"
    );
}

#[test]
fn logs_print_and_follow_what_a_server_writes() {
    let home = Home::new().env("PORTMOOT_LOG", "doors=info");
    let config = "[servers.talks]\ncommand = \"sh\"\nargs = [\"-c\", \"until [ -e quiet ]; do \
        printf 'tick \\\\033[2Jtock\\\\n' >&2; sleep 0.2; done; echo over >&2; exec sleep 1000\"]\nstart_timeout = \"20s\"\n[servers.demo]\ntype = \"demo\"\n";
    let gateway = Gateway::start(&home, config);
    let line = until("a line", || {
        let ran = home.run(&["logs", "talks", "-n", "1"]).expect(0);
        (!ran.stdout.is_empty()).then_some(ran.stdout)
    });
    assert!(
        line.ends_with("tick \\u{1b}[2Jtock\n") && line.lines().count() == 1,
        "{line}"
    );
    let json = home
        .run(&["logs", "talks", "-n", "1", "--json"])
        .expect(0)
        .stdout;
    let one: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(one["text"], "tick \u{1b}[2Jtock");
    let none = home.run(&["logs", "demo"]).expect(0);
    assert!(
        none.stdout.is_empty() && none.stderr.contains("has no process here"),
        "{}",
        none.stderr
    );
    home.run(&["logs", "absent"]).expect(5);
    let mut follow = home.command(&["logs", "talks", "--follow", "-n", "0"]);
    let mut follow = follow
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines();
    for _ in 0..3 {
        assert!(lines.next().unwrap().unwrap().contains("tick"));
    }
    home.write("quiet", "");
    while !lines.next().unwrap().unwrap().ends_with("over") {}
    // A command that waits does not keep the gateway from stopping.
    let log = gateway.stop().expect(0).stderr;
    assert!(!log.contains("some connections were still open"), "{log}");
    assert_ne!(follow.wait().unwrap().code(), Some(0));
}
