//! What a room sees of MCP clients' calls: nothing, that they happen, or all of it, as `mcp_calls` says; and never a
//! question to a client's user. Watched over a real WebSocket.

use serde_json::{Value, json};

use crate::runner::Home;
use crate::support::{Client, Gateway, fixture, modern, modern_stream};
use crate::ws::{Socket, people, encode_token};

const FULL: &[&str] = &["mcp/*", "chat"];
const SECRET: &str = "the-secret-of-ann";
/// What is asked of the fixture, which makes what it answers.
const DOUBLED: &str = "the-secret-of-ann, the-secret-of-ann";

/// A gateway that shows this much, with the fixture as `tools`.
fn stage(mcp_calls: &str) -> (Home, Gateway) {
    let (home, config) = people(&[("ann", FULL), ("watch", FULL), ("side", FULL)]);
    let topic = format!("[topics.main]\nmcp_calls = {mcp_calls:?}\nhistory = 100\n");
    let gateway = Gateway::start(&home, &(config + &topic + &fixture("tools", &[])));
    gateway.ready("tools");
    (home, gateway)
}

fn verdict(payload: &Value) -> &Value {
    [&payload["params"], &payload["result"], &payload["error"]["data"]]
        .into_iter()
        .map(|part| &part["_meta"]["portmoot/verdict"])
        .find(|verdict| !verdict.is_null())
        .unwrap_or(&Value::Null)
}

/// The next two envelopes: a call of ann's and its end.
#[track_caller]
fn call(watch: &mut Socket, kind: &str) -> [Value; 2] {
    let [request, response] = [watch.hear_said(), watch.hear_said()];
    assert_eq!(request["kind"], format!("mcp/request:{kind}"), "{request}");
    assert_eq!(response["kind"], format!("mcp/response:{kind}"), "{response}");
    assert_eq!((&request["from"], &request["to"]), (&json!("ann"), &json!(["tools"])), "{request}");
    assert_eq!(response["to"], json!(["ann"]), "{response}");
    assert_eq!(response["correlation_id"], request["id"], "{response}");
    assert!(request.get("correlation_id").is_none() && request["ts"].is_string(), "{request}");
    [request, response]
}

/// Nothing but this is said meanwhile.
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
fn others_see_that_a_call_is_made_and_how_it_ends_and_nothing_of_it() {
    let (_home, gateway) = stage("kinds");
    let ann = Client::open(&gateway, Some(&token("ann")), "/mcp", json!({}));
    let mut watch = Socket::enter(&gateway, "watch", "");
    let mut side = Socket::enter(&gateway, "side", "?mode=directed&echo=false");
    for is_modern in [false, true] {
        let asked = |method: &str, params: Value| ask(&gateway, is_modern, &ann, method, params);
        let mut seen = Vec::new();
        let answer = asked("tools/call", echo(DOUBLED));
        assert_eq!(answer["result"]["content"][0]["text"], DOUBLED);
        seen.push((call(&mut watch, "tools/call:echo"), "ok"));
        assert!(asked("resources/read", json!({ "uri": "test://static-text" }))["result"].is_object());
        seen.push((call(&mut watch, "resources/read:test://static-text"), "ok"));
        let arguments = json!({ "arg1": SECRET, "arg2": SECRET });
        let params = json!({ "name": "tools_test_prompt_with_arguments", "arguments": arguments });
        assert!(asked("prompts/get", params)["result"].is_object());
        seen.push((call(&mut watch, "prompts/get:test_prompt_with_arguments"), "ok"));
        let by = json!({ "type": "ref/prompt", "name": "tools_test_prompt_with_arguments" });
        let params = json!({ "ref": by, "argument": { "name": "arg1", "value": SECRET } });
        assert!(asked("completion/complete", params)["result"].is_object());
        seen.push((call(&mut watch, "completion/complete:test_prompt_with_arguments"), "ok"));
        assert!(asked("resources/read", json!({ "uri": "test://nothing" }))["error"].is_object());
        seen.push((call(&mut watch, "resources/read:test://nothing"), "error"));
        for ([request, response], end) in &seen {
            assert_eq!(verdict(&request["payload"]), "admitted", "{request}");
            assert_eq!(verdict(&response["payload"]), *end, "{response}");
            assert_eq!(response["from"], "tools", "{response}");
            // Nobody could answer or carry out what is shown.
            assert!(request["payload"].get("id").is_none(), "{request}");
            let text = format!("{request}{response}");
            assert!(!text.contains(SECRET) && !text.contains("\"text\""), "{text}");
            let params = request["payload"]["params"].as_object().unwrap();
            assert!(
                params.keys().all(|key| ["name", "uri", "ref", "_meta"].contains(&key.as_str())),
                "{request}"
            );
        }
    }
    // Who does not hear everything sees none of it, nor is it kept for who comes later.
    watch.chat("now");
    side.expect("now");
    let (_late, welcome) = Socket::welcomed(&gateway, "side", "");
    let kept = welcome["payload"]["history"]["envelopes"].as_array().unwrap();
    let kinds: Vec<_> = kept.iter().map(|kept| &kept["kind"]).collect();
    assert!(kinds.iter().all(|kind| *kind == "chat"), "{kinds:?}");
}

