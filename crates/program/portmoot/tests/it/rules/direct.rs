//! Rules that reject or ask, before calls that their senders may make without an approval.

use serde_json::{Value, json};

use super::bank::{Bank, is_paid, result_of};
use crate::audit_log::AuditLog;
use crate::http::Connection;
use crate::support::{Client, until};
use crate::ws::token;

/// A rule of boss's that asks about calls of payer's above 100.
pub(super) const ABOVE_100: &str = "[[rule]]\nid = \"r1\"\nauthor = \"boss\"\ndecision = \"ask\"\n\
    kind = \"mcp/request:tools/call:pay\"\nto = \"bank\"\nproposers = [\"payer\"]\n\
    [rule.when]\n\"/amount\" = { integer = [101, 999999999999999] }\n";
/// A rule of ann's that rejects calls of 13.
const OF_13: &str = "[[rule]]\nid = \"r2\"\nauthor = \"ann\"\ndecision = \"reject\"\n\
    kind = \"mcp/request:tools/call:pay\"\nproposers = [\"*\"]\n\
    [rule.when]\n\"/amount\" = { equals = 13 }\n";
const KIND: &str = "mcp/request:tools/call:bank_pay";

/// A bank whose topic has this rule.
fn bank(rules: &str) -> Bank {
    Bank::with(|_| rules.to_owned())
}

/// A direct call of payer's, which no participant decides about.
#[track_caller]
pub(super) fn pays_directly(bank: &Bank, amount: u64) {
    bank.is_paid_by("payer", "bank_pay", amount);
    assert_eq!(bank.proposals_of(amount), 0, "{amount}");
}

/// A call of payer's that waits, and is paid once boss has approved it.
#[track_caller]
fn pays_once_approved(bank: &Bank, amount: u64) {
    let before = bank.server.calls("pay");
    let call = bank.begins("payer", "bank_pay", amount);
    let proposal = bank.pending();
    assert_eq!(proposal["by"], "payer", "{proposal}");
    assert_eq!(bank.server.calls("pay"), before);
    bank.approve(&proposal);
    is_paid(&result_of(&call), amount);
    assert_eq!(bank.server.calls("pay"), before + 1);
}

/// The answer to a request of payer's to the API.
fn as_payer(bank: &Bank, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let bearer = format!("Bearer {}", token("payer"));
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
    ];
    let mut connection = Connection::open(bank.gateway.address());
    let path = format!("/api/v1/{path}");
    let reply = connection.exchange(method, &path, &headers, &body.to_string());
    (reply.status, reply.json())
}

#[test]
fn up_to_100_is_paid_directly_and_above_as_a_proposal() {
    let bank = bank(ABOVE_100);
    pays_directly(&bank, 100);
    pays_once_approved(&bank, 101);
    let log = AuditLog(&bank.home);
    log.has("payer", KIND, "admitted", "mcp/request:*");
    log.has("payer", KIND, "held", "by rule r1.1 of boss");
    // One that may only propose is held for that, and not by the rule.
    bank.asks(101);
    log.has("scout", KIND, "held", "");
    assert_eq!(log.count("scout", KIND, "held", "by rule"), 0);
    log.is_whole();
}

#[test]
fn a_held_call_is_not_approved_by_the_one_that_made_it() {
    let bank = bank(ABOVE_100);
    let call = bank.begins("payer", "bank_pay", 101);
    let proposal = bank.pending();
    let id = proposal["id"].as_str().unwrap();
    let shown = json!({ "digest": proposal["digest"] });
    let (status, answer) = as_payer(&bank, "POST", &format!("proposals/{id}/approve"), &shown);
    assert_eq!(status, 409, "{answer}");
    assert_eq!(bank.server.calls("pay"), 0);
    bank.reject(&proposal);
    assert_eq!(result_of(&call)["isError"], true);
    assert_eq!(bank.server.calls("pay"), 0);
}

