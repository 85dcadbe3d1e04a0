//! The log of a running gateway: every line has its time and level, as text or as JSON, and a
//! reload says what has changed.

use serde_json::Value;

use crate::home::Home;
use crate::support::{Gateway, fixture};

const LEVELS: [&str; 3] = ["INFO", "WARN", "ERROR"];

/// A gateway that notes something, reloads twice (the second time in vain) and ends; its output on
/// stderr.
fn log(home: &Home, more: &[&str]) -> String {
    let config = |text: &str| home.write("own.toml", text);
    let topics = "[topics.main]\n[profiles.x]\ncapabilities = [\"mcp/request:tool/call:*\"]\n";
    config(&format!("{}{topics}", fixture("a", &[])));
    let gateway = Gateway::start_with(home, &[&["--config", "own.toml"], more].concat());
    gateway.receive("ready");
    config(&format!(
        "[audit]\nenabled = false\n{}{topics}",
        fixture("b", &["--name", "x"])
    ));
    gateway.signal("HUP");
    gateway.receive("the configuration has changed");
    config("[servers.b]\ncomand = \"sh\"\n");
    gateway.signal("HUP");
    gateway.receive("unknown key `comand`");
    gateway.stop().expect(0).stderr
}

#[test]
fn every_line_of_the_log_has_its_time_and_level() {
    let home = Home::new();
    let log = log(&home, &[]);
    let (before, after) = log.split_once("portmoot 0.").unwrap();
    let lines: Vec<&str> = before
        .lines()
        .chain(after.split("\n\n").skip(2).flat_map(str::lines))
        .collect();
    for line in lines.iter().filter(|line| !line.is_empty()) {
        let mut words = line.split_whitespace();
        let time = words.next().unwrap();
        assert!(
            time.len() == 27 && time.ends_with('Z') && time.contains('T'),
            "{line}"
        );
        assert!(LEVELS.contains(&words.next().unwrap()), "{line}");
    }
    for wanted in [
        "INFO portmoot::run: note: own.toml:",
        "INFO portmoot::run: server `a` starts: ",
        "WARN portmoot::run: `audit` has changed",
        "ERROR portmoot::run: unknown key `comand` in `[servers.b]` code=\"config_unknown_key\" place=\"own.toml:2\" hint=\"did you mean `command`?\"",
        "WARN portmoot::run: the reload failed",
        "INFO portmoot::run: stopping",
    ] {
        assert!(log.contains(wanted), "{wanted}\n{log}");
    }
}

#[test]
fn the_log_can_be_json() {
    let of_variable = log(&Home::new().env("PORTMOOT_LOG_FORMAT", "json"), &[]);
    let of_flag = log(&Home::new(), &["--json"]);
    for log in [of_variable, of_flag] {
        let lines: Vec<Value> = log
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")))
            .collect();
        for line in &lines {
            assert!(
                line["timestamp"].is_string() && LEVELS.contains(&line["level"].as_str().unwrap()),
                "{line}"
            );
        }
        let messages: Vec<&str> = lines
            .iter()
            .filter_map(|line| line["fields"]["message"].as_str())
            .collect();
        for wanted in [
            "listening on http://127.0.0.1:",
            "ready",
            "the configuration has changed: reloaded",
            "stopping",
        ] {
            assert!(
                messages.iter().any(|message| message.starts_with(wanted)),
                "{wanted}\n{log}"
            );
        }
    }
    // Why it does not start is a line of the log too.
    let home = Home::new().env("PORTMOOT_LOG_FORMAT", "json");
    home.write("own.toml", "[sever]\n");
    let ran = home
        .run(&["serve", "--config", "own.toml"])
        .expect(2)
        .stderr;
    let lines: Vec<Value> = ran
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines[0]["fields"]["place"], "own.toml:1");
    assert_eq!(
        lines[1]["fields"]["message"],
        "the configuration is not valid"
    );
}

#[test]
fn a_reload_logs_the_names_of_what_has_changed() {
    let home = Home::new()
        .env("KEY", "hush-hush-hush-hush")
        .env("NEW", "rush-rush-rush-rush");
    let demo = |name: &str| format!("[servers.{name}]\ntype = \"demo\"\n");
    let who = |name: &str, key: &str| format!("[participants.{name}]\ntoken_env = \"{key}\"\n");
    let gateway = Gateway::start(
        &home,
        &(demo("a")
            + &demo("b")
            + &demo("c")
            + &who("me", "KEY")
            + "[topics.main]\n[topics.old]\n"),
    );
    gateway.receive("ready");
    let changed = demo("a")
        + &demo("c")
        + "request_timeout = \"9s\"\n"
        + &demo("d")
        + &who("me", "NEW")
        + "[participants.ci]\n[topics.main]\nhistory = 3\n[topics.new]\n[server]\nhosts = [\"x.example\"]\n";
    home.write("portmoot.toml", &changed);
    gateway.signal("HUP");
    let line = gateway.receive("reloaded");
    for part in [
        "added=\"server d, participant ci, topic new\"",
        "changed=\"server c, participant me, topic main, settings of [server]\"",
        "removed=\"server b, topic old\"",
    ] {
        assert!(line.contains(part), "{part}\n{line}");
    }
    home.write(
        "portmoot.toml",
        &changed
            .replace("hosts = [\"x.example\"]\n", "")
            .replace(&demo("a"), "")
            .replace("[topics.new]", &format!("{}[topics.new]", demo("a"))),
    );
    gateway.signal("HUP");
    gateway.receive("changed=\"order of servers, settings of [server]\"");
    assert!(!gateway.log().contains("rush"), "{}", gateway.log());
}
