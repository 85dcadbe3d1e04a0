//! Rules that ask, beside all that keeps an approving rule from deciding: they go on asking, so that no
//! call runs directly which they are there to keep back.
//!
//! Two cells of the matrix have no meaning for them. A rule that asks has no budget, so that none is
//! spent. And it decides no proposal, so that it is used for none of its author's own; that its author's
//! own calls are asked about is here.

use std::sync::atomic::Ordering;

use serde_json::json;

use super::bank::{AUTHOR, Bank, UNANSWERED};
use super::direct::{ABOVE_100, pays_directly};
use crate::support::until;

/// A rule of ann's that asks about all calls above 100.
fn of_ann() -> String {
    let rule = ABOVE_100.replace("\"boss\"", "\"ann\"");
    rule.replace("[\"payer\"]", "[\"*\"]")
}

/// The rule is in force: it asks about what it covers, and about nothing else.
#[track_caller]
fn still_asks(bank: &Bank, amount: u64) {
    bank.asks_for("payer", "bank_pay", amount);
    assert_eq!(bank.rule("r1.1")["state"], "in force");
    pays_directly(bank, amount % 100 + 1);
}

#[test]
fn a_rule_that_asks_outlives_rejections_changes_of_its_tool_and_its_authors_right() {
    let mut bank = Bank::with(|_| of_ann());
    // Each of these is rejected.
    still_asks(&bank, 101);
    still_asks(&bank, 101);
    bank.is_changed.store(true, Ordering::Relaxed);
    bank.server
        .say(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
    until("the tool has changed", || {
        let tool = bank.api("GET", "tools/bank_pay", "");
        tool.to_string().contains("Pays, and more").then_some(())
    });
    still_asks(&bank, 102);
    bank.change(AUTHOR, "capabilities = [\"chat\"]");
    bank.ann_may(false);
    still_asks(&bank, 103);
    bank.restart("KILL");
    still_asks(&bank, 104);
}

#[test]
fn a_rule_that_asks_decides_nothing_and_holds_its_authors_own_calls_too() {
    let bank = Bank::with(|_| of_ann());
    bank.asks_for("ann", "bank_pay", 101);
    bank.is_paid_by("ann", "bank_pay", 100);
    for (who, id) in [("scout", "p1"), ("ann", "p2")] {
        let mut proposer = bank.proposes(who, id, &["bank"], "pay");
        proposer.receive_until(|one| one["kind"] == "portmoot/proposal");
        let proposal = bank.pending();
        assert_eq!(proposal["by"], who, "{proposal}");
        bank.reject(&proposal);
    }
    assert_eq!(bank.server.calls("pay"), 1);
}

#[test]
fn a_crash_between_admission_and_answer_counts_in_the_sum_of_a_rule_that_asks_once() {
    for is_direct in [true, false] {
        let mut bank = Bank::with(|_| {
            format!(
                "[[rule]]\nid = \"r1\"\nauthor = \"boss\"\ndecision = \"ask\"\n\
                 kind = \"mcp/request:tools/call:pay\"\nto = \"bank\"\nproposers = [\"*\"]\n\
                 sum = [{{ of = \"/amount\", max = {}, within = \"1d\" }}]\n",
                UNANSWERED + 10
            )
        });
        let call = if is_direct {
            bank.begins("payer", "bank_pay", UNANSWERED)
        } else {
            let call = bank.propose(UNANSWERED);
            bank.approve(&bank.pending());
            call
        };
        until("it runs", || (bank.server.calls("pay") == 1).then_some(()));
        // A direct call does not wait for the disk, so that a crash may forget it in its first moment.
        bank.has_written("\"record\":\"charged\",\"topic\":\"main\"");
        bank.restart("KILL");
        drop(call);
        assert_eq!(bank.server.calls("pay"), 1, "it is not run again");
        bank.asks_for("payer", "bank_pay", 11);
        pays_directly(&bank, 10);
        bank.asks_for("payer", "bank_pay", 1);
    }
}
