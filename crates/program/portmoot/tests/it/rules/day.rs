//! A day in fast motion: a plain MCP client and a Python client make 500 calls, and two reviewers teach
//! and renew the rules that decide them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::bank::Bank;
use super::past::PastPayment;
use crate::python_client::Agent;
use crate::support::until;

/// Hours of the day.
const HOURS: u64 = 10;
/// Calls of each agent in an hour.
const CALLS: u64 = 25;
const HOUR_MS: u64 = 3_600_000;
/// Looks at a proposal after which it waits for a person.
const LOOKS: usize = 5;

/// The calls of a proposer that its reviewer approved on three days before: forty payments in an hour.
fn past(proposer: &'static str, by: &'static str) -> Vec<PastPayment> {
    let all = [9, 6, 3].into_iter().flat_map(move |days_ago| {
        (0..40).map(move |at| PastPayment {
            proposer,
            by,
            days_ago,
            ..PastPayment::of(5 + at * 7 % 19 * 5)
        })
    });
    all.collect()
}

/// The day of a bank, and its books.
struct Day {
    bank: Bank,
    /// The rule of each reviewer, and the budgets of its versions.
    rules: BTreeMap<&'static str, String>,
    budgets: BTreeMap<String, u64>,
    by_hand: usize,
}

impl Day {
    /// A reviewer accepts what it is offered, if it is offered something.
    #[track_caller]
    fn is_offered(&mut self, who: &'static str) {
        for offer in self.bank.offers(who) {
            let (status, rule) = self
                .bank
                .does(who, "accept", offer["digest"].as_str().unwrap());
            assert_eq!(
                (status, &rule["state"]),
                (200, &json!("in force")),
                "{rule}"
            );
            assert_eq!(rule["author"], who, "{rule}");
            let name = rule["rule"].as_str().unwrap().to_owned();
            if let Some(before) = self.rules.insert(who, name.clone()) {
                assert_eq!(offer["renews"]["rule"], before, "{offer}");
                assert_eq!(name, super::renewed::next(&before));
            }
            let left = rule["left"].as_u64().unwrap();
            assert!(left >= 40, "{rule}");
            assert!(self.budgets.insert(name, left).is_none(), "{rule}");
        }
    }

    /// Waits until a call that has begun is paid: by a rule, or by the reviewer, who is asked.
    #[track_caller]
    fn is_settled(&mut self, paid: usize, reviewer: &'static str) {
        let mut looks = 0;
        until("the call is paid", || {
            if self.bank.server.calls("pay") > paid {
                return Some(());
            }
            looks += 1;
            let waits = self.bank.gets(reviewer, "proposals")["proposals"][0].clone();
            if looks > LOOKS && waits["state"] == "pending" {
                let path = format!("proposals/{}/approve", waits["id"].as_str().unwrap());
                let body = json!({ "digest": waits["digest"] });
                let (status, decided) = self.bank.asks_api(reviewer, &path, &body);
                // A rule may come before.
                assert!([200, 409].contains(&status), "{decided}");
                self.by_hand += usize::from(status == 200);
            }
            None
        });
    }

    /// An hour of both agents.
    fn passes(&mut self, hour: u64) {
        let mut dave = Agent::enter(&self.bank.gateway, "dave", "asyncio", "directed+proposals");
        for at in 0..CALLS {
            // Those that the bank answers with no error.
            let amount = 5 + (hour * CALLS + at) * 11 % 56;
            let paid = self.bank.server.calls("pay");
            let call = self.bank.propose(amount);
            self.is_settled(paid, "ann");
            super::bank::is_paid(&super::bank::result_of(&call), amount);
            let arguments = json!({ "amount": amount });
            let call = json!({ "to": "bank", "tool": "pay", "arguments": arguments });
            let id = dave.run("propose", call).unwrap();
            self.is_settled(paid + 1, "boss");
            let outcome = dave.run("outcome", json!({ "id": id })).unwrap();
            assert_eq!(outcome, format!("paid {amount}"));
            self.is_renewed();
        }
    }

