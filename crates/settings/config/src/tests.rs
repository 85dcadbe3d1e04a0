//! Configuration tests: files to checked values or problems.

mod approvers;
mod cluster;
mod documented;
mod notifications;
mod problems;
mod schema;
mod secrets;
mod telemetry;
mod tools;

use std::sync::Arc;
use std::time::Duration;

use crate::checked::Config;
use topic::section::Access;
use upstream::config::{EraChoice, SecretText, SessionSharing, Transport};

use super::check::check;
use super::client_file;
use super::node::{DEFAULTS, Layer, Node, SourceOrigin};
use super::secrets::{KeptSecrets, Outside, Secrets};
use super::{json_file, to_toml, toml_file};

const BASE: &str = "[server]\nlisten = \"127.0.0.1:7070\"\n[topics.main]\n";

fn env(name: &str) -> Option<String> {
    match name {
        "TOKEN" => Some("hush-hush-hush-hush".into()),
        "SHORT" => Some("hush".into()),
        "BLANK" => Some("hush hush".into()),
        "HOOK" => Some("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into()),
        "SLACK" => Some("https://hooks.example/T/B/hush".into()),
        _ => None,
    }
}

fn layer(toml: &str) -> Arc<Layer> {
    Layer::file("portmoot.toml", SourceOrigin::Operator, toml)
}

fn tree(toml: &str) -> Node {
    let mut tree = toml_file::read(&Layer::file(DEFAULTS, SourceOrigin::Operator, BASE)).unwrap();
    tree.overlay(toml_file::read(&layer(toml)).unwrap());
    tree
}

pub(crate) fn good(toml: &str) -> Config {
    match check(&tree(toml), &Outside::unread(&env), &mut Vec::new()) {
        Ok(config) => config,
        Err(problems) => panic!("{toml}\n{problems:?}"),
    }
}

/// All problems as they are printed.
fn problems(toml: &str) -> String {
    if let Err(problem) = toml_file::read(&layer(toml)) {
        return problem.to_string();
    }
    let problems = check(&tree(toml), &Outside::unread(&env), &mut Vec::new()).unwrap_err();
    problems
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn a_server_has_its_values() {
    let config = good(
        r#"
[servers.github]
command = "npx"
args = ["-y", "--token=${TOKEN}"]
env = { KEY = "${GONE:-none}", PORT = 80 }
cwd = "/tmp"
prefix = "gh"
protocolEra = "legacy"
sessions = "caller"
validate = true
request_timeout = "5s"
tool_timeouts = { slow = "20m" }
[servers."two words"]
type = "streamableHttp"
url = "https://example.com/mcp"
headers = { Authorization = "Bearer ${env:TOKEN}" }
[servers.old]
type = "sse"
url = "http://127.0.0.1/sse"
enabled = false
headers = { x = "${GONE}" }
"#,
    );
    let [github, words, old] = config.servers.as_slice() else {
        panic!("three")
    };
    let Transport::Stdio(child) = &github.transport else {
        panic!("stdio")
    };
    assert_eq!(
        child.args[1],
        SecretText::expanded("--token=hush-hush-hush-hush", "--token=${TOKEN}")
    );
    assert_eq!(
        child.env[0],
        ("KEY".into(), SecretText::expanded("none", "${GONE:-none}"))
    );
    assert_eq!(child.env[1], ("PORT".into(), SecretText::new("80")));
    assert_eq!(
        (&*github.prefix, github.era, github.sessions),
        ("gh", EraChoice::Legacy, SessionSharing::Caller)
    );
    assert!(github.validate && !words.validate);
    assert_eq!(github.timeouts.request, Duration::from_secs(5));
    assert_eq!(
        github.timeouts.max,
        Duration::from_secs(1_200),
        "the default maximum is raised to the longest timeout"
    );
    assert_eq!(
        (words.name.as_str(), &*words.prefix),
        ("two-words", "two-words")
    );
    let Transport::Http(http) = &words.transport else {
        panic!("http")
    };
    assert_eq!(http.headers[0].1.expose(), "Bearer hush-hush-hush-hush");
    assert!(
        !format!("{config:?}").contains("hush-"),
        "debug output has no secret"
    );
    assert!(!old.enabled && matches!(old.transport, Transport::Sse(_)));
    let topic: Vec<_> = config.identity.topics[0]
        .servers
        .iter()
        .map(|name| name.as_str())
        .collect();
    assert_eq!(
        topic,
        ["github", "two-words", "old"],
        "in the order of the file"
    );
}

#[test]
fn participants_have_configured_or_default_capabilities() {
    let config = good(
        r#"
[participants.scout]
token_env = "TOKEN"
capabilities = ["mcp/request:*/list", { kind = "mcp/request:tools/call:search_*", to = ["search"] }]
rate = { limit = "2/s", burst = 9 }
[participants.new]
rate = "30/min"
"#,
    );
    let [scout, new] = config.identity.participants.as_slice() else {
        panic!("two")
    };
    assert_eq!(
        scout.credentials[0].hash,
        auth::TokenHash::of("hush-hush-hush-hush")
    );
    assert!(scout.capabilities_written && scout.participant.capabilities.iter().count() == 2);
    assert_eq!(
        scout.participant.rate,
        Some(model::RateLimit {
            per_minute: 120,
            burst: 9
        })
    );
    assert!(!new.capabilities_written && new.credentials.is_empty());
    let held: Vec<_> = new
        .participant
        .capabilities
        .iter()
        .map(|one| one.as_str())
        .collect();
    assert_eq!(held, ["mcp/proposal:*", "mcp/response:*", "chat"]);
    assert_eq!(
        new.participant.rate,
        Some(model::RateLimit {
            per_minute: 30,
            burst: 30
        })
    );
    assert_eq!(new.participant.topics[0].as_str(), "main");
}

#[test]
fn profiles_give_capabilities_to_participants_and_topics() {
    let config = good(
        r#"
[profiles.reader]
capabilities = ["chat", "mcp/request:*/list"]
[participants.scout]
profile = "reader"
capabilities = ["mcp/proposal:*", "chat"]
serves = true
[participants.new]
profile = "reader"
[topics.main]
[topics.lobby]
access = "public"
anonymous = "reader"
proposal_ttl = "90s"
[topics.board]
access = "private"
"#,
    );
    let [scout, new] = config.identity.participants.as_slice() else {
        panic!("two")
    };
    let held = |one: &identity::config::ParticipantConfig| -> Vec<String> {
        one.participant
            .capabilities
            .iter()
            .map(|one| one.as_str().to_owned())
            .collect()
    };
    assert_eq!(
        held(scout),
        ["chat", "mcp/request:*/list", "mcp/proposal:*"]
    );
    assert_eq!(held(new), ["chat", "mcp/request:*/list"]);
    assert_eq!(
        (scout.serves, new.serves, new.capabilities_written),
        (true, false, true)
    );
    let [main, lobby, board] = config.identity.topics.as_slice() else {
        panic!("three")
    };
    let access: Vec<Access> = [main, lobby, board].map(|topic| topic.access).into();
    assert_eq!(
        access,
        [Access::Restricted, Access::Public, Access::Private]
    );
    assert_eq!(
        (
            main.anonymous.is_some(),
            lobby.anonymous.as_ref().map(|held| held.iter().count())
        ),
        (false, Some(2))
    );
    assert_eq!(
        (main.proposal_ttl.as_secs(), lobby.proposal_ttl.as_secs()),
        (300, 90)
    );
}

fn client_tree(json: &str) -> Result<(Node, Vec<String>), String> {
    let layer = Layer::file("mcp.json", SourceOrigin::Operator, json);
    let file = json_file::read(&layer)
        .and_then(client_file::adapt)
        .map_err(|problem| problem.to_string())?;
    let mut tree = tree("");
    tree.overlay(file.tree);
    Ok((tree, file.notices))
}

#[test]
fn client_files_are_converted() {
    let (tree, notices) = client_tree(
        r#"{ "theme": "dark", "mcpServers": {
            "z": { "command": "npx", "args": ["-y", "x"], "env": { "A": "b" }, "autoApprove": [], "timeout": 60 },
            "a": { "type": "streamable-http", "url": "http://127.0.0.1:1/mcp", "headers": null },
            "off": { "command": "x", "disabled": true } } }"#,
    )
    .unwrap();
    let config = check(&tree, &Outside::unread(&env), &mut Vec::new()).unwrap();
    let found: Vec<_> = config
        .servers
        .iter()
        .map(|server| (server.name.as_str(), server.enabled))
        .collect();
    assert_eq!(found, [("z", true), ("a", true), ("off", false)]);
    assert_eq!(
        notices,
        ["mcp.json:2: server `z`: `autoApprove`, `timeout` ignored"]
    );
    let (tree, _) =
        client_tree(r#"{ "inputs": [], "servers": { "a": { "type": "stdio", "command": "x" } } }"#)
            .unwrap();
    assert_eq!(
        check(&tree, &Outside::unread(&env), &mut Vec::new())
            .unwrap()
            .servers
            .len(),
        1
    );
    let (tree, _) =
        client_tree(r#"{ "servers": { "a": { "command": "x", "args": ["${input:key}"] } } }"#)
            .unwrap();
    assert!(
        check(&tree, &Outside::unread(&env), &mut Vec::new()).unwrap_err()[0]
            .to_string()
            .contains("does not support inputs")
    );
    for (json, expect) in [
        ("{}", "has neither `mcpServers`"),
        ("[", "[config_syntax]"),
        (
            "{'a': 1}",
            "comments and commas at the end of lists are accepted",
        ),
        ("// no\n{}", "has neither `mcpServers`"),
        (
            r#"{"mcpServers":{"a":{"command":"x","command":"y"}}}"#,
            "the member `command` occurs twice",
        ),
        ("{\"mcpServers\":{\n\"a\":null,\n\"a\":{}}}", "mcp.json:3"),
        (
            "{\n\"a\":18446744073709551615}",
            "a number is too large [config_syntax]\n  at mcp.json:2",
        ),
        ("{\"a\":\n1e999}", "mcp.json:2"),
    ] {
        let error = client_tree(json).unwrap_err();
        assert!(error.contains(expect), "{json}: {error}");
    }
}

#[test]
fn a_shown_configuration_can_be_read_again_and_has_no_secret() {
    let toml = "[servers.\"a b\"]\ncommand = \"x\\u0007\\\"\"\nenv = { KEY = \"bare\", OTHER = \"${TOKEN}\" }\ntool_timeouts = { t = '1s' }\n\
                [servers.api]\nopenapi = 'https://x.example/o.json'\nquery = { api_key = 'bare', more = '${TOKEN}' }\n\
                [participants.p]\ncapabilities = ['chat', { kind = 'chat', to = ['x'] }]\n";
    let shown = to_toml(&tree(toml), false);
    insta::assert_snapshot!(shown, @r#"
    [server]
    listen = "127.0.0.1:7070"

    [topics.main]

    [servers."a b"]
    command = "x\U00000007\""

    [servers."a b".env]
    KEY = "(hidden)"
    OTHER = "${TOKEN}"

    [servers."a b".tool_timeouts]
    t = "1s"

    [servers.api]
    openapi = "https://x.example/o.json"

    [servers.api.query]
    api_key = "(hidden)"
    more = "${TOKEN}"

    [participants.p]
    capabilities = ["chat", { kind = "chat", to = ["x"] }]
    "#);
    let again = toml_file::read(&layer(&shown)).unwrap();
    assert_eq!(to_toml(&again, false), shown);
    assert!(
        to_toml(&tree(toml), true).contains("command = \"x\\U00000007\\\"\"  # portmoot.toml:2")
    );
}
