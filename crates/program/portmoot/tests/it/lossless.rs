//! Relay tests: answers through the gateway equal those of the server itself; arbitrary JSON passes
//! byte for byte.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

use harness::Running;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::peer::{Peer, answer, small, tool};
use crate::socket::{Gateway, LEGACY, Session, fixture_server, initialize, modern_body, until};

/// Requests of both eras: method, value of `Mcp-Name`, members of the params.
fn requests() -> Vec<(&'static str, Option<&'static str>, &'static str)> {
    vec![
        ("tools/list", None, ""),
        ("resources/list", None, ""),
        ("resources/templates/list", None, ""),
        ("prompts/list", None, ""),
    ]
}

fn raw_requests() -> Vec<(&'static str, Option<&'static str>, &'static str)> {
    let more = [
        (
            "tools/call",
            Some("canned"),
            r#""name":"canned","arguments":{"n":1e400}"#,
        ),
        (
            "tools/call",
            Some("mirror"),
            r#""name":"mirror","arguments":{"content":[], "n":[-0.0, 12345678901234567890]}"#,
        ),
        (
            "tools/call",
            Some("params"),
            r#""x-vendor":[1.0,null], "name":"params","arguments":{"a" : 1E+2}"#,
        ),
        ("tools/call", Some("pretty"), r#""name":"pretty""#),
        ("tools/call", Some("stray"), r#""name":"stray""#),
        (
            "tools/call",
            Some("unknown"),
            r#""name":"unknown","arguments":{}"#,
        ),
        (
            "resources/read",
            Some("raw://one"),
            r#""uri":"raw://one","x-vendor":-0.0"#,
        ),
        (
            "resources/read",
            Some("raw://item/7"),
            r#""uri":"raw://item/7""#,
        ),
        (
            "prompts/get",
            Some("canned"),
            r#""name":"canned","arguments":{"a":"\u00e9"}"#,
        ),
        (
            "completion/complete",
            None,
            r#""ref":{"type":"ref/prompt","name":"canned"},"argument":{"name":"a","value":"o"}"#,
        ),
        (
            "completion/complete",
            None,
            r#""ref":{"type":"ref/resource","uri":"raw://item/{id}"},"argument":{"name":"id","value":"1"}"#,
        ),
    ];
    requests().into_iter().chain(more).collect()
}

fn sdk_requests() -> Vec<(&'static str, Option<&'static str>, &'static str)> {
    let more = [
        (
            "tools/call",
            Some("echo"),
            r#""name":"echo","arguments":{"text":"\u00e9\n"}"#,
        ),
        (
            "tools/call",
            Some("add"),
            r#""name":"add","arguments":{"a":1,"b":2}"#,
        ),
        (
            "tools/call",
            Some("hidden"),
            r#""name":"hidden","arguments":{}"#,
        ),
        (
            "tools/call",
            Some("fail"),
            r#""name":"fail","arguments":{"code":-32050}"#,
        ),
        (
            "tools/call",
            Some("big"),
            r#""name":"big","arguments":{"bytes":300000}"#,
        ),
        (
            "resources/read",
            Some("test://static-text"),
            r#""uri":"test://static-text""#,
        ),
        (
            "resources/read",
            Some("test://static-binary"),
            r#""uri":"test://static-binary""#,
        ),
        (
            "resources/read",
            Some("test://template/7/data"),
            r#""uri":"test://template/7/data""#,
        ),
        (
            "prompts/get",
            Some("test_simple_prompt"),
            r#""name":"test_simple_prompt""#,
        ),
    ];
    requests().into_iter().chain(more).collect()
}

/// A server on pipes, without a gateway.
struct Direct {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
}

impl Direct {
    fn start(args: &[&str]) -> Direct {
        let mut command = Command::new(harness::fixture_binary());
        command
            .arg("--stdio")
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Direct { child, out }
    }

    /// The answer to id 1.
    fn ask(&mut self, line: &str) -> String {
        let input = self.child.stdin.as_mut().unwrap();
        writeln!(input, "{line}").unwrap();
        loop {
            let mut line = String::new();
            assert!(
                self.out.read_line(&mut line).unwrap() > 0,
                "the server is gone"
            );
            if line.contains("\"id\":1,") || line.contains("\"id\":0,") {
                return line.trim_end().to_owned();
            }
        }
    }
}

impl Drop for Direct {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The members of a result or error with their spelling, sorted, without those that a gateway may
/// change: cursors and cache hints of lists.
fn essence(message: &str) -> Vec<(String, String)> {
    type Raw<'a> = std::collections::BTreeMap<String, &'a serde_json::value::RawValue>;
    let members: Raw<'_> =
        serde_json::from_str(message).unwrap_or_else(|_| panic!("no object: {message}"));
    let (kind, body) = members
        .iter()
        .find(|(key, _)| ["result", "error"].contains(&key.as_str()))
        .unwrap();
    let inner: Raw<'_> = serde_json::from_str(body.get()).unwrap();
    let listed = ["tools", "resources", "resourceTemplates", "prompts"]
        .iter()
        .any(|key| inner.contains_key(*key));
    let hints = ["nextCursor", "ttlMs", "cacheScope"];
    inner
        .into_iter()
        .filter(|(key, _)| !listed || !hints.contains(&key.as_str()))
        .map(|(key, raw)| {
            (
                format!("{kind}.{key}"),
                raw.get().replace(['\r', '\n'], " "),
            )
        })
        .collect()
}

fn legacy_body(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}}}}}"#)
}

