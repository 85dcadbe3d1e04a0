//! Simple books beside the guards of a rule: budget, rate, sum, count and earlier calls, whatever
//! the order of calls, repetitions, returns and clocks.

use model::OperationId;
use proptest::prelude::*;
use rules::{CallStage, RuleName, RuleSet, Spent, SpentEvent};

use crate::support::{DIGEST, NOON_MS, OwnedCall};

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;

/// One step of a day.
#[derive(Debug, Clone)]
enum Step {
    /// A proposal, so many minutes after the one before; fewer than none where a clock is set back.
    Propose {
        minutes: i64,
        amount: &'static str,
        to: &'static str,
    },
    /// The latest use is written once more, as after a crash.
    Again,
    /// The latest use is taken back.
    Return,
    /// The journal is compacted.
    Carry,
    /// The earlier call of `to` is answered.
    Answer { to: &'static str },
}

fn step() -> impl Strategy<Value = Step> {
    let amount =
        prop::sample::select(&["0", "1", "7", "40", "60", "100", "-5", "1e1", "\"7\""][..]);
    let to = || prop::sample::select(&["a1", "A1", "b2", "c3"][..]);
    let minutes = prop_oneof![8 => 0..40_i64, 1 => -2000..0_i64, 1 => 40..2000_i64];
    prop_oneof![
        8 => (minutes, amount, to()).prop_map(|(minutes, amount, to)| Step::Propose { minutes, amount, to }),
        1 => Just(Step::Again),
        1 => Just(Step::Return),
        1 => Just(Step::Carry),
        4 => to().prop_map(|to| Step::Answer { to }),
    ]
}

fn set() -> RuleSet {
    let text = format!(
        r#"
[[rule]]
id = "r1"
author = "ann"
decision = "approve"
kind = "mcp/request:tools/call:create_issue"
to = "github"
proposers = ["scout"]
definition = "{DIGEST}"
server = "{DIGEST}"
expires = "2026-12-06T09:00:00Z"
uses = 12
rate = "4/h"
sum = [{{ of = "/amount", max = 130, within = "2h" }}, {{ of = "/amount", max = 300, within = "1d" }}]
count = [{{ same = "/to", max = 3, within = "3h" }}]
after = [{{ kind = "mcp/request:tools/call:look_up", to = "github", same = {{ "/to" = "/who" }}, within = "5h" }}]
[rule.when]
"/amount" = {{ integer = [-10, 100] }}
"/to" = {{ chars = "A-Za-z0-9", length = [2, 2] }}
"#
    );
    RuleSet::parse(&text).unwrap_or_else(|error| panic!("{error}"))
}

/// A use in the books.
#[derive(Debug, Clone)]
struct Use {
    operation: u128,
    at_ms: u64,
    amount: i64,
    to: String,
}

/// The books, and the rule's own value beside them.
struct Day {
    set: RuleSet,
    spent: Spent,
    now_ms: u64,
    latest_ms: u64,
    operations: u128,
    uses: Vec<Use>,
    last: Vec<SpentEvent>,
    answers: Vec<(u64, &'static str)>,
}

impl Day {
    fn new() -> Self {
        Self {
            set: set(),
            spent: Spent::default(),
            now_ms: NOON_MS,
            latest_ms: 0,
            operations: 0,
            uses: Vec::new(),
            last: Vec::new(),
            answers: Vec::new(),
        }
    }

    fn name(&self) -> RuleName {
        self.set.rules()[0].name.clone()
    }

    fn step(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match step {
            Step::Propose {
                minutes,
                amount,
                to,
            } => self.propose(*minutes, amount, to)?,
            Step::Again => {
                for event in self.last.clone() {
                    self.spent.apply(event);
                }
            }
            Step::Return => {
                let last = std::mem::take(&mut self.last);
                if let Some(last) = self.uses.pop_if(|_| !last.is_empty()) {
                    let operation = OperationId(last.operation);
                    self.spent.apply(SpentEvent::Returned(operation));
                }
            }
            Step::Carry => {
                let mut next = Spent::default();
                for event in self.spent.carried() {
                    next.apply(event);
                }
                self.spent = next;
            }
            Step::Answer { to } => self.answer(to),
        }
        prop_assert_eq!(
            self.spent.uses(&self.name()),
            u32::try_from(self.uses.len()).unwrap()
        );
        Ok(())
    }

