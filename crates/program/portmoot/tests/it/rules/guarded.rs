//! Rules with guards: a sum, or an earlier call, changes nothing of what suspends a rule, nor of what a
//! crash leaves of its budget.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::json;

use super::after::{Office, REGISTERED};
use super::bank::{AUTHOR, Bank, UNANSWERED, UP_TO_100, is_paid, paying, result_of};
use crate::http::Events;
use crate::support::until;

/// At most 500 a day.
const SUM: &str = "sum = [{ of = \"/amount\", max = 500, within = \"1d\" }]";

/// Offices whose rule has each guard, and has been used once for a payment of 5.
fn used_with_each_guard() -> Vec<Office> {
    let with = |guard| {
        let office =
            Office::new(|bank| bank.approving("r1", &format!("uses = 9\n{guard}"), UP_TO_100));
        is_registered(&office, 5);
        office.bank.is_paid(5);
        office
    };
    [SUM, REGISTERED].map(with).into()
}

/// Scout registers an amount, which a person approves.
#[track_caller]
fn is_registered(office: &Office, amount: u64) {
    let bank = &office.bank;
    let call = office.registers("scout", amount);
    let proposal = bank.pending();
    let path = format!("proposals/{}/approve", proposal["id"].as_str().unwrap());
    let body = json!({ "digest": proposal["digest"] });
    let (status, decided) = bank.asks_api("boss", &path, &body);
    assert_eq!(status, 200, "{decided}");
    is_paid(&result_of(&call), amount);
}

#[test]
fn a_guarded_rule_never_outlives_its_authors_capability() {
    for mut office in used_with_each_guard() {
        let bank = &mut office.bank;
        bank.change(AUTHOR, "capabilities = [\"chat\"]");
        bank.ann_may(false);
        bank.asks(5);
        let rule = bank.comes_to("r1.1", "suspended");
        assert_eq!(rule["why"], "its author may not do this any more", "{rule}");
    }
}

#[test]
fn a_changed_tool_suspends_guarded_rules() {
    for office in used_with_each_guard() {
        let bank = &office.bank;
        bank.is_changed.store(true, Ordering::Relaxed);
        bank.server
            .say(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
        until("the tool has changed", || {
            let tool = bank.api("GET", "tools/bank_pay", "");
            tool.to_string().contains("Pays, and more").then_some(())
        });
        bank.asks(5);
        let rule = bank.comes_to("r1.1", "suspended");
        assert_eq!(rule["why"], "the tool's definition changed", "{rule}");
    }
}

#[test]
fn a_crash_between_decision_and_run_counts_in_a_sum_once() {
    let sum = format!(
        "uses = 9\nsum = [{{ of = \"/amount\", max = {}, within = \"1d\" }}]",
        UNANSWERED + 10
    );
    let mut bank = Bank::with(|bank| bank.approving("r1", &sum, UP_TO_100));
    let _call = bank.propose(UNANSWERED);
    until("it runs", || (bank.server.calls("pay") == 1).then_some(()));
    bank.restart("KILL");
    assert_eq!(bank.server.calls("pay"), 1, "it is not run again");
    let rule = bank.rule("r1.1");
    assert_eq!(rule["used"], 1, "{rule}");
    bank.asks(11);
    bank.is_paid(10);
}

/// Only after the clerk has registered something within an hour.
const AFTER_ANY: &str =
    "after = [{ kind = \"mcp/request:tools/call:pay\", to = \"clerk\", within = \"1h\" }]";

#[test]
fn a_crash_between_decision_and_run_uses_a_budget_after_an_earlier_call_once() {
    let mut office =
        Office::new(|bank| bank.approving("r1", &format!("uses = 2\n{AFTER_ANY}"), UP_TO_100));
    is_registered(&office, 5);
    let bank = &mut office.bank;
    let _call = bank.propose(UNANSWERED);
    until("it runs", || (bank.server.calls("pay") == 1).then_some(()));
    bank.restart("KILL");
    assert_eq!(bank.server.calls("pay"), 1, "it is not run again");
    let rule = bank.rule("r1.1");
    assert_eq!(rule["used"], 1, "{rule}");
    // What was registered is known still, and one use is left.
    bank.is_paid(6);
    bank.asks(7);
}

#[test]
fn a_spent_guarded_rule_asks_again() {
    for guard in [SUM, REGISTERED] {
        let mut office =
            Office::new(|bank| bank.approving("r1", &format!("uses = 1\n{guard}"), UP_TO_100));
        is_registered(&office, 5);
        office.bank.is_paid(5);
        office.bank.restart("KILL");
        office.bank.gateway.ready("clerk");
        assert_eq!(office.bank.rule("r1.1")["state"], "spent", "{guard}");
        office.bank.asks(5);
        let rule = office.bank.comes_to("r1.1", "suspended");
        assert_eq!(rule["why"], "its budget is used up", "{guard}: {rule}");
    }
}

/// Of a rule that its author has added: those of a file are the operator's, and stay.
#[test]
fn a_rejection_suspends_a_guarded_rule_before_the_next_use() {
    for guard in [SUM, REGISTERED] {
        let mut office = Office::new(|_| String::new());
        let rule = office
            .bank
            .approving("r1", &format!("uses = 9\n{guard}"), UP_TO_100);
        let (status, added) = office.bank.adds("ann", &rule, None);
        assert_eq!(status, 200, "{guard}: {added}");
        is_registered(&office, 5);
        office.bank.is_paid(5);
        // A call of another proposer, about which people decide.
        office.bank.asks_for("dave", "bank_pay", 30);
        for signal in ["TERM", "KILL"] {
            let rule = office.bank.rule("r1.1");
            assert_eq!(rule["state"], "suspended", "{guard}: {rule}");
            let why = rule["why"].as_str().unwrap();
            assert!(why.ends_with("which was rejected"), "{guard}: {rule}");
            office.bank.asks(5);
            office.bank.restart(signal);
            office.bank.gateway.ready("clerk");
        }
    }
}

#[test]
fn two_rules_do_not_leak_together() {
    let clerk = paying(Arc::default());
    let private = "[servers.bank.tool.pay]\nreads_private = true\n";
    let bank = Bank::beside(&(clerk.child("clerk", "clerk") + private));
    bank.gateway.ready("clerk");
    let like = |call: &Events, ends: u16| {
        let proposal = bank.pending();
        let path = format!("proposals/{}/like", proposal["id"].as_str().unwrap());
        let asked = json!({ "for_seconds": 3_600, "uses": 3 });
        let (status, made) = bank.asks_api("boss", &path, &asked);
        assert_eq!(status, ends, "{made}");
        if status != 200 {
            bank.reject(&proposal);
            call.rest();
            return made;
        }
        let body = json!({ "rule": made["text"] });
        let (status, added) = bank.asks_api("boss", "topics/main/rules", &body);
        assert_eq!(status, 200, "{added}");
        result_of(call);
        added
    };
    let reads = like(&bank.propose(5), 200);
    // The clerk's tool does not say that it reaches nothing outside.
    let refused = like(&bank.begins("scout", "clerk_pay", 6), 403);
    let why = refused["message"].as_str().unwrap();
    assert!(
        why.contains("read private data and send it elsewhere"),
        "{refused}"
    );
    // It is about one proposer.
    like(&bank.begins("dave", "clerk_pay", 6), 200);
    let rule = reads["rule"].as_str().unwrap();
    assert_eq!(bank.ends("boss", rule).0, 200);
    like(&bank.begins("scout", "clerk_pay", 6), 200);
    // The other way round.
    like(&bank.propose(5), 403);
}
