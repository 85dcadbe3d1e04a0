//! Rules in shadow: what they would have decided, written beside what really happens.
//!
//! Each is judged as if it alone were in force beside the rules that are: with its author's rights of
//! that moment, its suspensions, and a budget that it spends as if it decided.

use model::{OperationId, ProposalState};
use rules::{
    CallRule, CallStage, RuleCharge, RuleDecision, RuleSet, RuledCall, ShadowEnd, ShadowedCall,
    Spent, SpentEvent,
};
use topic::ProposalChange;

use super::decided_by::AuthoredRule;
use crate::dispatch::Dispatch;
use crate::live::{Live, ProposalView};

/// A decision that a rule in shadow would have made about a proposal.
#[derive(Debug, Clone)]
pub struct WouldHave {
    /// The rule.
    pub rule: CallRule,
    /// The decision: one that it may not make is left to people.
    pub decision: RuleDecision,
}

impl WouldHave {
    /// It in words: `rule r1.2 of ann would have approved it`.
    #[must_use]
    pub fn words(&self) -> String {
        self.said(match self.decision {
            RuleDecision::Approve => "approved it",
            RuleDecision::Reject => "rejected it",
            RuleDecision::Ask => "left it to people",
        })
    }

    /// It in words about a call that ran without an approval.
    pub(crate) fn words_of_call(&self) -> String {
        self.said(match self.decision {
            RuleDecision::Reject => "refused it",
            RuleDecision::Ask | RuleDecision::Approve => "made it a proposal",
        })
    }

    fn said(&self, did: &str) -> String {
        let rule = AuthoredRule {
            rule: &self.rule.name,
            author: &self.rule.author,
        };
        format!("{rule} would have {did}")
    }
}

impl Dispatch {
    /// The decisions that rules in shadow would have made about a proposal, of rules that are still
    /// there. None about one that its proposer has amended: they have looked at what it was.
    pub fn would_have(&self, proposal: &ProposalView) -> Vec<WouldHave> {
        if !self.rules.has_shadows() || proposal.amendments > 0 {
            return Vec::new();
        }
        let state = self.rules.lock();
        let decisions = state.book.spent.shadows_of(proposal.id).into_iter();
        let decided = decisions.filter_map(|decided| {
            let mut rules = state.whole.rules().iter();
            let rule = rules.find(|rule| rule.name == decided.rule)?;
            Some(WouldHave {
                rule: rule.clone(),
                decision: decided.decision,
            })
        });
        decided.collect()
    }
}

/// A look of a rule in shadow.
pub(crate) fn looked(
    rule: &CallRule,
    call: &RuledCall<'_>,
    stage: CallStage,
    decision: Option<RuleDecision>,
) -> SpentEvent {
    SpentEvent::Shadowed(ShadowedCall {
        rule: rule.name.clone(),
        operation: call.operation,
        stage,
        decision,
    })
}

/// The charges of a proposal that runs, of the rules in shadow that would reject or ask: not of those
/// that would have rejected it. The call may have another operation than the proposal.
pub(crate) fn charges_of_run(
    set: &RuleSet,
    call: &RuledCall<'_>,
    spent: &Spent,
    proposal: OperationId,
) -> Vec<RuleCharge> {
    let mut charges = set.shadow_charges(call, spent);
    charges.retain(|charge| {
        let mark = spent.shadow_mark(&charge.rule, proposal);
        mark.is_none_or(|mark| mark.decision != Some(RuleDecision::Reject))
    });
    charges
}

/// The end of a proposal with a change, as rules in shadow count it; `None` of a change that leaves it
/// as it is.
pub(crate) fn end_of(change: &ProposalChange<Live>) -> Option<ShadowEnd> {
    if let ProposalChange::Ended { .. } | ProposalChange::Amended { .. } = change {
        // The end of one that was decided is no end here any more; of one that is amended, what they
        // looked at is proposed no more.
        return Some(ShadowEnd::Undecided);
    }
    let ProposalChange::Decided { state, ruling, .. } = change else {
        return None;
    };
    let ruling = ruling.as_ref();
    let is_by_rule = ruling.is_some_and(|ruling| ruling.rule.is_some());
    let is_edited = ruling.is_some_and(|ruling| ruling.params.is_some());
    Some(match state {
        ProposalState::Running | ProposalState::Rejected if is_by_rule => ShadowEnd::ByRule,
        ProposalState::Running if is_edited => ShadowEnd::Edited,
        ProposalState::Running => ShadowEnd::Approved,
        ProposalState::Rejected => ShadowEnd::Rejected,
        // The topic decides nothing else.
        ProposalState::Withdrawn
        | ProposalState::Pending
        | ProposalState::Completed
        | ProposalState::Failed
        | ProposalState::Expired => ShadowEnd::Undecided,
    })
}
