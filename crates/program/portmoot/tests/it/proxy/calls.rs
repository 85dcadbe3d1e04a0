//! Operation `call`: a proxied call is the call that it names, in every respect.

use serde_json::{Value, json};

use super::{Caller, calling, client, stage};
use crate::audit_log::AuditLog;
use crate::support::{Client, fixture, modern, until};
use crate::ws::{Socket, token};

const ADD: &str = "mcp/request:tools/call:up_add";

#[test]
fn a_proxied_tool_answers_with_annotations() {
    let (_home, gateway) = stage("");
    let notes = json!({ "proxyType": "tool", "proxyAction": "call", "proxyPath": "up_add" });
    for caller in Caller::both(&gateway, "clerk") {
        let result = caller.proxy(calling("tool", "up_add", json!({ "a": 2, "b": 3 })));
        assert_eq!(result["content"][0]["annotations"], notes, "{result}");
        let direct = caller.ask(
            "tools/call",
            json!({ "name": "up_add", "arguments": { "a": 2, "b": 3 } }),
        );
        let direct = direct["result"].clone();
        assert!(direct["structuredContent"].is_object(), "{direct}");
        let mut plain = result.clone();
        plain["content"][0]
            .as_object_mut()
            .unwrap()
            .remove("annotations");
        assert_eq!(plain, direct, "all else is as in a direct call");
        let spelled = caller.proxy(calling("tool", "up_add", json!("{\"a\": 2, \"b\": 3}")));
        assert_eq!(spelled["structuredContent"], result["structuredContent"]);
    }
}

#[test]
fn every_kind_of_content_is_annotated() {
    let (_home, gateway) = stage("");
    for caller in Caller::both(&gateway, "boss") {
        let result = caller.proxy(calling("tool", "up_test_multiple_content_types", json!({})));
        let content = result["content"].as_array().unwrap();
        let kinds: Vec<&str> = content
            .iter()
            .map(|item| item["type"].as_str().unwrap())
            .collect();
        assert_eq!(kinds, ["text", "image", "resource"]);
        assert!(
            content
                .iter()
                .all(|item| item["annotations"]["proxyAction"] == "call"),
            "{result}"
        );
    }
}

#[test]
fn numbers_and_unknown_members_survive_a_proxied_call() {
    let (_home, gateway) = stage(&fixture("raw", &["--raw"]));
    gateway.ready("raw");
    let odd = r#"{"content":[{"type":"text","text":"\u00fc\/","x":-0.0,"annotations":{"priority":0.10}}],"big":12345678901234567890,"exp":1e400}"#;
    let expected = odd.replace(
        "0.10}",
        r#"0.10,"proxyType":"tool","proxyAction":"call","proxyPath":"raw_mirror"}"#,
    );
    let boss = client(&gateway, "boss");
    let message = format!(
        r#"{{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{{"name":"proxy","arguments":{{"action":"call","type":"tool","path":"raw_mirror","args":{odd}}}}}}}"#
    );
    let reply = boss.post_text(&message);
    assert!(reply.body.contains(&expected), "{}", reply.body);
}

#[test]
fn resources_and_prompts_become_results_of_a_tool() {
    let (_home, gateway) = stage("");
    for caller in Caller::both(&gateway, "boss") {
        let read = caller.proxy(calling("resource", "test://static-text", Value::Null));
        let item = &read["content"][0];
        assert_eq!(
            (&item["type"], &read["isError"]),
            (&json!("resource"), &json!(false))
        );
        assert_eq!(
            item["resource"]["text"],
            "This is the content of the static text resource."
        );
        assert_eq!(
            item["annotations"],
            json!({ "proxyType": "resource", "proxyAction": "call", "proxyPath": "test://static-text" })
        );
        let binary = caller.proxy(calling("resource", "test://static-binary", Value::Null));
        assert!(
            binary["content"][0]["resource"]["blob"].is_string(),
            "{binary}"
        );
        let made = caller.proxy(calling("resource", "test://template/7/data", Value::Null));
        assert_eq!(
            made["content"][0]["resource"]["mimeType"], "application/json",
            "{made}"
        );

        let arguments = json!({ "arg1": "one", "arg2": "two" });
        let got = caller.proxy(calling(
            "prompt",
            "up_test_prompt_with_arguments",
            arguments,
        ));
        let item = &got["content"][0];
        assert_eq!(
            item["resource"]["uri"],
            "proxy:up_test_prompt_with_arguments"
        );
        assert_eq!(item["annotations"]["pythonType"], "GetPromptResult");
        let prompt: Value =
            serde_json::from_str(item["resource"]["text"].as_str().unwrap()).unwrap();
        assert!(
            prompt["messages"][0]["content"]["text"]
                .as_str()
                .unwrap()
                .contains("arg2='two'"),
            "{prompt}"
        );
    }
}

