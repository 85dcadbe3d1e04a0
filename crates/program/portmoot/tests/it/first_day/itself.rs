//! Gateways that have themselves as servers, at once or through others: refused where a URL shows
//! it, noticed where it does not.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::home::Home;
use crate::support::{Client, Gateway, fixture, until};

const FILE: &str = ".config/portmoot/portmoot.toml";
/// The time after which a gateway must have noticed it.
const NOTICED: Duration = Duration::from_secs(5);
/// Memory that a gateway may take while its lists stay as they are, in KiB.
const FLAT_KIB: u64 = 16 << 10;

#[test]
fn a_url_that_is_the_gateways_own_is_refused() {
    let home = Home::new();
    let text = "[server]\nlisten = \"127.0.0.1:7171\"\npublic_url = \"https://gw.example\"\n";
    let path = home.write(FILE, text);
    for url in [
        "http://127.0.0.1:7171/mcp",
        "http://localhost:7171/mcp/dev",
        "https://gw.example/mcp",
    ] {
        let refused = home.run(&["add", "self", url]).expect(3).stderr;
        assert!(
            refused.contains("would be this gateway itself"),
            "{refused}"
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        home.write("x.toml", &format!("{text}[servers.self]\nurl = {url:?}\n"));
        let checked = home
            .run(&["config", "check", "--config", "x.toml"])
            .expect(2)
            .stderr;
        assert!(
            checked.contains("the server `self` is this gateway itself"),
            "{checked}"
        );
        assert!(
            checked.contains("x.toml") && checked.contains("[config_itself]"),
            "{checked}"
        );
    }
    // A client that has the gateway under another name: its other servers are imported.
    let servers = json!({ "gw": { "url": "http://127.0.0.1:7171/mcp" }, "a": { "command": "x" } });
    home.write(
        ".cursor/mcp.json",
        &json!({ "mcpServers": servers }).to_string(),
    );
    let imported = home.run(&["import", "cursor", "--yes"]).expect(0).stderr;
    assert!(
        imported.contains("`gw` is this gateway itself: left out"),
        "{imported}"
    );
    let after = fs::read_to_string(&path).unwrap();
    assert!(
        after.contains("[servers.a]") && !after.contains("gw]"),
        "{after}"
    );
    // One of a file that is only read is down, and the others run.
    let own = home.run(&[
        "config",
        "check",
        "--config",
        FILE,
        "--mcp-config",
        ".cursor/mcp.json",
    ]);
    assert!(own.expect(2).stderr.contains("is this gateway itself"));
    // The gateway that runs may listen elsewhere than its file says.
    let gateway = Gateway::start_with(&home, &[]);
    let refused = home
        .run(&["add", "self", &format!("{}/mcp", gateway.url())])
        .expect(3)
        .stderr;
    assert!(refused.contains("[config_itself]"), "{refused}");
}

/// The memory of a gateway, in KiB.
fn memory(gateway: &Gateway) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", gateway.pid())).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    line.trim().split(' ').next().unwrap().parse().unwrap()
}

/// Begins gateways of which each has the next one as a server, and the last one the first.
fn ring(homes: &[Home]) -> Vec<Gateway> {
    let own = |at: usize| fixture(&format!("own{at}"), &["--era", "legacy"]);
    let start = |(at, home): (usize, &Home)| Gateway::start(home, &own(at));
    let gateways: Vec<Gateway> = homes.iter().enumerate().map(start).collect();
    for (at, home) in homes.iter().enumerate() {
        let next = gateways[(at + 1) % gateways.len()].url();
        home.write(
            "portmoot.toml",
            &format!("{}[servers.next]\nurl = \"{next}/mcp\"\n", own(at)),
        );
        gateways[at].signal("HUP");
    }
    gateways
}

/// Names of tools, and the number of resources.
fn lists(gateway: &Gateway) -> (Vec<String>, usize) {
    let client = Client::plain(gateway);
    let lists = (client.names("tools"), client.names("resources").len());
    client.delete();
    lists
}

