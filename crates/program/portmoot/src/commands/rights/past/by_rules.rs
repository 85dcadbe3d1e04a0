//! Rules of topics that change, tried on the proposals and direct calls of a participant.

use std::collections::BTreeMap;
use std::path::Path;

use gateway::by_rule::past::{DirectEntry, PastDirect, recorded_decisions};
use model::{GATEWAY, KindRef, OperationId, ParticipantId, REQUEST};
use rules::{
    CallRule, PastCall, PastVerdict, Pointer, RuleDecision, RuleSet, RuleSetError, RuledTool,
    replay,
};
use store::StoreError;
use store::audit::{RecordedEntry, Redaction};

use super::findings::{Findings, OtherAct, PolicyPart, counted, that_were};
use super::policy::Policy;

const NO_ARGUMENTS: &str = "the audit log has no arguments of direct calls: `payloads = \"full\"` in [audit] keeps those to come";
const REDACTED: &str = "a rule names a member whose value is not kept";
const NO_ANSWERS: &str =
    "a rule asks with `after` for an earlier answer, and answers are not on record";
const SEVERAL: &str = "an envelope for several participants, or for none in particular";

/// The words for what became of a call, and for what would have.
const MADE: &str = "made";
const LEFT: &str = "left to people";

/// A topic whose rules change.
pub(super) struct TriedRules {
    name: String,
    before: RuleSet,
    after: RuleSet,
    past: Vec<TriedCall>,
}

/// A call of the past on which rules are tried.
struct TriedCall {
    call: PastCall,
    /// Members whose values are not on record.
    redacted: Vec<Pointer>,
    /// Whether its arguments are on record.
    is_whole: bool,
}

/// The proposals and direct calls on which rules were tried.
#[derive(Debug, Default)]
pub(super) struct TriedNumbers {
    /// Its proposals.
    pub(super) proposals: usize,
    /// Its calls that needed no approval.
    pub(super) direct: usize,
}

/// The topics whose rules differ between two policies.
///
/// # Errors
/// Rules that are no set.
pub(super) fn changed(
    before: &Policy,
    after: &Policy,
    topic: Option<&str>,
) -> Result<Vec<TriedRules>, RuleSetError> {
    let topics = after.config.identity.topics.iter();
    let meant = topics.filter(|section| topic.is_none_or(|topic| section.name.as_str() == topic));
    let mut changed = Vec::new();
    for section in meant {
        let rules = [before, after].map(|policy| policy.config.rules_of(&section.name));
        if rules[0] != rules[1] {
            let [before, after] = rules.map(|rules| RuleSet::new(rules.iter().cloned()));
            changed.push(TriedRules {
                name: section.name.to_string(),
                before: before?,
                after: after?,
                past: Vec::new(),
            });
        }
    }
    Ok(changed)
}

impl TriedRules {
    /// Takes the decisions about proposals that the journal keeps.
    pub(super) fn take_decisions(
        &mut self,
        dir: &Path,
        since_ms: Option<u64>,
    ) -> Result<(), StoreError> {
        for decision in recorded_decisions(dir, &self.name)? {
            if since_ms.is_none_or(|since| decision.at_ms >= since) {
                self.past.push(TriedCall {
                    call: PastCall::from(&*decision),
                    redacted: decision.redacted.clone(),
                    is_whole: true,
                });
            }
        }
        Ok(())
    }

    /// Takes an entry of the audit log about a call that was made without a proposal, by whatever
    /// participant: others count where rules count.
    pub(super) fn take(
        &mut self,
        entry: &RecordedEntry<'_>,
        id: &ParticipantId,
        redaction: &Redaction,
        findings: &mut Findings,
    ) {
        if entry.topic.as_deref() != Some(&self.name) || entry.verdict != "admitted" {
            return;
        }
        let Ok(kind) = KindRef::parse(&entry.kind) else {
            return;
        };
        let (REQUEST, Some(method), Some(context)) = (kind.head(), kind.method(), kind.context())
        else {
            return;
        };
        let [to] = entry.to.as_slice() else {
            if entry.from == id.as_str() {
                findings.not_tried(PolicyPart::Rules, SEVERAL);
            }
            return;
        };
        // Rules judge no request to the gateway itself.
        if to == GATEWAY {
            return;
        }
        let direct = PastDirect::read(
            &DirectEntry {
                seq: entry.seq,
                at_ms: entry.at_ms,
                from: &entry.from,
                to,
                method,
                target: entry.own.as_deref().unwrap_or(context),
                payload: entry.payload,
            },
            redaction,
        );
        self.past.extend(direct.map(|direct| TriedCall {
            call: direct.call,
            redacted: direct.redacted,
            is_whole: direct.is_whole,
        }));
    }

