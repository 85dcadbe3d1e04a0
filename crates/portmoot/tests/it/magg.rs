//! Magg on both sides: its own clients against the tool `proxy`, and Magg as a server behind the gateway.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use harness::repository;
use serde_json::{Value, json};

use crate::home::Home;
use crate::support::{Gateway, fixture};

/// The installed Magg; `None`, with a message, where its Python is missing.
fn magg(which: &str) -> Option<PathBuf> {
    let script = repository().join("tests/third-party/magg/install");
    let ran = Command::new(script).arg(which).stdin(Stdio::null()).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let said = String::from_utf8(ran.stdout).unwrap().trim().to_owned();
    if said.starts_with("skipped: ") {
        println!("{said}");
        return None;
    }
    Some(PathBuf::from(said).join("venv/bin"))
}

/// Runs the script in a home of its own, so that no settings of the user count; returns what it saw.
#[track_caller]
fn client(bin: &std::path::Path, home: &Home, words: &[&str]) -> Value {
    let script = repository().join("tests/third-party/magg/client.py");
    let mut command = Command::new(bin.join("python"));
    let ran = command.arg(script).args(words).env("HOME", home.path()).current_dir(home.path());
    let ran = ran.env("MAGG_LOG_LEVEL", "ERROR").stdin(Stdio::null()).output().unwrap();
    let (out, log) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{out}\n{log}");
    serde_json::from_str(out.trim().lines().last().unwrap()).unwrap()
}

#[test]
#[ignore = "installs Magg, which needs Python 3.12; by hand: cargo nextest run -p portmoot --run-ignored only magg"]
fn the_clients_of_magg_use_the_proxy_unmodified() {
    let Some(bin) = magg("new") else { return };
    let home = Home::new();
    let topic = "[topics.main]\nbuiltin = [\"proxy\", \"search_tools\"]\n";
    for tools_list in ["full", "search"] {
        let config = format!("{topic}tools_list = {tools_list:?}\n{}", fixture("up", &[]));
        let gateway = Gateway::start(&home, &config);
        gateway.ready("up");
        let seen = client(&bin, &home, &["client", &(gateway.url() + "/mcp")]);
        assert_eq!(seen["tool"], json!(["Tool"]));
        assert_eq!(seen["resource"], json!(["Resource", "ResourceTemplate"]), "{seen}");
        assert_eq!(seen["prompt"], json!(["Prompt"]));
        assert!(seen["tools"].as_u64() > Some(20), "{seen}");
        let errors = seen["errors"].to_string();
        assert!(
            errors.contains("intentionally returns an error") && errors.contains("Unknown tool: 'absent'"),
            "{seen}"
        );
        assert_eq!(seen["transparent"], "x");
        gateway.stop().expect(0);
    }
}

#[test]
#[ignore = "installs Magg, which needs Python 3.12; by hand: cargo nextest run -p portmoot --run-ignored only magg"]
fn the_transparent_client_of_an_older_magg_sees_everything() {
    let Some(bin) = magg("old") else { return };
    let home = Home::new();
    let topic = "[topics.main]\nbuiltin = [\"proxy\"]\ntools_list = \"search\"\n";
    let gateway = Gateway::start(&home, &(topic.to_owned() + &fixture("up", &[])));
    gateway.ready("up");
    let seen = client(&bin, &home, &["old", &(gateway.url() + "/mcp")]);
    let listed: Vec<u64> =
        seen["listed"].as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).collect();
    assert!(listed[0] > 20 && listed[1] > 3 && listed[2] > 4, "{seen}");
    assert_eq!(seen["called"], "x");
    assert!(seen["read"].as_str().unwrap().contains("Data for ID: 7"), "{seen}");
}

#[test]
#[ignore = "installs Magg, which needs Python 3.12; by hand: cargo nextest run -p portmoot --run-ignored only magg"]
fn magg_behind_the_gateway_loses_no_annotation() {
    let Some(bin) = magg("new") else { return };
    let home = Home::new();
    let up = json!({ "name": "up", "source": "https://example.com", "prefix": "up", "enabled": true,
        "command": harness::fixture_binary(), "args": ["--stdio", "--era", "legacy"] });
    let config = home.write("magg.json", &json!({ "servers": { "up": up } }).to_string());
    // The same process for both: Magg takes its settings from the environment.
    let start = [bin.join("magg").display().to_string(), "serve".into(), "--no-banner".into()];
    let environment = format!("HOME={}", home.path().display());
    let settings = format!("MAGG_CONFIG_PATH={}", config.display());
    let words: Vec<&str> = [environment.as_str(), &settings, "MAGG_LOG_LEVEL=ERROR"].into_iter().collect();
    let words: Vec<&str> = words.into_iter().chain(start.iter().map(String::as_str)).collect();
    let server =
        format!("[servers.magg]\ncommand = \"/usr/bin/env\"\nargs = {words:?}\nstart_timeout = \"60s\"\n");
    let gateway = Gateway::start(&home, &server);
    gateway.ready("magg");
    let url = gateway.url() + "/mcp";
    let seen = client(&bin, &home, &[&["upstream", &url, "/usr/bin/env"], &words[..]].concat());
    assert_eq!(seen["equal"].as_array().unwrap().len(), 8, "{seen}");
    let notes = seen["annotations"].to_string();
    for key in ["proxyAction", "proxyPath", "proxyType", "pythonType", "many", "totalCount"] {
        assert!(notes.contains(key), "{key}: {notes}");
    }
}
