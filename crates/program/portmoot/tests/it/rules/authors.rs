//! Authors of rules: a rule decides by what its author may do at that moment, and nothing of its
//! author's own.

use crate::support::until;

use super::bank::{AUTHOR, Bank, UP_TO_100};

#[test]
fn a_rule_never_outlives_its_authors_capability() {
    let mut bank = Bank::with(|bank| bank.approving("r1", "uses = 9", UP_TO_100));
    bank.is_paid(1);
    bank.change(AUTHOR, "capabilities = [\"chat\"]");
    bank.ann_may(false);
    bank.asks(2);
    let rule = bank.comes_to("r1.1", "suspended");
    assert_eq!(rule["why"], "its author may not do this any more", "{rule}");
    // It does not come back by itself, but as the next version.
    bank.change("capabilities = [\"chat\"]", AUTHOR);
    bank.ann_may(true);
    bank.asks(3);
    bank.restart("TERM");
    bank.asks(4);
    bank.put(&bank.approving("r1", "version = 2\nuses = 9", UP_TO_100));
    bank.is_paid(5);
    // The author need not be there; one that is not known decides nothing, and may come back.
    let table = "[participants.ann]\ntoken_env = \"TOKEN_ANN\"\n";
    bank.change(&format!("{table}{AUTHOR}\n"), "");
    bank.ann_may(false);
    bank.asks(6);
    assert_eq!(bank.rule("r1.2")["state"], "in force");
}

/// The guards with which no rule is used for its author's own proposal: none, a sum that is passed, and
/// an earlier call that was not made. (A rule that asks decides no proposal: see `asking.rs`.)
const GUARDS: [&str; 3] = [
    "",
    "sum = [{ of = \"/amount\", max = 1, within = \"1d\" }]\n",
    "after = [{ kind = \"mcp/request:tools/call:pay\", to = \"clerk\", within = \"1h\" }]\n",
];

#[test]
fn a_rule_is_never_used_for_its_authors_own_proposal() {
    for guard in GUARDS {
        let reject = format!(
            "[[rule]]\nid = \"r2\"\nauthor = \"ann\"\ndecision = \"reject\"\n\
             kind = \"mcp/request:tools/call:pay\"\nproposers = [\"*\"]\n{guard}"
        );
        let bank = Bank::with(|_| reject);
        let mut scout = bank.proposes("scout", "p1", &["bank"], "pay");
        let notified = scout.receive_until(|one| one["payload"]["state"] == "rejected");
        assert_eq!(notified["payload"]["by"], "rules", "{guard}: {notified}");
        let mut ann = bank.proposes("ann", "p2", &["bank"], "pay");
        ann.receive_until(|one| one["kind"] == "portmoot/proposal");
        // It waits for others.
        assert_eq!(bank.pending()["by"], "ann", "{guard}");
        assert_eq!(bank.rule("r2.1")["state"], "in force", "{guard}");
        // An approving rule that names its author is none.
        let own = bank
            .approving("r1", &format!("uses = 9\n{guard}"), UP_TO_100)
            .replace("[\"scout\"]", "[\"ann\"]");
        bank.home.write("rules.toml", &own);
        let check = bank
            .home
            .run(&["config", "check", "--config", "portmoot.toml"])
            .expect(2);
        let why = "a rule never decides its author's own proposals";
        assert!(check.stderr.contains(why), "{guard}: {}", check.stderr);
    }
}

#[test]
fn a_rule_of_who_may_approve_decides_until_that_right_is_lost() {
    let mut bank = Bank::new();
    let approves = "capabilities = [\"mcp/approve:*\"]";
    bank.change(AUTHOR, approves);
    bank.ann_may(false);
    bank.put(&bank.approving("r1", "uses = 9", UP_TO_100));
    bank.is_paid(1);
    bank.change(approves, "capabilities = [\"chat\"]");
    until("what ann may do", || {
        let can = bank.api("GET", "participants/ann/can", "").to_string();
        (!can.contains("mcp/approve")).then_some(())
    });
    bank.asks(2);
    bank.comes_to("r1.1", "suspended");
}

#[test]
fn a_participant_suspends_no_rule_about_others() {
    let bank = Bank::with(|bank| bank.approving("r1", "uses = 1", UP_TO_100));
    bank.is_paid(1);
    let _dave = bank.proposes("dave", "p1", &["bank"], "pay");
    bank.waits("bank", "pay");
    assert_eq!(bank.rule("r1.1")["state"], "spent");
}
