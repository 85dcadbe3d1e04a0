//! Clients that know proto-mcp's contract alone, with Google's runtime: over pipes and sockets.

use harness::proto_client;
use serde_json::{Value, json};

use crate::front::{over_stdio, pipe};
use crate::home::Home;

/// What the client saw of the fixture.
fn check(report: &Value, prefix: &str) {
    let at = |key: &str| report.get(key).unwrap_or(&Value::Null).clone();
    let unsupported = json!([-33002, "unsupported protocol version (use 1.0.0)", "unsupported_protocol"]);
    assert_eq!(at("other_version"), unsupported);
    assert_eq!(
        (at("version"), at("list_changed"), at("prompts")),
        (json!("1.0.0"), json!(true), json!(false))
    );
    assert_eq!(at("ping"), json!([900, null]));
    let tools: Vec<_> =
        at("tools").as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect();
    for tool in ["echo", "add", "json_schema_2020_12_tool"] {
        assert!(tools.contains(&format!("{prefix}{tool}")), "{tools:?}");
    }
    assert_eq!(at("schemas"), json!(tools.len()));
    assert!(at("resources").as_array().unwrap().contains(&json!("test://static-text")));
    assert_eq!((at("plain"), at("typed")), (json!(["hello"]), json!(["grüße"])));
    assert_eq!(at("is_error"), json!(true));
    let blocks = json!([["text", ""], ["image", "image/png"], ["data", ""]]);
    assert_eq!(at("blocks"), blocks);
    assert_eq!(at("unknown_tool")[0], json!(-32602));
    if !prefix.is_empty() {
        // Without a prefix the server itself is asked for names that it does not list.
        assert_eq!(at("unknown_tool")[2], json!("unknown_target"));
    }
    assert_eq!((&at("wrong_message")[0], &at("wrong_message")[2]), (&json!(-32602), &json!("malformed")));
    assert_eq!((&at("wrong_type")[0], &at("wrong_type")[2]), (&json!(-32602), &json!("malformed")));
    assert_eq!((&at("broken_rule")[0], &at("broken_rule")[2]), (&json!(-33001), &json!("schema_violation")));
    assert_eq!(at("same_id"), json!([[800, -32600], [800, 0]]));
    assert_eq!(at("text"), json!(["This is the content of the static text resource."]));
    assert_eq!(at("blob"), json!(["image/png", "89504e47"]));
    assert_eq!(at("unknown_resource")[0], json!(-32002));
    assert_eq!((at("garbage"), at("unknown_payload")), (json!([0, -32700]), json!([7, -32601])));
    assert_eq!(at("answer")[0], json!(-32601));
    assert_eq!((at("too_long"), at("end")), (json!([0, -32600]), json!([0, 0])));
}

#[test]
fn a_client_on_a_pipe_reaches_what_the_gateway_has() {
    for (server, prefix) in [("", ""), ("fixture", "fixture_")] {
        for era in ["legacy", "modern"] {
            let home = Home::new();
            let words = pipe(&home, &over_stdio(server, &["--era", era, "--page", "2"]));
            let mut way = vec!["--prefix", prefix, "--pipe"];
            way.extend(words.iter().map(String::as_str));
            check(&proto_client(&way), prefix);
        }
    }
}