type Requests = Vec<(&'static str, Option<&'static str>, &'static str)>;

/// Compares the answers to these requests, directly and through the gateway.
fn same(config: &str, era: &str, server: &[&str], requests: Requests) {
    let gateway = Gateway::serve(config);
    let mut direct = Direct::start(server);
    if era == "legacy" {
        direct.ask(&initialize(LEGACY, "{}"));
        let session = gateway.session();
        for (method, _, params) in &requests {
            let body = legacy_body(method, params);
            let (ours, theirs) = (session.post(&body).message(), direct.ask(&body));
            assert_eq!(essence(&ours), essence(&theirs), "{body}\n{ours}\n{theirs}");
        }
    } else {
        for (method, name, params) in &requests {
            let (ours, theirs) = (
                gateway.modern(method, *name, params).message(),
                direct.ask(&modern_body(method, params)),
            );
            assert_eq!(
                essence(&ours),
                essence(&theirs),
                "{method} {params}\n{ours}\n{theirs}"
            );
        }
    }
}

/// Compares them over every transport of the upstream.
fn same_everywhere(era: &str, raw: bool, requests: fn() -> Requests) {
    let args: Vec<&str> = if raw {
        vec!["--raw", "--era", era]
    } else {
        vec!["--era", era]
    };
    same(
        &fixture_server("fixture", "", &args),
        era,
        &args,
        requests(),
    );
    let served = Running::fixture(&args);
    let mut urls = vec![served.url()];
    if raw {
        urls.push(format!("{}?sse", served.url()));
    }
    for url in urls {
        same(
            &format!("[servers.fixture]\nurl = \"{url}\"\nprefix = \"\"\n"),
            era,
            &args,
            requests(),
        );
    }
}

#[test]
fn golden_legacy_raw() {
    same_everywhere("legacy", true, raw_requests);
}

#[test]
fn golden_modern_raw() {
    same_everywhere("modern", true, raw_requests);
}

#[test]
fn golden_legacy_sdk() {
    same_everywhere("legacy", false, sdk_requests);
}

#[test]
fn golden_modern_sdk() {
    same_everywhere("modern", false, sdk_requests);
}

/// White space, and JSON text that no typed model keeps.
pub(crate) fn raw_json() -> impl Strategy<Value = String> {
    let number = prop_oneof![
        Just("12345678901234567890".to_owned()),
        Just("-0.0".to_owned()),
        Just("1e400".to_owned()),
        Just("1E+2".to_owned()),
        Just("0.10".to_owned()),
        "-?[1-9][0-9]{0,40}(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,4})?",
    ];
    let text = prop_oneof![
        "[a-zA-Z0-9 _./:-]{0,12}",
        Just("\\/\\u00e9\\uD83D\\ude00\\b\\f\\n\\r\\t\\\"\\\\".to_owned()),
        Just("\\ud800 lone".to_owned()),
        Just("\\u0000\\u000a".to_owned()),
        "[à-ž一-丁\u{2028}\u{1F600}]{0,6}",
    ]
    .prop_map(|text| format!("\"{text}\""));
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        number,
        text
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let space = prop_oneof![Just(""), Just(" "), Just("  "), Just("\t")];
        let list = (prop::collection::vec(inner.clone(), 0..4), space.clone()).prop_map(
            |(items, space)| format!("[{space}{}{space}]", items.join(&format!("{space}, "))),
        );
        let object = (
            prop::collection::btree_map("[a-z_$/.-]{1,8}", inner, 0..4),
            space,
        )
            .prop_map(|(members, space)| {
                let members: Vec<String> = members
                    .iter()
                    .map(|(key, value)| format!("\"x{key}\"{space}:{space}{value}"))
                    .collect();
                format!("{{{space}{}{space}}}", members.join(","))
            });
        prop_oneof![list, object]
    })
}