#[track_caller]
fn a_ring_is_noticed(count: usize) {
    let homes: Vec<Home> = (0..count).map(|_| Home::new()).collect();
    let gateways = ring(&homes);
    let began = Instant::now();
    let states = || {
        gateways
            .iter()
            .map(|gateway| gateway.server("next"))
            .collect::<Vec<_>>()
    };
    let is_noticed = |server: &serde_json::Value| {
        let cause = server["cause"].as_str().unwrap_or_default();
        server["state"] == "down" && cause.starts_with("this is the gateway itself")
    };
    until("a gateway has noticed it", || {
        states().iter().any(is_noticed).then_some(())
    });
    assert!(began.elapsed() < NOTICED, "after {:?}", began.elapsed());
    // What is listed has gone round at most once, and grows no more.
    let before: Vec<u64> = gateways.iter().map(memory).collect();
    let mut looks = 0;
    while began.elapsed() < NOTICED || looks < 3 {
        for gateway in &gateways {
            let (tools, resources) = lists(gateway);
            let rounds = |tool: &String| tool.matches("next_").count();
            let longest = tools.iter().map(rounds).max().unwrap();
            assert!(longest <= count, "{tools:?}");
            assert!(resources < 100, "{resources} resources");
        }
        looks += 1;
    }
    for (gateway, before) in gateways.iter().zip(before) {
        let after = memory(gateway);
        assert!(after < before + FLAT_KIB, "{before} KiB, then {after}");
    }
    // It is said where one looks, and in the log.
    let at = states().iter().position(is_noticed).unwrap_or_default();
    gateways[at].receive("this is the gateway itself");
}

#[test]
fn a_gateway_that_is_its_own_server_notices_it() {
    a_ring_is_noticed(1);
}

#[test]
fn two_gateways_that_are_servers_of_each_other_notice_it() {
    a_ring_is_noticed(2);
}

#[test]
fn three_gateways_in_a_ring_notice_it() {
    a_ring_is_noticed(3);
}

#[test]
fn a_gateway_that_reaches_itself_through_three_others_notices_it() {
    a_ring_is_noticed(4);
}

#[test]
fn a_gateway_on_a_pipe_that_leads_to_itself_notices_it() {
    let home = Home::new();
    let gateway = Gateway::start_with(&home, &[]);
    let stdio = format!(
        "[servers.self]\ncommand = {:?}\nargs = [\"stdio\", \"--url\", \"{}\"]\n",
        env!("CARGO_BIN_EXE_portmoot"),
        gateway.url()
    );
    home.write(FILE, &stdio);
    gateway.wait_for("self", "down");
    let server = gateway.server("self");
    assert_eq!(server["cause"], "this is the gateway itself", "{server}");
    assert_eq!(server["tools"], 0);
}

#[test]
fn gateways_in_a_row_serve_each_other() {
    let homes = [Home::new(), Home::new()];
    let last = Gateway::start(&homes[0], &fixture("own", &["--era", "legacy"]));
    let text = format!("[servers.next]\nurl = \"{}/mcp\"\n", last.url());
    let first = Gateway::start(&homes[1], &text);
    first.wait_for("next", "ready");
    let client = Client::plain(&first);
    let has_echo = || client.names("tools").contains(&"next_own_echo".to_owned());
    until("it lists the server of the other", || {
        has_echo().then_some(())
    });
    // Other clients are not shown which gateways there are on lists.
    let listed = client.ask("tools/list", json!({}));
    assert!(listed["result"]["_meta"].is_null(), "{listed}");
    let asked = client.ask(
        "tools/list",
        json!({ "_meta": { "portmoot/gateways": ["x"] } }),
    );
    assert_eq!(
        asked["result"]["_meta"]["portmoot/gateways"]
            .as_array()
            .unwrap()
            .len(),
        2,
        "{asked}"
    );
}
