//! Vectors of rules, which the gateway, the SDK and the client for Python share
//! (`crates/core/rules/vectors`).

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test"
)]

use std::path::Path;

use bytes::Bytes;
use portmoot_participant::rules::{
    CallStage, Digest, RuleSet, RuledCall, definition_digest, participant_digest, succeeded,
};
use portmoot_participant::{Act, IncomingProposal, check};
use serde_json::{Value, json};

/// The 27th of November 2026, 12:00 UTC, a Friday.
const NOON_MS: u64 = 1_795_780_800_000;

fn cases(name: &str) -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../core/rules/vectors");
    let text = std::fs::read_to_string(folder.join(name)).unwrap();
    let cases: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert!(cases.len() >= 5, "{name}");
    cases
}

/// A call of a vector.
fn call(value: &Value, operation: u128) -> RuledCall {
    let text = |key: &str, usual: &str| value[key].as_str().unwrap_or(usual).to_owned();
    let digest = |key: &str| match value.get(key) {
        Some(known) => known.as_str().map(|text| text.parse().unwrap()),
        None => Some(Digest([0xAB; 32])),
    };
    let beside = value["beside"].as_array().into_iter().flatten();
    RuledCall {
        operation,
        proposer: text("proposer", "scout"),
        to: text("to", "github"),
        kind: text("kind", "mcp/request:tools/call:create_issue"),
        at_ms: value["at_ms"].as_u64().unwrap_or(NOON_MS),
        arguments: text("arguments", ""),
        beside: beside
            .map(|name| name.as_str().unwrap().to_owned())
            .collect(),
        definition: digest("definition"),
        server: digest("server"),
    }
}

