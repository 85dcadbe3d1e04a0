//! Spot checks: uses that a learned rule leaves to people, unseen by its proposer.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::bank::{Bank, is_paid, result_of};
use super::past::approvals;
use crate::http::Events;
use crate::support::until;

/// The draws that a test looks at.
const DRAWS: u32 = 30;

/// Whether a draw of a rule with this seed is a spot check, as the journal's secret decides it.
fn is_checked(seed: u64, id: &str, draw: u32) -> bool {
    let hash = Sha256::new()
        .chain_update(b"portmoot/spot/1\0")
        .chain_update([[0; 24].as_slice(), &seed.to_be_bytes()].concat())
        .chain_update(draw.to_be_bytes())
        .chain_update(id)
        .finalize();
    u64::from_be_bytes(hash[..8].try_into().unwrap()) % 10 == 0
}

impl Bank {
    /// Gives the topic a secret with which these draws of a rule are spot checks, and no others.
    pub(super) fn draws(&mut self, rule: &str, checked: &[u32]) {
        let (id, _) = rule.rsplit_once('.').unwrap();
        let fits = |seed: &u64| {
            (0..DRAWS).all(|draw| is_checked(*seed, id, draw) == checked.contains(&draw))
        };
        let seed = (0..).find(fits).unwrap();
        let record = json!({ "record": "seeded", "topic": "main", "seed": format!("{seed:064x}") });
        self.has_recorded(&[record]);
    }

    /// A call of scout's that waits for a person although a rule covers it. Returns it with the
    /// proposal.
    #[track_caller]
    pub(super) fn is_left(&self, amount: u64) -> (Events, Value) {
        let call = self.propose(amount);
        let proposal = self.pending();
        assert_eq!(
            proposal["params"]["arguments"]["amount"], amount,
            "{proposal}"
        );
        (call, proposal)
    }

    /// The uses and spot checks that a rule shows.
    #[track_caller]
    fn tally(&self, name: &str) -> [u64; 3] {
        let rule = self.rule(name);
        ["used", "spot_checks", "spot_checks_agreed"].map(|key| rule[key].as_u64().unwrap())
    }

    /// Scout withdraws its only proposal.
    #[track_caller]
    fn is_withdrawn(&self, proposal: &Value) {
        let path = format!("proposals/{}/withdraw", proposal["id"].as_str().unwrap());
        let (status, withdrawn) = self.asks_api("scout", &path, &json!({}));
        assert_eq!(
            (status, &withdrawn["state"]),
            (200, &json!("withdrawn")),
            "{withdrawn}"
        );
    }

    /// Ann approves a proposal.
    #[track_caller]
    fn is_approved_by_ann(&self, proposal: &Value) {
        let id = proposal["id"].as_str().unwrap();
        let body = json!({ "digest": proposal["digest"] });
        let (status, decided) = self.asks_api("ann", &format!("proposals/{id}/approve"), &body);
        assert_eq!(status, 200, "{decided}");
    }
}

/// Checks that a proposal is shown as any other one: nothing says that it is a spot check.
#[track_caller]
fn is_ordinary(bank: &Bank, proposal: &Value) {
    let id = proposal["id"].as_str().unwrap();
    let seen = [
        bank.gets("scout", &format!("proposals/{id}")).to_string(),
        bank.gets("ann", &format!("proposals/{id}")).to_string(),
        bank.portmoot_as("ann", &["proposals", "show", id], 0),
        bank.explain(proposal),
    ];
    for shown in &seen[..3] {
        assert!(
            !shown.contains("spot") && !shown.contains("learned-"),
            "{shown}"
        );
    }
    // The same as about each call that waits.
    let explained = &seen[3];
    assert!(
        explained.contains("that is shown when it is decided"),
        "{explained}"
    );
    assert!(!explained.contains("failed "), "{explained}");
}