#[test]
fn what_the_gateway_answers_or_refuses_is_not_shown() {
    let (_home, gateway) = stage("full");
    let ann = Client::open(&gateway, Some(&token("ann")), "/mcp", json!({}));
    let mut watch = Socket::enter(&gateway, "watch", "");
    let mut side = Socket::enter(&gateway, "side", "");
    for is_modern in [false, true] {
        let asked = |method: &str, params: Value| ask(&gateway, is_modern, &ann, method, params);
        for list in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
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
fn all_of_it_is_shown_where_the_topic_says_so() {
    let (_home, gateway) = stage("full");
    let ann = Client::open(&gateway, Some(&token("ann")), "/mcp", json!({}));
    let mut watch = Socket::enter(&gateway, "watch", "");
    for is_modern in [false, true] {
        let answer = ask(&gateway, is_modern, &ann, "tools/call", echo(DOUBLED));
        let [request, response] = call(&mut watch, "tools/call:echo");
        let params = json!({ "name": "echo", "arguments": { "text": DOUBLED } });
        let whole = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        assert_eq!(request["payload"], whole);
        assert_eq!(response["payload"]["id"], 1);
        assert_eq!(response["payload"]["result"]["content"], answer["result"]["content"]);
        // In the one form that topics have.
        assert!(response["payload"]["result"].get("resultType").is_none(), "{response}");
        let params = json!({ "uri": "test://nothing" });
        let answer = ask(&gateway, is_modern, &ann, "resources/read", params);
        let [_, response] = call(&mut watch, "resources/read:test://nothing");
        assert_eq!(response["payload"]["error"]["message"], answer["error"]["message"], "{response}");
    }
}

#[test]
fn nothing_is_shown_where_the_topic_says_so() {
    let (_home, gateway) = stage("none");
    let ann = Client::open(&gateway, Some(&token("ann")), "/mcp", json!({}));
    let mut watch = Socket::enter(&gateway, "watch", "");
    let mut side = Socket::enter(&gateway, "side", "");
    for is_modern in [false, true] {
        assert!(ask(&gateway, is_modern, &ann, "tools/call", echo(SECRET))["result"].is_object());
    }
    is_silent(&mut watch, &mut side, "only this");
}

#[test]
fn what_a_user_is_asked_is_shown_to_nobody() {
    for mcp_calls in ["kinds", "full"] {
        let (_home, gateway) = stage(mcp_calls);
        let able = json!({ "elicitation": { "form": {} }, "sampling": {} });
        let ann = Client::open(&gateway, Some(&token("ann")), "/mcp", able);
        let mut watch = Socket::enter(&gateway, "watch", "");
        let mut side = Socket::enter(&gateway, "side", "");
        // Legacy: the server asks while the call is open.
        let open = ann.begin_call("tools_test_elicitation", json!({ "message": "who?" }));
        let question = open.next_of("elicitation/create");
        assert_eq!(watch.hear_said()["kind"], "mcp/request:tools/call:test_elicitation");
        is_silent(&mut watch, &mut side, "while it asks");
        ann.answer(&question, json!({ "action": "decline" }));
        assert_eq!(watch.hear_said()["kind"], "mcp/response:tools/call:test_elicitation");
        let open = ann.begin_call("tools_test_sampling", json!({ "prompt": "say" }));
        let question = open.next_of("sampling/createMessage");
        assert_eq!(watch.hear_said()["kind"], "mcp/request:tools/call:test_sampling");
        is_silent(&mut watch, &mut side, "while it samples");
        let said = json!({ "type": "text", "text": "x" });
        ann.answer(&question, json!({ "role": "assistant", "content": said, "model": "m" }));
        assert_eq!(watch.hear_said()["kind"], "mcp/response:tools/call:test_sampling");
        // Modern: the answer is a question, and the answer to that comes with the next call.
        let name = "tools_test_streaming_elicitation";
        let answer = json!({ "action": "accept", "content": { "value": SECRET } });
        for responses in [json!({}), json!({ "value": answer })] {
            let params =
                json!({ "name": name, "arguments": {}, "inputResponses": responses, "requestState": SECRET });
            let asked = modern(&gateway, Some(&token("ann")), "tools/call", params).json();
            assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
            let [request, response] = call(&mut watch, "tools/call:test_streaming_elicitation");
            assert_eq!(verdict(&response["payload"]), "input_required", "{response}");
            let text = format!("{request}{response}");
            assert!(!text.contains(SECRET) && !text.contains("Provide a value"), "{text}");
            assert!(!text.contains("inputRe") && !text.contains("requestState"), "{text}");
        }
        is_silent(&mut watch, &mut side, "the end");
    }
}

#[test]
fn a_call_without_an_answer_ends_in_the_gateways_name() {
    let (_home, gateway) = stage("kinds");
    let ann = Client::open(&gateway, Some(&token("ann")), "/mcp", json!({}));
    let mut watch = Socket::enter(&gateway, "watch", "");
    // Taken back by its client.
    let request = ann.request("tools/call", json!({ "name": "tools_hang", "arguments": {} }));
    let _open = ann.begin(&request);
    assert_eq!(watch.hear_said()["kind"], "mcp/request:tools/call:hang");
    ann.tell("notifications/cancelled", json!({ "requestId": request["id"] }));
    let end = watch.hear_said();
    assert_eq!((&end["from"], verdict(&end["payload"])), (&json!("portmoot"), &json!("cancelled")), "{end}");
    // Closed by a modern client.
    let params = json!({ "name": "tools_hang", "arguments": {} });
    let open = modern_stream(&gateway, Some(&token("ann")), "tools/call", params);
    let asked = watch.hear_said();
    drop(open);
    let end = watch.hear_said();
    assert_eq!((&end["from"], verdict(&end["payload"])), (&json!("portmoot"), &json!("cancelled")), "{end}");
    assert_eq!(end["correlation_id"], asked["id"]);
    // Lost with its server, which is heard of only once.
    let answer = ann.ask("tools/call", json!({ "name": "tools_crash", "arguments": {} }));
    assert!(answer["error"].is_object(), "{answer}");
    let asked = watch.hear_said();
    let end = watch.hear_said();
    assert_eq!((&end["from"], verdict(&end["payload"])), (&json!("portmoot"), &json!("refused")), "{end}");
    assert_eq!(end["correlation_id"], asked["id"]);
}

#[test]
fn mcp_clients_are_seen_coming_and_going() {
    let (_home, gateway) = stage("kinds");
    let mut watch = Socket::enter(&gateway, "watch", "");
    let here = |event: &str, who: &str, heard: &Value| {
        assert_eq!(heard["kind"], "system/presence", "{heard}");
        let told = &heard["payload"];
        assert_eq!((&told["event"], &told["participant"]["id"]), (&json!(event), &json!(who)), "{heard}");
    };
    let [one, two] = [(); 2].map(|()| Client::open(&gateway, Some(&token("ann")), "/mcp", json!({})));
    here("join", "ann", &watch.hear());
    let (_late, welcome) = Socket::welcomed(&gateway, "side", "");
    let others = welcome["payload"]["participants"].as_array().unwrap();
    let ann = others.iter().find(|other| other["id"] == "ann").unwrap();
    assert_eq!(ann["capabilities"], json!(FULL));
    here("join", "side", &watch.hear());
    // It leaves with its last link, and its calls are shown in between.
    assert_eq!(one.delete(), 204);
    two.call("tools_echo", json!({ "text": "x" }));
    assert_eq!(watch.hear()["kind"], "mcp/request:tools/call:echo");
    assert_eq!(watch.hear()["kind"], "mcp/response:tools/call:echo");
    assert_eq!(two.delete(), 204);
    here("leave", "ann", &watch.hear());
    let reply = modern(&gateway, Some(&token("ann")), "tools/list", json!({}));
    assert_eq!(reply.status, 200);
    here("join", "ann", &watch.hear());
}