#[test]
fn a_call_that_a_rule_rejects_is_refused_with_its_sentence() {
    let bank = bank(OF_13);
    let payer = Client::of(&bank.gateway, &token("payer"));
    let refused = payer.ask(
        "tools/call",
        json!({ "name": "bank_pay", "arguments": { "amount": 13 } }),
    );
    let sentence = bank.rule("r2.1")["sentence"].as_str().unwrap().to_owned();
    let words = refused["error"]["message"].as_str().unwrap();
    assert_eq!(
        words,
        format!("rejected by rule r2.1 of ann: {sentence}"),
        "{refused}"
    );
    assert_eq!(refused["error"]["code"], -31001, "{refused}");
    pays_directly(&bank, 14);
    assert_eq!((bank.server.calls("pay"), bank.proposals_of(13)), (1, 0));
    let why = "rule_rejects: by rule r2.1 of ann";
    AuditLog(&bank.home).has("payer", KIND, "refused", why);
}

#[test]
fn what_a_rule_may_not_reject_directly_waits_for_people() {
    let mut bank = bank(OF_13);
    // Its author's own call.
    bank.asks_for("ann", "bank_pay", 13);
    // A text that was changed under its version.
    bank.put(&OF_13.replace("\"*\"", "\"payer\""));
    bank.comes_to("r2.1", "refused");
    bank.asks_for("payer", "bank_pay", 13);
    // An author that may not call it.
    bank.put(&OF_13.replace("author", "version = 2\nauthor"));
    let may = "[participants.ann]\ntoken_env = \"TOKEN_ANN\"\ncapabilities = ";
    let before = format!("{may}[\"mcp/request:*\", \"mcp/proposal:*\"]");
    bank.change(&before, &format!("{may}[\"chat\"]"));
    bank.ann_may(false);
    bank.asks_for("payer", "bank_pay", 13);
    assert_eq!(bank.rule("r2.2")["state"], "in force");
    pays_directly(&bank, 14);
}

#[test]
fn what_some_reader_could_take_for_more_is_asked_about() {
    let bank = bank(ABOVE_100);
    let payer = Client::of(&bank.gateway, &token("payer"));
    for arguments in [
        r#"{"amount":1e3}"#,
        r#"{"amount":"101"}"#,
        r#"{"Amount":101}"#,
        r#"{"amount":1,"Amount":101}"#,
        r#"{"amount":[101]}"#,
        r#"{"amount":101,"note":"x"}"#,
    ] {
        let before = bank.server.calls("pay");
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"bank_pay","arguments":{arguments}}}}}"#
        );
        let call = payer.begin(&serde_json::from_str(&message).unwrap());
        let proposal = bank.pending();
        bank.reject(&proposal);
        assert_eq!(result_of(&call)["isError"], true, "{arguments}");
        assert_eq!(bank.server.calls("pay"), before, "{arguments}");
    }
    // Of a member that is there twice readers see one or the other: it cannot be proposed either.
    let twice = r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"bank_pay","arguments":{"amount":1,"amount":101}}}"#;
    let refused = payer.post_text(twice).json();
    assert_eq!(refused["error"]["data"]["code"], "malformed", "{refused}");
    assert_eq!(bank.server.calls("pay"), 0);
    pays_directly(&bank, 2);
}

#[test]
fn an_ask_goes_before_an_approval_until_the_rule_is_gone() {
    let bank = Bank::with(|bank| {
        let wide = "\"/amount\" = { integer = [1, 1000] }";
        let approving = bank.approving("r9", "uses = 9", wide);
        approving.replace("\"scout\"", "\"payer\"") + ABOVE_100
    });
    let call = bank.begins("payer", "bank_pay", 500);
    let proposal = bank.pending();
    let explained = bank.explain(&proposal);
    for part in [
        "r1.1 decides it: ask",
        "amount is a whole number from 101 to 999999999999999: amount is 500",
        "r9.1 decides it: approve",
    ] {
        assert!(explained.contains(part), "{part}: {explained}");
    }
    assert_eq!(bank.server.calls("pay"), 0);
    let wide = "\"/amount\" = { integer = [1, 1000] }";
    let approving = bank.approving("r9", "uses = 9", wide);
    bank.put(&approving.replace("\"scout\"", "\"payer\""));
    is_paid(&result_of(&call), 500);
    let decided = until("it is completed", || {
        Some(bank.proposal_of(500)).filter(|one| one["state"] == "completed")
    });
    assert_eq!(decided["rule"], "r9.1", "{decided}");
}

