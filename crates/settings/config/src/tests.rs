//! Configuration tests: files to checked values or problems.

mod documented;
mod schema;

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

fn good(toml: &str) -> Config {
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
fn every_problem_is_reported_with_its_line_and_a_hint() {
    let toml = r#"
[servers.github]
comand = "npx"
url = "http://127.0.0.1:9000/mcp"
era = "modren"
request_timeout = 30

[servers.search]
command = "search"
env = { KEY = "${GONE" }

[participants.scout]
token = "x"
token_env = "SHORT"
capabilities = ["*", { kind = "chat", from = "x" }]
topics = ["mian"]

[topics.side]
servers = ["serch"]
mcp_calls = "all"

[sever]
"#;
    insta::assert_snapshot!(problems(toml), @r#"
    unknown key `comand` in `[servers.github]` [config_unknown_key]
      at portmoot.toml:3
      hint: did you mean `command`?
    `modren` is not a value of `servers.github.era` [config_value]
      at portmoot.toml:5
      hint: did you mean `modern`?
    `servers.github.request_timeout` must be a duration with its unit, such as "500ms", "30s", "5m", "2h" or "7d", not 30 [config_value]
      at portmoot.toml:6
    `servers.search.env.KEY`: `${` is never closed [config_variable]
      at portmoot.toml:10
      hint: write ${NAME}, or $${ for a literal ${
    `participants.scout.token`: a token must not be in the configuration file [config_token]
      at portmoot.toml:13
      hint: use `token_env`, `token_file` or `token_sha256`, or name a secret: token = { command = [...] }
    `participants.scout.token_env`: the token has fewer than 16 characters [config_token]
      at portmoot.toml:14
      hint: issue one with: portmoot token new NAME
    `participants.scout.capabilities`: `*` is not a capability: `*` cannot span namespaces: write `mcp/*`, `name/*`, or the exact word [config_capability]
      at portmoot.toml:15
      hint: for example "mcp/request:tools/call:read_*" or "chat"
    `participants.scout.capabilities`: unknown key `from` in a capability: it has `kind` and `to` [config_capability]
      at portmoot.toml:15
      hint: for example "mcp/request:tools/call:read_*" or "chat"
    `scout` may join `mian`, but there is no such topic [config_unknown_topic]
      at portmoot.toml:16
      hint: did you mean `main`?
    `topics.side.servers`: there is no server `serch` [config_unknown_server]
      at portmoot.toml:19
      hint: did you mean `search`?
    `all` is not a value of `topics.side.mcp_calls` [config_value]
      at portmoot.toml:20
      hint: one of `none`, `kinds`, `full`
    unknown key `sever` in the configuration [config_unknown_key]
      at portmoot.toml:22
      hint: did you mean `server`?
    "#);
}

#[test]
fn no_participant_may_have_the_name_of_a_server() {
    let config = good(
        "[servers.\"two words\"]\ncommand = \"x\"\n[servers.local]\ncommand = \"x\"\n\
         [servers.rules]\ncommand = \"x\"\n[servers.off]\ncommand = \"x\"\nenabled = false\n",
    );
    let known: Vec<&str> = config
        .identity
        .servers
        .iter()
        .map(|id| id.as_str())
        .collect();
    assert_eq!(known, ["two-words", "server-local", "server-rules", "off"]);
}

#[test]
fn scopes_with_wildcards_are_refused() {
    let scope = |name: &str| format!("[scopes.{name:?}]\ncapabilities = [\"mcp/*\"]\n");
    for name in ["*", "mcp:*", "*:read", "a b", ""] {
        let found = problems(&scope(name));
        assert!(
            found.contains("cannot be a scope [config_name]"),
            "{name}: {found}"
        );
    }
    check(
        &tree(&scope("mcp:all")),
        &Outside::unread(&env),
        &mut Vec::new(),
    )
    .unwrap();
}

#[test]
fn problems_have_messages() {
    for (toml, expect) in [
        (
            "[servers.a]",
            "`[servers.a]` has neither `command` nor `url` [config_missing]",
        ),
        (
            "[servers.a]\ncommand = 'x'\nurl = 'http://x/'",
            "`[servers.a]` has both `command` and `url` [config_twice]",
        ),
        (
            "[servers.a]\ntype = 'sse'\ncommand = 'x'",
            "`[servers.a]` needs a `url` [config_missing]",
        ),
        (
            "[servers.a]\nurl = 'ftp://x/'",
            "`servers.a.url` is not an absolute http or https URL: `ftp://x/` [config_value]",
        ),
        (
            "[servers.a]\nurl = 'http://${TOKEN} /'",
            "`servers.a.url` is not an absolute http or https URL: `http://${TOKEN} /` [config_value]",
        ),
        (
            "[servers.a]\nurl = 'http://x/'\nheaders = { 'a b' = 'x' }",
            "`a b` is not a valid header [config_value]",
        ),
        (
            "[servers.a]\nurl = 'http://x/'\nquery = { key = 'x' }",
            "`servers.a.query` is for servers that are HTTP APIs [config_value]",
        ),
        (
            "[servers.a]\ncommand = 'x'\nopenapi = 'http://x/'",
            "`servers.a.openapi` is for servers that are HTTP APIs [config_value]",
        ),
        (
            "[servers.a]\ntype = 'openapi'",
            "`[servers.a]` needs a `openapi` [config_missing]",
        ),
        (
            "[servers.a]\nopenapi = 'http://x/'\nurl = '/v1'",
            "`servers.a.url` is not an absolute http or https URL: `/v1` [config_value]",
        ),
        (
            "[servers.a]\nopenapi = '/no/such/file'",
            "/no/such/file cannot be read",
        ),
        (
            "[servers.a]\ncommand = 'x'\nprefix = 'a/b'",
            "`a/b` cannot be part of a tool name [config_value]",
        ),
        (
            "[servers.portmoot]\ncommand = 'x'",
            "a server cannot be called `portmoot` [config_name]",
        ),
        (
            "[servers.a]\ncommand = 'x'\nera = 'auto'\nprotocolEra = 'auto'",
            "`era` and `protocolEra` are the same setting [config_twice]",
        ),
        (
            "[servers.a]\ncommand = 'x'\nmax_timeout = '1s'",
            "`servers.a.max_timeout` is shorter than another timeout [config_value]",
        ),
        (
            "[servers.a]\ncommand = 'x'\nhide = ['a**']",
            "`servers.a.hide`: `a**` is no pattern: write one `*`: it matches any run of characters [config_value]",
        ),
        (
            "[servers.a]\ncommand = 'x'\n[servers.a.tools.x]\nname = 'y'",
            "`servers.a.tools` is a list of patterns [config_value]",
        ),
        (
            "[servers.a]\ncommand = 'x'\n[servers.a.tool.x]\nname = 'a b'",
            "`servers.a.tool.x.name`: `a b` cannot be the name of a tool [config_value]",
        ),
        (
            "[servers.a]\ncommand = 'x'\n[servers.a.tool]\nx = { name = 'z' }\ny = { name = 'z' }",
            "`[servers.a.tool.y]`: `x` has this `name` too [config_twice]",
        ),
        (
            "[servers.a]\ncommand = 'x'\n[servers.a.tool.x]\npreset = { a = 1 }\nhide_arguments = ['a']",
            "`[servers.a.tool.x]`: `a` has a preset, so it is hidden already [config_twice]",
        ),
        (
            "[servers.a]\ncommand = 'x'\n[servers.a.tool.x]\npreset = { a = [1, inf] }",
            "JSON has no number inf [config_value]",
        ),
        (
            "[servers.a]\ncommand = 'x'\n[servers.a.tool.x]\npresets = { a = 1 }",
            "unknown key `presets` in `[servers.a.tool.x]` [config_unknown_key]",
        ),
        (
            "[servers.a]\ncommand = 'x'\ntools = ['@read']",
            "`servers.a.tools`: `@read` is a set, whose names have prefixes [config_value]",
        ),
        ("[sets.a]", "`[sets.a]` has no `tools` [config_value]"),
        (
            "[sets.a]\ntools = ['']",
            "`sets.a.tools`: `` is no pattern: a pattern cannot be empty [config_value]",
        ),
        (
            "[sets.read]\ntools = []\n[topics.a]\nhide = ['@raed']",
            "`topics.a.hide`: there is no set `raed` [config_unknown_set]",
        ),
        (
            "[profiles.a]\ncapabilities = ['mcp/proposal:tools/call:@b']",
            "`profiles.a.capabilities`: there is no set `b` [config_unknown_set]",
        ),
        (
            "[profiles.a]",
            "`[profiles.a]` has no `capabilities` [config_value]",
        ),
        (
            "[topics.a]\naccess = 'open'",
            "`open` is not a value of `topics.a.access` [config_value]",
        ),
        (
            "[topics.a]\nanonymous = 'a'",
            "`topics.a.anonymous`: there is no profile `a` [config_unknown_profile]",
        ),
        (
            "[participants.a]\nprofile = 'a'",
            "`participants.a.profile`: there is no profile `a` [config_unknown_profile]",
        ),
        (
            "[participants.anonymous-1]",
            "a participant cannot be called `anonymous-1` [config_name]",
        ),
        (
            "[servers.a]\ncommand = 'x'\nenv = { A = {} }",
            "`servers.a.env.A` names no secret [config_value]",
        ),
        (
            "[servers.a]\ncommand = 'x'\nenv = { A = { comand = ['x'] } }",
            "unknown key `comand` in `servers.a.env.A` [config_unknown_key]",
        ),
        (
            "[servers.a]\ncommand = 'x'\nenv = { A = { command = 'op read x' } }",
            "`servers.a.env.A.command` must be a list of a program and its arguments [config_value]",
        ),
        (
            "[servers.a]\ncommand = 'x'\nenv = { A = { command = ['x'], file = '/x' } }",
            "`servers.a.env.A` has both `command` and `file` [config_twice]",
        ),
        (
            "[servers.a]\ncommand = 'x'\nenv = { A = { secret = 'X', file = '/x' } }",
            "`servers.a.env.A` has both `file` and `secret` [config_twice]",
        ),
        (
            "[servers.a]\ncommand = 'x'\nenv = { A = { caller = 'Key', secret = 'x' } }",
            "`servers.a.env.A` has both `caller` and `secret` [config_value]",
        ),
        (
            "[servers.a]\ncommand = 'x'\nenv = { A = { caller = '' } }",
            "`servers.a.env.A.caller` must say in at most 100 characters what the key is called [config_value]",
        ),
        (
            "[servers.a]\ncommand = 'x'\nenv = { A = { caller = 'One' }, B = { caller = 'Two' } }",
            "`servers.a.env.B.caller`: the server has another key of each caller [config_value]",
        ),
        (
            "[servers.a]\nurl = 'http://x/'\nenv = { A = { caller = 'Key' } }",
            "`[servers.a]`: `caller` has no effect in `env` of a server with a `url`, nor in `headers` of one with a `command` [config_value]",
        ),
        (
            "[servers.a]\nurl = 'http://x/'\nheaders = { A = { caller = 'Key' } }\nauth = { kind = 'oauth' }",
            "`[servers.a.auth]`: each caller enters a key for the server, and has no other account there [config_auth]",
        ),
        (
            "[participants.a]\ntoken = { caller = 'Key' }",
            "`participants.a.token`: `caller` is for values of `env` and `headers` of a server [config_value]",
        ),
        (
            "[servers.a]\ncommand = 'x'\nenv = { A = { secret = '../x' } }",
            "`servers.a.env.A.secret`: a name of a secret has 1 to 64 letters, digits, `_` and `-`, and begins with a letter or digit [config_value]",
        ),
        (
            "[servers.a]\nurl = 'http://x/'\nheaders = { A = { file = '/x', prefix = 1 } }",
            "`servers.a.headers.A.prefix` must be a text [config_value]",
        ),
        (
            "[servers.a]\nurl = 'http://x/'\nauth = { client_secret = 'x' }",
            "`servers.a.auth.client_secret`: a secret must not be in the configuration file [config_token]",
        ),
        (
            "[participants.a]\ntoken = { file = '~ann/x' }",
            "`participants.a.token.file`: `~ann` is not expanded [config_value]",
        ),
        (
            "[servers]\na = 1",
            "`servers` must be a table of tables, not 1 [config_value]",
        ),
        (
            "[servers.a]\ncommand = 'x'\n[topics.main]\n[participants.a_b]\nserves = true",
            "names of `a` and `a_b` could shadow each other: give one of them another `prefix` [config_prefix]",
        ),
        (
            "[servers.a]\ncommand = 'x'\n[topics.main]\n[participants.a]\nserves = true",
            "the name `a` is used twice: in `[servers]` and in `[participants]` [config_twice]",
        ),
        (
            "[topics.main]\n[participants.a]\nserves = true\n[participants.'a/b']\nserves = true\n[participants.'a_b']\nserves = true",
            "names of `a` and `a/b` could shadow each other: give one of them another `prefix` [config_prefix]",
        ),
        (
            "[servers.a]\ncommand = 'x'\n[servers.b]\ncommand = 'x'\nprefix = 'a_b'",
            "names of `a` and `b` could shadow each other: give one of them another `prefix` [config_prefix]",
        ),
        (
            "[servers.a]\ncommand = 'x'\n[participants.a]\ntoken_env = 'TOKEN'",
            "the name `a` is used twice: in `[servers]` and in `[participants]` [config_twice]",
        ),
        (
            "[participants.'аса']\n[participants.aca]",
            "the names `аса` in `[participants]` and `aca` in `[participants]` look alike [config_alike]",
        ),
        (
            "[participants.'b\u{43e}ss']",
            "`bоss` is not a valid name: the name mixes scripts, so that it can look like another name [config_name]",
        ),
        (
            "[issuers.rules]\nissuer = 'https://idp.example'",
            "`rules` cannot be the name of an issuer [config_name]\n  at portmoot.toml:1\n  hint: names that begin so belong to the gateway: choose another",
        ),
        (
            "[issuers.Portmoot]\nissuer = 'https://idp.example'",
            "`Portmoot` cannot be the name of an issuer [config_name]",
        ),
        (
            "[issuers.System]\nissuer = 'https://idp.example'",
            "`System` cannot be the name of an issuer [config_name]",
        ),
        (
            "[participants.'rules:x']\ntoken_env = 'TOKEN'",
            "`rules:x` is not a valid name: this name, or one that looks like it, belongs to the gateway [config_name]",
        ),
        (
            "[participants.Local]",
            "a participant cannot be called `Local` [config_name]",
        ),
        (
            "[participants.a]\ntoken_env = 'TOKEN'\n[participants.b]\ntoken_env = 'TOKEN'",
            "`a` and `b` have the same token [config_token_twice]",
        ),
        (
            "[participants.a]\ntoken_env = 'GONE'",
            "`participants.a.token_env`: the environment variable `GONE` is not set [config_token]",
        ),
        (
            "[participants.a]\ntoken_env = 'SHORT'",
            "`participants.a.token_env`: the token has fewer than 16 characters [config_token]",
        ),
        (
            "[participants.a]\ntoken = 'x'",
            "`participants.a.token`: a token must not be in the configuration file [config_token]",
        ),
        (
            "[participants.a]\ntoken_sha256 = 'x'",
            "`participants.a.token_sha256` must be 64 hexadecimal digits [config_token]",
        ),
        (
            "[participants.a]\ncapabilities = ['*']",
            "`*` is not a capability",
        ),
        (
            "[participants.a]\ncapabilities = [{ kind = 'chat', from = 'x' }]",
            "unknown key `from` in a capability: it has `kind` and `to` [config_capability]",
        ),
        (
            "[participants.a]\nwires = []",
            "`participants.a.wires` opens no wire: the participant could not come in [config_value]",
        ),
        (
            "[participants.a]\nwires = ['wss']",
            "`participants.a.wires`: there is no wire `wss` [config_value]",
        ),
        (
            "[participants.a]\nrate = '5/h'",
            "`participants.a.rate` is not a rate [config_value]",
        ),
        (
            "[participants.a]\ntopics = ['mian']",
            "`a` may join `mian`, but there is no such topic [config_unknown_topic]",
        ),
        (
            "[topics.main]\nservers = ['x']",
            "`topics.main.servers`: there is no server `x` [config_unknown_server]",
        ),
        (
            "[topics.main]\ntools_list = 'search'\nbuiltin = ['room']",
            "`topics.main.tools_list`: no tool would be listed [config_value]",
        ),
        (
            "[topics.main]\nbuiltin = ['proxi']",
            "`topics.main.builtin`: there is no built-in tool `proxi` [config_value]",
        ),
        (
            "[server]\nlisten = 'everywhere'",
            "`server.listen` must be an address and a port, not \"everywhere\" [config_value]",
        ),
        (
            "[server]\npublic_url = 'http://gw.example'",
            "`server.public_url` must begin with https:// (http:// is for localhost, 127.0.0.1 and [::1] only) [config_value]",
        ),
        (
            "[server.limits]\nsessions_max = 0",
            "`server.limits.sessions_max` must be more than 0 [config_value]",
        ),
        (
            "[server.limits]\nsession_max = 1",
            "unknown key `session_max` in `[server.limits]` [config_unknown_key]",
        ),
        (
            "[registry]\nhosts = ['http://registry.example']",
            "`registry.hosts`: `http://registry.example` is not HOST, HOST:PORT, or http:// with a loopback address [config_value]",
        ),
        (
            "[registry]\nhosts = ['a.example']\npins = { 'a.example' = 'x' }",
            "`registry.pins` needs the SHA-256 of a certificate [config_tls]",
        ),
        (
            "[registry]\nhosts = ['a.example']\npins = { 'b.example' = 'x' }",
            "`registry.pins`: `b.example` is not among the hosts [config_value]",
        ),
        (
            "[sever]\n",
            "unknown key `sever` in the configuration [config_unknown_key]",
        ),
        (
            "listen = 2026-07-28",
            "a date is not a valid value here [config_value]",
        ),
        ("a = \n", "[config_syntax]"),
    ] {
        let found = problems(toml);
        assert!(found.contains(expect), "{toml}\n{found}");
    }
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

#[test]
fn a_server_has_what_is_said_about_its_tools() {
    let config = good(
        r#"
[servers.a]
command = "x"
tools = ["get_*", "put"]
hide = ["get_secret"]
[servers.a.tool.get_issue]
name = "issue"
title = "Issue"
description = "One issue."
annotations = { readOnlyHint = true }
preset = { owner = "acme", deep = { list = [1, 2.5, false] } }
hide_arguments = ["token"]
"#,
    );
    let curation = config.servers[0].curation.as_ref().unwrap();
    let shown = ["get_issue", "put", "get_secret", "other"].map(|own| curation.shows(own));
    assert_eq!(
        (shown, curation.name("get_issue")),
        ([true, true, false, false], "issue")
    );
    let tool = &curation.tools["get_issue"];
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(tool.annotations, [pair("readOnlyHint", "true")]);
    assert_eq!(
        tool.preset,
        [
            pair("owner", "\"acme\""),
            pair("deep", r#"{"list":[1,2.5,false]}"#)
        ]
    );
    assert_eq!(
        (tool.title.as_deref(), tool.hidden_arguments.as_slice()),
        (Some("Issue"), &["token".to_owned()][..])
    );
}

#[test]
fn a_set_stands_for_its_patterns() {
    let config = good(
        r#"
[sets.read]
tools = ["gh_get_*", "fs_read"]
[sets.none]
tools = []
[topics.main]
tools = ["@read", "gh_list"]
hide = ["@none", "gh_get_secret"]
[topics.other]
[participants.ann]
token_env = "TOKEN"
capabilities = ["chat", { kind = "mcp/request:tools/call:@read", to = ["gh", "fs"] }, "mcp/proposal:tools/call:@none"]
"#,
    );
    let tools = config.identity.topics[0].tools.as_ref().unwrap();
    let shown = ["gh_get_x", "fs_read", "gh_list", "gh_get_secret", "gh_put"]
        .map(|name| tools.admits(name));
    assert_eq!(
        (shown, &config.identity.topics[1].tools),
        ([true, true, true, false, false], &None)
    );
    let held: Vec<String> = config.identity.participants[0]
        .participant
        .capabilities
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        held,
        [
            "chat",
            "mcp/request:tools/call:gh_get_*",
            "mcp/request:tools/call:fs_read"
        ]
    );
    let to = config.identity.participants[0]
        .participant
        .capabilities
        .iter()
        .nth(2)
        .and_then(|one| Some(one.addressees()?.count()));
    assert_eq!((to, config.sets.len()), (Some(2), 2));
}

#[test]
fn only_calls_of_tools_name_sets() {
    let config = good(
        "[profiles.a]\ncapabilities = [\"mcp/request:prompts/get:@x\", \"mcp/request:tools/call:a:@x\"]\n",
    );
    assert!(config.sets.is_empty(), "another context is what it says");
}

/// A configuration with a secret of each kind, under each key that may name one.
fn with_secrets(folder: &std::path::Path) -> String {
    use std::os::unix::fs::PermissionsExt;
    let file = folder.join("token");
    std::fs::write(&file, "hush-hush-hush-hush\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    format!(
        r#"
[server]
public_url = "https://gw.example"
[servers.a]
command = "x"
env = {{ A = {{ command = ["printf", "hush-a"] }} }}
[servers.b]
url = "https://b.example/mcp"
headers = {{ Authorization = {{ command = ["printf", "hush-b\\n"], prefix = "Bearer " }} }}
[servers.c]
url = "https://c.example/mcp"
[servers.c.auth]
client_id = "gateway"
issuer = "https://idp.example"
client_secret = {{ command = ["printf", "hush-c"] }}
[servers.off]
command = "x"
enabled = false
env = {{ A = {{ command = ["false"] }} }}
[participants.p]
token = {{ file = {file:?} }}
[issuers.i]
issuer = "https://idp.example"
tokens = "introspect"
client_id = "gateway"
client_secret = {{ command = ["printf", "hush-i"] }}
"#
    )
}

#[test]
fn secrets_are_named_and_read_when_the_operator_has_agreed() {
    let folder = tempfile::tempdir().unwrap();
    let tree = tree(&with_secrets(folder.path()));
    let named = Outside::unread(&env);
    let before = check(&tree, &named, &mut Vec::new()).unwrap();
    let named = named.into_named();
    let keys: Vec<&str> = named.iter().map(|one| one.key.as_str()).collect();
    assert_eq!(
        keys,
        [
            "servers.a.env.A",
            "servers.b.headers.Authorization",
            "servers.c.auth.client_secret",
            "participants.p.token",
            "issuers.i.client_secret"
        ],
        "a disabled server needs none"
    );
    let secrets = Secrets::default();
    assert!(secrets.renew(&named, &KeptSecrets::default()).is_empty());
    let mut notices = Vec::new();
    let after = check(&tree, &Outside::with(&env, &secrets), &mut notices).unwrap();
    assert_eq!(notices, [""; 0]);
    let value = |config: &Config, server: usize| match &config.servers[server].transport {
        Transport::Stdio(child) => child.env[0].1.expose().to_owned(),
        Transport::Http(http) => http.headers[0].1.expose().to_owned(),
        other => panic!("{other:?}"),
    };
    assert_eq!([value(&before, 0), value(&before, 1)], ["", ""]);
    assert_eq!(
        [value(&after, 0), value(&after, 1)],
        ["hush-a", "Bearer hush-b"]
    );
    let (_, auth) = &after.auth[2];
    assert_eq!(
        auth.client_secret.as_ref().map(|secret| secret.expose()),
        Some("hush-c")
    );
    let hash = auth::TokenHash::of("hush-hush-hush-hush");
    assert!(
        before.identity.participants[0].credentials[0].hash != hash,
        "an unread token admits no one"
    );
    assert!(after.identity.participants[0].credentials[0].hash == hash);
    assert!(after.identity.issuers != before.identity.issuers);
    assert!(
        !format!("{after:?}").contains("hush-"),
        "debug output has no secret"
    );
    let digested = format!(
        "{:?}",
        after
            .servers
            .iter()
            .map(|server| server.identity())
            .collect::<Vec<_>>()
    );
    assert!(!digested.contains("hush-"), "{digested}");
    for shown in [to_toml(&tree, true), super::to_json(&tree).to_string()] {
        assert!(
            shown.contains("printf") && shown.contains("prefix") && !shown.contains("(hidden)\""),
            "{shown}"
        );
    }
}

#[test]
fn a_secret_that_cannot_be_read_keeps_its_server_down_and_no_token_open() {
    let toml = "[servers.a]\ncommand = 'x'\nenv = { A = { command = ['false', 'hush'] } }\n[servers.b]\ntype = 'demo'\n";
    let read = |toml: &str, notices: &mut Vec<String>| {
        let tree = tree(toml);
        let secrets = Secrets::default();
        let named = Outside::unread(&env);
        check(&tree, &named, &mut Vec::new()).unwrap();
        secrets.renew(&named.into_named(), &KeptSecrets::default());
        check(&tree, &Outside::with(&env, &secrets), notices)
    };
    let mut notices = Vec::new();
    let config = read(toml, &mut notices).unwrap();
    let Transport::Unusable { why, .. } = &config.servers[0].transport else {
        panic!("it is unusable")
    };
    let failed = "the command `false` failed: exit status: 1";
    assert_eq!(
        *why,
        format!("the secret `servers.a.env.A` cannot be read: {failed}")
    );
    assert!(
        matches!(config.servers[1].transport, Transport::Demo),
        "the others run"
    );
    let notice = "the secret `servers.a.env.A` cannot be read, so the server `a` cannot start";
    assert_eq!(notices, [format!("portmoot.toml:3: {notice}: {failed}")]);
    for (token, expect) in [
        (
            "{ command = ['false'] }",
            "the secret `participants.p.token` cannot be read",
        ),
        (
            "{ command = ['printf', 'short'] }",
            "the token has fewer than 16 characters",
        ),
    ] {
        let problems = read(
            &format!("[participants.p]\ntoken = {token}\n"),
            &mut Vec::new(),
        )
        .unwrap_err();
        assert!(problems[0].to_string().contains(expect), "{problems:?}");
    }
}
