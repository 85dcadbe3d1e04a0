//! Clients and servers that both speak proto-mcp, with the gateway between them: their own messages
//! and bytes pass as they are.

use std::fs;
use std::path::Path;

use harness::proto_relay;
use serde_json::{Value, json};

use crate::home::Home;
use crate::proto_clients::websocket;
use crate::proto_servers::{child, listening};
use crate::support::{Gateway, until};
use crate::ws::{Socket, people, token};

/// What `tests/third-party/proto_server.py` answers the tool `raw` with, without the id.
const RAW: &str = "3a9c007a0278790a8c8000108080000a060a04646f6e651a061201760a016b";

/// A result of `find`: count 7, query "ab", filter { since }, as the server wrote it.
const FOUND: &str = "0807120261622a09108180808080808010";

/// Checks what a client of the tools of the Python server saw.
fn check(report: &Value) {
    let at = |key: &str| report.get(key).unwrap_or(&Value::Null).clone();
    assert_eq!(
        at("messages"),
        json!(["acme.tools.v1.FindRequest", "acme.tools.v1.FindResponse"])
    );
    assert_eq!(
        at("numbers"),
        json!({ "query": 1, "limit": 4, "tags": 7, "filter": 9 })
    );
    assert_eq!(at("open"), "google.protobuf.Struct");
    assert_eq!(at("inline"), json!([13, 13]));
    assert_eq!(at("found"), found());
    assert_eq!(
        (at("plain"), at("echo")),
        (json!(["found ab"]), json!({ "q": 1.5 }))
    );
    assert_eq!(
        at("broken_rule"),
        json!([-33001, [["query", "string.min_len"]]])
    );
    assert_eq!(at("unknown_field")[0], -32602);
    assert_eq!(at("wrong_message")[0], -32602);
    assert_eq!(at("refused"), json!([-32602, "these arguments do not fit"]));
    assert_eq!(at("failed"), json!([-32603, "the tool broke"]));
    assert_eq!(at("blob"), "00ff01");
    let uris = at("uris").as_array().unwrap().clone();
    assert!(
        uris.len() >= 2 && uris.iter().all(|pair| pair[0] == pair[1]),
        "{uris:?}"
    );
    assert_eq!(at("grown"), true);
}

fn found() -> Value {
    json!([["found ab"], "acme.tools.v1.FindResponse", FOUND])
}

