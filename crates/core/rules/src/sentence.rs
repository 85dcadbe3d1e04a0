//! A rule in one English sentence: the text that a person is asked to agree to.

use chrono::DateTime;

use crate::guards::hours_words;
use crate::rule::{CallRule, RuleDecision, RuleScope};
use crate::spelling::{either, named, quoted};

/// The proposers that are every participant.
const EVERY: &str = "*";
/// The beginning of the sentence of a rule in shadow.
const IN_SHADOW: &str = "in shadow, where it decides nothing: ";

impl CallRule {
    /// The rule in one sentence. It names every condition and every limit; names and constants that
    /// are not plain stand in quotes, with hidden characters visible.
    #[must_use]
    pub fn sentence(&self) -> String {
        sentence(self)
    }
}

fn sentence(rule: &CallRule) -> String {
    let scope = &rule.scope;
    let who = proposers(scope);
    let subject = match rule.decision {
        RuleDecision::Approve => format!("{who} may call {}", calls(scope)),
        RuleDecision::Ask => format!("{who} must ask a person before calling {}", calls(scope)),
        RuleDecision::Reject if is_about_all(scope) => {
            format!("no participant may call {}", calls(scope))
        }
        RuleDecision::Reject => format!("{who} may not call {}", calls(scope)),
    };
    let shadow = if rule.shadow { IN_SHADOW } else { "" };
    let mut parts = vec![format!("{shadow}{subject}{}", conditions(rule))];
    parts.push(guards(rule));
    parts.push(limits(rule));
    parts.push(format!("on {}'s authority", named(rule.author.as_str())));
    parts.retain(|part| !part.is_empty());
    format!("{}.", parts.join("; "))
}

/// Whether every participant is among the proposers.
fn is_about_all(scope: &RuleScope) -> bool {
    scope.proposers.iter().any(|one| one.as_str() == EVERY)
}

fn proposers(scope: &RuleScope) -> String {
    let names: Vec<String> = scope
        .proposers
        .iter()
        .map(|one| match one.as_str() {
            EVERY => "any participant".to_owned(),
            name => named(name),
        })
        .collect();
    either(&names)
}

fn calls(scope: &RuleScope) -> String {
    let what = match &scope.target {
        Some(target) if &*scope.method == "tools/call" => named(target),
        Some(target) => format!("{} {}", named_method(&scope.method), named(target)),
        None => format!("anything by {}", named_method(&scope.method)),
    };
    match &scope.to {
        Some(to) => format!("{what} of {}", named(to.as_str())),
        None => format!("{what} of any server"),
    }
}

fn named_method(method: &str) -> String {
    let is_plain = method
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"/_-".contains(&byte));
    if is_plain {
        method.to_owned()
    } else {
        quoted(method)
    }
}

fn conditions(rule: &CallRule) -> String {
    let tests: Vec<String> = rule
        .when
        .iter()
        .map(|(pointer, test)| format!("{} {}", pointer.words(), test.words()))
        .collect();
    let tests = tests.join(", ");
    if rule.decision.tightens() {
        if tests.is_empty() {
            String::new()
        } else {
            format!(" when {tests}, by any reading")
        }
    } else if tests.is_empty() {
        " without arguments".to_owned()
    } else {
        format!(" when {tests}, as written, and nothing else is given")
    }
}

fn guards(rule: &CallRule) -> String {
    let guards = &rule.guards;
    let rate = guards
        .rate
        .iter()
        .map(|rate| format!("at most {}", rate.words()));
    let sums = guards.sums.iter().map(|sum| sum.words());
    let counts = guards.counts.iter().map(|count| count.words());
    let after = guards.after.iter().map(|after| after.words());
    let all: Vec<String> = rate.chain(sums).chain(counts).chain(after).collect();
    let all = all.join(" and ");
    if all.is_empty() {
        String::new()
    } else if rule.decision.tightens() {
        format!("unless {all}")
    } else {
        format!("only while {all}")
    }
}

fn limits(rule: &CallRule) -> String {
    let uses = rule.uses.map(|uses| match uses {
        1 => "once at most".to_owned(),
        uses => format!("at most {uses} times"),
    });
    let hours = rule.during.map(hours_words);
    let until = rule
        .expires_ms
        .map(|at_ms| format!("until {}", day_and_time(at_ms)));
    let destructive = rule
        .destructive
        .then(|| "although the tool may destroy data".to_owned());
    let all: Vec<String> = [uses, hours, until, destructive]
        .into_iter()
        .flatten()
        .collect();
    all.join(", ")
}

/// A time as people read it: `Sunday 6 December 2026 10:00 UTC`.
fn day_and_time(at_ms: u64) -> String {
    let at = i64::try_from(at_ms)
        .ok()
        .and_then(DateTime::from_timestamp_millis);
    at.map_or_else(String::new, |at| {
        at.format("%A %-d %B %Y %H:%M:%S UTC").to_string()
    })
}