#[test]
fn errors_are_results_without_internal_detail() {
    let (_home, gateway) = stage("");
    for caller in Caller::both(&gateway, "boss") {
        let failed = caller.proxy(calling("tool", "up_test_error_handling", json!({})));
        assert_eq!(failed["isError"], true);
        assert_eq!(
            failed["content"][0]["annotations"]["proxyPath"],
            "up_test_error_handling"
        );
        assert_eq!(
            caller.fails(calling("tool", "up_fail", json!({ "code": 4711 }))),
            "the requested error"
        );
        let wrong = "Error calling tool 'proxy': ";
        assert_eq!(
            caller.fails(calling("tool", "absent", json!({}))),
            "Unknown tool: 'absent'"
        );
        let resource = caller.fails(calling("resource", "test://absent", Value::Null));
        assert!(
            resource.to_lowercase().contains("resource not found"),
            "{resource}"
        );
        let unlisted = caller.fails(calling("prompt", "absent", Value::Null));
        assert_eq!(unlisted, format!("{wrong}Unknown prompt: 'absent'"));
        let path = "Parameter 'path' is required for action 'call'";
        assert_eq!(
            caller.fails(json!({ "action": "call", "type": "tool" })),
            format!("{wrong}{path}")
        );
        let action = caller.fails(json!({ "action": "run", "type": "tool" }));
        assert!(
            action.starts_with("1 validation error for call[_proxy_tool]\naction\n"),
            "{action}"
        );
    }
}

#[test]
fn a_proxied_call_needs_the_capability_of_what_it_names() {
    let (home, gateway) = stage("");
    for caller in Caller::both(&gateway, "clerk") {
        // What the caller may not use has the answer of what does not exist.
        assert_eq!(
            caller.fails(calling("tool", "up_echo", json!({ "text": "no" }))),
            "Unknown tool: 'up_echo'"
        );
        let hidden = caller.fails(calling("resource", "test://static-binary", Value::Null));
        let absent = caller.fails(calling("resource", "test://absent", Value::Null));
        assert_eq!(hidden.replace("static-binary", "absent"), absent);
        let prompt = caller.fails(calling("prompt", "up_test_simple_prompt", Value::Null));
        assert_eq!(
            prompt,
            "Error calling tool 'proxy': Unknown prompt: 'up_test_simple_prompt'"
        );
    }
    // A caller that could use nothing by the tool does not have it.
    for caller in Caller::both(&gateway, "guest") {
        let refused = |name: &str| {
            let params = json!({ "name": name, "arguments": calling("tool", "up_add", json!({})) });
            let error = caller.ask("tools/call", params)["error"].clone();
            assert!(error.is_object(), "{name}");
            error.to_string().replace(name, "NAME")
        };
        assert_eq!(refused("proxy"), refused("absent"));
    }
    let log = AuditLog(&home);
    log.has(
        "clerk",
        "mcp/request:tools/call:up_echo",
        "refused",
        "not_admitted",
    );
    log.has(
        "guest",
        "mcp/request:tools/call:proxy",
        "refused",
        "not_admitted",
    );
    let called = client(&gateway, "boss").record("up")["calls"]
        .as_u64()
        .unwrap();
    assert_eq!(called, 1, "only the call of the record itself");
}

