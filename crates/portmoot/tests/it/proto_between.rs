//! Clients and servers that both speak proto-mcp, with the gateway between them: their own messages and bytes pass as they are.

use std::fs;

use harness::proto_relay;
use serde_json::{Value, json};

use crate::home::Home;
use crate::proto_clients::websocket;
use crate::proto_servers::child;
use crate::support::Gateway;

/// What `tests/third-party/proto_server.py` answers the tool `raw` with, without the id.
const RAW: &str = "3a9c007a0278790a8c8000108080000a060a04646f6e651a061201760a016b";

/// Checks what a client of the tools of the Python server saw.
fn check(report: &Value) {
    let at = |key: &str| report.get(key).unwrap_or(&Value::Null).clone();
    assert_eq!(at("messages"), json!(["acme.tools.v1.FindRequest", "acme.tools.v1.FindResponse"]));
    assert_eq!(at("numbers"), json!({ "query": 1, "limit": 4, "tags": 7, "filter": 9 }));
    assert_eq!(at("open"), "google.protobuf.Struct");
    // count 7, query "ab", filter { since }, as the server wrote them.
    let found = "0807120261622a09108180808080808010";
    assert_eq!(at("found"), json!([["found ab"], "acme.tools.v1.FindResponse", found]));
    assert_eq!((at("plain"), at("echo")), (json!(["found ab"]), json!({ "q": 1.5 })));
    assert_eq!(at("broken_rule"), json!([-33001, [["query", "string.min_len"]]]));
    assert_eq!(at("unknown_field")[0], -32602);
    assert_eq!(at("wrong_message")[0], -32602);
    assert_eq!(at("refused"), json!([-32602, "these arguments do not fit"]));
    assert_eq!(at("failed"), json!([-32603, "the tool broke"]));
    assert_eq!(at("blob"), "00ff01");
}

/// The calls that the server got, in hexadecimal, without the id that the gateway gave them.
fn got(record: &str) -> Vec<String> {
    let raw = record.lines().filter(|line| line.contains(&hex("raw")) && line.contains(&hex("FindRequest")));
    raw.map(str::to_owned).collect()
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
        let config = if prefix.is_empty() { format!("{config}prefix = \"\"\n") } else { config };
        let gateway = Gateway::start(&home, &config);
        gateway.ready("p");
        let report = proto_relay(&[prefix, &websocket(&gateway)]);
        check(&report);
        let got = got(&fs::read_to_string(&record).unwrap());
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
