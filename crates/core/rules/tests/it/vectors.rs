//! Vectors that other implementations share: parse, match and explain.
//!
//! The files in `vectors` hold inputs and what follows from them; `UPDATE=1` writes what follows
//! anew.

use std::path::PathBuf;

use model::{Digest, ParticipantId};
use rules::{
    CallRule, CallStage, RuleAnswer, RuleCharge, RuleDecision, RuleSet, RuledCall, Spent,
    SpentEvent, parse_rules,
};
use serde_json::{Value, json};

use crate::support::OwnedCall;

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("vectors")
        .join(name)
}

/// Compares what follows from each case with what its file says.
fn check(name: &str, follows: impl Fn(&Value) -> Value) {
    let path = file(name);
    let text = std::fs::read_to_string(&path).unwrap();
    let cases: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert!(cases.len() >= 5, "{name}");
    let mut written = Vec::new();
    let mut wrong = Vec::new();
    for case in &cases {
        let expect = follows(case);
        if case.get("expect") != Some(&expect) {
            wrong.push(format!("{}: {expect:#}", case["name"]));
        }
        let mut case = case.clone();
        case["expect"] = expect;
        written.push(case);
    }
    if std::env::var_os("UPDATE").is_some() {
        let text = serde_json::to_string_pretty(&written).unwrap();
        return std::fs::write(&path, format!("{text}\n")).unwrap();
    }
    assert!(
        wrong.is_empty(),
        "{name}: UPDATE=1 writes it anew\n{}",
        wrong.join("\n")
    );
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key]
        .as_str()
        .unwrap_or_else(|| panic!("{key}: {value}"))
}

#[test]
fn files_of_rules_read_as_the_vectors_say() {
    check("parse.json", |case| match parse_rules(text(case, "toml")) {
        Ok(rules) => {
            let rules = rules.iter().map(|rule| {
                json!({
                    "name": rule.name.to_string(),
                    "text": rule.text(),
                    "digest": rule.digest().to_string(),
                    "sentence": rule.sentence(),
                })
            });
            json!({ "rules": rules.collect::<Vec<Value>>() })
        }
        Err(error) => json!({
            "error": {
                "line": error.line,
                "column": error.column,
                "rule": error.rule,
                "message": error.message,
                "remedy": error.remedy,
            }
        }),
    });
}

/// A call of a vector; what it does not say is as in [`OwnedCall::new`].
fn call(value: &Value) -> OwnedCall {
    let mut call = OwnedCall::new(text(value, "arguments"));
    let name = |key: &str| {
        value
            .get(key)
            .map(|name| ParticipantId::new(name.as_str().unwrap()).unwrap())
    };
    call.proposer = name("proposer").unwrap_or(call.proposer);
    call.to = name("to").unwrap_or(call.to);
    if let Some(kind) = value.get("kind") {
        call.kind = kind.as_str().unwrap().to_owned();
    }
    let digest = |key: &str| {
        let known = value.get(key)?;
        Some(known.as_str().map(|text| text.parse::<Digest>().unwrap()))
    };
    call.definition = digest("definition").unwrap_or(call.definition);
    call.server = digest("server").unwrap_or(call.server);
    if let Some(beside) = value.get("beside") {
        let names = beside.as_array().unwrap().iter();
        call.beside = names
            .map(|name| name.as_str().unwrap().to_owned())
            .collect();
    }
    call.at_ms = value
        .get("at_ms")
        .map_or(call.at_ms, |at| at.as_u64().unwrap());
    call
}

fn stage(value: &Value) -> CallStage {
    match value.get("stage").and_then(Value::as_str) {
        Some("direct") => CallStage::Direct,
        _ => CallStage::Proposed,
    }
}

/// The calls of a case one after the other, each charged if it runs: a proposal if a rule approves it.
#[test]
fn rules_decide_as_the_vectors_say() {
    check("match.json", |case| {
        let set = RuleSet::parse(text(case, "toml")).unwrap_or_else(|error| panic!("{error}"));
        let mut spent = Spent::default();
        let calls = case["calls"].as_array().unwrap().iter().enumerate();
        let decided = calls.map(|(at, value)| {
            let mut call = call(value);
            call.operation = u128::try_from(at).unwrap() + 1;
            let stage = stage(value);
            call.with(|call| follows(&set, &mut spent, call, stage))
        });
        Value::Array(decided.collect())
    });
}

/// The decision about one call, with those that rules in shadow would have made.
fn follows(set: &RuleSet, spent: &mut Spent, call: &RuledCall<'_>, stage: CallStage) -> Value {
    let answer = set.decide(call, spent, stage);
    let mut looks = set.shadows(call, spent, stage);
    looks.retain(|look| look.decides);
    let uses: Vec<_> = looks
        .iter()
        .filter_map(|look| look.charge(call, spent))
        .collect();
    take(spent, uses);
    let approves = answer.is_some_and(|answer| answer.decision() == RuleDecision::Approve);
    if approves || (answer.is_none() && stage == CallStage::Direct) {
        let mut charges = set.charges(call, spent, answer.as_ref().map(RuleAnswer::name));
        let rejects = |charge: &RuleCharge| {
            let mut rejecting = looks.iter().map(|look| look.rule);
            let is_one = |rule: &CallRule| rule.decision == RuleDecision::Reject;
            rejecting.any(|rule| is_one(rule) && rule.name == charge.rule)
        };
        let shadows = set.shadow_charges(call, spent).into_iter();
        charges.extend(shadows.filter(|charge| !rejects(charge)));
        take(spent, charges);
    }
    if answer.is_none()
        && stage == CallStage::Direct
        && let Some(answered) = set.remembers(call)
    {
        spent.apply(SpentEvent::Answered(answered));
    }
    let said = |rule: &CallRule| json!({ "rule": rule.name.to_string(), "decision": rule.decision.as_str() });
    let mut said_of = answer.map_or(Value::Null, |answer| said(answer.rule));
    if !looks.is_empty() {
        said_of["would"] = looks.iter().map(|look| said(look.rule)).collect();
    }
    said_of
}

fn take(spent: &mut Spent, charges: Vec<RuleCharge>) {
    let events = charges.into_iter().map(SpentEvent::Charged);
    events.for_each(|charge| spent.apply(charge));
}

#[test]
fn rules_explain_as_the_vectors_say() {
    check("explain.json", |case| {
        let set = RuleSet::parse(text(case, "toml")).unwrap_or_else(|error| panic!("{error}"));
        let explained = call(&case["call"]).with(|call| {
            let explained = set.explain(call, &Spent::default());
            let explained = explained.iter().map(|one| {
                let checks = one.checks.iter().map(|check| {
                    json!({
                        "asked": check.asked,
                        "found": check.found,
                        "fit": check.fit.as_str(),
                        "is_guard": check.is_guard,
                    })
                });
                json!({
                    "rule": one.rule.name.to_string(),
                    "acts": one.acts,
                    "checks": checks.collect::<Vec<Value>>(),
                })
            });
            explained.collect::<Vec<Value>>()
        });
        Value::Array(explained)
    });
}
