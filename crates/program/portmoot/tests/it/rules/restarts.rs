//! Rules over restarts and reloads of the gateway.

use serde_json::Value;

use super::bank::{Bank, UP_TO_100};
use crate::support::until;

#[test]
fn rules_judge_what_waits_since_before_a_restart_and_a_reload() {
    let mut bank = Bank::new();
    let _waits = bank.propose(40);
    let first = bank.pending()["id"].clone();
    bank.gateway.signal("TERM");
    bank.gateway.wait();
    let rules = bank.approving("r1", "uses = 9", UP_TO_100);
    bank.home.write("rules.toml", &rules);
    bank.start();
    let completed = |id: &Value| {
        let all = bank.proposals();
        let one = all.iter().find(|one| one["id"] == *id).unwrap().clone();
        (one["state"] == "completed").then_some(one)
    };
    let done = until("the one of before the restart", || completed(&first));
    assert_eq!(done["decided_by"], "rules", "{done}");
    let _waits = bank.propose(400);
    let second = bank.pending()["id"].clone();
    let wider = "\"/amount\" = { integer = [1, 1000] }";
    bank.put(&bank.approving("r1", "version = 2\nuses = 9", wider));
    let done = until("the one of before the reload", || completed(&second));
    assert_eq!(done["rule"], "r1.2", "{done}");
    assert_eq!(bank.server.calls("pay"), 2);
}

#[test]
fn a_decision_of_before_a_restart_is_shown_as_one_by_rules() {
    let mut bank = Bank::with(|bank| bank.approving("r1", "uses = 9", UP_TO_100));
    bank.is_paid(50);
    let decided = until("it is completed", || {
        Some(bank.proposal_of(50)).filter(|one| one["state"] == "completed")
    });
    let id = decided["id"].as_str().unwrap();
    for signal in ["TERM", "KILL"] {
        bank.restart(signal);
        let shown = bank.portmoot(&["proposals", "show", id], 0);
        assert!(shown.contains("by rules (rule r1.1 of ann)"), "{shown}");
        let now = bank.proposal_of(50);
        for key in ["state", "decided_by", "rule", "rule_author", "reason"] {
            assert_eq!(now[key], decided[key], "{key}: {now}");
        }
    }
}

#[test]
fn a_rule_rejects_after_a_restart_as_before() {
    let mut bank = Bank::with(|bank| {
        let reject = "[[rule]]\nid = \"r2\"\nauthor = \"ann\"\ndecision = \"reject\"\n\
                      kind = \"mcp/request:tools/call:pay\"\nproposers = [\"*\"]\n";
        let approving = bank.approving("r1", "uses = 9", UP_TO_100);
        approving.replace("\"ann\"", "\"boss\"") + reject
    });
    for (amount, signal) in [(1, "TERM"), (2, "KILL")] {
        let refused = bank.pays(amount);
        assert_eq!(refused["isError"], true, "{refused}");
        bank.restart(signal);
        let of_before = bank.proposal_of(amount);
        assert_eq!(
            [
                &of_before["state"],
                &of_before["decided_by"],
                &of_before["rule"]
            ],
            ["rejected", "rules", "r2.1"],
            "{of_before}"
        );
    }
    let refused = bank.pays(3);
    assert_eq!(refused["isError"], true, "{refused}");
    let words = refused["content"][0]["text"].as_str().unwrap();
    assert!(words.contains("rejected by rule r2.1 of ann"), "{words}");
    assert_eq!(bank.rule("r2.1")["state"], "in force");
    assert_eq!(bank.server.calls("pay"), 0);
}
