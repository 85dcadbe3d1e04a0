//! Built-in proposal tools called by envelopes, and envelopes that fulfil held calls.

use super::*;

#[test]
fn the_same_tools_answer_envelopes() {
    // By envelope they work, listed or not.
    let (_home, gateway) = stage("");
    let id = held(
        &client(&gateway, "scout"),
        "tools_echo",
        json!({ "text": "please" }),
    );
    let mut boss = Socket::enter(&gateway, "boss", "?mode=directed&echo=false");
    let mut guest = Socket::enter(&gateway, "guest", "");
    let mut number = 0;
    let mut ask = |socket: &mut Socket, method: &str, tool: &str, arguments: Value| {
        number += 1;
        let call = format!("c{number}");
        let (kind, params) = match tool {
            "" => (format!("mcp/request:{method}"), json!({})),
            tool => (
                format!("mcp/request:{method}:{tool}"),
                json!({ "name": tool, "arguments": arguments }),
            ),
        };
        let payload = json!({ "jsonrpc": "2.0", "id": number, "method": method, "params": params });
        socket.send(&kind, &call, &["portmoot"], json!({}), &payload);
        let received = loop {
            let received = socket.receive();
            if received["correlation_id"] == call {
                break received;
            }
        };
        assert_eq!(
            (&received["from"], &received["payload"]["id"]),
            (&json!("portmoot"), &json!(number)),
            "{received}"
        );
        received["payload"].clone()
    };
    let names = |answer: &Value| -> Vec<String> {
        let tools = answer["result"]["tools"].as_array().unwrap();
        tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let listed = names(&ask(&mut boss, "tools/list", "", json!(null)));
    assert_eq!(
        listed,
        [
            "list_proposals",
            "show_proposal",
            "approve_proposal",
            "reject_proposal",
            "claim_proposal",
            "extend_proposal",
            "amend_proposal",
            "propose_plan",
            "withdraw_proposal",
            "wait_for_proposal"
        ]
    );
    let page = ask(&mut boss, "tools/call", "list_proposals", json!({}));
    let one = &page["result"]["structuredContent"]["proposals"][0];
    assert_eq!(one["id"], id, "{page}");
    for absent in ["read_messages", "no_such_tool"] {
        assert_eq!(
            ask(&mut boss, "tools/call", absent, json!({}))["error"]["data"]["code"],
            "unknown_target"
        );
    }
    let shown = ask(
        &mut boss,
        "tools/call",
        "show_proposal",
        json!({ "id": id }),
    );
    assert_eq!(shown["result"]["structuredContent"]["id"], id, "{shown}");
    // Only the caller receives their answers, whatever others listen to. Others receive the later
    // chat.
    boss.chat("the end");
    loop {
        let received = guest.receive();
        if received["id"] == "the end" {
            break;
        }
        let of_a_tool = received["kind"]
            .as_str()
            .unwrap()
            .starts_with("mcp/response:tools/call");
        assert!(!of_a_tool || received["from"] != "portmoot", "{received}");
    }
    let wrong = ask(
        &mut boss,
        "tools/call",
        "approve_proposal",
        json!({ "id": id, "digest": "00" }),
    );
    assert_eq!(wrong["result"]["isError"], true, "{wrong}");
    let digest = one["digest"].clone();
    let approved = ask(
        &mut boss,
        "tools/call",
        "approve_proposal",
        json!({ "id": id, "digest": digest }),
    );
    assert_eq!(approved["result"]["isError"], false, "{approved}");
    // The topic refuses a participant without the capability to send the request.
    let mut clerk = Socket::enter(&gateway, "clerk", "?mode=directed&echo=false");
    clerk.call("x", &["portmoot"], "list_proposals", json!({}));
    clerk.refused("x", "capability_violation");
}

#[test]
fn a_held_call_is_fulfilled_by_an_envelope_and_runs_once() {
    let (_home, gateway) = stage("[topics.main]\nbuiltin = [\"room\", \"proposals\"]\n");
    let mut boss = Socket::enter(&gateway, "boss", "?echo=false");
    let params = json!({ "name": "echo", "arguments": { "text": "please" } });
    let payload = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let kind = "mcp/proposal:tools/call:echo";
    let scout = client(&gateway, "scout");
    let said = data(
        &scout,
        "say",
        json!({ "kind": kind, "to": ["tools"], "payload": payload }),
    );
    // A proposal can be fulfilled as soon as it is announced.
    let received = loop {
        let received = boss.receive();
        if received["kind"] == kind {
            break received;
        }
    };
    assert_eq!(received["id"], said["id"], "{received}");
    let about = json!({ "correlation_id": received["id"] });
    boss.send(
        "mcp/request:tools/call:echo",
        "yes",
        &["tools"],
        about,
        &payload,
    );
    let answer = loop {
        let received = boss.receive();
        if received["correlation_id"] == "yes" {
            break received;
        }
    };
    // The proposer receives the answer to a fulfilment too, unlike that of a plain request.
    assert_eq!(answer["to"], json!(["boss", "scout"]), "{answer}");
    assert_eq!(
        answer["payload"]["result"]["content"][0]["text"], "please",
        "{answer}"
    );
    let page = data(
        &client(&gateway, "boss"),
        "list_proposals",
        json!({ "all": true }),
    );
    assert_eq!(page["proposals"].as_array().unwrap().len(), 1, "{page}");
}