/// Members of an object, each after a comma.
pub(crate) fn extra_members() -> impl Strategy<Value = String> {
    prop::collection::btree_map("[a-z]{1,6}", raw_json(), 0..3).prop_map(|members| {
        members
            .iter()
            .map(|(key, value)| format!(",\"x-{key}\": {value}"))
            .collect()
    })
}

pub(crate) fn run(
    cases: u32,
    strategy: impl Strategy<Value = (String, String)>,
    test: impl Fn((String, String)),
) {
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    runner
        .run(&strategy, |value| {
            test(value);
            Ok(())
        })
        .unwrap();
}

/// Arbitrary members in arguments, params, `_meta` and results return byte for byte.
fn survives(config: impl Fn(&str) -> String, cases: u32) {
    let (legacy, gateway) = (
        Gateway::serve(&config("legacy")),
        Gateway::serve(&config("modern")),
    );
    let session = legacy.session();
    run(cases, (raw_json(), extra_members()), |(value, members)| {
        // `mirror` returns its arguments as its result; over HTTP, line breaks within them are
        // white space.
        let arguments = format!("{{\"content\":[],\"value\":{value}{members}}}");
        let ours = session
            .post(legacy_body(
                "tools/call",
                &format!(r#""name":"mirror","arguments":{arguments}"#),
            ))
            .message();
        assert_eq!(
            ours,
            format!(r#"{{"jsonrpc":"2.0","id":1,"result":{arguments}}}"#)
        );
        // `params` returns the params that arrived.
        let params = format!(
            r#""name":"params","arguments":{value}, "_meta":{{"com.example/x":{value}{members}}}{members}"#
        );
        let ours = session.post(legacy_body("tools/call", &params)).message();
        assert_eq!(
            ours,
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[],"params":{{{params}}}}}}}"#
            )
        );
        let modern = modern_body(
            "tools/call",
            &format!(r#""name":"params","arguments":{value}{members}"#),
        );
        let headers = [
            ("mcp-protocol-version", crate::socket::MODERN),
            ("mcp-method", "tools/call"),
            ("mcp-name", "params"),
        ];
        let ours = gateway.post(&headers, &modern).message();
        let sent = modern
            .split_once("\"params\":")
            .unwrap()
            .1
            .strip_suffix('}')
            .unwrap();
        assert!(
            ours.ends_with(&format!(r#""content":[],"params":{sent}}}}}"#)),
            "{ours}\n{sent}"
        );
    });
}

