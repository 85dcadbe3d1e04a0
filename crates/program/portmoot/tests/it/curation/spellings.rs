//! Spellings of hidden arguments.

use super::*;

/// Arguments that hide what no caller may pass, as they are written, and some that pass nothing
/// hidden.
const SPELLINGS: [&str; 17] = [
    r#"{"q":"x","owner":"mine"}"#,
    r#"{"q":"x","owner":"acme"}"#,
    r#"{"q":"x","own\u0065r":"mine"}"#,
    r#"{"q":"x","\u006f\u0077\u006e\u0065\u0072":null}"#,
    r#"{"q":"x","OWNER":"mine"}"#,
    r#"{"q":"x","o_w-ner":"mine"}"#,
    r#"{"q":"x","q":"y","owner":"mine"}"#,
    r#"{"owner":"acme","owner":"mine"}"#,
    r#"{"owner":"acme","own\u0065r":"mine"}"#,
    r#"{"q":"x","force":true}"#,
    r#"{"q":"x","Fo_Rce":true,"force":false}"#,
    r#"{"q":"x","f\u006frce":true}"#,
    r#"{"q":"x","\ud83d":1,"force":true}"#,
    r#"[{"owner":"mine"}]"#,
    r#""owner""#,
    r#"{"q":"x","more":{"owner":"mine","force":true}}"#,
    r#"{"q":"x"}"#,
];

#[test]
fn no_spelling_of_a_hidden_argument_reaches_a_server() {
    let peer = serving();
    let (home, config) = people(&[("ann", &["mcp/*"])]);
    let topic = "[topics.main]\nbuiltin = [\"proxy\"]\n";
    let gateway = Gateway::start(&home, &(config + topic + &peer.child("s", "s") + TABLES));
    gateway.ready("s");
    let ann = token("ann");
    let client = Client::of(&gateway, &ann);
    let old = Client::of_revision(&gateway, &ann, "2025-03-26");
    let (mut room, _) = Socket::welcomed(&gateway, "ann", "?echo=false");
    let mut sent = 0;
    for arguments in SPELLINGS {
        for params in [
            format!(r#"{{"name":"s_find","arguments":{arguments}}}"#),
            format!(r#"{{"name":"s_find","argum\u0065nts":{arguments}}}"#),
            format!(r#"{{"name":"s_find","arguments":{{"q":"x"}},"arguments":{arguments}}}"#),
            format!(r#"{{"name":"s_find","arguments":{arguments},"task":{{}}}}"#),
            format!(
                r#"{{"name":"proxy","arguments":{{"action":"call","type":"tool","path":"s_find","args":{arguments}}}}}"#
            ),
            format!(
                r#"{{"name":"proxy","arguments":{{"action":"call","type":"tool","path":"s_find","args":{{"q":"x"}},"args":{arguments}}}}}"#
            ),
        ] {
            sent += 1;
            client.post_text(&format!(
                r#"{{"jsonrpc":"2.0","id":"r{sent}","method":"tools/call","params":{params}}}"#
            ));
        }
        if let Ok(arguments) = serde_json::from_str::<Value>(arguments) {
            let one = || {
                old.request(
                    "tools/call",
                    json!({ "name": "s_find", "arguments": arguments.clone() }),
                )
            };
            old.begin(&Value::from(vec![one(), one()])).rest();
        }
        let bearer = format!("Bearer {ann}");
        let headers = [
            ("authorization", &*bearer),
            ("content-type", "application/json"),
        ];
        let body = format!(r#"{{"arguments":{arguments}}}"#);
        Connection::open(gateway.address()).exchange(
            "POST",
            "/api/v1/tools/s_find/call",
            &headers,
            &body,
        );
        sent += 1;
        let id = format!("w{sent}");
        room.text(format!(
            r#"{{"protocol":"mcpx/v0.1","id":"{id}","from":"ann","kind":"mcp/request:tools/call:search","to":["s"],"payload":{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"search","arguments":{arguments}}}}}}}"#
        ));
        // The room is read in order.
        let after = format!("{id}-after");
        room.call(&after, &["s"], "search", json!({ "q": "x" }));
        room.receive_until(|envelope| envelope["correlation_id"] == *after);
    }
    // What passes nothing hidden has arrived on each wire, and nothing else.
    let lines: Vec<String> = peer
        .received()
        .into_iter()
        .filter(|line| line.contains("tools/call"))
        .collect();
    let calls = got(&peer, "search");
    assert!(calls.len() >= 2 * 8, "{calls:?}");
    for (line, arguments) in lines.iter().zip(&calls) {
        let mut names: Vec<&str> = arguments
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        names.sort_unstable();
        assert!(
            names == ["more", "owner", "q"] || names == ["owner", "q"],
            "{line}"
        );
        assert_eq!(
            (&arguments["owner"], &arguments["q"]),
            (&json!("acme"), &json!("x")),
            "{line}"
        );
        let nested = usize::from(arguments["more"].is_object());
        assert_eq!(line.matches("\"owner\"").count(), 1 + nested, "{line}");
    }
}
