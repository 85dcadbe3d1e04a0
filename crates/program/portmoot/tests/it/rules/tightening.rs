//! Rules that reject: they are never switched off so that another one approves.

use serde_json::json;

use super::bank::{AUTHOR, Bank, UP_TO_100};
use crate::audit_log::AuditLog;
use crate::support::until;

/// Ann may make calls of these kinds at the bank alone.
fn at_the_bank(kind: &str) -> String {
    format!(
        "capabilities = [{{ kind = \"mcp/request:tools/call:{kind}\", to = [\"bank\"] }}, \"mcp/proposal:*\"]"
    )
}

/// Puts a rule of ann's that rejects beside one of boss's that approves, with what ann may do.
fn rejecting(may: &str, scope: &str) -> Bank {
    let mut bank = Bank::new();
    bank.change(AUTHOR, may);
    bank.ann_may(false);
    let approving = bank.approving("r1", "uses = 9", UP_TO_100);
    let reject = format!(
        "[[rule]]\nid = \"r2\"\nauthor = \"ann\"\ndecision = \"reject\"\n{scope}proposers = [\"*\"]\n"
    );
    bank.put(&(approving.replace("\"ann\"", "\"boss\"") + &reject));
    bank
}

#[test]
fn a_proposal_to_another_addressee_switches_no_rule_off() {
    let kind = "kind = \"mcp/request:tools/call:pay\"\n";
    let bank = rejecting(&at_the_bank("*"), kind);
    let _scout = bank.proposes("scout", "p1", &["lab"], "pay");
    bank.waits("lab", "pay");
    assert_eq!(bank.rule("r2.1")["state"], "in force");
    assert_eq!(bank.pays(9)["isError"], true);
    assert_eq!(bank.server.calls("pay"), 0);
}

#[test]
fn a_proposal_of_another_tool_switches_no_rule_off() {
    let kind = "kind = \"mcp/request:tools/call\"\nto = \"bank\"\n";
    let bank = rejecting(&at_the_bank("bank_pay"), kind);
    let _scout = bank.proposes("scout", "p1", &["bank"], "get");
    bank.waits("bank", "get");
    assert_eq!(bank.rule("r2.1")["state"], "in force");
    assert_eq!(bank.pays(9)["isError"], true);
    assert_eq!(bank.server.calls("pay"), 0);
}

#[test]
fn what_a_rule_may_not_reject_waits_for_people() {
    let kind = "kind = \"mcp/request:tools/call:pay\"\n";
    let mut bank = rejecting("capabilities = [\"chat\"]", kind);
    bank.asks(9);
    assert_eq!(bank.rule("r2.1")["state"], "in force");
    // A text that was changed under its version does not reject, and nothing is approved for it.
    let approving = bank.approving("r1", "version = 2\nuses = 9", UP_TO_100);
    let approving = approving.replace("\"ann\"", "\"boss\"");
    let changed = format!(
        "[[rule]]\nid = \"r2\"\nauthor = \"ann\"\ndecision = \"reject\"\n{kind}proposers = [\"scout\"]\n"
    );
    bank.put(&(approving.clone() + &changed));
    bank.comes_to("r2.1", "refused");
    bank.asks(10);
    assert_eq!(bank.server.calls("pay"), 0);
    // Without the rule, the other one approves.
    bank.put(&approving);
    bank.is_paid(11);
    bank.restart("TERM");
    bank.is_paid(12);
}

#[test]
fn a_removed_rule_decides_nothing_on_the_reload_that_removes_it() {
    let mut bank = rejecting(
        "capabilities = [\"chat\"]",
        "kind = \"mcp/request:tools/call:pay\"\n",
    );
    let _call = bank.propose(9);
    let id = bank.pending()["id"].clone();
    // Ann may reject it from the moment on at which her rule is gone.
    bank.home.write("rules.toml", "");
    bank.change("capabilities = [\"chat\"]", AUTHOR);
    bank.ann_may(true);
    until("the rules are gone", || {
        bank.rules().is_empty().then_some(())
    });
    let proposal = bank.pending();
    assert_eq!(proposal["id"], id, "{proposal}");
}

#[test]
fn a_rejection_of_a_rule_beats_an_approval() {
    let bank = Bank::with(|bank| {
        let reject = "[[rule]]\nid = \"r2\"\nauthor = \"boss\"\ndecision = \"reject\"\n\
                      kind = \"mcp/request:tools/call:pay\"\nproposers = [\"*\"]\n\
                      [rule.when]\n\"/amount\" = { integer = [13, 13] }\n";
        bank.approving("r1", "uses = 9", UP_TO_100) + reject
    });
    bank.is_paid(12);
    let calls = bank.server.calls("pay");
    let refused = bank.pays(13);
    assert_eq!(refused["isError"], true, "{refused}");
    let words = refused["content"][0]["text"].as_str().unwrap();
    let sentence = bank.rule("r2.1")["sentence"].as_str().unwrap().to_owned();
    assert!(words.contains("rejected by rule r2.1 of boss"), "{words}");
    assert!(words.contains(&sentence), "{words}: {sentence}");
    assert_eq!(bank.server.calls("pay"), calls);
    let kind = "mcp/proposal:tools/call:pay";
    AuditLog(&bank.home).has("rules", kind, "rejected", "by rule r2.1 of boss: ");
    assert_eq!(bank.rule("r1.1")["used"], 1);
    // Nor are people asked about it as a step of a plan.
    let pay = |amount: u64| json!({ "name": "bank_pay", "arguments": { "amount": amount } });
    let plan = json!({ "steps": [pay(12), pay(13)] });
    let (status, refused) = bank.asks_api("scout", "plans", &plan);
    let why = refused["message"].as_str().unwrap();
    assert_eq!(status, 403, "{refused}");
    assert!(
        why.starts_with("step 2: rejected by rule r2.1 of boss: "),
        "{why}"
    );
}