#[test]
fn without_the_tool_its_name_is_unknown() {
    let (_home, gateway) = {
        let (home, config) = crate::ws::people(&[("boss", super::FULL)]);
        let gateway = crate::support::Gateway::start(&home, &(config + &fixture("up", &[])));
        (home, gateway)
    };
    let boss = client(&gateway, "boss");
    let params =
        json!({ "name": "proxy", "arguments": calling("tool", "up_echo", json!({ "text": "x" })) });
    assert!(boss.ask("tools/call", params)["error"].is_object());
}

#[test]
fn the_audit_log_and_the_room_have_the_call_that_was_named() {
    let (home, gateway) = stage("");
    let mut watch = Socket::enter(&gateway, "guest", "?echo=false");
    for caller in Caller::both(&gateway, "clerk") {
        caller.proxy(calling("tool", "up_add", json!({ "a": 1, "b": 1 })));
        let seen = watch.receive_message();
        let kind = "mcp/request:tools/call:add";
        assert_eq!(
            (&seen["kind"], &seen["to"]),
            (&json!(kind), &json!(["up"])),
            "{seen}"
        );
        assert_eq!(watch.receive_message()["correlation_id"], seen["id"]);
    }
    let log = AuditLog(&home);
    log.comes_to(2, "clerk", ADD, "admitted", ADD);
    assert_eq!(
        log.count("clerk", "mcp/request:tools/call:proxy", "admitted", ""),
        0
    );
    let entry = log.has("clerk", ADD, "admitted", ADD);
    assert_eq!(entry["to"], json!(["up"]), "{entry}");
}

#[test]
fn a_proxied_call_that_may_only_be_proposed_is_held() {
    let (home, gateway) = stage("");
    let boss = client(&gateway, "boss");
    let approve = || {
        let proposal = gateway.pending(&home, &token("boss"));
        assert_eq!(
            (&proposal["context"], &proposal["to"]),
            (&json!("echo"), &json!(["up"])),
            "{proposal}"
        );
        assert_eq!(proposal["params"]["arguments"], json!({ "text": "please" }));
        let id = proposal["id"].clone();
        let given = boss.call(
            "approve_proposal",
            json!({ "id": id, "digest": proposal["digest"] }),
        );
        assert_eq!(given["isError"], false, "{given}");
        id
    };
    let arguments = calling("tool", "up_echo", json!({ "text": "please" }));
    // In words, with the proposal's id.
    let scout = client(&gateway, "scout");
    let held = scout.call("proxy", arguments.clone());
    assert_eq!(held["isError"], true, "{held}");
    assert!(held["_meta"]["portmoot/proposal"].is_string(), "{held}");
    assert_eq!(held["content"][0]["annotations"]["proxyPath"], "up_echo");
    let id = approve();
    let waited = scout.call(
        "proxy",
        calling("tool", "wait_for_proposal", json!({ "id": id })),
    );
    assert_eq!(waited["content"][0]["text"], "please", "{waited}");
    // A modern caller comes back with its state and has the answer as a result of the tool.
    let ask = |params: &Value| {
        let answer = modern(
            &gateway,
            Some(&token("scout")),
            "tools/call",
            params.clone(),
        )
        .json();
        answer["result"].clone()
    };
    let mut params = json!({ "name": "proxy", "arguments": arguments });
    let first = ask(&params);
    assert_eq!(first["resultType"], "input_required", "{first}");
    params["requestState"] = first["requestState"].clone();
    approve();
    let end = ask(&params);
    assert_eq!(end["content"][0]["text"], "please", "{end}");
    assert_eq!(
        end["content"][0]["annotations"]["proxyPath"], "up_echo",
        "{end}"
    );
}