fn set(case: &Value) -> RuleSet {
    RuleSet::parse(case["toml"].as_str().unwrap()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn files_of_rules_read_as_the_vectors_say() {
    for case in cases("parse.json") {
        let found = match RuleSet::parse(case["toml"].as_str().unwrap()) {
            Ok(rules) => {
                let rules = rules.rules().iter().map(|rule| {
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
        };
        // The vectors have the order of the file, the set that of decisions.
        assert_eq!(
            by_name(found),
            by_name(case["expect"].clone()),
            "{}",
            case["name"]
        );
    }
}

fn by_name(mut read: Value) -> Value {
    if let Some(rules) = read["rules"].as_array_mut() {
        rules.sort_by_key(|rule| rule["name"].to_string());
    }
    read
}

/// The calls of a case one after the other, each charged if a rule approves it or if it runs anyway.
#[test]
fn rules_decide_as_the_vectors_say() {
    for case in cases("match.json") {
        let mut rules = set(&case);
        let mut found = Vec::new();
        for (value, operation) in case["calls"].as_array().unwrap().iter().zip(1..) {
            let call = call(value, operation);
            let is_direct = value["stage"] == "direct";
            let stage = if is_direct {
                CallStage::Direct
            } else {
                CallStage::Proposed
            };
            let answer = rules
                .decide(&call, stage)
                .map(|answer| (answer.name().clone(), answer.decision()));
            let mut said = json!(answer.as_ref().map(|(name, decision)| {
                json!({ "rule": name.to_string(), "decision": decision.as_str() })
            }));
            let would = rules.would_decide(&call, stage).into_iter();
            let would: Vec<Value> = would
                .map(|one| json!({ "rule": one.rule.to_string(), "decision": one.decision.as_str() }))
                .collect();
            if !would.is_empty() {
                said["would"] = json!(would);
            }
            found.push(said);
            match answer {
                Some((name, decision)) if !decision.tightens() => rules.charge(&call, Some(&name)),
                None if is_direct => {
                    rules.charge(&call, None);
                    rules.answered(&call);
                }
                _ => {}
            }
        }
        assert_eq!(json!(found), case["expect"], "{}", case["name"]);
    }
}

#[test]
fn rules_explain_as_the_vectors_say() {
    for case in cases("explain.json") {
        let rules = set(&case);
        let explained = rules.explain(&call(&case["call"], 1));
        let found: Vec<Value> = explained
            .iter()
            .map(|one| {
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
            })
            .collect();
        assert_eq!(json!(found), case["expect"], "{}", case["name"]);
    }
}

/// A proposal of these params, if a participant may act on it.
fn proposal(method: &str, params: Option<&str>, to: &str) -> Option<IncomingProposal> {
    let params = params.map_or_else(String::new, |params| format!(r#","params":{params}"#));
    let text = format!(
        r#"{{"protocol":"mcpx/v0.1","id":"p1","ts":"2026-11-27T12:00:00Z","from":"scout","to":{to},
            "kind":"mcp/proposal:{method}","payload":{{"jsonrpc":"2.0","id":1,"method":"{method}"{params}}}}}"#
    );
    match check(Bytes::from(text)) {
        Ok((envelope, Act::Proposal(call))) => Some(IncomingProposal { envelope, call }),
        _ => None,
    }
}

#[test]
fn a_proposal_is_the_call_that_the_vectors_say() {
    let (mut rules, mut compared) = (RuleSet::default(), 0);
    for case in cases("call.json") {
        if let Some(definition) = case["definition"].as_str() {
            let digest = definition_digest(definition).map(|digest| digest.to_string());
            assert_eq!(json!(digest), case["expect"], "{}", case["name"]);
            continue;
        }
        let method = case["method"].as_str().unwrap();
        // No participant acts on what names no target, and none that a kind names is left to people.
        let proposal = proposal(method, case["params"].as_str(), r#"["bank"]"#);
        let Some(call) = proposal.and_then(|proposal| rules.call(&proposal, 7)) else {
            continue;
        };
        let arguments = rules::Arguments::read(call.arguments.as_bytes()).is_ok();
        let arguments = arguments.then_some(&call.arguments);
        let found = json!({ "arguments": arguments, "beside": call.beside });
        assert_eq!(found, case["expect"], "{}", case["name"]);
        assert_eq!(
            (&*call.proposer, &*call.to, call.at_ms),
            ("scout", "bank", 7)
        );
        compared += 1;
    }
    assert!(compared >= 10, "{compared}");
}

#[test]
fn a_proposal_for_none_or_several_is_left_to_people() {
    let mut rules = RuleSet::default();
    for (to, is_judged) in [("[]", false), (r#"["a","b"]"#, false), (r#"["a"]"#, true)] {
        let proposal = proposal("tools/call", Some(r#"{"name":"pay"}"#), to).unwrap();
        assert_eq!(rules.call(&proposal, 7).is_some(), is_judged, "{to}");
    }
}

/// Also of one envelope id, which its proposer chooses.
#[test]
fn each_proposal_is_counted_and_returned_by_itself() {
    let digest = Digest([0xAB; 32]);
    let mut rules = RuleSet::parse(&format!(
        "[[rule]]\nid = \"yes\"\nauthor = \"ann\"\ndecision = \"approve\"\n\
         kind = \"mcp/request:tools/call:pay\"\nto = \"bank\"\nproposers = [\"scout\"]\n\
         definition = \"{digest}\"\nserver = \"{digest}\"\nexpires = 2026-12-06T09:00:00Z\nuses = 2\n"
    ))
    .unwrap();
    let proposal = proposal("tools/call", Some(r#"{"name":"pay"}"#), r#"["bank"]"#).unwrap();
    let mut next = || {
        let mut call = rules.call(&proposal, NOON_MS).unwrap();
        (call.definition, call.server) = (Some(digest), Some(digest));
        call
    };
    let [first, second, third] = [next(), next(), next()];
    for call in [&first, &first, &second] {
        let answer = rules.decide(call, CallStage::Proposed).unwrap();
        let name = answer.name().clone();
        rules.charge(call, Some(&name));
    }
    let decides = |rules: &RuleSet| rules.decide(&third, CallStage::Proposed).is_some();
    assert!(!decides(&rules), "two uses are spent");
    // What did not count gives back no use of another one.
    rules.returned(&third);
    assert!(!decides(&rules));
    assert_eq!(
        rules.explain(&third)[0].to_string().lines().next(),
        Some("yes.1 does not decide it (it would approve)")
    );
    rules.returned(&second);
    assert!(decides(&rules));
}

#[test]
fn a_participant_has_a_digest_of_its_name() {
    // printf 'portmoot/participant/1\0worker' | sha256sum
    assert_eq!(
        participant_digest("worker").to_string(),
        "07b6de8e71280c31da741a69ff3c62c294c12c611416e81b33035615f81c88e0"
    );
}

#[test]
fn only_an_answer_without_an_error_counts() {
    for (result, expect) in [
        ("{}", true),
        (r#"{"isError":false,"resultType":"complete"}"#, true),
        (r#"{"isError":true}"#, false),
        (r#"{"isError":false,"isError":true}"#, false),
        (r#"{"resultType":"input_required"}"#, false),
        (r#"{"task":{}}"#, false),
        ("[]", false),
    ] {
        assert_eq!(succeeded(result), expect, "{result}");
    }
}