    /// Tries both sets of rules on what was taken.
    pub(super) fn run(&self, id: &ParticipantId, findings: &mut Findings) -> TriedNumbers {
        let mut tried = Vec::new();
        for one in &self.past {
            match self.gap(one) {
                Some(why) if one.call.proposer == *id => findings.not_tried(PolicyPart::Rules, why),
                Some(_) => {}
                None => tried.push(&one.call),
            }
        }
        tried.sort_by_key(|call| call.at_ms);
        let [before, after] = [&self.before, &self.after].map(|rules| decided(rules, &tried));
        let mut numbers = TriedNumbers::default();
        for call in tried.into_iter().filter(|call| call.proposer == *id) {
            let number = match call.verdict {
                PastVerdict::Direct => &mut numbers.direct,
                _ => &mut numbers.proposals,
            };
            *number += 1;
            let [was, would] = [&before, &after].map(|of| of.get(&call.operation).copied());
            if let Some(would_be) = outcome(call.verdict, was, would) {
                findings.note(OtherAct {
                    by: PolicyPart::Rules,
                    kind: kind_of(&call.tool),
                    to: call.tool.to.to_string(),
                    was: word_of(call.verdict),
                    would_be,
                });
            }
        }
        numbers
    }

    /// Why a call cannot be tried on these rules.
    fn gap(&self, one: &TriedCall) -> Option<&'static str> {
        let [before, after] = [&self.before, &self.after].map(|rules| meant(rules, &one.call));
        // What is not changed decides it alike, whatever is on record.
        if before == after {
            return None;
        }
        let all = || before.iter().chain(&after);
        if all().any(|rule| !rule.guards.after.is_empty()) {
            Some(NO_ANSWERS)
        } else if !one.is_whole && all().any(|rule| rule.looks_at_arguments()) {
            Some(NO_ARGUMENTS)
        } else if all().any(|rule| rule.names_one_of(&one.redacted)) {
            Some(REDACTED)
        } else {
            None
        }
    }
}

/// The rules that are about a call of this tool by its proposer, whatever its arguments.
fn meant<'r>(rules: &'r RuleSet, call: &PastCall) -> Vec<&'r CallRule> {
    let kind = kind_of(&call.tool);
    let Ok(kind) = KindRef::parse(&kind) else {
        return Vec::new();
    };
    let is_direct = call.verdict == PastVerdict::Direct;
    let meant = rules.of_kind(kind).filter(|rule| {
        let is_asked = !is_direct || rule.decision.tightens();
        is_asked && rule.is_between(&call.proposer, &call.tool.to)
    });
    meant.collect()
}

/// The decision of rules about each call that they would have decided.
fn decided(rules: &RuleSet, past: &[&PastCall]) -> BTreeMap<OperationId, RuleDecision> {
    let replayed = replay(rules, past.iter().copied());
    let decided = replayed.decided.into_iter();
    decided.map(|one| (one.operation, one.decision)).collect()
}

/// What would have become of a call, if other rules decide it otherwise.
fn outcome(
    verdict: PastVerdict,
    was: Option<RuleDecision>,
    would: Option<RuleDecision>,
) -> Option<&'static str> {
    if was == would {
        return None;
    }
    match (verdict, would) {
        (PastVerdict::Direct, Some(RuleDecision::Reject)) => Some("refused"),
        (PastVerdict::Direct, Some(RuleDecision::Ask)) => Some("held"),
        // It was made, and no rule of now or then has approved it.
        (PastVerdict::Direct, Some(RuleDecision::Approve) | None) => None,
        (_, Some(RuleDecision::Approve)) => Some("approved"),
        (_, Some(RuleDecision::Reject)) => Some("rejected"),
        // That nothing decides it is what it was.
        (_, Some(RuleDecision::Ask) | None) => match was {
            Some(RuleDecision::Approve | RuleDecision::Reject) => Some(LEFT),
            Some(RuleDecision::Ask) | None => None,
        },
    }
}

fn kind_of(tool: &RuledTool) -> String {
    format!("{REQUEST}:{}:{}", tool.method, tool.target)
}

fn word_of(verdict: PastVerdict) -> &'static str {
    match verdict {
        PastVerdict::Approved => "approved",
        PastVerdict::Rejected(_) => "rejected",
        PastVerdict::Expired => "expired",
        PastVerdict::Withdrawn => "withdrawn",
        PastVerdict::Direct => MADE,
    }
}

