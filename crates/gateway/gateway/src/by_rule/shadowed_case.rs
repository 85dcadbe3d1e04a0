//! Rules in shadow before a proposal, while topic and desk are locked.

use rules::{CallRule, CallStage, RuleDecision, SpentEvent};

use super::desk::DeskState;
use super::kept::RuleRecord;
use super::locked_case::LockedCase;
use super::shadow::looked;

/// Has the rules in shadow look at a proposal. Returns what the journal must have of it: nothing of
/// one at which they have looked before, unless one of them would decide it only now; and of one that
/// its proposer has amended, as they have looked at what it was.
pub(crate) fn look(case: &LockedCase<'_>, state: &mut DeskState) -> Vec<RuleRecord> {
    if !state.set.has_shadows() || case.facts.is_amended {
        return Vec::new();
    }
    let (call, spent) = (case.call, &state.book.spent);
    let mut events = Vec::new();
    for look in state.set.shadows(call, spent, CallStage::Proposed) {
        let rule = look.rule;
        let would = || decision_of(rule, case.hindrance(state, rule).is_some());
        let decision = look.decides.then(would).flatten();
        let known = spent.shadow_mark(&rule.name, call.operation);
        if known.is_some_and(|mark| mark.decision.is_some() || decision.is_none()) {
            continue;
        }
        if decision == Some(RuleDecision::Approve) {
            events.extend(look.charge(call, spent).map(SpentEvent::Charged));
        }
        events.push(looked(rule, call, CallStage::Proposed, decision));
    }
    let topic = case.authors.dispatch.name().as_str();
    let of = events.into_iter();
    let records: Vec<RuleRecord> = of.map(|event| RuleRecord::of_spent(topic, event)).collect();
    records.iter().for_each(|record| state.book.apply(record));
    records
}

/// The decision of a rule that matches a call: what it may not reject waits for people.
fn decision_of(rule: &CallRule, is_hindered: bool) -> Option<RuleDecision> {
    match rule.decision {
        RuleDecision::Approve if is_hindered => None,
        RuleDecision::Reject if is_hindered => Some(RuleDecision::Ask),
        decision => Some(decision),
    }
}
