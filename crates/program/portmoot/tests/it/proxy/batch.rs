//! Operation `batch`: operations in order, each admitted on its own.

use serde_json::{Value, json};

use super::{Caller, calling, client, stage};
use crate::audit_log::AuditLog;
use crate::peer::{Peer, answer, small, tool};
use crate::support::{modern, until};
use crate::ws::token;

fn batch(operations: &[Value]) -> Value {
    json!({ "action": "batch", "operations": operations })
}

#[test]
fn a_batch_answers_in_order_and_admits_each_operation() {
    let (home, gateway) = stage("");
    let add = |a: u64| calling("tool", "up_add", json!({ "a": a, "b": 1 }));
    for caller in Caller::both(&gateway, "clerk") {
        let result = caller.proxy(batch(&[
            add(1),
            calling("tool", "up_echo", json!({ "text": "no" })),
            calling("resource", "test://static-text", Value::Null),
            json!({ "action": "info", "type": "tool", "path": "up_add" }),
            json!({ "action": "call" }),
            add(5),
        ]));
        let content = result["content"].as_array().unwrap();
        let notes = |key: &str| -> Vec<Value> {
            content
                .iter()
                .map(|item| item["annotations"][key].clone())
                .collect()
        };
        assert_eq!(
            notes("proxyOperation"),
            [0, 1, 2, 3, 4, 5].map(|at| json!(at)),
            "{result}"
        );
        let failed = [false, true, false, false, true, false];
        assert_eq!(notes("proxyFailed"), failed.map(|failed| json!(failed)));
        assert_eq!(content[1]["text"], "Unknown tool: 'up_echo'");
        assert_eq!(content[2]["annotations"]["proxyPath"], "test://static-text");
        let results = result["structuredContent"]["results"].as_array().unwrap();
        assert_eq!(
            results[0]["structuredContent"],
            json!({ "sum": 2 }),
            "{result}"
        );
        assert_eq!(results[5]["operation"], add(5));
        assert_eq!(
            (&results[4]["isError"], &result["isError"]),
            (&json!(true), &json!(false))
        );
    }
    let log = AuditLog(&home);
    let kind = "mcp/request:tools/call:up_add";
    log.comes_to(4, "clerk", kind, "admitted", kind);
    log.comes_to(
        2,
        "clerk",
        "mcp/request:tools/call:up_echo",
        "refused",
        "not_admitted",
    );
    log.has("clerk", "mcp/request:tools/call:proxy", "admitted", "");
}

#[test]
fn a_batch_has_no_batch_in_it() {
    let (_home, gateway) = stage("");
    let caller = &Caller::both(&gateway, "boss")[0];
    let list = json!({ "action": "list", "type": "tool" });
    let inner = batch(std::slice::from_ref(&list));
    let result = caller.proxy(batch(&[inner, calling("tool", "proxy", list.clone())]));
    let texts: Vec<&str> = result["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["text"].as_str().unwrap())
        .collect();
    assert!(
        texts[0].contains("a batch cannot be part of a batch"),
        "{texts:?}"
    );
    assert!(
        texts[1].contains("a batch cannot call 'proxy'"),
        "{texts:?}"
    );
    // A call of the tool may be a batch.
    let nested = caller.proxy(calling("tool", "proxy", batch(&[list])));
    assert_eq!(
        nested["content"][0]["annotations"]["proxyOperation"], 0,
        "{nested}"
    );
}

#[test]
fn cancelling_a_batch_cancels_what_is_under_way() {
    let (home, gateway) = stage("");
    let boss = client(&gateway, "boss");
    let slow = calling("tool", "up_slow", json!({ "ms": 50_000 }));
    let echo = calling("tool", "up_echo", json!({ "text": "never" }));
    let message = boss.request(
        "tools/call",
        json!({ "name": "proxy", "arguments": batch(&[slow, echo]) }),
    );
    let open = boss.begin(&message);
    // Each look at the counts is a call as well.
    let looks = std::cell::Cell::new(0);
    let record = || {
        looks.set(looks.get() + 1);
        boss.record("up")
    };
    until("the first operation is under way", || {
        let calls = record()["calls"].as_u64().unwrap();
        (calls == looks.get() + 1).then_some(())
    });
    boss.notify(
        "notifications/cancelled",
        json!({ "requestId": message["id"] }),
    );
    until("it is cancelled", || {
        (record()["cancelled"] == 1).then_some(())
    });
    assert_eq!(
        record()["calls"],
        looks.get() + 1,
        "the second operation never begins"
    );
    drop(open);
    let log = AuditLog(&home);
    log.has("boss", "mcp/request:tools/call:up_slow", "admitted", "");
    assert_eq!(
        log.count("boss", "mcp/request:tools/call:up_echo", "admitted", ""),
        0
    );
}

#[test]
fn an_operation_of_a_batch_that_asks_a_modern_client_is_cancelled() {
    let peer = Peer::stdio(|message| {
        let ask = r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{}}}}"#;
        let said = match (
            message["method"].as_str(),
            message["params"]["name"].as_str(),
        ) {
            (Some("tools/call"), Some("ask")) => Some(ask.to_owned()),
            (Some("tools/call"), _) => Some(answer(
                message,
                r#"{"content":[{"type":"text","text":"done"}]}"#,
            )),
            _ => small(message, &format!("[{},{}]", tool("ask"), tool("go"))),
        };
        said.into_iter().map(String::into_bytes).collect()
    });
    let (_home, gateway) = stage(&peer.child("peer", "peer"));
    gateway.ready("peer");
    let able =
        json!({ "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } } });
    let operations = ["peer_ask", "peer_go"].map(|name| calling("tool", name, json!({})));
    let params = json!({ "name": "proxy", "arguments": batch(&operations), "_meta": able });
    let result =
        modern(&gateway, Some(&token("boss")), "tools/call", params).json()["result"].clone();
    let content = result["content"].as_array().unwrap();
    assert!(
        content[0]["text"]
            .as_str()
            .unwrap()
            .contains("call it on its own"),
        "{result}"
    );
    assert_eq!(content[0]["annotations"]["proxyFailed"], true);
    assert_eq!(content[1]["text"], "done", "the others go on: {result}");
    let received = |text: &str| {
        peer.received()
            .iter()
            .filter(|line| line.contains(text))
            .count()
    };
    until("it is cancelled at the server", || {
        (received("notifications/cancelled") == 1).then_some(())
    });
    assert_eq!(received("\"name\":\"ask\""), 1);
}

#[test]
fn a_task_is_awaited_in_a_batch() {
    let (_home, gateway) = stage("");
    let tasks = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let slow = calling(
        "tool",
        "up_slow_compute",
        json!({ "seconds": 0.1, "label": "x" }),
    );
    let params = json!({
        "name": "proxy", "arguments": batch(&[slow]),
        "_meta": { "io.modelcontextprotocol/clientCapabilities": tasks }
    });
    let result =
        modern(&gateway, Some(&token("boss")), "tools/call", params).json()["result"].clone();
    assert_eq!(
        result["content"][0]["annotations"]["proxyFailed"], false,
        "{result}"
    );
}