/// The calls that the server got, in hexadecimal, without the id that the gateway gave them.
pub(crate) fn got(record: &Path, tool: &str) -> Vec<String> {
    let text = fs::read_to_string(record).unwrap();
    let of_tool = |line: &&str| line.contains(&hex(tool)) && line.contains(&hex("FindRequest"));
    text.lines().filter(of_tool).map(str::to_owned).collect()
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_bytes_of_a_call_pass_untouched() {
    for prefix in ["p_", ""] {
        let home = Home::new();
        let record = home.path().join("record");
        let config = child("p", &["--record", record.to_str().unwrap()]);
        let config = if prefix.is_empty() {
            format!("{config}prefix = \"\"\n")
        } else {
            config
        };
        let gateway = Gateway::start(&home, &config);
        gateway.ready("p");
        let report = proto_relay(&[prefix, &websocket(&gateway)]);
        check(&report);
        let got = got(&record, "raw");
        assert_eq!(got.len(), 2, "{got:?}");
        for (got, sent) in got.iter().zip(report["sent"].as_array().unwrap()) {
            let sent = sent.as_str().unwrap();
            assert!(got.ends_with(sent), "{prefix}: {got} is not {sent}");
        }
        for answer in report["answers"].as_array().unwrap() {
            let answer = answer.as_str().unwrap();
            // The id of the client, 562.
            assert_eq!(answer, format!("08b204{RAW}"));
        }
    }
}

#[test]
fn a_client_has_of_a_server_what_it_has_without_the_gateway() {
    let server = listening("tcp", &[]);
    let config = format!(
        "[servers.p]\ntype = \"proto\"\nurl = {:?}\nprefix = \"\"\n",
        server.address()
    );
    let gateway = Gateway::start(&Home::new(), &config);
    gateway.ready("p");
    let [direct, through] =
        [server.address(), &websocket(&gateway)].map(|url| proto_relay(&["", url]));
    let same = [
        "messages", "own", "numbers", "found", "echo", "refused", "failed", "blob", "uris",
        "answers",
    ];
    for key in same {
        assert!(direct.get(key).is_some(), "{key}: {direct}");
        assert_eq!(direct[key], through[key], "{key}");
    }
}

#[test]
fn a_uri_that_two_servers_have_is_public_in_requests_and_answers() {
    let gateway = Gateway::start(&Home::new(), &[child("p", &[]), child("q", &[])].concat());
    gateway.ready("p");
    gateway.ready("q");
    let report = proto_relay(&["p_", &websocket(&gateway)]);
    assert_eq!(report["uris"].as_array().map(Vec::len), Some(4), "{report}");
    for pair in report["uris"].as_array().unwrap() {
        assert_eq!(pair[0], pair[1], "{report}");
    }
}

#[test]
fn who_looks_at_a_call_sees_json() {
    const ALL: &[&str] = &["mcp/*", "chat"];
    let (home, config) = people(&[
        ("ann", ALL),
        ("boss", ALL),
        ("watch", ALL),
        ("scout", &["mcp/proposal:*", "mcp/response:*"]),
    ]);
    let record = home.path().join("record");
    let more = "[audit]\npayloads = \"full\"\n[topics.main]\nmcp_calls = \"full\"\n";
    let server = child("p", &["--record", record.to_str().unwrap()]);
    let gateway = Gateway::start(&home, &[&config, more, &server].concat());
    gateway.ready("p");
    let find = |name: &str| {
        let words = [
            "p_".to_owned(),
            websocket(&gateway),
            token(name),
            "find".to_owned(),
        ];
        std::thread::spawn(move || proto_relay(&words))
    };
    let arguments =
        json!({ "query": "ab", "limit": 7, "filter": { "since": 9_007_199_254_740_993_i64 } });
    let result =
        json!({ "query": "ab", "count": 7, "filter": { "since": 9_007_199_254_740_993_i64 } });

    let mut watch = Socket::enter(&gateway, "watch", "");
    assert_eq!(find("ann").join().unwrap()["found"], found());
    let [request, response] = [watch.receive_message(), watch.receive_message()];
    assert_eq!(
        request["payload"]["params"]["arguments"], arguments,
        "{request}"
    );
    assert_eq!(
        response["payload"]["result"]["structuredContent"], result,
        "{response}"
    );
    let query = [
        "audit",
        "query",
        "--json",
        "--data-dir",
        "data",
        "--participant",
        "ann",
    ];
    until("the entry", || {
        let entries: Value = serde_json::from_str(&home.run(&query).expect(0).stdout).unwrap();
        let mut entries = entries["entries"].as_array()?.iter();
        entries
            .find(|entry| entry["payload"]["arguments"] == arguments)
            .cloned()
    });

    // A call that is held is shown, and runs as it was shown, or as it was edited.
    let edited = r#"{"query":"other"}"#;
    for (more, answer) in [
        (&[][..], found()[0].clone()),
        (&["--arguments", edited], json!(["found other"])),
    ] {
        let scout = find("scout");
        let proposal = gateway.pending(&home, &token("boss"));
        assert_eq!(proposal["params"]["arguments"], arguments, "{proposal}");
        let id = proposal["id"].as_str().unwrap();
        let (url, token) = (gateway.url(), token("boss"));
        let approve = [
            "proposals",
            "approve",
            id,
            "--yes",
            "--no-wait",
            "--url",
            &url,
            "--token",
            &token,
        ];
        home.run(&[&approve, more].concat()).expect(0);
        assert_eq!(scout.join().unwrap()["found"][0], answer);
    }
    assert_eq!(got(&record, "find").len(), 3);
}

#[test]
fn metadata_of_a_tool_that_is_not_mcps_own_passes_between_peers() {
    let gateway = Gateway::start(&Home::new(), &child("p", &[]));
    gateway.ready("p");
    let report = proto_relay(&["p_", &websocket(&gateway)]);
    assert_eq!(
        report["own"],
        json!({ "acme.owner": "the search team", "x-cost": "{\"cents\": 2}" }),
        "{report}"
    );
}