    fn answer(&mut self, to: &'static str) {
        self.operations += 1;
        let mut call = OwnedCall::new(&format!("{{\"who\":\"{to}\"}}"));
        call.operation = self.operations;
        call.kind = "mcp/request:tools/call:look_up".to_owned();
        call.at_ms = self.now_ms;
        let answered = call.with(|call| self.set.remembers(call)).unwrap();
        self.spent.apply(SpentEvent::Answered(answered));
        self.latest_ms = self.latest_ms.max(self.now_ms);
        self.answers.push((self.now_ms, to));
    }

    fn propose(&mut self, minutes: i64, amount: &str, to: &str) -> Result<(), TestCaseError> {
        let moved = i64::try_from(MINUTE_MS).unwrap() * minutes;
        self.now_ms = self.now_ms.saturating_add_signed(moved);
        self.operations += 1;
        let mut call = OwnedCall::new(&format!("{{\"amount\":{amount},\"to\":\"{to}\"}}"));
        (call.operation, call.at_ms) = (self.operations, self.now_ms);
        let charges = call.with(|call| {
            let answer = self.set.decide(call, &self.spent, CallStage::Proposed)?;
            Some(self.set.charges(call, &self.spent, Some(answer.name())))
        });
        let Some(charges) = charges else {
            return Ok(());
        };
        self.last = charges.into_iter().map(SpentEvent::Charged).collect();
        for event in self.last.clone() {
            self.spent.apply(event);
        }
        self.latest_ms = self.latest_ms.max(self.now_ms);
        self.uses.push(Use {
            operation: self.operations,
            at_ms: self.latest_ms,
            amount: amount.parse().unwrap(),
            to: to.to_lowercase(),
        });
        self.check(to)
    }

    /// Checks the latest use against the books.
    fn check(&self, to: &str) -> Result<(), TestCaseError> {
        let now_ms = self.latest_ms;
        let within = |hours: u64| {
            let uses = self.uses.iter();
            uses.filter(move |one| now_ms - one.at_ms < hours * HOUR_MS)
        };
        prop_assert!(self.uses.len() <= 12);
        prop_assert!(now_ms < self.set.rules()[0].expires_ms.unwrap());
        prop_assert!(within(1).count() <= 4);
        prop_assert!(within(2).map(|one| one.amount).sum::<i64>() <= 130);
        prop_assert!(within(24).map(|one| one.amount).sum::<i64>() <= 300);
        prop_assert!(self.uses.iter().all(|one| one.amount >= 0));
        let alike = within(3).filter(|one| one.to == to.to_lowercase());
        prop_assert!(alike.count() <= 3);
        let mut answers = self.answers.iter();
        let is_fresh = |(at_ms, who): &(u64, &str)| *who == to && now_ms - at_ms < 5 * HOUR_MS;
        prop_assert!(answers.any(is_fresh));
        Ok(())
    }
}

proptest! {
    #[test]
    fn no_use_passes_the_books(steps in prop::collection::vec(step(), 1..80)) {
        let mut day = Day::new();
        for step in &steps {
            day.step(step)?;
        }
    }
}

#[test]
fn the_books_see_uses() {
    let mut day = Day::new();
    day.step(&Step::Answer { to: "a1" }).unwrap();
    for (minutes, expect) in [(0, 1), (30, 2), (30, 3), (1, 3)] {
        let step = Step::Propose {
            minutes,
            amount: "40",
            to: "a1",
        };
        day.step(&step).unwrap();
        assert_eq!(day.uses.len(), expect);
    }
}
