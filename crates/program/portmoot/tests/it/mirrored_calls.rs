//! Calls of MCP clients mirrored to the room, by `mcp_calls`: none, kinds only, or full; never
//! questions to a client's user.

use serde_json::{Value, json};

use crate::home::Home;
use crate::support::{Client, Gateway, fixture, modern, modern_stream};
use crate::ws::{Socket, people, token};

const FULL: &[&str] = &["mcp/*", "chat"];
const SECRET: &str = "the-secret-of-ann";
/// The fixture's answer to a call with the secret.
const DOUBLED: &str = "the-secret-of-ann, the-secret-of-ann";

/// A gateway with this `mcp_calls` setting and the fixture as `tools`.
fn stage(mcp_calls: &str) -> (Home, Gateway) {
    let (home, config) = people(&[("ann", FULL), ("watch", FULL), ("side", FULL)]);
    let topic = format!("[topics.main]\nmcp_calls = {mcp_calls:?}\nhistory = 100\n");
    let gateway = Gateway::start(&home, &(config + &topic + &fixture("tools", &[])));
    gateway.ready("tools");
    (home, gateway)
}

fn verdict(payload: &Value) -> &Value {
    [
        &payload["params"],
        &payload["result"],
        &payload["error"]["data"],
    ]
    .into_iter()
    .map(|part| &part["_meta"]["portmoot/verdict"])
    .find(|verdict| !verdict.is_null())
    .unwrap_or(&Value::Null)
}

/// The next two envelopes: a call of ann and its end.
#[track_caller]
fn call(watch: &mut Socket, kind: &str) -> [Value; 2] {
    let [request, response] = [watch.receive_message(), watch.receive_message()];
    assert_eq!(request["kind"], format!("mcp/request:{kind}"), "{request}");
    assert_eq!(
        response["kind"],
        format!("mcp/response:{kind}"),
        "{response}"
    );
    assert_eq!(
        (&request["from"], &request["to"]),
        (&json!("ann"), &json!(["tools"])),
        "{request}"
    );
    assert_eq!(response["to"], json!(["ann"]), "{response}");
    assert_eq!(response["correlation_id"], request["id"], "{response}");
    assert!(
        request.get("correlation_id").is_none() && request["ts"].is_string(),
        "{request}"
    );
    [request, response]
}

/// Checks that the watcher receives no envelope but this chat.
#[track_caller]
fn is_silent(watch: &mut Socket, other: &mut Socket, id: &str) {
    other.chat(id);
    watch.expect(id);
}

#[track_caller]
fn ask(gateway: &Gateway, is_modern: bool, client: &Client, method: &str, params: Value) -> Value {
    match is_modern {
        true => modern(gateway, Some(&token("ann")), method, params).json(),
        false => client.ask(method, params),
    }
}

fn echo(text: &str) -> Value {
    json!({ "name": "tools_echo", "arguments": { "text": text } })
}

#[test]
fn kinds_mirrors_calls_without_arguments_and_results() {
    let (_home, gateway) = stage("kinds");
    let ann = Client::of(&gateway, &token("ann"));
    let mut watch = Socket::enter(&gateway, "watch", "");
    let mut side = Socket::enter(&gateway, "side", "?mode=directed&echo=false");
    for is_modern in [false, true] {
        let asked = |method: &str, params: Value| ask(&gateway, is_modern, &ann, method, params);
        let mut seen = Vec::new();
        let answer = asked("tools/call", echo(DOUBLED));
        assert_eq!(answer["result"]["content"][0]["text"], DOUBLED);
        seen.push((call(&mut watch, "tools/call:echo"), "ok"));
        assert!(
            asked("resources/read", json!({ "uri": "test://static-text" }))["result"].is_object()
        );
        seen.push((call(&mut watch, "resources/read:test://static-text"), "ok"));
        let arguments = json!({ "arg1": SECRET, "arg2": SECRET });
        let params = json!({ "name": "tools_test_prompt_with_arguments", "arguments": arguments });
        assert!(asked("prompts/get", params)["result"].is_object());
        seen.push((
            call(&mut watch, "prompts/get:test_prompt_with_arguments"),
            "ok",
        ));
        let by = json!({ "type": "ref/prompt", "name": "tools_test_prompt_with_arguments" });
        let params = json!({ "ref": by, "argument": { "name": "arg1", "value": SECRET } });
        assert!(asked("completion/complete", params)["result"].is_object());
        seen.push((
            call(&mut watch, "completion/complete:test_prompt_with_arguments"),
            "ok",
        ));
        assert!(asked("resources/read", json!({ "uri": "test://nothing" }))["error"].is_object());
        seen.push((call(&mut watch, "resources/read:test://nothing"), "error"));
        for ([request, response], end) in &seen {
            assert_eq!(verdict(&request["payload"]), "admitted", "{request}");
            assert_eq!(verdict(&response["payload"]), *end, "{response}");
            assert_eq!(response["from"], "tools", "{response}");
            // The mirrored request has no id and cannot be answered or executed.
            assert!(request["payload"].get("id").is_none(), "{request}");
            let text = format!("{request}{response}");
            assert!(
                !text.contains(SECRET) && !text.contains("\"text\""),
                "{text}"
            );
            let params = request["payload"]["params"].as_object().unwrap();
            assert!(
                params
                    .keys()
                    .all(|key| ["name", "uri", "ref", "_meta"].contains(&key.as_str())),
                "{request}"
            );
        }
    }
    // Other modes do not receive mirrored calls, and the history does not keep them.
    watch.chat("now");
    side.expect("now");
    let (_late, welcome) = Socket::welcomed(&gateway, "side", "");
    let kept = welcome["payload"]["history"]["envelopes"]
        .as_array()
        .unwrap();
    let kinds: Vec<_> = kept.iter().map(|kept| &kept["kind"]).collect();
    assert!(kinds.iter().all(|kind| *kind == "chat"), "{kinds:?}");
}