/// The result in words: `would have answered 41 of 52 proposals, would have refused 2 calls that were made`.
pub(super) fn words(numbers: &TriedNumbers, findings: &Findings) -> String {
    const DECIDED: [&str; 2] = ["approved", "rejected"];
    const OPEN: [&str; 2] = ["expired", "withdrawn"];
    let count = |was: &[&str], would_be| findings.count(PolicyPart::Rules, was, would_be);
    let of_any = |would_be| count(&DECIDED, would_be) + count(&OPEN, would_be);
    let contradicted = count(&["rejected"], "approved") + count(&["approved"], "rejected");
    let undecided = count(&OPEN, "approved") + count(&OPEN, "rejected");
    let mut words = vec![
        format!(
            "would have answered {} of {}",
            of_any("approved") + of_any("rejected"),
            counted(numbers.proposals, "proposal")
        ),
        format!("would have contradicted {contradicted}"),
    ];
    if undecided > 0 {
        words.push(format!(
            "would have decided {undecided} that were left undecided"
        ));
    }
    match of_any(LEFT) {
        0 => {}
        left => words.push(format!(
            "would have left {} to people",
            counted(left, "proposal")
        )),
    }
    for would_be in ["refused", "held"] {
        match count(&[MADE], would_be) {
            0 => {}
            calls => words.push(format!(
                "would have {would_be} {}",
                that_were(calls, "call", MADE)
            )),
        }
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_other_rules_decide_otherwise_is_another_outcome() {
        const REJECTED: PastVerdict = PastVerdict::Rejected(rules::RejectReason::Unsaid);
        let [approve, reject, ask] = [
            Some(RuleDecision::Approve),
            Some(RuleDecision::Reject),
            Some(RuleDecision::Ask),
        ];
        for (verdict, was, would, expected) in [
            (PastVerdict::Approved, None, approve, Some("approved")),
            (REJECTED, None, approve, Some("approved")),
            (PastVerdict::Expired, ask, reject, Some("rejected")),
            (PastVerdict::Approved, approve, approve, None),
            (PastVerdict::Approved, approve, None, Some("left to people")),
            (PastVerdict::Approved, reject, ask, Some("left to people")),
            (PastVerdict::Approved, None, ask, None),
            (PastVerdict::Approved, ask, None, None),
            (PastVerdict::Direct, None, reject, Some("refused")),
            (PastVerdict::Direct, reject, ask, Some("held")),
            (PastVerdict::Direct, ask, None, None),
            (PastVerdict::Direct, ask, ask, None),
        ] {
            let found = outcome(verdict, was, would);
            assert_eq!(found, expected, "{verdict:?}: {was:?}, {would:?}");
        }
    }

    const NOON_MS: u64 = 1_795_780_800_000;

    fn rules(lines: &str) -> RuleSet {
        let head = "[[rule]]\nid = \"r1\"\nauthor = \"ann\"\ndecision = \"reject\"\n\
                    kind = \"mcp/request:tools/call:pay\"\nproposers = [\"payer\"]\n";
        match lines {
            "" => RuleSet::parse("").unwrap(),
            lines => RuleSet::parse(&format!("{head}{lines}\n")).unwrap(),
        }
    }

    /// A direct call of a participant, with these arguments on record.
    fn call(proposer: &str, arguments: Option<&str>) -> TriedCall {
        let payload = arguments.map(|text| format!("{{\"name\":\"pay\",\"arguments\":{text}}}"));
        let payload = payload.map(|text| serde_json::value::RawValue::from_string(text).unwrap());
        let entry = DirectEntry {
            seq: 1,
            at_ms: NOON_MS,
            from: proposer,
            to: "bank",
            method: "tools/call",
            target: "pay",
            payload: payload.as_deref(),
        };
        let direct = PastDirect::read(&entry, &Redaction::new(&["token"])).unwrap();
        TriedCall {
            call: direct.call,
            redacted: direct.redacted,
            is_whole: direct.is_whole,
        }
    }

    #[test]
    fn a_call_is_not_tried_where_a_changed_rule_needs_what_is_not_on_record() {
        let named = "[rule.when]\n\"/amount\" = { integer = [1, 9] }";
        let secret = "[rule.when]\n\"/token\" = { equals = \"x\" }";
        let after =
            "after = [{ kind = \"mcp/request:tools/call:look\", to = \"books\", within = \"1h\" }]";
        let (whole, hidden) = (r#"{"amount":5}"#, r#"{"amount":5,"token":"[redacted]"}"#);
        for (before, lines, proposer, arguments, why) in [
            ("", named, "payer", Some(whole), None),
            ("", named, "payer", None, Some(NO_ARGUMENTS)),
            ("", "", "payer", None, None),
            ("", "rate = \"1/h\"", "payer", None, None),
            ("", named, "scout", None, None),
            // A rule that stays decides alike.
            (named, named, "payer", None, None),
            (after, after, "payer", Some(whole), None),
            (named, "", "payer", None, Some(NO_ARGUMENTS)),
            ("", after, "payer", Some(whole), Some(NO_ANSWERS)),
            ("", secret, "payer", Some(hidden), Some(REDACTED)),
            ("", named, "payer", Some(hidden), None),
        ] {
            let tried = TriedRules {
                name: "main".to_owned(),
                before: rules(before),
                after: rules(lines),
                past: Vec::new(),
            };
            let found = tried.gap(&call(proposer, arguments));
            assert_eq!(
                found, why,
                "{before:?}, {lines:?}, {proposer}, {arguments:?}"
            );
        }
    }
}
