//! Magg on both sides: its own clients against the tool `proxy`, and Magg as a server behind the
//! gateway.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use harness::repository;
use participant::proxy::{ListKind, ProxyClient, ProxyError, ProxySubject, RoomServer};
use serde_json::{Value, json};

use crate::home::Home;
use crate::participants::{join, read};
use crate::support::{Gateway, fixture};
use crate::ws::people;

/// The installed Magg; `None`, with a message, where its Python is missing.
fn magg(which: &str) -> Option<PathBuf> {
    let script = repository().join("tests/third-party/magg/install");
    let ran = Command::new(script)
        .arg(which)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    let said = String::from_utf8(ran.stdout).unwrap().trim().to_owned();
    if said.starts_with("skipped: ") {
        println!("{said}");
        return None;
    }
    Some(PathBuf::from(said).join("venv/bin"))
}

/// Runs the script in a home of its own, so that no settings of the user count; returns what it
/// saw.
#[track_caller]
fn client(bin: &std::path::Path, home: &Home, words: &[&str]) -> Value {
    let script = repository().join("tests/third-party/magg/client.py");
    let mut command = Command::new(bin.join("python"));
    let ran = command
        .arg(script)
        .args(words)
        .env("HOME", home.path())
        .current_dir(home.path());
    let ran = ran
        .env("MAGG_LOG_LEVEL", "ERROR")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (out, log) = (
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr),
    );
    assert!(ran.status.success(), "{out}\n{log}");
    serde_json::from_str(out.trim().lines().last().unwrap()).unwrap()
}

/// The table of Magg as a server `magg`, with the fixture behind it, and the command that starts
/// it.
fn server(bin: &std::path::Path, home: &Home) -> (String, Vec<String>) {
    let up = json!({ "name": "up", "source": "https://example.com", "prefix": "up", "enabled": true,
        "command": harness::fixture_binary(), "args": ["--stdio", "--era", "legacy"] });
    let config = home.write("magg.json", &json!({ "servers": { "up": up } }).to_string());
    // Magg takes its settings from the environment.
    let words = [
        format!("HOME={}", home.path().display()),
        format!("MAGG_CONFIG_PATH={}", config.display()),
        "MAGG_LOG_LEVEL=ERROR".into(),
        bin.join("magg").display().to_string(),
        "serve".into(),
        "--no-banner".into(),
    ];
    let table = format!(
        "[servers.magg]\ncommand = \"/usr/bin/env\"\nargs = {words:?}\nstart_timeout = \"60s\"\n"
    );
    (table, words.to_vec())
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
        assert_eq!(
            seen["resource"],
            json!(["Resource", "ResourceTemplate"]),
            "{seen}"
        );
        assert_eq!(seen["prompt"], json!(["Prompt"]));
        assert!(seen["tools"].as_u64() > Some(20), "{seen}");
        let errors = seen["errors"].to_string();
        assert!(
            errors.contains("intentionally returns an error")
                && errors.contains("Unknown tool: 'absent'"),
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
    let listed: Vec<u64> = seen["listed"]
        .as_array()
        .unwrap()
        .iter()
        .map(|count| count.as_u64().unwrap())
        .collect();
    assert!(listed[0] > 20 && listed[1] > 3 && listed[2] > 4, "{seen}");
    assert_eq!(seen["called"], "x");
    assert!(
        seen["read"].as_str().unwrap().contains("Data for ID: 7"),
        "{seen}"
    );
}

#[test]
#[ignore = "installs Magg, which needs Python 3.12; by hand: cargo nextest run -p portmoot --run-ignored only magg"]
fn magg_behind_the_gateway_loses_no_annotation() {
    let Some(bin) = magg("new") else { return };
    let home = Home::new();
    // The same process for both.
    let (server, words) = server(&bin, &home);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let gateway = Gateway::start(&home, &server);
    gateway.ready("magg");
    let url = gateway.url() + "/mcp";
    let seen = client(
        &bin,
        &home,
        &[&["upstream", &url, "/usr/bin/env"], &words[..]].concat(),
    );
    assert_eq!(seen["equal"].as_array().unwrap().len(), 8, "{seen}");
    let notes = seen["annotations"].to_string();
    for key in [
        "proxyAction",
        "proxyPath",
        "proxyType",
        "pythonType",
        "many",
        "totalCount",
    ] {
        assert!(notes.contains(key), "{key}: {notes}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "installs Magg, which needs Python 3.12; by hand: cargo nextest run -p portmoot --run-ignored only magg"]
async fn the_sdk_decodes_the_answers_of_magg() {
    let Some(bin) = magg("new") else { return };
    let (home, config) = people(&[("boss", &["mcp/*"])]);
    let gateway = Gateway::start(&home, &(config + &server(&bin, &home).0));
    gateway.ready("magg");
    let (boss, _) = join(&gateway, "boss").await;
    let sdk = ProxyClient::detect(RoomServer {
        participant: boss,
        server: "magg".into(),
    })
    .await
    .unwrap();
    assert_eq!(sdk.tool(), Some("proxy"));
    let tools = sdk.list_tools().await.unwrap();
    assert!(
        tools.len() > 40 && tools.iter().any(|tool| tool.key() == "up_echo"),
        "{tools:?}"
    );
    let resources = sdk.list_resources().await.unwrap();
    for list in [ListKind::Resources, ListKind::Templates] {
        assert!(
            resources.iter().any(|one| one.list() == list),
            "{list:?}: {resources:?}"
        );
    }
    let prompts = sdk.list_prompts().await.unwrap();
    assert!(
        prompts
            .iter()
            .any(|prompt| prompt.key() == "up_test_simple_prompt"),
        "{prompts:?}"
    );
    // Its `info` has no `many`.
    assert_eq!(
        sdk.info(ProxySubject::Tool, "up_echo")
            .await
            .unwrap()
            .list(),
        ListKind::Tools
    );
    assert_eq!(
        sdk.info(ProxySubject::Resource, "static-text")
            .await
            .unwrap()
            .list(),
        ListKind::Resources
    );
    assert!(matches!(
        sdk.info(ProxySubject::Prompt, "absent").await,
        Err(ProxyError::Failed(_))
    ));
    let called = sdk
        .call_tool("up_echo", &json!({ "text": "hi" }))
        .await
        .unwrap();
    assert_eq!(read(&called)["content"][0]["text"], "hi", "{called}");
    let key = |end: &str| {
        resources
            .iter()
            .find(|one| one.key().ends_with(end))
            .unwrap()
            .key()
    };
    let text = read(&sdk.read_resource(key("static-text")).await.unwrap());
    assert_eq!(text["contents"][0]["mimeType"], "text/plain", "{text}");
    let arguments = json!({ "arg1": "Bob", "arg2": "x" });
    let prompt = read(
        &sdk.get_prompt("up_test_prompt_with_arguments", &arguments)
            .await
            .unwrap(),
    );
    assert!(
        prompt["messages"][0]["content"]["text"]
            .as_str()
            .unwrap()
            .contains("Bob"),
        "{prompt}"
    );
}
