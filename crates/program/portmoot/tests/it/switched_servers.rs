//! Servers that operators restart, disable and enable while the gateway runs.

use serde_json::json;

use crate::home::Home;
use crate::support::{Client, Gateway, below, fixture, until};

const BOSS: &str = "a-token-of-the-boss-0123456789";
const ANN: &str = "a-token-of-ann-0123456789";

fn site() -> (Home, Gateway) {
    let home = Home::new().env("BOSS", BOSS).env("ANN", ANN);
    let people = "[participants.boss]\ntoken_env = \"BOSS\"\ncapabilities = [\"mcp/*\", \"portmoot/*\"]\n\
                  [participants.ann]\ntoken_env = \"ANN\"\ncapabilities = [\"mcp/*\", \"portmoot/servers\"]\n";
    let config = format!(
        "{}{}[servers.off]\ntype = \"demo\"\nenabled = false\n{people}",
        fixture("a", &["--name", "switched-a"]),
        fixture("b", &["--name", "switched-b"])
    );
    let gateway = Gateway::start(&home, &config);
    gateway.ready("a");
    gateway.ready("b");
    (home, gateway)
}

fn servers(
    home: &Home,
    gateway: &Gateway,
    verb: &str,
    name: &str,
    token: &str,
) -> crate::home::Ran {
    home.run(&[
        "servers",
        verb,
        name,
        "--url",
        &gateway.url(),
        "--token",
        token,
    ])
}

fn echoes(client: &Client, tool: &str) -> bool {
    let call = json!({ "name": tool, "arguments": { "text": "x" } });
    client.ask("tools/call", call)["result"]["content"][0]["text"] == "x"
}

/// The processes of the server `a` or `b`.
fn pids(gateway: &Gateway, server: &str) -> Vec<u64> {
    below(gateway.pid(), &format!("switched-{server}"))
}

#[test]
fn a_server_is_restarted_and_no_other() {
    let (home, gateway) = site();
    let client = Client::of(&gateway, ANN);
    assert!(echoes(&client, "a_echo") && echoes(&client, "b_echo"));
    let (before_a, before_b) = (pids(&gateway, "a"), pids(&gateway, "b"));
    let ran = servers(&home, &gateway, "restart", "a", BOSS).expect(0);
    assert!(
        ran.stderr.contains("the server `a` is restarted"),
        "{}",
        ran.stderr
    );
    until("it runs again", || echoes(&client, "a_echo").then_some(()));
    assert!(echoes(&client, "b_echo"));
    until("the process before is gone", || {
        let now = pids(&gateway, "a");
        (!now.is_empty() && before_a.iter().all(|pid| !now.contains(pid))).then_some(())
    });
    let now = pids(&gateway, "b");
    assert!(
        before_b.iter().any(|pid| now.contains(pid)),
        "{before_b:?} {now:?}"
    );
}

#[test]
fn a_disabled_server_says_so_until_it_is_enabled() {
    let (home, gateway) = site();
    let client = Client::of(&gateway, ANN);
    assert!(echoes(&client, "a_echo"));
    servers(&home, &gateway, "disable", "a", BOSS).expect(0);
    until("it is down", || {
        let shown = home
            .run(&[
                "servers",
                "show",
                "a",
                "--json",
                "--url",
                &gateway.url(),
                "--token",
                ANN,
            ])
            .expect(0);
        let shown: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap();
        let why = shown["cause"].as_str().unwrap_or_default();
        (shown["state"] == "down" && why == "it is disabled: portmoot servers enable a")
            .then_some(())
    });
    until("its tools are gone", || {
        client
            .names("tools")
            .iter()
            .all(|name| !name.starts_with("a_"))
            .then_some(())
    });
    assert!(echoes(&client, "b_echo"));
    // A reload leaves it disabled.
    gateway.signal("HUP");
    for (verb, name, why) in [
        ("disable", "a", "is disabled"),
        ("restart", "a", "is disabled"),
        ("enable", "b", "is not disabled"),
        ("enable", "off", "disabled in the configuration"),
        ("restart", "nothing", "no server"),
    ] {
        let ran = servers(&home, &gateway, verb, name, BOSS);
        assert!(
            ran.code != 0 && ran.stderr.contains(why),
            "{verb} {name} {}",
            ran.stderr
        );
    }
    servers(&home, &gateway, "enable", "a", BOSS).expect(0);
    until("it runs again", || echoes(&client, "a_echo").then_some(()));
}

#[test]
fn servers_are_switched_by_those_who_may() {
    let (home, gateway) = site();
    for verb in ["restart", "disable", "enable"] {
        let ran = servers(&home, &gateway, verb, "a", ANN);
        assert!(
            ran.code != 0 && ran.stderr.contains("portmoot/restart"),
            "{verb} {}",
            ran.stderr
        );
    }
    assert!(echoes(&Client::of(&gateway, ANN), "a_echo"));
}