#[test]
fn calls_answered_or_refused_by_the_gateway_are_not_mirrored() {
    let (_home, gateway) = stage("full");
    let ann = Client::of(&gateway, &token("ann"));
    let mut watch = Socket::enter(&gateway, "watch", "");
    let mut side = Socket::enter(&gateway, "side", "");
    for is_modern in [false, true] {
        let asked = |method: &str, params: Value| ask(&gateway, is_modern, &ann, method, params);
        for list in [
            "tools/list",
            "prompts/list",
            "resources/list",
            "resources/templates/list",
        ] {
            assert!(asked(list, json!({}))["result"].is_object(), "{list}");
        }
        let unknown = json!({ "name": format!("tools_{SECRET}"), "arguments": {} });
        assert!(asked("tools/call", unknown)["error"].is_object());
        let unknown = json!({ "name": format!("tools_{SECRET}") });
        assert!(asked("prompts/get", unknown)["error"].is_object());
        let other = json!({ "name": "wait_for_proposal", "arguments": { "id": SECRET } });
        asked("tools/call", other);
    }
    assert!(ann.ask("ping", json!({}))["result"].is_object());
    is_silent(&mut watch, &mut side, "only this");
}

#[test]
fn full_mirrors_calls_with_arguments_and_results() {
    let (_home, gateway) = stage("full");
    let ann = Client::of(&gateway, &token("ann"));
    let mut watch = Socket::enter(&gateway, "watch", "");
    for is_modern in [false, true] {
        let answer = ask(&gateway, is_modern, &ann, "tools/call", echo(DOUBLED));
        let [request, response] = call(&mut watch, "tools/call:echo");
        let params = json!({ "name": "echo", "arguments": { "text": DOUBLED } });
        let whole = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        assert_eq!(request["payload"], whole);
        assert_eq!(response["payload"]["id"], 1);
        assert_eq!(
            response["payload"]["result"]["content"],
            answer["result"]["content"]
        );
        // In the form of 2025-11-25.
        assert!(
            response["payload"]["result"].get("resultType").is_none(),
            "{response}"
        );
        let params = json!({ "uri": "test://nothing" });
        let answer = ask(&gateway, is_modern, &ann, "resources/read", params);
        let [_, response] = call(&mut watch, "resources/read:test://nothing");
        assert_eq!(
            response["payload"]["error"]["message"], answer["error"]["message"],
            "{response}"
        );
    }
}

#[test]
fn none_mirrors_no_calls() {
    let (_home, gateway) = stage("none");
    let ann = Client::of(&gateway, &token("ann"));
    let mut watch = Socket::enter(&gateway, "watch", "");
    let mut side = Socket::enter(&gateway, "side", "");
    for is_modern in [false, true] {
        assert!(ask(&gateway, is_modern, &ann, "tools/call", echo(SECRET))["result"].is_object());
    }
    is_silent(&mut watch, &mut side, "only this");
}

