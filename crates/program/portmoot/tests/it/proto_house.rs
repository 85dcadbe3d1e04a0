//! Houses of both kinds: what a client has of a server that speaks JSON, with and without proto-mcp
//! on the way.

use harness::proto_client;
use serde_json::{Value, json};

use crate::front::{BARE, over_stdio, pipe};
use crate::home::Home;
use crate::listed_server::ListedServer;
use crate::proto_clients::{TOO_BIG, check, websocket};
use crate::support::{Client, Gateway, fixture, modern};

/// A gateway whose server `far` is a gateway with this configuration, which it speaks proto-mcp
/// with.
fn behind_proto(inner: &Home, outer: &Home, config: &str) -> Gateway {
    let words = pipe(inner, config);
    let (command, words) = words.split_first().unwrap();
    let table = "[servers.far]\ntype = \"proto\"\nfallback = false\n";
    let gateway = Gateway::start(
        outer,
        &format!("{table}command = {command:?}\nargs = {words:?}\n"),
    );
    gateway.ready("far");
    gateway
}

/// A gateway with the fixture of this era as `far`: its child, or the child of a gateway that it
/// speaks proto-mcp with.
fn house(inner: &Home, outer: &Home, era: &str, protobuf: bool) -> Gateway {
    if protobuf {
        return behind_proto(inner, outer, &over_stdio("", &["--era", era]));
    }
    let gateway = Gateway::start(outer, &fixture("far", &["--era", era]));
    gateway.ready("far");
    gateway
}

/// Calls whose results say everything that proto-mcp has words for.
fn calls() -> Vec<(&'static str, Value)> {
    let call = |tool: &str, arguments: Value| {
        (
            "tools/call",
            json!({ "name": format!("far_{tool}"), "arguments": arguments }),
        )
    };
    vec![
        call("echo", json!({ "text": "grüße" })),
        call("add", json!({ "a": 2, "b": 3 })),
        call("test_multiple_content_types", json!({})),
        call("test_error_handling", json!({})),
        call("test_image_content", json!({})),
        call("test_audio_content", json!({})),
        call("test_embedded_resource", json!({})),
        ("resources/read", json!({ "uri": "test://static-text" })),
        ("resources/read", json!({ "uri": "test://static-binary" })),
        ("resources/read", json!({ "uri": "test://none" })),
    ]
}

/// Removes what proto-mcp has no words for: how long a resource or a list may be kept, and that
/// calls may become tasks.
fn without_the_unsaid(answer: &mut Value) {
    let Some(result) = answer.get_mut("result").and_then(Value::as_object_mut) else {
        return;
    };
    result.retain(|key, _| !matches!(key.as_str(), "ttlMs" | "cacheScope"));
    for tool in result
        .get_mut("tools")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        tool.as_object_mut().unwrap().remove("execution");
    }
}

/// Everything that clients of both eras see.
fn seen(gateway: &Gateway) -> Vec<(String, Value)> {
    let client = Client::plain(gateway);
    let mut seen = Vec::new();
    let lists = [("tools/list", json!({})), ("resources/list", json!({}))];
    for (method, params) in lists.into_iter().chain(calls()) {
        let name = format!("{method} {params}");
        seen.push((format!("legacy {name}"), client.ask(method, params.clone())));
        seen.push((
            format!("modern {name}"),
            modern(gateway, None, method, params).json(),
        ));
    }
    for (_, answer) in &mut seen {
        answer.as_object_mut().unwrap().remove("id");
        without_the_unsaid(answer);
    }
    seen
}

#[test]
fn a_server_behind_proto_mcp_is_the_same_for_clients_of_json() {
    for era in ["legacy", "modern"] {
        let homes = [Home::new(), Home::new(), Home::new(), Home::new()];
        let [plain, proto] = [(0, false), (2, true)]
            .map(|(at, protobuf)| house(&homes[at], &homes[at + 1], era, protobuf));
        for ((name, direct), (_, far)) in seen(&plain).into_iter().zip(seen(&proto)) {
            assert_eq!(far, direct, "{era} {name}");
        }
    }
}

#[test]
fn arguments_and_results_are_equal_behind_proto_mcp() {
    let schema = json!({
        "type": "object",
        "properties": {
            "tags": { "type": "array", "items": { "type": "string" } },
            "labels": { "type": "object", "additionalProperties": { "type": "integer" } },
            "note": { "type": ["string", "null"] },
            "n": { "type": "integer" },
            "any": {},
            "inner": { "type": "object", "properties": { "list": { "type": "array", "items": {} } } },
        },
    });
    let homes = [Home::new(), Home::new()];
    let tool = json!([{ "name": "mirror", "inputSchema": schema, "outputSchema": schema }]);
    let server = ListedServer::new(&homes[0], "far", &[]);
    homes[0].write("far", &tool.to_string());
    let gateway = behind_proto(
        &homes[0],
        &homes[1],
        &format!("{BARE}{}prefix = \"\"\n", server.table()),
    );
    let client = Client::plain(&gateway);
    for arguments in [
        json!({}),
        json!({ "tags": [], "labels": {}, "note": null, "inner": {} }),
        json!({ "tags": ["", "ü"], "labels": { "a": 0 }, "note": "", "n": 9_007_199_254_740_993_i64 }),
        json!({ "any": null }),
        json!({ "any": [1, 2.5, "x", { "a": [] }, null], "inner": { "list": [] } }),
    ] {
        assert_eq!(
            client.call("far_mirror", arguments.clone())["structuredContent"],
            arguments
        );
    }
    let error = client.ask(
        "tools/call",
        json!({ "name": "far_mirror", "arguments": { "other": 1 } }),
    );
    assert_eq!(error["error"]["code"], -32602, "{error}");
}

#[test]
fn a_server_behind_proto_mcp_is_the_same_for_clients_of_proto_mcp() {
    for era in ["legacy", "modern"] {
        let homes = [Home::new(), Home::new()];
        let gateway = house(&homes[0], &homes[1], era, true);
        check(
            &proto_client(&["--prefix", "far_", "--ws", &websocket(&gateway)]),
            "far_",
            &json!(TOO_BIG),
        );
    }
}