#[test]
fn a_reload_that_adds_a_rule_holds_the_next_call_and_one_that_removes_it_does_not() {
    let bank = Bank::new();
    pays_directly(&bank, 101);
    bank.put(ABOVE_100);
    pays_once_approved(&bank, 102);
    bank.put(UNRELATED);
    pays_directly(&bank, 103);
    bank.put("");
    pays_directly(&bank, 104);
}

/// A rule about another tool.
const UNRELATED: &str = "[[rule]]\nid = \"r3\"\nauthor = \"boss\"\ndecision = \"ask\"\n\
    kind = \"mcp/request:tools/call:get\"\nproposers = [\"*\"]\n";

#[test]
fn a_right_and_the_rule_that_tightens_it_come_into_force_as_one() {
    let mut bank = Bank::new();
    let scout = "[participants.scout]\ntoken_env = \"TOKEN_SCOUT\"\ncapabilities = ";
    bank.home
        .write("rules.toml", &ABOVE_100.replace("\"payer\"", "\"scout\""));
    bank.change(
        &format!("{scout}[\"mcp/proposal:*\"]"),
        &format!("{scout}[\"mcp/request:*\"]"),
    );
    until("scout may call", || {
        let can = bank.api("GET", "participants/scout/can", "").to_string();
        can.contains("mcp/request:*").then_some(())
    });
    bank.asks(101);
    bank.is_paid(100);
    assert_eq!(bank.proposals_of(100), 0);
}

#[test]
fn a_held_call_of_before_a_restart_is_decided_after_it() {
    let mut bank = bank(ABOVE_100);
    for (amount, signal) in [(101, "TERM"), (102, "KILL")] {
        let _call = bank.begins("payer", "bank_pay", amount);
        let proposal = bank.pending();
        bank.restart(signal);
        let again = bank.pending();
        assert_eq!(again["id"], proposal["id"], "{again}");
        assert!(bank.explain(&again).contains("r1.1 decides it: ask"));
        bank.approve(&again);
        until("it is paid", || {
            Some(bank.proposal_of(amount)).filter(|one| one["state"] == "completed")
        });
        pays_directly(&bank, amount - 100);
    }
    assert_eq!(bank.server.calls("pay"), 4);
}

#[test]
fn a_preset_counts_as_the_argument_that_it_is() {
    let mut bank = bank(ABOVE_100);
    bank.config +=
        "[servers.bank.tool.pay]\npreset = { amount = 500 }\ndescription = \"Pays 500.\"\n";
    let config = bank.config.clone();
    bank.home.write("portmoot.toml", &config);
    bank.gateway.signal("HUP");
    let payer = Client::of(&bank.gateway, &token("payer"));
    until("the preset is in force", || {
        let tools = payer.ask("tools/list", json!({})).to_string();
        tools.contains("Pays 500.").then_some(())
    });
    let call = payer.begin_call("bank_pay", json!({}));
    let proposal = bank.pending();
    assert_eq!(proposal["params"]["arguments"]["amount"], 500, "{proposal}");
    bank.approve(&proposal);
    is_paid(&result_of(&call), 500);
}

#[test]
fn the_commands_say_what_such_rules_look_at() {
    let bank = bank(ABOVE_100);
    let listed = bank.portmoot(&["rules", "ls"], 0);
    assert!(
        listed.contains("payer must ask a person before calling pay of bank"),
        "{listed}"
    );
    assert!(!listed.contains("proposals alone"), "{listed}");
    let check = ["config", "check", "--config", "portmoot.toml"];
    let checked = bank.home.run(&check).expect(0);
    let all = checked.stdout + &checked.stderr;
    assert!(!all.contains("proposals alone"), "{all}");
}
