//! Every road by which a call reaches a server or a participant: none leads past a rule that rejects
//! or asks.

use std::thread;

use harness::{grpc_client, proto_client};
use serde_json::{Value, json};

use super::bank::{Bank, is_paid, paying, result_of};
use super::direct::{ABOVE_100, pays_directly};
use crate::audit_log::AuditLog;
use crate::front::binary;
use crate::http::{Connection, Events};
use crate::proto_clients::websocket;
use crate::support::{Client, fixture, modern, until};
use crate::ws::{Socket, token};

const KIND: &str = "mcp/request:tools/call:pay";
/// The code of the refusal of an envelope of which a rule takes something.
const VIOLATION: &str = "capability_violation";

/// A bank with the rule that asks above 100, beside what this configuration has.
fn bank(more: &str) -> Bank {
    let bank = Bank::beside(more);
    bank.put(ABOVE_100);
    bank
}

/// Has boss approve what waits, while a client waits for its answer.
#[track_caller]
fn approved<T: Send>(bank: &Bank, ask: impl FnOnce() -> T + Send) -> T {
    let before = bank.server.calls("pay");
    thread::scope(|scope| {
        let client = scope.spawn(ask);
        let proposal = bank.pending();
        assert_eq!(proposal["by"], "payer", "{proposal}");
        assert_eq!(bank.server.calls("pay"), before);
        bank.approve(&proposal);
        client.join().unwrap()
    })
}

/// The result of a call of payer's that has begun, once boss has approved it.
#[track_caller]
fn once_approved(bank: &Bank, call: &Events) -> Value {
    let before = bank.server.calls("pay");
    let proposal = bank.pending();
    assert_eq!(proposal["by"], "payer", "{proposal}");
    assert_eq!(bank.server.calls("pay"), before);
    bank.approve(&proposal);
    result_of(call)
}

/// The params of a call of this amount.
fn call(amount: u64) -> Value {
    json!({ "name": "bank_pay", "arguments": { "amount": amount } })
}

#[test]
fn clients_of_each_revision_are_held() {
    let bank = bank("");
    let payer = token("payer");
    let revisions = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
    for (amount, revision) in (101..).zip(revisions) {
        let client = Client::of_revision(&bank.gateway, &payer, revision);
        is_paid(
            &client.call("bank_pay", json!({ "amount": amount - 100 })),
            amount - 100,
        );
        let arguments = json!({ "amount": amount });
        let call = client.begin_call("bank_pay", arguments);
        is_paid(&once_approved(&bank, &call), amount);
    }
    let ask = |amount| modern(&bank.gateway, Some(&payer), "tools/call", call(amount)).json();
    is_paid(&ask(10)["result"], 10);
    is_paid(&approved(&bank, || ask(110))["result"], 110);
}

#[test]
fn callers_that_ask_for_a_task_get_the_proposal_as_one() {
    let bank = bank("");
    let payer = Client::of(&bank.gateway, &token("payer"));
    let mut params = call(101);
    params["task"] = json!({ "ttl": 60_000 });
    let begun = payer.ask("tools/call", params);
    let task = &begun["result"]["task"]["taskId"];
    assert!(task.is_string(), "{begun}");
    let params = json!({ "taskId": task });
    let result = payer
        .begin(&json!({ "jsonrpc": "2.0", "id": 9, "method": "tasks/result", "params": params }));
    is_paid(&once_approved(&bank, &result), 101);
}

#[test]
fn clients_of_protobuf_are_held() {
    let bank = bank(&fixture("a", &[]));
    let payer = token("payer");
    let (url, address) = (websocket(&bank.gateway), bank.gateway.address());
    let (at, program) = (bank.gateway.url(), binary());
    let ways: [&[&str]; 3] = [
        &["--ws", &url, "--token", &payer],
        &["--tcp", address, "--token", &payer],
        &["--pipe", &program, "stdio", "--url", &at, "--token", &payer],
    ];
    for (amount, way) in (101_u64..).zip(ways) {
        let ask = |amount: u64| {
            let arguments = json!({ "amount": amount }).to_string();
            let words = ["--plain", "bank_pay", &arguments];
            proto_client(&[&words[..], way].concat())["answer"].clone()
        };
        let paid = |amount: u64| json!([format!("paid {amount}")]);
        assert_eq!(ask(amount - 100), paid(amount - 100));
        assert_eq!(approved(&bank, || ask(amount)), paid(amount));
    }
    let echo = ABOVE_100
        .replace("tools/call:pay", "tools/call:echo")
        .replace("\"bank\"", "\"a\"")
        .replace(
            "[rule.when]\n\"/amount\" = { integer = [101, 999999999999999] }\n",
            "",
        )
        .replace("\"r1\"", "\"r5\"");
    bank.gateway.ready("a");
    bank.put(&(ABOVE_100.to_owned() + &echo));
    let words = [address, "a_", "--token", &payer];
    let report = approved(&bank, || grpc_client(&words));
    assert_eq!(report["echo"], json!(["hello"]), "{report}");
}

