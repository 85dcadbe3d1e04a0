//! One rule before one call: every check in order, and whether the rule decides the call.

use std::collections::BTreeMap;
use std::fmt;

use crate::arguments::Arguments;
use crate::call::RuledCall;
use crate::charge::RuleCharge;
use crate::conditions::Conditions;
use crate::constant::Constant;
use crate::decimal::{Decimal, SpelledNumber};
use crate::fit::Fit;
use crate::guards::{AfterGuard, CountGuard, RuleRate, SumGuard, hours_words};
use crate::pointer::Pointer;
use crate::rule::CallRule;
use crate::spelling;
use crate::spent::Spent;
use crate::value_test::{self, ValueTest};

/// The longest value that an explanation shows, in characters.
pub const SHOWN_VALUE_CHARS_MAX: usize = 200;

/// One check of a rule.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Check<'a> {
    /// The participant that proposes.
    Proposer,
    /// The proposer is not the author.
    NotAuthor,
    /// The participant that runs the call.
    Addressee,
    /// The definition of the target.
    Definition,
    /// The configuration of the server.
    Server,
    /// The end has not come.
    End,
    /// The hours of the week.
    Hours,
    /// The budget.
    Uses(u32),
    /// The arguments can be read.
    Readable,
    /// Nothing is given beside the arguments.
    Beside,
    /// No member that the rule does not name.
    Closed,
    /// The test of a member.
    Member(&'a Pointer, &'a ValueTest),
    /// The rate.
    Rate(RuleRate),
    /// A sum.
    Sum(&'a SumGuard),
    /// A count.
    Count(&'a CountGuard),
    /// An earlier call.
    After(&'a AfterGuard),
}

/// A check with its result in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplainedCheck {
    /// The demand of the rule, such as `repo is "acme/site"`.
    pub asked: String,
    /// The state of the call, such as `repo is "acme/docs"`.
    pub found: String,
    /// Whether it holds.
    pub fit: Fit,
    /// Whether it is a guard: what a rule that rejects or asks waits for to break.
    pub is_guard: bool,
}

impl fmt::Display for ExplainedCheck {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{:<7}  {}: {}",
            self.fit.as_str(),
            self.asked,
            self.found
        )
    }
}

/// A rule that is to judge a call of its kind.
#[derive(Clone, Copy)]
pub(crate) struct Judge<'a> {
    pub(crate) rule: &'a CallRule,
    pub(crate) call: &'a RuledCall<'a>,
    pub(crate) spent: &'a Spent,
}

impl<'a> Judge<'a> {
    /// Whether the rule decides the call.
    pub(crate) fn acts(self) -> bool {
        if !self.rule.decision.tightens() {
            return self
                .conditions()
                .chain(self.guards())
                .all(|check| self.holds(check));
        }
        if !self.watches() {
            return false;
        }
        let mut guards = self.guards().peekable();
        guards.peek().is_none() || guards.any(|check| self.fit(check) != Fit::Held)
    }

    /// Whether the call is one that the rule looks at, whatever its guards say: the calls that a
    /// rule counts that rejects or asks.
    pub(crate) fn watches(self) -> bool {
        self.conditions()
            .all(|check| self.fit(check) != Fit::Failed)
    }

