//! Clients of every kind whose calls and proposals rules decide.

use harness::proto_client;
use serde_json::{Value, json};

use super::bank::{Bank, UP_TO_100, is_announced_by_rule, is_by_rule, is_paid};
use crate::http::Connection;
use crate::proto_clients::websocket;
use crate::support::{Client, modern, until};
use crate::ws::{Socket, token};

/// The bank with a rule for calls of scout's and dave's.
fn bank() -> Bank {
    Bank::with(|bank| {
        let rule = bank.approving("r1", "uses = 50", UP_TO_100);
        rule.replace("[\"scout\"]", "[\"scout\", \"dave\"]")
    })
}

/// Checks that the rule has decided the call of this amount.
#[track_caller]
fn by_the_rule(bank: &Bank, amount: u64) {
    let decided = until("it is completed", || {
        Some(bank.proposal_of(amount)).filter(|one| one["state"] == "completed")
    });
    is_by_rule(&decided);
}

/// The params of a call of this amount.
fn call(amount: u64) -> Value {
    json!({ "name": "bank_pay", "arguments": { "amount": amount } })
}

/// A modern client that declares everything and names what it traces.
fn with_everything(mut params: Value) -> Value {
    let able = json!({
        "elicitation": { "form": {}, "url": {} },
        "sampling": { "context": {}, "tools": {} },
        "roots": {},
        "experimental": { "own": {} },
        "extensions": { "io.modelcontextprotocol/tasks": {}, "io.modelcontextprotocol/ui": {} },
    });
    params["_meta"] = json!({
        "io.modelcontextprotocol/clientCapabilities": able,
        "io.modelcontextprotocol/logLevel": "debug",
        "progressToken": "p",
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    });
    params
}

#[test]
fn clients_of_each_revision_are_paid() {
    let bank = bank();
    let scout = token("scout");
    let revisions = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
    for (amount, revision) in (1..).zip(revisions) {
        let client = Client::of_revision(&bank.gateway, &scout, revision);
        let result = client.call("bank_pay", json!({ "amount": amount }));
        is_paid(&result, amount);
        by_the_rule(&bank, amount);
    }
    let plain = modern(&bank.gateway, Some(&scout), "tools/call", call(10)).json();
    is_paid(&plain["result"], 10);
    by_the_rule(&bank, 10);
}

#[test]
fn a_modern_client_that_declares_everything_gets_a_task_that_is_paid() {
    let bank = bank();
    let scout = token("scout");
    let ask = |method: &str, params: Value| {
        let answer = modern(&bank.gateway, Some(&scout), method, with_everything(params)).json();
        assert!(answer["result"].is_object(), "{method}: {answer}");
        answer["result"].clone()
    };
    let begun = ask("tools/call", call(10));
    assert_eq!(begun["resultType"], "task", "{begun}");
    let id = json!({ "taskId": begun["taskId"] });
    let task = until("the task is completed", || {
        Some(ask("tasks/get", id.clone())).filter(|task| task["status"] == "completed")
    });
    is_paid(&task["result"], 10);
    by_the_rule(&bank, 10);
}

#[test]
fn a_client_of_2025_that_asks_for_a_task_is_paid() {
    let bank = bank();
    let scout = Client::of(&bank.gateway, &token("scout"));
    let mut params = call(10);
    params["task"] = json!({ "ttl": 60_000 });
    let begun = scout.ask("tools/call", params);
    let task = &begun["result"]["task"]["taskId"];
    assert!(task.is_string(), "{begun}");
    let result = scout.ask("tasks/result", json!({ "taskId": task }));
    is_paid(&result["result"], 10);
    by_the_rule(&bank, 10);
}

#[test]
fn clients_of_protobuf_are_paid() {
    let bank = bank();
    let scout = token("scout");
    let (url, address) = (websocket(&bank.gateway), bank.gateway.address());
    for (amount, way) in [(1, ["--ws", &*url]), (2, ["--tcp", address])] {
        let arguments = json!({ "amount": amount }).to_string();
        let words = ["--plain", "bank_pay", &arguments, way[0], way[1]];
        let report = proto_client(&[&words[..], &["--token", &scout]].concat());
        let paid = format!("paid {amount}");
        assert_eq!(report["answer"], json!([paid]), "{report}");
        by_the_rule(&bank, amount);
    }
}

#[test]
fn commands_and_scripts_are_paid() {
    let bank = bank();
    let (url, scout) = (bank.gateway.url(), token("scout"));
    let at = ["--url", &url, "--token", &scout];
    let words = ["tools", "call", "bank_pay", "amount:=1"];
    let printed = bank.home.run(&[&words[..], &at].concat()).expect(0).stdout;
    assert!(printed.contains("paid 1"), "{printed}");
    by_the_rule(&bank, 1);
    let bearer = format!("Bearer {scout}");
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
    ];
    let mut connection = Connection::open(bank.gateway.address());
    let body = json!({ "arguments": { "amount": 2 } }).to_string();
    let called = connection.exchange("POST", "/api/v1/tools/bank_pay/call", &headers, &body);
    // The API has no call wait.
    assert_eq!(called.status, 202, "{called:?}");
    by_the_rule(&bank, 2);
    is_paid(&bank.proposal_of(2)["answer"]["result"], 2);
}

#[test]
fn a_proposal_in_the_room_is_decided_and_carried_out_in_the_name_of_rules() {
    let bank = bank();
    let mut boss = Socket::enter(&bank.gateway, "boss", "?mode=all&echo=false");
    // Of the amount 9.
    let mut dave = bank.proposes("dave", "p1", &["bank"], "pay");
    let proposed = boss.receive_until(|one| one["id"] == "p1");
    assert_eq!(proposed["from"], "dave", "{proposed}");
    let request = boss.receive_until(|one| one["kind"] == "mcp/request:tools/call:pay");
    assert_eq!(
        (&request["from"], &request["to"], &request["correlation_id"]),
        (&json!("rules"), &json!(["bank"]), &json!("p1")),
        "{request}"
    );
    let arguments = &request["payload"]["params"]["arguments"];
    assert_eq!(*arguments, json!({ "amount": 9 }), "{request}");
    let answer = boss.receive_until(|one| one["correlation_id"] == request["id"]);
    assert_eq!(
        (&answer["from"], &answer["kind"]),
        (&json!("bank"), &json!("mcp/response:tools/call:pay")),
        "{answer}"
    );
    is_paid(&answer["payload"]["result"], 9);
    for socket in [&mut boss, &mut dave] {
        let completed = socket.receive_until(|one| {
            one["kind"] == "portmoot/proposal" && one["payload"]["state"] == "completed"
        });
        is_announced_by_rule(&completed);
    }
    by_the_rule(&bank, 9);
}