#[test]
fn a_client_behind_the_bridge_on_pipes_is_held() {
    let bank = bank("");
    let (url, payer) = (bank.gateway.url(), token("payer"));
    let ask = |amount: u64| {
        let amount = format!("amount:={amount}");
        let words = ["tools", "call", "bank_pay", &amount, "--url", &url];
        let ran = bank.home.run(&[&words[..], &["--token", &payer]].concat());
        ran.expect(0).stdout
    };
    assert!(ask(1).contains("paid 1"));
    assert!(approved(&bank, || ask(101)).contains("paid 101"));
}

#[test]
fn a_script_over_the_api_gets_the_proposal() {
    let bank = bank("");
    let bearer = format!("Bearer {}", token("payer"));
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
    ];
    let ask = |amount: u64| {
        let mut connection = Connection::open(bank.gateway.address());
        let body = json!({ "arguments": { "amount": amount } }).to_string();
        connection.exchange("POST", "/api/v1/tools/bank_pay/call", &headers, &body)
    };
    assert_eq!(ask(100).status, 200);
    assert_eq!(ask(101).status, 202);
    assert_eq!(bank.server.calls("pay"), 1);
    bank.approve(&bank.pending());
    let paid = until("it is paid", || {
        Some(bank.proposal_of(101)).filter(|one| one["state"] == "completed")
    });
    is_paid(&paid["answer"]["result"], 101);
}

#[test]
fn a_call_by_the_proxy_is_held_as_the_call_that_it_is() {
    let mut bank = bank("");
    bank.change(
        "builtin = [\"proposals\"]",
        "builtin = [\"proposals\", \"proxy\"]",
    );
    let payer = Client::of(&bank.gateway, &token("payer"));
    until("the proxy is there", || {
        payer
            .names("tools")
            .contains(&"proxy".to_owned())
            .then_some(())
    });
    let calling = |amount: u64| json!({ "action": "call", "type": "tool", "path": "bank_pay", "args": { "amount": amount } });
    is_paid(&payer.call("proxy", calling(1)), 1);
    let call = payer.begin_call("proxy", calling(101));
    is_paid(&once_approved(&bank, &call), 101);
    let batch = json!({ "action": "batch", "operations": [calling(2), calling(102)] });
    let call = payer.begin_call("proxy", batch);
    bank.approve(&bank.pending());
    let result = result_of(&call);
    let content = result["content"].as_array().unwrap();
    assert_eq!(content[0]["text"], "paid 2", "{result}");
    assert_eq!(content[1]["text"], "paid 102", "{result}");
}

/// Sends an envelope in the room and returns what its sender learns of it: an error, or an answer.
#[track_caller]
fn sends(payer: &mut Socket, kind: &str, id: &str, to: &[&str], tool: &str, amount: u64) -> Value {
    let params = json!({ "name": tool, "arguments": { "amount": amount } });
    let payload = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
    payer.send(kind, id, to, json!({}), &payload);
    payer.receive_until(|one| one["correlation_id"] == id || one["kind"] == "system/error")
}

#[track_caller]
fn is_refused(error: &Value) {
    assert_eq!(error["kind"], "system/error", "{error}");
    assert_eq!(error["payload"]["error"], VIOLATION, "{error}");
}

#[test]
fn an_envelope_is_refused_with_the_advice_to_propose_it() {
    let bank = bank("");
    let mut boss = Socket::enter(&bank.gateway, "boss", "?mode=all&echo=false");
    let (mut payer, _) = Socket::welcomed(&bank.gateway, "payer", "?mode=directed&echo=false");
    let answer = sends(&mut payer, KIND, "m1", &["bank"], "pay", 100);
    is_paid(&answer["payload"]["result"], 100);
    let refused = sends(&mut payer, KIND, "m2", &["bank"], "pay", 101);
    is_refused(&refused);
    let words = refused["payload"]["message"].as_str().unwrap();
    assert!(
        words.starts_with("a rule leaves this request to the decision of another participant"),
        "{refused}"
    );
    assert!(refused.to_string().contains("mcp/proposal"), "{refused}");
    // A kind without a tool: the payload names it.
    is_refused(&sends(
        &mut payer,
        "mcp/request:tools/call",
        "m3",
        &["bank"],
        "pay",
        101,
    ));
    // What kind and payload say differs.
    is_refused(&sends(&mut payer, KIND, "m4", &["bank"], "get", 1));
    let log = AuditLog(&bank.home);
    log.has("payer", KIND, "refused", "rule_asks: by rule r1.1 of boss");
    log.has("payer", KIND, "admitted", "mcp/request:*");
    // As a proposal it waits, and runs once it is approved.
    let payload = json!({ "method": "tools/call", "params": { "name": "pay", "arguments": { "amount": 101 } } });
    payer.send(
        "mcp/proposal:tools/call:pay",
        "p1",
        &["bank"],
        json!({}),
        &payload,
    );
    bank.approve(&bank.pending());
    let paid = until("it is paid", || {
        Some(bank.proposal_of(101)).filter(|one| one["state"] == "completed")
    });
    is_paid(&paid["answer"]["result"], 101);
    assert_eq!(bank.server.calls("pay"), 2);
    // The room has seen none of those that were refused.
    let seen = boss.receive_until(|one| one["id"] == "p1");
    assert_eq!(seen["from"], "payer", "{seen}");
}

