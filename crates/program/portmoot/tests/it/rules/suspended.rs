//! Causes for which the gateway suspends a rule, and the next version with which it comes back.

use std::sync::atomic::Ordering;

use serde_json::json;

use super::bank::{Bank, FAILING, REFUSED, UP_TO_100, is_paid, result_of};
use super::past::approvals;
use crate::support::until;

#[test]
fn a_changed_tool_suspends_its_rules() {
    let bank = Bank::with(|bank| bank.approving("r1", "uses = 9", UP_TO_100));
    bank.is_paid(1);
    bank.is_changed.store(true, Ordering::Relaxed);
    bank.server
        .say(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
    until("the tool has changed", || {
        let tool = bank.api("GET", "tools/bank_pay", "");
        tool.to_string().contains("Pays, and more").then_some(())
    });
    bank.asks(2);
    let rule = bank.comes_to("r1.1", "suspended");
    assert_eq!(rule["why"], "the tool's definition changed", "{rule}");
}

#[test]
fn a_changed_server_suspends_its_rules() {
    let bank = Bank::with(|bank| bank.approving("r1", "uses = 9", UP_TO_100));
    bank.is_paid(1);
    let id = bank.proposal_of(1)["id"].as_str().unwrap().to_owned();
    let path = format!("proposals/{id}/rules");
    let server = || bank.api("GET", &path, "")["server"].clone();
    let before = server();
    assert!(before.is_string(), "{before}");
    let config = bank.config.replacen("exec 3<>", "true; exec 3<>", 1);
    assert_ne!(config, bank.config);
    bank.home.write("portmoot.toml", &config);
    bank.gateway.signal("HUP");
    until("the server has changed", || {
        let now = server();
        (now.is_string() && now != before).then_some(())
    });
    bank.asks(2);
    let rule = bank.rule("r1.1");
    assert_eq!(rule["why"], "the server's configuration changed", "{rule}");
}

/// A rejection of a call that the rule does not cover.
#[test]
fn a_rejection_for_its_context_suspends_what_was_learned_of_its_tool() {
    for (code, is_suspended) in [("arguments", false), ("context", true)] {
        let mut bank = Bank::new();
        bank.has_decided(&approvals());
        let name = bank.accepts_checked(&[]);
        bank.is_paid(20);
        bank.is_decided("boss", 400, "reject", &json!({ "code": code }));
        if !is_suspended {
            bank.is_paid(21);
            continue;
        }
        let is_quarantined = |bank: &Bank| {
            let rule = bank.rule(&name);
            let why = "decisions about its tool depend on more than arguments";
            assert_eq!([&rule["state"], &rule["why"]], ["suspended", why], "{rule}");
        };
        is_quarantined(&bank);
        bank.restart("KILL");
        is_quarantined(&bank);
        bank.asks(21);
        assert_eq!(bank.server.calls("pay"), 1);
    }
}

#[test]
fn three_failures_suspend_a_rule() {
    let bank = Bank::with(|bank| bank.approving("r1", "uses = 9", UP_TO_100));
    // A result is no failure, whatever it says.
    for _ in 0..3 {
        assert_eq!(bank.pays(FAILING)["isError"], true);
    }
    bank.is_paid(1);
    for _ in 0..2 {
        bank.propose(REFUSED).rest();
    }
    bank.is_paid(2);
    bank.propose(REFUSED).rest();
    until("its failures are written", || {
        let all = bank.proposals();
        let failed = all.iter().filter(|one| one["state"] == "failed");
        (failed.count() == 3).then_some(())
    });
    assert_eq!(bank.server.calls("pay"), 8);
    bank.asks(3);
    let rule = bank.comes_to("r1.1", "suspended");
    assert_eq!(rule["why"], "its last uses failed", "{rule}");
    assert_eq!(
        (&rule["used"], &rule["left"]),
        (&json!(8), &json!(1)),
        "{rule}"
    );
    bank.put(&bank.approving("r1", "version = 2\nuses = 9", UP_TO_100));
    bank.is_paid(4);
}

#[test]
fn the_operator_forbids_rules_about_a_tool_and_allows_them_whatever_the_tool_says() {
    let destroys = "annotations = { destructiveHint = true }";
    let mut bank = Bank::beside(&format!(
        "[servers.bank.tool.pay]\nrules = \"allow\"\n{destroys}\n"
    ));
    bank.put(&bank.approving("r1", "uses = 9", UP_TO_100));
    bank.is_paid(1);
    let forbids = "rules = \"never\"\ndescription = \"Asks a person\"";
    bank.change("rules = \"allow\"", forbids);
    until("the setting is in force", || {
        let tool = bank.api("GET", "tools/bank_pay", "").to_string();
        tool.contains("Asks a person").then_some(())
    });
    bank.asks(2);
    let rule = bank.comes_to("r1.1", "suspended");
    assert_eq!(
        rule["why"], "the operator wants a person for each call",
        "{rule}"
    );
    // Nor does one that says that it may destroy.
    bank.digests = bank.digests_of("bank_pay");
    bank.put(&bank.approving("r1", "version = 2\nuses = 9\ndestructive = true", UP_TO_100));
    bank.asks(3);
    bank.comes_to("r1.2", "suspended");
}

/// Issues a token of this name, which may do this.
#[track_caller]
fn issue(bank: &Bank, name: &str, may: &[&str]) -> String {
    let mut words = vec!["token", "new", name];
    may.iter()
        .for_each(|may| words.extend(["--capability", may]));
    bank.portmoot(&words, 0).trim().to_owned()
}

#[test]
fn a_rule_is_not_for_the_next_proposer_of_a_name() {
    let mut bank = Bank::new();
    let carl = issue(&bank, "carl", &["mcp/proposal:*"]);
    let rule = |lines: &str| {
        let rule = bank.approving("r1", lines, UP_TO_100);
        rule.replace("[\"scout\"]", "[\"carl\", \"scout\"]")
    };
    let next = rule("version = 2\nuses = 9");
    bank.put(&rule("uses = 9"));
    let begins = |bank: &Bank, token: &str, amount| bank.begins_with(token, "bank_pay", amount);
    is_paid(&result_of(&begins(&bank, &carl, 1)), 1);
    bank.portmoot(&["token", "revoke", "carl"], 0);
    let carl = issue(&bank, "carl", &["mcp/proposal:*"]);
    bank.is_asked(begins(&bank, &carl, 2), 2);
    let rule = bank.comes_to("r1.1", "suspended");
    let why = "`carl` is not the name of the same participant any more";
    assert_eq!(rule["why"], why, "{rule}");
    bank.restart("KILL");
    bank.is_asked(begins(&bank, &carl, 3), 3);
    bank.asks(4);
    // The next version is for the present one.
    bank.put(&next);
    is_paid(&result_of(&begins(&bank, &carl, 5)), 5);
}

#[test]
fn a_rule_has_no_authority_of_the_next_author_of_a_name() {
    let bank = Bank::new();
    issue(&bank, "eve", &["mcp/request:*"]);
    let rule = |lines: &str| {
        let rule = bank.approving("r1", lines, UP_TO_100);
        rule.replace("\"ann\"", "\"eve\"")
    };
    bank.put(&rule("uses = 9"));
    bank.is_paid(1);
    bank.portmoot(&["token", "revoke", "eve"], 0);
    bank.asks(2);
    issue(&bank, "eve", &["mcp/request:*"]);
    bank.asks(3);
    let suspended = bank.comes_to("r1.1", "suspended");
    let why = "`eve` is not the name of the same participant any more";
    assert_eq!(suspended["why"], why, "{suspended}");
    bank.put(&rule("version = 2\nuses = 9"));
    bank.is_paid(4);
}