#[test]
fn progress_questions_and_logs_flow_through() {
    let (_home, gateway) = stage(&fixture("old", &["--era", "legacy"]));
    gateway.ready("old");
    let boss = Client::open(
        &gateway,
        Some(&token("boss")),
        "/mcp",
        json!({ "elicitation": {} }),
    );
    let open = boss.begin_call(
        "proxy",
        calling("tool", "old_test_tool_with_progress", json!({})),
    );
    let mut steps = 0;
    loop {
        let message = open.next();
        if message["method"] == "notifications/progress" {
            assert!(
                message["params"]["progressToken"]
                    .as_str()
                    .unwrap()
                    .starts_with('p'),
                "{message}"
            );
            steps += 1;
        } else if message["result"].is_object() {
            break;
        }
    }
    assert!(steps > 1, "{steps}");

    let arguments = json!({ "message": "who?" });
    let open = boss.begin_call("proxy", calling("tool", "old_test_elicitation", arguments));
    let question = open.next();
    assert_eq!(
        (&question["method"], &question["params"]["message"]),
        (&json!("elicitation/create"), &json!("who?"))
    );
    let content = json!({ "username": "ann", "email": "ann@example.com" });
    boss.answer(&question, json!({ "action": "accept", "content": content }));
    let end = open.next();
    assert!(
        end["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("ann@example.com"),
        "{end}"
    );
    assert_eq!(
        end["result"]["content"][0]["annotations"]["proxyPath"],
        "old_test_elicitation"
    );
}

#[test]
fn a_modern_question_is_answered_by_a_proxied_retry() {
    let (_home, gateway) = stage(&fixture("new", &["--era", "modern"]));
    gateway.ready("new");
    let path = "new_test_input_required_result_elicitation";
    let meta =
        json!({ "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } } });
    let mut params =
        json!({ "name": "proxy", "arguments": calling("tool", path, json!({})), "_meta": meta });
    let ask = |params: &Value| {
        let answer = modern(&gateway, Some(&token("boss")), "tools/call", params.clone()).json();
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    };
    let first = ask(&params);
    assert_eq!(first["resultType"], "input_required", "{first}");
    let (name, _) = first["inputRequests"]
        .as_object()
        .unwrap()
        .iter()
        .next()
        .unwrap();
    let given = json!({ "action": "accept", "content": { "name": "Ann" } });
    params["inputResponses"] = json!({ name: given });
    if first["requestState"].is_string() {
        params["requestState"] = first["requestState"].clone();
    }
    let end = ask(&params);
    assert!(
        end["content"][0]["text"].as_str().unwrap().contains("Ann"),
        "{end}"
    );
    assert_eq!(end["content"][0]["annotations"]["proxyPath"], path);
}

#[test]
fn a_state_that_is_no_good_is_refused_as_in_a_direct_call() {
    let (_home, gateway) = stage(&fixture("old", &["--era", "legacy"]));
    gateway.ready("old");
    let able =
        json!({ "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } } });
    let (name, arguments) = ("old_test_elicitation", json!({ "message": "Who?" }));
    let ask = |who: &str, by_proxy: bool, more: Value| {
        let mut params = match by_proxy {
            true => {
                json!({ "name": "proxy", "arguments": calling("tool", name, arguments.clone()) })
            }
            false => json!({ "name": name, "arguments": arguments }),
        };
        params["_meta"] = able.clone();
        params
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().cloned().unwrap_or_default());
        modern(&gateway, Some(&token(who)), "tools/call", params).json()
    };
    let states = [false, true].map(|by_proxy| {
        let asked = ask("boss", by_proxy, json!({}))["result"].clone();
        let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
        let back = json!({ "inputResponses": { key: { "action": "cancel" } }, "requestState": asked["requestState"] });
        assert!(ask("boss", by_proxy, back.clone())["result"]["content"].is_array());
        back
    });
    let used = |by_proxy: bool| states[usize::from(by_proxy)].clone();
    let other = |state: &str| json!({ "inputResponses": {}, "requestState": state });
    for (who, direct, proxied) in [
        ("boss", used(false), used(true)),
        ("clerk", used(false), used(true)),
        ("boss", other("portmoot.changed"), other("portmoot.changed")),
        ("boss", other("unknown"), other("unknown")),
    ] {
        let [direct, proxied] =
            [(false, direct), (true, proxied)].map(|(by, more)| ask(who, by, more));
        assert_eq!(direct["error"]["code"], -32602, "{who}: {direct}");
        assert_eq!(proxied["error"], direct["error"], "{who}: {proxied}");
    }
}

#[test]
fn cancelling_a_proxied_call_cancels_it_at_the_server() {
    let (_home, gateway) = stage("");
    let boss = client(&gateway, "boss");
    let meta = json!({ "progressToken": "p" });
    let slow = calling("tool", "up_slow", json!({ "ms": 50_000 }));
    let message = boss.request(
        "tools/call",
        json!({ "name": "proxy", "arguments": slow, "_meta": meta }),
    );
    let open = boss.begin(&message);
    assert_eq!(open.next()["params"]["progressToken"], "p");
    boss.notify(
        "notifications/cancelled",
        json!({ "requestId": message["id"] }),
    );
    until("the call is cancelled", || {
        (boss.record("up")["cancelled"] == 1).then_some(())
    });
}

#[test]
fn a_task_through_the_proxy_is_the_servers() {
    let (_home, gateway) = stage("");
    let meta = || {
        let tasks = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
        json!({ "io.modelcontextprotocol/clientCapabilities": tasks })
    };
    let ask = |method: &str, mut params: Value| {
        params["_meta"] = meta();
        let answer = modern(&gateway, Some(&token("boss")), method, params).json();
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    };
    let arguments = calling(
        "tool",
        "up_slow_compute",
        json!({ "seconds": 0.1, "label": "x" }),
    );
    let made = ask(
        "tools/call",
        json!({ "name": "proxy", "arguments": arguments }),
    );
    assert_eq!(made["resultType"], "task", "{made}");
    let end = until("the task is over", || {
        let task = ask("tasks/get", json!({ "taskId": made["taskId"] }));
        (task["status"] == "completed").then_some(task)
    });
    assert!(end["result"]["content"].is_array(), "{end}");
}

#[test]
fn calls_of_the_proxy_are_nested_within_a_bound() {
    let (_home, gateway) = stage("");
    let nested = |depth: usize| {
        let call = calling("tool", "up_add", json!({ "a": 1, "b": 2 }));
        (1..depth).fold(call, |inner, _| calling("tool", "proxy", inner))
    };
    for caller in Caller::both(&gateway, "clerk") {
        let twice = caller.proxy(nested(2));
        assert_eq!(
            twice["content"][0]["annotations"]["proxyPath"], "proxy",
            "{twice}"
        );
        assert_eq!(
            caller.proxy(nested(4))["structuredContent"],
            twice["structuredContent"]
        );
        let deeper = caller.fails(nested(5));
        assert!(deeper.contains("nested 4 deep at most"), "{deeper}");
        let listed = caller.proxy(calling(
            "tool",
            "proxy",
            json!({ "action": "list", "type": "tool" }),
        ));
        let notes = &listed["content"][0]["annotations"];
        assert_eq!(
            (&notes["proxyAction"], &notes["proxyPath"]),
            (&json!("call"), &json!("proxy")),
            "{notes}"
        );
        assert_eq!(notes["pythonType"], "Tool");
    }
}

#[test]
fn the_tool_is_not_in_the_room() {
    let (_home, gateway) = stage("");
    let mut boss = Socket::enter(&gateway, "boss", "?mode=directed&echo=false");
    boss.call(
        "e1",
        &["portmoot"],
        "proxy",
        json!({ "action": "list", "type": "tool" }),
    );
    let answer = boss.receive_until(|received| received["correlation_id"] == "e1");
    assert!(
        answer.to_string().contains("there is no tool of this name"),
        "{answer}"
    );
}
