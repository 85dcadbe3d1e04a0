//! Rules among several approvals: one counts as its author's, and what it counted is given back if
//! the call never runs.

use serde_json::{Value, json};

use super::bank::{Bank, UP_TO_100};
use crate::audit_log::AuditLog;
use crate::support::until;

impl Bank {
    /// The proposal of an amount, once ann's rule has approved it as one of two.
    #[track_caller]
    fn half_approved(&self, amount: u64) -> Value {
        until("the rule is one of two", || {
            let all = self.proposals();
            let mut all = all.into_iter();
            all.find(|one| {
                one["params"]["arguments"]["amount"] == amount
                    && one["state"] == "pending"
                    && one["approved_by"] == json!(["ann"])
            })
        })
    }

    /// Decides about a proposal by the API, and returns the status.
    fn decides(&self, who: &str, proposal: &Value, act: &str) -> u16 {
        let path = format!("proposals/{}/{act}", proposal["id"].as_str().unwrap());
        let body = if act == "approve" {
            json!({ "digest": proposal["digest"] })
        } else {
            json!({})
        };
        self.asks_api(who, &path, &body).0
    }

    #[track_caller]
    fn has_used(&self, count: u64) {
        assert_eq!(self.rule("r1.1")["used"], count);
    }
}

#[test]
fn a_rule_is_one_of_two_and_counts_only_what_runs() {
    let mut bank = Bank::beside("[servers.bank.tool.pay]\napprovals = 2\n");
    bank.put(&bank.approving("r1", "uses = 9", UP_TO_100));
    for (who, act, state) in [
        ("boss", "reject", "rejected"),
        ("scout", "withdraw", "withdrawn"),
    ] {
        let call = bank.propose(5);
        let proposal = bank.half_approved(5);
        bank.has_used(1);
        assert_eq!(bank.decides(who, &proposal, act), 200);
        call.rest();
        let is_over = |one: &Value| one["id"] == proposal["id"] && one["state"] == state;
        assert!(bank.proposals().iter().any(is_over), "{act}");
        bank.has_used(0);
    }
    assert_eq!(bank.server.calls("pay"), 0);
    // A kill between the two approvals loses neither the first nor its use.
    let _lost = bank.propose(6);
    bank.half_approved(6);
    bank.restart("KILL");
    let proposal = bank.half_approved(6);
    bank.has_used(1);
    assert_eq!(bank.decides("ann", &proposal, "approve"), 409);
    assert_eq!(bank.decides("boss", &proposal, "approve"), 200);
    until("it ran", || {
        (bank.proposal_of(6)["state"] == "completed").then_some(())
    });
    assert_eq!(bank.server.calls("pay"), 1);
    bank.has_used(1);
    // Nor is what was counted before a kill lost to a rejection after it.
    let _lost = bank.propose(7);
    bank.half_approved(7);
    bank.restart("KILL");
    let proposal = bank.half_approved(7);
    bank.has_used(2);
    assert_eq!(bank.decides("boss", &proposal, "reject"), 200);
    bank.has_used(1);
    bank.restart("KILL");
    bank.has_used(1);
    bank.gateway.signal("TERM");
    AuditLog(&bank.home).has(
        "rules",
        "mcp/proposal:tools/call:pay",
        "approved",
        "by rule r1.1 of ann, proposed by scout; approved by ann, 1 of 2",
    );
}
