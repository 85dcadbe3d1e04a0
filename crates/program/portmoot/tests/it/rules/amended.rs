//! Rules and amendments: what a proposer puts in place of its arguments is judged anew.

use platform::unix_ms;
use serde_json::{Value, json};

use super::bank::{Bank, UP_TO_100, is_paid, result_of};
use super::past::approvals;
use crate::support::until;

impl Bank {
    /// The proposer puts another amount in place of that of its proposal.
    #[track_caller]
    fn amends(&self, proposal: &Value, amount: u64) {
        let by = proposal["by"].as_str().unwrap();
        let path = format!("proposals/{}/amend", proposal["id"].as_str().unwrap());
        let mut arguments = proposal["params"]["arguments"].clone();
        arguments["amount"] = json!(amount);
        let (status, amended) = self.asks_api(by, &path, &json!({ "arguments": arguments }));
        assert_eq!(status, 200, "{amended}");
    }
}

#[test]
fn a_rule_judges_the_arguments_that_a_proposer_amends() {
    let bank = Bank::with(|bank| bank.approving("r1", "uses = 9", UP_TO_100));
    let call = bank.propose(500);
    let proposal = bank.pending();
    bank.amends(&proposal, 501);
    assert_eq!(bank.pending()["id"], proposal["id"]);
    bank.amends(&proposal, 50);
    is_paid(&result_of(&call), 50);
    assert_eq!(bank.rule("r1.1")["used"], 1);
    assert_eq!(bank.server.calls("pay"), 1);
}

#[test]
fn an_amendment_voids_the_approval_of_a_rule_and_what_it_counted() {
    let bank = Bank::beside("[servers.bank.tool.pay]\napprovals = 2\n");
    bank.put(&bank.approving("r1", "uses = 9", UP_TO_100));
    let call = bank.propose(5);
    let has = |approved_by: &[&str], used: u64| {
        until("the approvals of the rule", || {
            let all = bank.proposals();
            let pending = all.into_iter().find(|one| one["state"] == "pending")?;
            (pending["approved_by"] == json!(approved_by))
                .then_some(pending)
                .filter(|_| bank.rule("r1.1")["used"] == used)
        })
    };
    let proposal = has(&["ann"], 1);
    bank.amends(&proposal, 500);
    has(&[], 0);
    bank.amends(&proposal, 6);
    let proposal = has(&["ann"], 1);
    let body = json!({ "digest": proposal["digest"] });
    let approve = format!("proposals/{}/approve", proposal["id"].as_str().unwrap());
    assert_eq!(bank.asks_api("boss", &approve, &body).0, 200);
    is_paid(&result_of(&call), 6);
    assert_eq!(bank.rule("r1.1")["used"], 1);
}

#[test]
fn a_spot_check_stays_one_when_its_proposer_amends_it() {
    let mut bank = Bank::new();
    bank.has_decided(&approvals());
    let name = bank.accepts_checked(&[0]);
    let (call, proposal) = bank.is_left(21);
    // Else a proposer whose call waits could have the rule draw once more.
    bank.amends(&proposal, 22);
    let amended = bank.pending();
    assert_eq!(
        (&amended["id"], &amended["amendments"]),
        (&proposal["id"], &json!(1))
    );
    let body = json!({ "digest": amended["digest"] });
    let approve = format!("proposals/{}/approve", proposal["id"].as_str().unwrap());
    assert_eq!(bank.asks_api("ann", &approve, &body).0, 200);
    is_paid(&result_of(&call), 22);
    let rule = bank.rule(&name);
    assert_eq!(
        (&rule["used"], &rule["spot_checks"]),
        (&json!(0), &json!(0)),
        "it is decided about other arguments: {rule}"
    );
}

#[test]
fn a_rule_rejects_what_a_proposer_makes_of_a_spot_check() {
    let mut bank = Bank::new();
    bank.put(
        "[[rule]]\nid = \"r1\"\nauthor = \"ann\"\ndecision = \"reject\"\n\
         kind = \"mcp/request:tools/call:pay\"\nproposers = [\"*\"]\n\
         [rule.when]\n\"/amount\" = { equals = 50 }\n",
    );
    bank.has_decided(&approvals());
    bank.accepts_checked(&[0]);
    let (call, proposal) = bank.is_left(21);
    bank.amends(&proposal, 50);
    let rejected = until("a rule rejects it", || {
        let one = bank.proposal_of(50);
        (one["state"] == "rejected").then_some(one)
    });
    assert_eq!(
        (&rejected["id"], &rejected["rule"]),
        (&proposal["id"], &json!("r1.1")),
        "{rejected}"
    );
    call.rest();
    assert_eq!(bank.server.calls("pay"), 0);
}

#[test]
fn a_rejection_of_an_amended_proposal_says_nothing_of_what_its_reviewer_did_not_see() {
    let mut bank = Bank::new();
    bank.has_decided(&approvals());
    let name = bank.accepts_checked(&[]);
    for is_shown in [false, true] {
        let call = bank.begins("dave", "bank_pay", 90_000);
        let proposal = bank.pending();
        let path = format!("proposals/{}", proposal["id"].as_str().unwrap());
        bank.gets("ann", &path);
        bank.amends(&proposal, 20);
        if is_shown {
            bank.gets("ann", &path);
            let shown_ms = unix_ms();
            until("she has looked", || {
                (unix_ms() > shown_ms + 5).then_some(())
            });
        }
        let (status, _) = bank.asks_api("ann", &format!("{path}/reject"), &json!({}));
        assert_eq!(status, 200);
        call.rest();
        let state = if is_shown { "suspended" } else { "in force" };
        bank.comes_to(&name, state);
    }
}