#[test]
fn an_envelope_to_several_or_to_all_is_refused_for_each_of_them() {
    let mint = paying(std::sync::Arc::default());
    let bank = bank(&mint.child("mint", "mint"));
    bank.gateway.ready("mint");
    let mut boss = Socket::enter(&bank.gateway, "boss", "?mode=all&echo=false");
    let (mut payer, _) = Socket::welcomed(&bank.gateway, "payer", "?mode=directed&echo=false");
    is_refused(&sends(
        &mut payer,
        KIND,
        "m1",
        &["mint", "bank"],
        "pay",
        101,
    ));
    // The rule is about the bank alone.
    let answer = sends(&mut payer, KIND, "m2", &["mint"], "pay", 101);
    is_paid(&answer["payload"]["result"], 101);
    assert_eq!((bank.server.calls("pay"), mint.calls("pay")), (0, 1));
    // A rule about all of them: servers, participants, and those that may answer what names none.
    bank.put(&ABOVE_100.replace("to = \"bank\"\n", "version = 2\n"));
    for (id, to) in [("m3", &["mint"][..]), ("m4", &["boss"]), ("m5", &[])] {
        is_refused(&sends(&mut payer, KIND, id, to, "pay", 101));
    }
    // A rule about a participant that answers in the room itself.
    bank.put(&ABOVE_100.replace("to = \"bank\"\n", "to = \"boss\"\nversion = 3\n"));
    is_refused(&sends(&mut payer, KIND, "m6", &["boss"], "pay", 101));
    is_refused(&sends(&mut payer, KIND, "m7", &[], "pay", 101));
    payer.send(KIND, "m8", &["boss"], json!({}), &json!({ "jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": { "name": "pay", "arguments": { "amount": 1 } } }));
    let first = boss.receive_until(|one| one["kind"] == KIND && one["to"] == json!(["boss"]));
    assert_eq!(first["id"], "m8", "{first}");
    assert_eq!((bank.server.calls("pay"), mint.calls("pay")), (0, 1));
}

#[test]
fn a_proposer_does_not_fulfil_its_own_proposal_past_a_rule() {
    let bank = bank("");
    let (mut payer, _) = Socket::welcomed(&bank.gateway, "payer", "?mode=directed&echo=false");
    let payload = json!({ "method": "tools/call", "params": { "name": "pay", "arguments": { "amount": 101 } } });
    payer.send(
        "mcp/proposal:tools/call:pay",
        "p1",
        &["bank"],
        json!({}),
        &payload,
    );
    let proposal = bank.pending();
    let params = json!({ "name": "pay", "arguments": { "amount": 101 } });
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    payer.send(
        KIND,
        "f1",
        &["bank"],
        json!({ "correlation_id": "p1" }),
        &request,
    );
    is_refused(&payer.receive_until(|one| one["kind"] == "system/error"));
    assert_eq!(bank.pending()["id"], proposal["id"]);
    assert_eq!(bank.server.calls("pay"), 0);
    // Another participant that may call fulfils it, which is an approval.
    let (mut ann, _) = Socket::welcomed(&bank.gateway, "ann", "?mode=directed&echo=false");
    ann.send(
        KIND,
        "f2",
        &["bank"],
        json!({ "correlation_id": "p1" }),
        &request,
    );
    until("it is paid", || {
        Some(bank.proposal_of(101)).filter(|one| one["state"] == "completed")
    });
    assert_eq!(bank.server.calls("pay"), 1);
    pays_directly(&bank, 1);
}

#[test]
fn an_envelope_that_a_rule_rejects_is_refused_with_its_sentence() {
    let bank = bank("");
    let reject = ABOVE_100
        .replace("\"ask\"", "\"reject\"")
        .replace("\"r1\"", "\"r4\"");
    bank.put(&reject);
    let (mut payer, _) = Socket::welcomed(&bank.gateway, "payer", "?mode=directed&echo=false");
    let refused = sends(&mut payer, KIND, "m1", &["bank"], "pay", 101);
    is_refused(&refused);
    let sentence = bank.rule("r4.1")["sentence"].as_str().unwrap().to_owned();
    let words = format!("rejected by rule r4.1 of boss: {sentence}");
    assert_eq!(refused["payload"]["message"], words, "{refused}");
    // Sent to all it is left to people.
    bank.put(&reject.replace("to = \"bank\"\n", "version = 2\n"));
    let refused = sends(&mut payer, KIND, "m2", &[], "pay", 101);
    is_refused(&refused);
    assert!(refused.to_string().contains("mcp/proposal"), "{refused}");
    assert_eq!(bank.server.calls("pay"), 0);
}