#[test]
fn questions_to_users_are_not_mirrored() {
    for mcp_calls in ["kinds", "full"] {
        let (_home, gateway) = stage(mcp_calls);
        let able = json!({ "elicitation": { "form": {} }, "sampling": {} });
        let ann = Client::open(&gateway, Some(&token("ann")), "/mcp", able);
        let mut watch = Socket::enter(&gateway, "watch", "");
        let mut side = Socket::enter(&gateway, "side", "");
        // Legacy: the server asks while the call is open.
        let open = ann.begin_call("tools_test_elicitation", json!({ "message": "who?" }));
        let question = open.next_of("elicitation/create");
        assert_eq!(
            watch.receive_message()["kind"],
            "mcp/request:tools/call:test_elicitation"
        );
        is_silent(&mut watch, &mut side, "while it asks");
        ann.answer(&question, json!({ "action": "decline" }));
        assert_eq!(
            watch.receive_message()["kind"],
            "mcp/response:tools/call:test_elicitation"
        );
        let open = ann.begin_call("tools_test_sampling", json!({ "prompt": "say" }));
        let question = open.next_of("sampling/createMessage");
        assert_eq!(
            watch.receive_message()["kind"],
            "mcp/request:tools/call:test_sampling"
        );
        is_silent(&mut watch, &mut side, "while it samples");
        let said = json!({ "type": "text", "text": "x" });
        ann.answer(
            &question,
            json!({ "role": "assistant", "content": said, "model": "m" }),
        );
        assert_eq!(
            watch.receive_message()["kind"],
            "mcp/response:tools/call:test_sampling"
        );
        // Modern: the result is a question, and the next call carries its answer.
        let name = "tools_test_streaming_elicitation";
        let answer = json!({ "action": "accept", "content": { "value": SECRET } });
        for responses in [json!({}), json!({ "value": answer })] {
            let params = json!({ "name": name, "arguments": {}, "inputResponses": responses });
            let asked = modern(&gateway, Some(&token("ann")), "tools/call", params).json();
            assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
            let [request, response] = call(&mut watch, "tools/call:test_streaming_elicitation");
            assert_eq!(
                verdict(&response["payload"]),
                "input_required",
                "{response}"
            );
            let text = format!("{request}{response}");
            assert!(
                !text.contains(SECRET) && !text.contains("Provide a value"),
                "{text}"
            );
            assert!(
                !text.contains("inputRe") && !text.contains("requestState"),
                "{text}"
            );
        }
        is_silent(&mut watch, &mut side, "the end");
    }
}

#[test]
fn the_gateway_announces_the_end_of_unanswered_calls() {
    let (_home, gateway) = stage("kinds");
    let ann = Client::of(&gateway, &token("ann"));
    let mut watch = Socket::enter(&gateway, "watch", "");
    // Cancelled by its client.
    let request = ann.request(
        "tools/call",
        json!({ "name": "tools_hang", "arguments": {} }),
    );
    let _open = ann.begin(&request);
    assert_eq!(
        watch.receive_message()["kind"],
        "mcp/request:tools/call:hang"
    );
    ann.notify(
        "notifications/cancelled",
        json!({ "requestId": request["id"] }),
    );
    let end = watch.receive_message();
    assert_eq!(
        (&end["from"], verdict(&end["payload"])),
        (&json!("portmoot"), &json!("cancelled")),
        "{end}"
    );
    // Closed by a modern client.
    let params = json!({ "name": "tools_hang", "arguments": {} });
    let open = modern_stream(&gateway, Some(&token("ann")), "tools/call", params);
    let asked = watch.receive_message();
    drop(open);
    let end = watch.receive_message();
    assert_eq!(
        (&end["from"], verdict(&end["payload"])),
        (&json!("portmoot"), &json!("cancelled")),
        "{end}"
    );
    assert_eq!(end["correlation_id"], asked["id"]);
    // Lost with its server, announced once.
    let answer = ann.ask(
        "tools/call",
        json!({ "name": "tools_crash", "arguments": {} }),
    );
    assert!(answer["error"].is_object(), "{answer}");
    let asked = watch.receive_message();
    let end = watch.receive_message();
    assert_eq!(
        (&end["from"], verdict(&end["payload"])),
        (&json!("portmoot"), &json!("refused")),
        "{end}"
    );
    assert_eq!(end["correlation_id"], asked["id"]);
}

#[test]
fn mcp_clients_join_and_leave_the_room() {
    let (_home, gateway) = stage("kinds");
    let mut watch = Socket::enter(&gateway, "watch", "");
    let here = |event: &str, who: &str, received: &Value| {
        assert_eq!(received["kind"], "system/presence", "{received}");
        let notice = &received["payload"];
        assert_eq!(
            (&notice["event"], &notice["participant"]["id"]),
            (&json!(event), &json!(who)),
            "{received}"
        );
    };
    let [one, two] = [(); 2].map(|()| Client::of(&gateway, &token("ann")));
    here("join", "ann", &watch.receive());
    let (_late, welcome) = Socket::welcomed(&gateway, "side", "");
    let others = welcome["payload"]["participants"].as_array().unwrap();
    let ann = others.iter().find(|other| other["id"] == "ann").unwrap();
    assert_eq!(ann["capabilities"], json!(FULL));
    here("join", "side", &watch.receive());
    // It leaves with its last link, and its calls are mirrored between join and leave.
    assert_eq!(one.delete(), 204);
    two.call("tools_echo", json!({ "text": "x" }));
    assert_eq!(watch.receive()["kind"], "mcp/request:tools/call:echo");
    assert_eq!(watch.receive()["kind"], "mcp/response:tools/call:echo");
    assert_eq!(two.delete(), 204);
    here("leave", "ann", &watch.receive());
    let reply = modern(&gateway, Some(&token("ann")), "tools/list", json!({}));
    assert_eq!(reply.status, 200);
    here("join", "ann", &watch.receive());
}