#[test]
fn arbitrary_json_survives_over_stdio() {
    survives(
        |era| fixture_server("raw", "", &["--raw", "--era", era]),
        150,
    );
}

fn over_http(query: &str) {
    let servers = ["legacy", "modern"].map(|era| (era, Running::fixture(&["--raw", "--era", era])));
    let url = |era: &str| {
        servers
            .iter()
            .find(|(other, _)| *other == era)
            .unwrap()
            .1
            .url()
    };
    survives(
        |era| {
            format!(
                "[servers.raw]\nurl = \"{}{query}\"\nprefix = \"\"\n",
                url(era)
            )
        },
        80,
    );
}

#[test]
fn arbitrary_json_survives_over_http() {
    over_http("");
}

#[test]
fn arbitrary_json_survives_over_an_event_stream() {
    over_http("?sse");
}

fn listed(session: &Session<'_>) -> Vec<String> {
    let listed = session
        .post(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#)
        .json();
    listed["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Long names are shortened readably and deterministically, and reach their tools.
#[test]
fn names_are_shortened_and_prefixed() {
    let long = format!("get_{}_of_the_thing", "very_".repeat(20));
    let other = format!("{long}s");
    let script = {
        let tools = format!("[{},{},{}]", tool(&long), tool(&other), tool("short"));
        move |message: &Value| {
            let said = small(message, &tools).unwrap_or_else(|| {
                answer(
                    message,
                    &format!(
                        r#"{{"content":[{{"type":"text","text":{}}}]}}"#,
                        message["params"]["name"]
                    ),
                )
            });
            vec![said.into_bytes()]
        }
    };
    let mut seen: Vec<Vec<String>> = Vec::new();
    for _ in 0..2 {
        let peer = Peer::stdio(script.clone());
        let gateway =
            Gateway::serve(&[peer.child("alpha", "alpha"), peer.child("beta", "b")].concat());
        let session = gateway.session();
        let mut names = Vec::new();
        until("all are listed", || {
            names = listed(&session);
            names.len() == 6
        });
        assert!(names.iter().all(|name| name.len() <= 64), "{names:?}");
        assert!(
            names.contains(&"alpha_short".to_owned()) && names.contains(&"b_short".to_owned()),
            "{names:?}"
        );
        assert_eq!(
            names
                .iter()
                .filter(|name| name.starts_with("alpha_get_very_"))
                .count(),
            2,
            "{names:?}"
        );
        let own: Vec<Value> = names
            .iter()
            .map(|name| session.call(name, &json!({}))["result"]["content"][0]["text"].clone())
            .collect();
        assert_eq!(
            own.iter().filter(|name| **name == json!(long)).count(),
            2,
            "{own:?}"
        );
        assert_eq!(
            own.iter().filter(|name| **name == json!(other)).count(),
            2,
            "{own:?}"
        );
        seen.push(names);
    }
    assert_eq!(seen[0], seen[1], "another run, the same names");
}

/// Identity and capabilities are the gateway's; instructions are the server's.
#[test]
fn only_the_handshake_is_the_gateways_own() {
    let gateway = Gateway::serve(&fixture_server("raw", "", &["--raw"]));
    let greeting = gateway.post(&[], initialize(LEGACY, "{}")).json();
    assert_eq!(
        greeting.pointer("/result/serverInfo/name"),
        Some(&json!("portmoot"))
    );
    assert_eq!(
        greeting.pointer("/result/instructions"),
        Some(&json!("A raw server."))
    );
    let found = gateway.modern("server/discover", None, "").json();
    assert_eq!(
        found.pointer("/result/instructions"),
        Some(&json!("A raw server."))
    );
    assert_eq!(
        found.pointer("/result/_meta/io.modelcontextprotocol~1serverInfo/name"),
        Some(&json!("portmoot"))
    );
}