    /// All checks but those of guards.
    fn conditions(self) -> impl Iterator<Item = Check<'a>> {
        let rule = self.rule;
        let is_closed = !rule.decision.tightens();
        let always = [
            Some(Check::Proposer),
            Some(Check::Addressee),
            Some(Check::End),
        ];
        let of_approval = [
            Check::NotAuthor,
            Check::Definition,
            Check::Server,
            Check::Uses(rule.uses.unwrap_or_default()),
            Check::Readable,
            Check::Beside,
            Check::Closed,
        ];
        let hours = rule.during.map(|_| Check::Hours);
        let members = rule
            .when
            .iter()
            .map(|(pointer, test)| Check::Member(pointer, test));
        always
            .into_iter()
            .flatten()
            .chain(hours)
            .chain(of_approval.into_iter().filter(move |_| is_closed))
            .chain(members)
    }

    fn guards(self) -> impl Iterator<Item = Check<'a>> {
        let guards = &self.rule.guards;
        let rate = guards.rate.map(Check::Rate);
        rate.into_iter()
            .chain(guards.sums.iter().map(Check::Sum))
            .chain(guards.counts.iter().map(Check::Count))
            .chain(guards.after.iter().map(Check::After))
    }

    /// Whether a check of an approving rule holds, as [`Self::fit`] says.
    fn holds(self, check: Check<'_>) -> bool {
        if let Check::Member(pointer, test) = check
            && let Ok(arguments) = self.call.arguments
            && let Some(value) = arguments.get(pointer)
        {
            return test.holds(value);
        }
        self.fit(check) == Fit::Held
    }

    fn fit(self, check: Check<'_>) -> Fit {
        let (rule, call) = (self.rule, self.call);
        match check {
            Check::Proposer => Fit::of(rule.scope.has_proposer(call.proposer)),
            Check::NotAuthor => Fit::of(*call.proposer != rule.author),
            Check::Addressee => Fit::of(rule.scope.to.as_ref().is_none_or(|to| to == call.to)),
            Check::Definition => {
                Fit::of(rule.scope.definition.is_some() && rule.scope.definition == call.definition)
            }
            Check::Server => {
                Fit::of(rule.scope.server.is_some() && rule.scope.server == call.server)
            }
            Check::End => Fit::of(!rule.is_over(self.now_ms())),
            Check::Hours => Fit::of(rule.during.is_none_or(|hours| hours.has(self.now_ms()))),
            Check::Uses(most) => Fit::of(self.spent.uses(&rule.name) < most),
            Check::Readable => match call.arguments {
                Ok(_) => Fit::Held,
                Err(_) => Fit::Unclear,
            },
            Check::Beside => Fit::of(call.beside.is_empty()),
            Check::Closed => {
                self.on_arguments(|arguments| Fit::of(rule.when.first_unnamed(arguments).is_none()))
            }
            Check::Member(pointer, test) if rule.decision.tightens() => {
                self.on_arguments(|arguments| Conditions::fit_of_open(pointer, test, arguments))
            }
            Check::Member(pointer, test) => {
                self.on_arguments(|arguments| Conditions::fit_of(pointer, test, arguments))
            }
            Check::Rate(rate) => {
                Fit::of(!self.is_full() && has_room(rate.max, self.counted(rate.per)))
            }
            Check::Sum(sum) => self.fit_sum(sum),
            Check::Count(count) => self.fit_count(count),
            Check::After(after) => self.fit_after(after),
        }
    }

    fn on_arguments(self, fit: impl FnOnce(&Arguments) -> Fit) -> Fit {
        self.call.arguments.map_or(Fit::Unclear, fit)
    }

    fn counted(self, window: crate::window::RuleWindow) -> impl Iterator<Item = &'a RuleCharge> {
        let operation = self.call.operation;
        self.spent
            .in_window(&self.rule.name.id, window, self.now_ms(), operation)
    }

    fn is_full(self) -> bool {
        self.spent.is_full(&self.rule.name.id, self.now_ms())
    }

    /// The time of the call; the latest one that was recorded, where a clock was set back.
    fn now_ms(self) -> u64 {
        self.spent.not_before(self.call.at_ms)
    }

    fn fit_sum(self, guard: &SumGuard) -> Fit {
        let Some(own) = self.amount(&guard.of) else {
            return Fit::Unclear;
        };
        if self.is_read_otherwise(&guard.of) {
            return Fit::Unclear;
        }
        let before = self
            .counted(guard.within)
            .flat_map(|charge| &charge.amounts);
        let before = before.filter(|(pointer, _)| *pointer == guard.of);
        let sum: i128 = before.map(|(_, amount)| amount.scaled()).sum();
        Fit::of(!self.is_full() && sum + own.scaled() <= guard.max.scaled())
    }

    fn fit_count(self, guard: &CountGuard) -> Fit {
        let Some(own) = self.value(&guard.same) else {
            return Fit::Unclear;
        };
        if self.is_read_otherwise(&guard.same) {
            return Fit::Unclear;
        }
        let has_value = |charge: &&RuleCharge| {
            let mut values = charge.values.iter();
            values.any(|(pointer, value)| *pointer == guard.same && *value == own)
        };
        let counted = self.counted(guard.within).filter(has_value);
        Fit::of(!self.is_full() && has_room(guard.max, counted))
    }

    fn fit_after(self, guard: &AfterGuard) -> Fit {
        let Ok(arguments) = self.call.arguments else {
            return Fit::Unclear;
        };
        let mut same = Vec::new();
        for (here, there) in &guard.same {
            let Some(value) = arguments.get(here) else {
                return Fit::Failed;
            };
            if self.is_read_otherwise(here) {
                return Fit::Unclear;
            }
            same.push((there, value));
        }
        let proposer = self.call.proposer;
        Fit::of(
            self.spent
                .has_answered(guard, proposer, &same, self.now_ms()),
        )
    }

    /// Whether some reader may read another member than the one at a pointer.
    fn is_read_otherwise(self, pointer: &Pointer) -> bool {
        let arguments = self.call.arguments;
        arguments.is_ok_and(|arguments| arguments.has_another_like(pointer))
    }

    /// The number at a member, if it can be summed: exact and not negative.
    fn amount(self, pointer: &Pointer) -> Option<Decimal> {
        let arguments = self.call.arguments.ok()?;
        let raw = std::str::from_utf8(arguments.get(pointer)?).ok()?;
        let number = SpelledNumber::read(raw).exact()?;
        (!number.is_negative()).then_some(number)
    }

    /// The value at a member as calls are counted by it, if it is short and plain enough to be kept.
    fn value(self, pointer: &Pointer) -> Option<Box<str>> {
        let kept = kept_value(self.call.arguments.ok()?, pointer)?;
        Some(value_test::counted_as(&kept).into())
    }

    /// The call as the rule counts it. Two guards of one member count it once.
    pub(crate) fn charge(self, is_use: bool) -> RuleCharge {
        let guards = &self.rule.guards;
        let amounts: BTreeMap<Pointer, Decimal> = guards
            .sums
            .iter()
            .filter_map(|sum| Some((sum.of.clone(), self.amount(&sum.of)?)))
            .collect();
        let values: BTreeMap<Pointer, Box<str>> = guards
            .counts
            .iter()
            .filter_map(|count| Some((count.same.clone(), self.value(&count.same)?)))
            .collect();
        RuleCharge {
            rule: self.rule.name.clone(),
            operation: self.call.operation,
            at_ms: self.now_ms(),
            is_use,
            amounts: amounts.into_iter().collect(),
            values: values.into_iter().collect(),
            keep_ms: guards.longest_ms(),
        }
    }

    /// All checks in words.
    pub(crate) fn explained(self) -> Vec<ExplainedCheck> {
        let conditions = self.conditions().map(|check| (check, false));
        let guards = self.guards().map(|check| (check, true));
        conditions
            .chain(guards)
            .map(|(check, is_guard)| ExplainedCheck {
                asked: self.asked(check),
                found: self.found(check),
                fit: self.fit(check),
                is_guard,
            })
            .collect()
    }

    fn asked(self, check: Check<'_>) -> String {
        let rule = self.rule;
        match check {
            Check::Proposer => {
                let names: Vec<&str> = rule
                    .scope
                    .proposers
                    .iter()
                    .map(|one| one.as_str())
                    .collect();
                format!("the proposer is {}", names.join(" or "))
            }
            Check::NotAuthor => format!("the proposer is not {}, the author", rule.author),
            Check::Addressee => match &rule.scope.to {
                Some(to) => format!("{to} runs it"),
                None => "any server runs it".to_owned(),
            },
            Check::Definition => "the definition is the one that was accepted".to_owned(),
            Check::Server => "the server is configured as it was".to_owned(),
            Check::End => match rule.expires_ms {
                Some(end) => format!("it is before {}", crate::print::time(end)),
                None => "it has no end".to_owned(),
            },
            Check::Hours => rule.during.map(hours_words).unwrap_or_default(),
            Check::Uses(most) => format!("used less than {most} times"),
            Check::Readable => "every reader reads the arguments alike".to_owned(),
            Check::Beside => "nothing is given beside the arguments".to_owned(),
            Check::Closed => "no other member is given".to_owned(),
            Check::Member(pointer, test) => format!("{} {}", pointer.words(), test.words()),
            Check::Rate(rate) => format!("at most {}", rate.words()),
            Check::Sum(sum) => sum.words(),
            Check::Count(count) => count.words(),
            Check::After(after) => after.words(),
        }
    }

    fn found(self, check: Check<'_>) -> String {
        let call = self.call;
        match check {
            Check::Proposer | Check::NotAuthor => format!("it is {}", call.proposer),
            Check::Addressee => format!("it is {}", call.to),
            Check::Definition => found_digest(self.rule.scope.definition == call.definition),
            Check::Server => found_digest(self.rule.scope.server == call.server),
            Check::End | Check::Hours => format!("it is {}", crate::print::time(self.now_ms())),
            Check::Uses(_) => format!("used {} times", self.spent.uses(&self.rule.name)),
            Check::Readable => match call.arguments {
                Ok(_) => "they do".to_owned(),
                Err(error) => error.to_string(),
            },
            Check::Beside => match call.beside {
                [] => "nothing is".to_owned(),
                names => names
                    .iter()
                    .map(|name| spelling::named(name))
                    .collect::<Vec<_>>()
                    .join(", "),
            },
            Check::Closed => match call.arguments {
                Err(error) => error.to_string(),
                Ok(arguments) => match self.rule.when.first_unnamed(arguments) {
                    None => "none is".to_owned(),
                    Some(pointer) => format!("{} is", pointer.words()),
                },
            },
            Check::Member(pointer, _) => self.found_member(pointer),
            Check::Rate(rate) => format!("{} calls before", self.counted(rate.per).count()),
            Check::Sum(sum) => self.found_member(&sum.of),
            Check::Count(count) => self.found_member(&count.same),
            Check::After(after) => match self.fit(Check::After(after)) {
                Fit::Held => "it was".to_owned(),
                Fit::Unclear | Fit::Failed => "it was not".to_owned(),
            },
        }
    }

    fn found_member(self, pointer: &Pointer) -> String {
        let arguments = match self.call.arguments {
            Ok(arguments) => arguments,
            Err(error) => return error.to_string(),
        };
        match arguments.get(pointer) {
            None => format!("{} is absent", pointer.words()),
            Some(value) => format!("{} is {}", pointer.words(), shown(value)),
        }
    }
}

fn found_digest(is_equal: bool) -> String {
    if is_equal { "it is" } else { "it changed" }.to_owned()
}

/// Whether one more than these calls is at most `max`. Looks at no more of them.
fn has_room<'c>(max: u32, mut counted: impl Iterator<Item = &'c RuleCharge>) -> bool {
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    max.checked_sub(1)
        .is_some_and(|last| counted.nth(last).is_none())
}

/// The value at a member as a constant, if it can be one.
pub(crate) fn kept_value(arguments: &Arguments, pointer: &Pointer) -> Option<Constant> {
    Constant::of_canonical(arguments.get(pointer)?)
}

/// A value in canonical form for people: hidden characters visible, cut at
/// [`SHOWN_VALUE_CHARS_MAX`] with the number of characters that were left out.
pub(crate) fn shown(raw: &[u8]) -> String {
    let visible = json::visible::value(&String::from_utf8_lossy(raw));
    let count = visible.chars().count();
    if count <= SHOWN_VALUE_CHARS_MAX {
        return visible;
    }
    let head: String = visible.chars().take(SHOWN_VALUE_CHARS_MAX).collect();
    format!(
        "{head}... ({} more characters)",
        count - SHOWN_VALUE_CHARS_MAX
    )
}
