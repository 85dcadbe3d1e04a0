//! Rules that come into force while nodes fail, decide about calls, and are taken away.

use std::collections::BTreeMap;
use std::ops::RangeFrom;

use serde_json::{Value, json};

use crate::support::until;
use crate::ws::token;

use super::attempt::api;
use super::callers::{Caller, Worker, number_of, open};
use super::load::{LIFE, Load, REVOKED, RULED, asked, life};
use super::nodes::SHORT;

/// The budget of a rule, and the calls that use it up, and that do not.
const USES: usize = 4;
const MORE: usize = USES + 2;
const FEW: usize = 2;
/// The requests with which a caller of a rule's call waits for its end.
const TIMES: usize = 2;
/// The cause of the suspension of a rule that is in force otherwise: its calls were answered with
/// errors.
const FAILING: &str = "its last uses failed";

/// The way in which a rule stops to decide, before it is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// It decides until it is ended.
    Ended,
    /// A call that it covers is rejected.
    Suspended,
    /// Its budget is used up.
    Spent,
}

/// All ways, in the order of the rules' lives.
pub(super) const WAYS: [Way; 3] = [Way::Ended, Way::Suspended, Way::Spent];

/// Adds one rule after the other, has it decide about calls, and takes it away.
pub(super) fn rule(load: &Load, way: Way) {
    let mut first = RULED + LIFE * way as u64;
    while live(load, first, way).is_some() {
        first += LIFE * WAYS.len() as u64;
    }
}

/// Whether a rule has had each way.
pub(super) fn has_had_all(load: &Load) -> bool {
    let over = load.book().over.clone();
    let mut lives = (RULED..).step_by(usize::try_from(LIFE).unwrap());
    WAYS.iter()
        .all(|_| lives.next().is_some_and(|first| over.contains(&first)))
}

/// The life of one rule.
fn live(load: &Load, first: u64, way: Way) -> Option<()> {
    let mut numbers = first..;
    let caller = load.propose("agent", &mut numbers)?;
    let rule = accept(load, caller.number())?;
    load.follow(caller, TIMES);
    let calls = if way == Way::Spent { MORE } else { FEW };
    for number in numbers.by_ref().take(calls) {
        load.follow(Caller::new(number), TIMES);
    }
    load.book().rules.remove(&first);
    if way == Way::Suspended {
        let is_confirmed = suspend(load, &mut numbers)?;
        decides_nothing(load, &mut numbers, is_confirmed);
    }
    let is_confirmed = end(load, &rule)?;
    decides_nothing(load, &mut numbers, is_confirmed);
    load.book().over.insert(first);
    // Their proposals are rejected now, if no rule decided about them.
    for caller in waiting(load, first).into_values() {
        load.follow(caller, usize::MAX);
    }
    Some(())
}

/// Takes the callers of a rule's calls that wait yet.
fn waiting(load: &Load, first: u64) -> BTreeMap<u64, Caller> {
    let mut book = load.book();
    let mut waiting = book.waiting.split_off(&first);
    let mut others = waiting.split_off(&(first + LIFE));
    book.waiting.append(&mut others);
    waiting
}

/// Puts a rule in force that is made of a pending call, for all calls of its life.
fn accept(load: &Load, number: u64) -> Option<String> {
    let first = life(number);
    let when = format!("\"/n\" = {{ integer = [{first}, {}] }}", first + LIFE - 1);
    let like = json!({ "for_seconds": 3_600, "uses": USES, "when": when, "tool": "work" });
    let draft = load.insist(|at| {
        let id = pending(&open(at, SHORT)?, number)?["id"]
            .as_str()?
            .to_owned();
        asked(at, &format!("POST /api/v1/proposals/{id}/like"), &like, 200)
    })?;
    let rule = draft["rule"].as_str().unwrap().to_owned();
    let body = json!({ "rule": draft["text"], "tool": "work" });
    let is_confirmed = load.insist(|at| {
        if asked(at, "POST /api/v1/topics/main/rules", &body, 200).is_some() {
            return Some(true);
        }
        // An attempt without an answer may have added it.
        let is_there = rules(at)?.iter().any(|one| one["rule"] == *rule);
        is_there.then_some(false)
    })?;
    if is_confirmed {
        load.book().rules.insert(first, rule.clone());
    }
    Some(rule)
}

/// Has a call rejected that the rule covers. Returns whether that was confirmed.
fn suspend(load: &Load, numbers: &mut RangeFrom<u64>) -> Option<bool> {
    let number = load.propose("other", numbers)?.number();
    load.insist(|at| {
        let Some(proposal) = pending(&open(at, SHORT)?, number) else {
            // An attempt without an answer may have rejected it.
            let was_there = load.book().pending.contains(&number);
            return was_there.then_some(false);
        };
        load.book().pending.insert(number);
        load.decide_one(at, &proposal, "reject").then_some(true)
    })
}

/// Ends a rule. Returns whether that was confirmed.
fn end(load: &Load, rule: &str) -> Option<bool> {
    let line = format!("POST /api/v1/topics/main/rules/{rule}/end");
    load.insist(|at| {
        let reply = api(at, SHORT, &token("boss"), &line, &json!({}))?;
        match reply.status {
            200 => Some(true),
            // An attempt without an answer may have ended it.
            404 => Some(false),
            _ => None,
        }
    })
}

/// Makes a call that the rule covered, which never runs if it is confirmed that the rule does not
/// decide any more.
fn decides_nothing(load: &Load, numbers: &mut RangeFrom<u64>, is_confirmed: bool) {
    let number = numbers.next().unwrap();
    if is_confirmed {
        load.book().never.insert(number);
    }
    load.follow(Caller::new(number), 1);
}

/// The proposal of this number among these, if it is pending.
fn pending(all: &[Value], number: u64) -> Option<Value> {
    let mut all = all.iter();
    let is_it = |one: &&Value| number_of(one) == number && one["state"] == "pending";
    all.find(is_it).cloned()
}

/// The rules that a node lists; `None` if it does not answer.
fn rules(address: &str) -> Option<Vec<Value>> {
    let answer = asked(address, "GET /api/v1/topics/main/rules", &Value::Null, 200)?;
    answer["rules"].as_array().cloned()
}

/// Checks that the rules that came into force are there, and that none decided beyond its budget.
#[track_caller]
pub(super) fn check(load: &Load, worker: &Worker) {
    let ran = worker.ran();
    let in_force = load.book().rules.clone();
    let all = until("a node lists the rules", || rules(&load.address()?));
    for (first, name) in in_force {
        let rule = all.iter().find(|one| one["rule"] == *name);
        // It may have been taken away meanwhile.
        if !load.book().rules.contains_key(&first) {
            continue;
        }
        let rule = rule.unwrap_or_else(|| panic!("{name} was accepted, and is lost: {all:?}"));
        let is_so = rule["state"] == "in force" || rule["left"] == 0 || rule["why"] == FAILING;
        assert!(is_so, "it was accepted: {rule}");
        let has_run = ran.range(first..first + LIFE).count() as u64;
        assert!(rule["used"].as_u64().unwrap() >= has_run, "{rule}");
    }
    let mut runs = BTreeMap::<u64, usize>::new();
    for (number, _) in ran.range(RULED..REVOKED) {
        *runs.entry(life(*number)).or_default() += 1;
    }
    assert!(runs.values().all(|runs| *runs <= USES), "{runs:?}");
}
