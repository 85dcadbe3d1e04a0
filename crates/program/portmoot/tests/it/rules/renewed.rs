//! Learned rules that are offered again near their ends, as next versions that their authors accept.

use platform::unix_ms;
use serde_json::{Value, json};

use super::bank::{Bank, DAY_MS, is_paid, result_of};
use super::past::{PastPayment, approvals};
use crate::audit_log::AuditLog;
use crate::http::Events;

impl Bank {
    /// Has the rules see a time so many days from now: none that is earlier counts any more.
    pub(super) fn is_later(&mut self, days: u64) {
        self.is_later_by(days * DAY_MS);
    }

    /// Has the rules see a time so many milliseconds from now.
    pub(super) fn is_later_by(&mut self, later_ms: u64) {
        let clock = json!({
            "record": "carried", "topic": "main", "rule": "clock.1", "uses": 0, "draws": 0,
            "full_until_ms": 0, "latest_ms": unix_ms() + later_ms,
        });
        self.has_recorded(&[clock]);
    }

    /// The only offer of ann's, which renews this rule.
    #[track_caller]
    pub(super) fn renewal_of(&self, name: &str) -> Value {
        let offer = self.only_offer("ann");
        assert_eq!(offer["renews"]["rule"], name, "{offer}");
        offer
    }

    /// Ann accepts the next version of this rule. Returns its name.
    #[track_caller]
    pub(super) fn renews(&self, name: &str) -> String {
        let offer = self.renewal_of(name);
        let (status, rule) = self.does("ann", "accept", offer["digest"].as_str().unwrap());
        assert_eq!(status, 200, "{rule}");
        assert_eq!(
            [&rule["rule"], &rule["state"]],
            [&offer["rule"], &json!("in force")],
            "{rule}"
        );
        rule["rule"].as_str().unwrap().to_owned()
    }

    /// A call of scout's waits, and boss approves it.
    #[track_caller]
    pub(super) fn is_approved(&self, call: Events, amount: u64) {
        let proposal = self.pending();
        assert_eq!(
            proposal["params"]["arguments"]["amount"], amount,
            "{proposal}"
        );
        self.approve(&proposal);
        is_paid(&result_of(&call), amount);
    }
}

/// The version after this one.
pub(super) fn next(name: &str) -> String {
    let (id, version) = name.rsplit_once('.').unwrap();
    format!("{id}.{}", version.parse::<u32>().unwrap() + 1)
}

