//! Budgets, rates and sums of rules: a use is counted with the decision, and calls in flight too.

use serde_json::{Value, json};

use super::bank::{Bank, UNANSWERED, UP_TO_100};
use crate::support::until;

#[test]
fn a_spent_rule_asks_again() {
    let mut bank = Bank::with(|bank| bank.approving("r1", "uses = 2", UP_TO_100));
    bank.is_paid(1);
    bank.restart("KILL");
    bank.is_paid(2);
    assert_eq!(bank.rule("r1.1")["state"], "spent");
    bank.asks(3);
    let rule = bank.comes_to("r1.1", "suspended");
    assert_eq!(rule["why"], "its budget is used up", "{rule}");
    bank.restart("KILL");
    bank.asks(4);
    // A larger budget under the same version is no rule; the next version has one of its own.
    let larger = bank.approving("r1", "uses = 90", UP_TO_100);
    bank.put(&larger);
    let refused = bank.comes_to("r1.1", "refused");
    let why = refused["why"].as_str().unwrap();
    assert!(why.contains("write `version = 2`"), "{refused}");
    bank.asks(5);
    bank.put(&bank.approving("r1", "version = 2\nuses = 1", UP_TO_100));
    bank.is_paid(6);
    bank.asks(7);
    // The version before does not come back.
    bank.put(&bank.approving("r1", "uses = 2", UP_TO_100));
    assert_eq!(bank.comes_to("r1.1", "refused")["left"], 0);
    bank.asks(8);
}

#[test]
fn a_crash_between_decision_and_run_uses_the_budget_once() {
    let mut bank = Bank::with(|bank| bank.approving("r1", "uses = 2", UP_TO_100));
    for round in 1..=2 {
        let _call = bank.propose(UNANSWERED);
        until("it runs", || {
            (bank.server.calls("pay") == round).then_some(())
        });
        bank.restart("KILL");
        // It is not run again, and its use is not given back.
        let states: Vec<Value> = bank
            .proposals()
            .iter()
            .filter(|one| one["params"]["arguments"]["amount"] == UNANSWERED)
            .map(|one| one["state"].clone())
            .collect();
        assert_eq!(states, vec![json!("failed"); round]);
        assert_eq!(bank.server.calls("pay"), round);
        let rule = bank.rule("r1.1");
        assert_eq!(rule["used"], round, "{rule}");
    }
    bank.asks(3);
}

#[test]
fn sums_and_rates_count_calls_in_flight() {
    let bank = Bank::with(|bank| {
        let sum = "uses = 9\nsum = [{ of = \"/amount\", max = 100, within = \"1d\" }]";
        bank.approving("r1", sum, UP_TO_100)
    });
    let _in_flight = bank.propose(UNANSWERED);
    until("it runs", || (bank.server.calls("pay") == 1).then_some(()));
    bank.asks(30);
    bank.is_paid(23);
    bank.asks(1);
    let bank = Bank::with(|bank| bank.approving("r1", "uses = 9\nrate = \"2/h\"", UP_TO_100));
    let _in_flight = bank.propose(UNANSWERED);
    until("it runs", || (bank.server.calls("pay") == 1).then_some(()));
    bank.is_paid(2);
    bank.asks(3);
    assert_eq!(bank.rule("r1.1")["state"], "in force");
}

#[test]
fn a_rule_for_two_proposers_has_one_budget() {
    let bank = Bank::with(|bank| {
        let rule = bank.approving("r1", "uses = 2", UP_TO_100);
        rule.replace("[\"scout\"]", "[\"scout\", \"dave\"]")
    });
    bank.is_paid_by("scout", "bank_pay", 1);
    bank.is_paid_by("dave", "bank_pay", 2);
    assert_eq!(bank.comes_to("r1.1", "spent")["used"], 2);
    bank.asks_for("dave", "bank_pay", 3);
    bank.asks_for("scout", "bank_pay", 4);
    // A participant that is none of them has nothing of it.
    bank.put(&bank.approving("r1", "version = 2\nuses = 1", UP_TO_100));
    bank.asks_for("dave", "bank_pay", 5);
    assert_eq!(bank.rule("r1.2")["state"], "in force");
    bank.is_paid(6);
}