    /// The reviewers look at what is left of their rules, and renew those of which less than a third is.
    fn is_renewed(&mut self) {
        let all = self.bank.gets("boss", "topics/main/rules");
        for rule in all["rules"].as_array().unwrap() {
            let name = rule["rule"].as_str().unwrap();
            if rule["left"].as_u64().unwrap() * 3 <= self.budgets[name] {
                let author = self.rules.iter().find(|(_, own)| *own == name);
                self.is_offered(author.unwrap().0);
            }
        }
    }
}

#[test]
fn a_day_of_500_calls() {
    let mut bank = Bank::new();
    bank.has_decided(&past("scout", "ann"));
    bank.has_decided_after(&past("dave", "boss"), 1_000);
    let mut day = Day {
        bank,
        rules: BTreeMap::new(),
        budgets: BTreeMap::new(),
        by_hand: 0,
    };
    for who in ["ann", "boss"] {
        day.is_offered(who);
    }
    for hour in 0..HOURS {
        day.passes(hour);
        day.bank.is_later_by((hour + 1) * HOUR_MS);
    }
    let calls = usize::try_from(2 * HOURS * CALLS).unwrap();
    assert_eq!(day.bank.server.calls("pay"), calls, "each once");
    // The books: what each version approved, beside its budget.
    let mut used: BTreeMap<String, u64> = BTreeMap::new();
    for one in day.bank.proposals() {
        if let Some(rule) = one["rule"].as_str() {
            *used.entry(rule.to_owned()).or_default() += 1;
        }
    }
    for (rule, used) in &used {
        assert!(used <= &day.budgets[rule], "{rule}: {used}");
    }
    let by_rule = usize::try_from(used.values().sum::<u64>()).unwrap();
    assert_eq!(by_rule + day.by_hand, calls, "{used:?}");
    assert!(by_rule * 10 >= calls * 8, "{by_rule} of {calls}");
    assert!(day.budgets.len() >= 6, "{:?}", day.budgets);
    is_spent(&mut day);
    ends(&day);
}

/// The reviewers look away: a version runs out, people decide again, and it is renewed.
fn is_spent(day: &mut Day) {
    let rule = day.rules["ann"].clone();
    let mut at = 0;
    while day.bank.rule(&rule)["left"] != 0 {
        at += 1;
        assert!(at <= 200, "{}", day.bank.rule(&rule));
        // An hour has no more calls than the rule approves in one.
        if at % (2 * CALLS) == 0 {
            day.bank.is_later_by((HOURS + at / (2 * CALLS)) * HOUR_MS);
        }
        let amount = 5 + at * 11 % 56;
        let paid = day.bank.server.calls("pay");
        let call = day.bank.propose(amount);
        day.is_settled(paid, "ann");
        super::bank::is_paid(&super::bank::result_of(&call), amount);
    }
    assert_eq!(day.bank.rule(&rule)["state"], "spent");
    let call = day.bank.propose(50);
    let waits = day.bank.pending();
    let shown = day.bank.comes_to(&rule, "suspended");
    assert_eq!(shown["why"], "its budget is used up", "{shown}");
    let path = format!("proposals/{}/approve", waits["id"].as_str().unwrap());
    let body = json!({ "digest": waits["digest"] });
    assert_eq!(day.bank.asks_api("ann", &path, &body).0, 200);
    super::bank::is_paid(&super::bank::result_of(&call), 50);
    day.is_offered("ann");
    assert_ne!(day.rules["ann"], rule, "its next version");
}

/// The evening: a reviewer ends its rule, and the other one's is ended by a rejection.
fn ends(day: &Day) {
    let bank = &day.bank;
    let [own, other] = ["boss", "ann"].map(|who| &day.rules[who]);
    for rule in [own, other] {
        let shown = bank.rule(rule);
        assert_eq!(shown["spot_checks"], shown["spot_checks_agreed"], "{shown}");
    }
    assert_eq!(bank.ends("boss", own).0, 200);
    let call = bank.begins("dave", "bank_pay", 50);
    let waits: Value = bank.pending();
    let path = format!("proposals/{}/reject", waits["id"].as_str().unwrap());
    assert_eq!(bank.asks_api("ann", &path, &json!({})).0, 200);
    call.rest();
    assert_eq!(bank.rule(other)["state"], "suspended");
    for who in ["ann", "boss"] {
        assert_eq!(bank.offers(who), [json!(null); 0]);
    }
    bank.asks(50);
}
