//! Calls with members that only some JSON readers take for the ones that are judged: no server sees
//! another call than the gateway.

use serde_json::json;

use super::bank::Bank;
use crate::support::Client;
use crate::ws::token;

/// A call of `pay` with these members in place of the usual ones.
fn call(id: u64, members: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call",{members}}}"#)
}

/// Members that a reader without letter case takes for another call.
const TWINS: [&str; 6] = [
    r#""params":{"name":"bank_pay","arguments":{"amount":5}},"Params":{"name":"close","arguments":{}}"#,
    r#""params":{"name":"bank_pay","arguments":{"amount":5}},"METHOD":"tools/list""#,
    r#""params":{"name":"bank_pay","arguments":{"amount":5},"Name":"close"}"#,
    r#""params":{"name":"bank_pay","Arguments":{"amount":500},"arguments":{"amount":5}}"#,
    r#""params":{"name":"bank_pay","argument\u017f":{"amount":500},"arguments":{"amount":5}}"#,
    r#""params":{"name":"bank_pay","arguments":{"amount":5},"_Meta":{}}"#,
];

#[test]
fn a_member_that_some_reader_takes_for_another_reaches_no_server() {
    let bank = Bank::with(|bank| {
        bank.approving("r1", "uses = 20", "\"/amount\" = { integer = [1, 100] }")
    });
    let before = bank.server.received().len();
    for who in ["scout", "payer"] {
        let client = Client::of(&bank.gateway, &token(who));
        for (id, members) in (10..).zip(TWINS) {
            let answer = client.post_text(&call(id, members)).json();
            assert_eq!(
                answer["error"]["code"], -32600,
                "{who}: {members}: {answer}"
            );
            let why = answer["error"]["message"].as_str().unwrap();
            assert!(why.contains("could be taken for"), "{why}");
        }
    }
    let more: Vec<String> = bank.server.received().split_off(before);
    assert!(
        !more.iter().any(|line| line.contains("tools/call")),
        "{more:?}"
    );
    assert_eq!(bank.rule("r1.1")["used"], 0);
}

#[test]
fn a_member_that_json_rpc_does_not_define_reaches_no_server() {
    let bank = Bank::with(|bank| {
        bank.approving("r1", "uses = 20", "\"/amount\" = { integer = [1, 100] }")
    });
    for (id, who) in (1..).zip(["scout", "payer"]) {
        let client = Client::of(&bank.gateway, &token(who));
        let members = r#""hidden":{"all":true},"params":{"name":"bank_pay","arguments":{"amount":5}},"_meta":{"all":1}"#;
        let answer = client.post_text(&call(id, members)).json();
        assert_eq!(answer["result"]["isError"], false, "{answer}");
    }
    assert_eq!(bank.server.calls("pay"), 2);
    let received = bank.server.received();
    assert!(
        !received
            .iter()
            .any(|line| line.contains("hidden") || line.contains("\"all\""))
    );
}

#[test]
fn a_key_of_meta_that_the_protocol_does_not_define_is_part_of_the_call() {
    let bank = Bank::with(|bank| {
        bank.approving("r1", "uses = 20", "\"/amount\" = { integer = [1, 100] }")
    });
    let client = Client::of(&bank.gateway, &token("scout"));
    for key in ["evil", "related-task", "clientInfo ", "ClientInfo"] {
        let meta = json!({ format!("io.modelcontextprotocol/{key}"): { "run": "rm" } });
        let params = json!({ "name": "bank_pay", "arguments": { "amount": 5 }, "_meta": meta });
        let message =
            json!({ "jsonrpc": "2.0", "id": key, "method": "tools/call", "params": params });
        let call = client.begin(&message);
        let proposal = bank.pending();
        assert!(
            proposal["params"]["_meta"].to_string().contains("rm"),
            "{proposal}"
        );
        bank.reject(&proposal);
        call.rest();
    }
    assert_eq!(bank.server.calls("pay"), 0);
    // The keys of the protocol are none of the call.
    bank.is_paid(6);
}

#[test]
fn a_call_that_some_reader_takes_for_one_that_a_rule_asks_about_waits() {
    let bank = Bank::with(|_| {
        "[[rule]]\nid = \"a1\"\nauthor = \"ann\"\ndecision = \"ask\"\nkind = \"mcp/request:tools/call:pay\"\n\
         to = \"bank\"\nproposers = [\"payer\"]\n[rule.when]\n\"/by_force\" = { one_of = [true] }\n"
            .to_owned()
    });
    let client = Client::of(&bank.gateway, &token("payer"));
    for (name, value) in [
        ("by_force", json!(true)),
        ("by_force", json!("yes")),
        ("by_force", json!(1)),
        ("byForce", json!(true)),
        (" by_force", json!(false)),
    ] {
        let mut arguments = json!({ "amount": 5 });
        arguments[name] = value;
        let call = client.begin_call("bank_pay", arguments);
        bank.is_asked(call, 5);
    }
    bank.is_paid_by("payer", "bank_pay", 5);
}