#[test]
fn a_rule_near_the_end_of_its_budget_is_offered_again_with_what_differs() {
    let mut bank = Bank::new();
    bank.has_decided(&approvals());
    let name = bank.accepts_checked(&[1]);
    bank.is_paid(20);
    let (call, _) = bank.is_left(21);
    bank.is_approved(call, 21);
    for amount in [20, 20, 33, 20] {
        bank.is_paid(amount);
    }
    assert_eq!(
        bank.offers("ann"),
        [json!(null); 0],
        "three uses of eight are left"
    );
    bank.is_paid(34);
    let before = bank.renewal_of(&name);
    bank.is_decided("boss", 400, "reject", &json!({}));
    let offer = bank.renewal_of(&name);
    let renews = &offer["renews"];
    let keys = [
        "used",
        "left",
        "spot_checks",
        "spot_checks_agreed",
        "rejected",
        "different",
    ];
    assert_eq!(
        keys.map(|key| renews[key].as_u64().unwrap()),
        [6, 2, 1, 1, 1, 3],
        "{offer}"
    );
    assert_eq!(before["renews"]["rejected"], 0);
    assert_eq!(
        [&renews["breadth"], &renews["conditions"]],
        [&json!("same"), &json!([])]
    );
    // What was never approved by hand comes first.
    let uses: Vec<(&str, u64)> = renews["uses"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            (
                one["arguments"].as_str().unwrap(),
                one["times"].as_u64().unwrap(),
            )
        })
        .collect();
    let expected = [
        (r#"{"amount":33}"#, 1),
        (r#"{"amount":34}"#, 1),
        (r#"{"amount":20}"#, 4),
    ];
    assert_eq!(uses, expected);
    // A third of 24 approvals and six uses.
    assert_eq!(
        [&offer["rule"], &offer["uses"]],
        [&json!(next(&name)), &json!(10)],
        "{offer}"
    );
    let shown = bank.portmoot_as("ann", &["rules", "offers"], 0);
    for line in [
        &format!("  renews {name}, rests on 24 approvals of yours\n"),
        "\n  so far  6 used, 2 left, ends ",
        ", spot checks: 1, agreed: 1\n  rejected beside it  1\n  it covers what it did\n",
        "\n  used for  {\"amount\":20} (4 times)\n",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    // Not in force before it is accepted, by its author alone.
    let digest = offer["digest"].as_str().unwrap();
    for who in ["boss", "scout"] {
        let (status, refused) = bank.does(who, "accept", digest);
        assert_eq!(status, 404, "{refused}");
    }
    // Before the crash, which may cost the log its last moments.
    let refused = format!("unknown_target: {digest}");
    AuditLog(&bank.home).has("boss", "portmoot/rule-accept", "refused", &refused);
    bank.restart("KILL");
    assert_eq!(bank.rule(&name)["left"], 2);
    let second = bank.renews(&name);
    assert_eq!(second, next(&name));
    let rules = bank.rules();
    assert_eq!(rules.len(), 1, "{rules:?}");
    assert_eq!(
        [
            &rules[0]["used"],
            &rules[0]["left"],
            &rules[0]["spot_checks"]
        ],
        [0, 10, 0]
    );
    let (status, _) = bank.does("ann", "accept", digest);
    assert_eq!(status, 404, "once");
    bank.is_paid(35);
    // Before the crash, which may cost the log its last moments.
    records_say_who(&bank, &name, digest);
    bank.restart("KILL");
    let rule = bank.rule(&second);
    assert_eq!([&rule["used"], &rule["left"]], [1, 9], "{rule}");
    bank.asks(101);
}

/// Checks that the audit log has both acceptances, with rule, version and digest.
fn records_say_who(bank: &Bank, name: &str, digest: &str) {
    let log = AuditLog(&bank.home);
    let first = format!("rule {name} of ann");
    let entry = log.has("ann", "portmoot/rule-accept", "admitted", &first);
    assert_ne!(entry["digest"], digest, "{entry}");
    let second = format!("rule {} of ann, in place of the version before", next(name));
    let entry = log.has("ann", "portmoot/rule-accept", "admitted", &second);
    assert_eq!(entry["digest"], digest, "{entry}");
}

#[test]
fn a_rule_that_came_to_an_end_is_offered_again() {
    let mut bank = Bank::new();
    bank.has_decided(&approvals());
    let name = bank.accepts_checked(&[]);
    for amount in 20..28 {
        bank.is_paid(amount);
    }
    let call = bank.propose(28);
    bank.is_approved(call, 28);
    assert_eq!(
        bank.renewal_of(&name)["renews"]["why"],
        "its budget is used up"
    );
    let second = bank.renews(&name);
    bank.is_paid(29);
    bank.is_later(13);
    let offer = bank.renewal_of(&second);
    assert_eq!(offer["renews"]["why"], Value::Null, "{offer}");
    bank.is_later(20);
    let call = bank.propose(30);
    bank.is_approved(call, 30);
    let rule = bank.comes_to(&second, "suspended");
    assert_eq!(rule["why"], "its end came", "{rule}");
    let third = bank.renews(&second);
    bank.is_paid(31);
    // It was not used for a week.
    bank.is_later(28);
    let call = bank.propose(32);
    bank.is_approved(call, 32);
    let offer = bank.renewal_of(&third);
    assert_eq!(
        offer["renews"]["why"], "it was not used for 7 days",
        "{offer}"
    );
}

#[test]
fn a_rejection_a_dismissal_and_an_end_are_no_reasons_to_renew() {
    let mut bank = Bank::new();
    bank.has_decided(&approvals());
    let name = bank.accepts_checked(&[]);
    for amount in 20..26 {
        bank.is_paid(amount);
    }
    let digest = bank.renewal_of(&name)["digest"]
        .as_str()
        .unwrap()
        .to_owned();
    let (status, left) = bank.does("ann", "dismiss", &digest);
    assert_eq!((status, &left["offers"]), (200, &json!([])), "{left}");
    // Before the crash, which may cost the log its last moments.
    let dismissed = format!("rule {} of ann", next(&name));
    AuditLog(&bank.home).has("ann", "portmoot/rule-dismiss", "admitted", &dismissed);
    bank.restart("KILL");
    bank.is_paid(26);
    assert_eq!(bank.offers("ann"), [json!(null); 0]);
    // The present version goes on, and ends with what it has.
    assert_eq!(bank.rule(&name)["left"], 1);
    bank.is_paid(27);
    let call = bank.propose(28);
    assert_eq!(bank.pending()["params"]["arguments"]["amount"], 28);
    assert_eq!(bank.rule(&name)["why"], "its budget is used up");
    assert_eq!(bank.offers("ann"), [json!(null); 0]);
    // It is wanted again once such a call is approved deliberately.
    let body = json!({ "digest": bank.pending()["digest"] });
    let path = format!(
        "proposals/{}/approve",
        bank.pending()["id"].as_str().unwrap()
    );
    assert_eq!(bank.asks_api("ann", &path, &body).0, 200);
    call.rest();
    bank.is_approved_deliberately(29);
    let second = bank.renews(&name);
    let log = AuditLog(&bank.home);
    for amount in 30..38 {
        bank.is_paid(amount);
    }
    bank.renewal_of(&second);
    // A call of another proposer, which the rule covers.
    bank.asks_for("dave", "bank_pay", 30);
    assert_eq!(bank.rule(&second)["state"], "suspended");
    assert_eq!(bank.offers("ann"), [json!(null); 0]);
    assert_eq!(bank.ends("boss", &second).0, 200);
    assert_eq!(bank.offers("ann"), [json!(null); 0]);
    log.has(
        "boss",
        "portmoot/rule-end",
        "admitted",
        &format!("rule {second} of ann"),
    );
    bank.asks(40);
}

#[test]
fn a_renewal_is_wider_where_its_author_approved_more_by_hand() {
    let mut bank = Bank::new();
    bank.has_decided(&approvals());
    let name = bank.accepts_checked(&[]);
    for amount in 20..26 {
        bank.is_paid(amount);
    }
    // What the journal has of ann's on three days.
    let past: Vec<PastPayment> = [3, 2, 1]
        .into_iter()
        .flat_map(|days_ago| {
            (1..=14).map(move |at| PastPayment {
                days_ago,
                ..PastPayment::of(at * 10)
            })
        })
        .collect();
    bank.has_decided_after(&past, 30);
    let offer = bank.renewal_of(&name);
    let renews = &offer["renews"];
    assert_eq!(renews["breadth"], "wider", "{offer}");
    let condition = json!([{
        "member": "amount", "before": "is a whole number from 5 to 100",
        "after": "is a whole number from 5 to 140",
    }]);
    assert_eq!(renews["conditions"], condition, "{offer}");
    let shown = bank.portmoot_as("ann", &["rules", "offers"], 0);
    let differs = "\n  it is wider now\n  differs  amount is a whole number from 5 to 140; before: is a whole number from 5 to 100\n";
    assert!(shown.contains(differs), "{shown}");
    // Until it is accepted, nothing more is covered.
    let call = bank.propose(120);
    bank.is_approved(call, 120);
    bank.renews(&name);
    bank.is_paid(121);
    bank.asks(141);
}