#[test]
fn a_spot_check_goes_to_a_person_and_takes_nothing_of_the_budget() {
    let mut bank = Bank::new();
    bank.has_decided(&approvals());
    let name = bank.accepts_checked(&[1, 4]);
    bank.is_paid(20);
    let paid = bank.server.calls("pay");
    let (call, proposal) = bank.is_left(21);
    is_ordinary(&bank, &proposal);
    assert_eq!(bank.tally(&name), [1, 0, 0]);
    // The rule goes on while it waits, and judges nothing twice.
    bank.is_paid(22);
    bank.gateway.signal("HUP");
    bank.is_paid(23);
    assert_eq!(bank.pending()["id"], proposal["id"]);
    assert_eq!(bank.server.calls("pay"), paid + 2);
    assert_eq!(bank.tally(&name), [3, 0, 0]);
    bank.is_approved_by_ann(&proposal);
    is_paid(&result_of(&call), 21);
    assert_eq!(bank.tally(&name), [3, 1, 1]);
    let explained = bank.explain(&proposal);
    assert!(
        explained.contains("as spot checks: it was one"),
        "{explained}"
    );
    let shown = bank.portmoot_as("ann", &["rules", "ls"], 0);
    assert!(shown.contains("3 used, 5 left"), "{shown}");
    assert!(shown.contains("spot checks: 1, agreed: 1"), "{shown}");
    // Its rejection suspends the rule as any other one.
    let (call, proposal) = bank.is_left(24);
    let path = format!("proposals/{}/reject", proposal["id"].as_str().unwrap());
    let (status, _) = bank.asks_api("ann", &path, &json!({}));
    assert_eq!(status, 200);
    call.rest();
    let rule = bank.comes_to(&name, "suspended");
    assert!(
        rule["why"]
            .as_str()
            .unwrap()
            .ends_with("which was rejected"),
        "{rule}"
    );
    assert_eq!(bank.tally(&name), [3, 2, 1]);
    for signal in ["TERM", "KILL"] {
        bank.restart(signal);
        assert_eq!(bank.tally(&name), [3, 2, 1], "after {signal}");
    }
}

#[test]
fn a_withdrawn_spot_check_gives_no_other_draw() {
    let mut bank = Bank::new();
    bank.has_decided(&approvals());
    let name = bank.accepts_checked(&[0]);
    for amount in [20, 20, 21] {
        let (call, proposal) = bank.is_left(amount);
        bank.is_withdrawn(&proposal);
        call.rest();
    }
    bank.restart("KILL");
    let (call, proposal) = bank.is_left(22);
    // While that one waits, the others are used; what is withdrawn is owed whenever it is.
    bank.is_paid(23);
    bank.is_withdrawn(&proposal);
    call.rest();
    let (call, proposal) = bank.is_left(24);
    assert_eq!(bank.tally(&name), [1, 0, 0]);
    bank.is_approved_by_ann(&proposal);
    is_paid(&result_of(&call), 24);
    assert_eq!(bank.tally(&name), [1, 1, 1]);
    bank.is_paid(25);
    assert_eq!(bank.server.calls("pay"), 3);
}

#[test]
fn a_spot_check_that_waits_is_one_after_a_restart() {
    let mut bank = Bank::new();
    bank.has_decided(&approvals());
    let name = bank.accepts_checked(&[0, 1]);
    let (first, _) = bank.is_left(20);
    let second = bank.propose(21);
    until("both wait", || {
        let all = bank.proposals();
        let waiting = all.iter().filter(|one| one["state"] == "pending");
        (waiting.count() == 2).then_some(())
    });
    bank.is_paid(22);
    bank.restart("KILL");
    drop((first, second));
    let waiting = || {
        let all = bank.proposals();
        let waiting = all.iter().filter(|one| one["state"] == "pending");
        waiting.cloned().collect::<Vec<_>>()
    };
    assert_eq!(waiting().len(), 2);
    bank.is_paid(23);
    assert_eq!(bank.tally(&name), [2, 0, 0]);
    for one in waiting() {
        bank.is_approved_by_ann(&one);
    }
    assert_eq!(bank.tally(&name), [2, 2, 2]);
    assert_eq!(bank.server.calls("pay"), 4);
}

#[test]
fn an_edited_spot_check_is_no_agreement() {
    let mut bank = Bank::new();
    bank.has_decided(&approvals());
    let name = bank.accepts_checked(&[0]);
    let (call, proposal) = bank.is_left(20);
    let id = proposal["id"].as_str().unwrap();
    let body = json!({ "digest": proposal["digest"], "arguments": { "amount": 10 } });
    let (status, decided) = bank.asks_api("ann", &format!("proposals/{id}/approve"), &body);
    assert_eq!(status, 200, "{decided}");
    is_paid(&result_of(&call), 10);
    assert_eq!(bank.tally(&name), [0, 1, 0]);
    assert_eq!(bank.rule(&name)["state"], "in force");
}

#[test]
fn rules_of_a_file_leave_nothing_to_people() {
    let mut bank = Bank::new();
    let seed = json!({ "record": "seeded", "topic": "main", "seed": format!("{:064x}", 1) });
    bank.has_recorded(&[seed]);
    bank.put(&bank.approving("r1", "uses = 40", "\"/amount\" = { integer = [1, 100] }"));
    for amount in 1..=30 {
        bank.is_paid(amount);
    }
    assert_eq!(bank.tally("r1.1"), [30, 0, 0]);
}
