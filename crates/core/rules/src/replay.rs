//! Rules tried on the past: what they would have decided, beside what was decided.

use std::borrow::Borrow;

use model::{Digest, KindRef, OperationId, ParticipantId, REQUEST};

use crate::arguments::{Arguments, ArgumentsError};
use crate::call::{CallStage, RuledCall};
use crate::evidence::{PastVerdict, RuleEvidence, RuledTool};
use crate::name::RuleName;
use crate::rule::RuleDecision;
use crate::rule_set::RuleSet;
use crate::spent::{Spent, SpentEvent};

/// A call or proposal of the past, as it was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastCall {
    /// The operation.
    pub operation: OperationId,
    /// When it was decided, or made, in milliseconds since 1970.
    pub at_ms: u64,
    /// The tool.
    pub tool: RuledTool,
    /// Digest of the tool's definition then.
    pub definition: Option<Digest>,
    /// Digest of the server's configured command or URL then.
    pub server: Option<Digest>,
    /// The proposer or caller.
    pub proposer: ParticipantId,
    /// The arguments.
    pub arguments: Result<Arguments, ArgumentsError>,
    /// Whether it had members beside its arguments.
    pub has_more: bool,
    /// The decision of the past.
    pub verdict: PastVerdict,
    /// Whether it was answered without an error.
    pub succeeded: bool,
}

impl From<&RuleEvidence> for PastCall {
    fn from(decision: &RuleEvidence) -> Self {
        Self {
            operation: decision.operation,
            at_ms: decision.at_ms,
            tool: decision.tool.clone(),
            definition: decision.definition,
            server: decision.server,
            proposer: decision.proposer.clone(),
            arguments: Ok(decision.arguments.clone()),
            has_more: decision.has_more,
            verdict: decision.verdict,
            succeeded: decision.verdict == PastVerdict::Approved,
        }
    }
}

/// The decision that rules would have made about one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayedCall {
    /// The operation.
    pub operation: OperationId,
    /// The decision of the past.
    pub verdict: PastVerdict,
    /// The rule that would have decided.
    pub rule: RuleName,
    /// The decision that it would have made.
    pub decision: RuleDecision,
}

impl ReplayedCall {
    /// Relation of the rule's decision to what was decided.
    #[must_use]
    pub fn standing(&self) -> ReplayStanding {
        match (self.decision, self.verdict) {
            (RuleDecision::Approve, PastVerdict::Approved)
            | (RuleDecision::Reject, PastVerdict::Rejected(_)) => ReplayStanding::Agrees,
            (RuleDecision::Approve, PastVerdict::Rejected(_))
            | (RuleDecision::Reject, PastVerdict::Approved) => ReplayStanding::Contradicts,
            (
                RuleDecision::Approve | RuleDecision::Reject,
                PastVerdict::Expired | PastVerdict::Withdrawn,
            ) => ReplayStanding::Undecided,
            (RuleDecision::Reject, PastVerdict::Direct) => ReplayStanding::RefusesDirect,
            (RuleDecision::Ask, PastVerdict::Direct) => ReplayStanding::AsksDirect,
            (RuleDecision::Approve, PastVerdict::Direct) | (RuleDecision::Ask, _) => {
                ReplayStanding::LeavesAlone
            }
        }
    }
}

/// Relation of a rule's decision to what was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReplayStanding {
    /// The rule decides as the participant did.
    Agrees,
    /// The rule decides otherwise.
    Contradicts,
    /// The rule decides where nothing was decided.
    Undecided,
    /// The rule refuses a call that was made without approval.
    RefusesDirect,
    /// The rule makes a proposal of a call that was made without approval.
    AsksDirect,
    /// The rule changes nothing.
    LeavesAlone,
}

/// The result of a replay.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RuleReplay {
    /// The proposals of the past.
    pub proposals: u32,
    /// The calls of the past that needed no approval.
    pub direct: u32,
    /// The calls about which rules would have decided, in their order.
    pub decided: Vec<ReplayedCall>,
}

impl RuleReplay {
    /// The number of calls with this standing.
    #[must_use]
    pub fn count(&self, standing: ReplayStanding) -> usize {
        let decided = self.decided.iter();
        decided.filter(|one| one.standing() == standing).count()
    }

    /// The result in one line: `would have answered 41 of 52 proposals, would have contradicted 0`.
    #[must_use]
    pub fn words(&self) -> String {
        let agrees = self.count(ReplayStanding::Agrees);
        let contradicts = self.count(ReplayStanding::Contradicts);
        let undecided = self.count(ReplayStanding::Undecided);
        let mut words = vec![
            format!(
                "would have answered {} of {} proposals",
                agrees + contradicts + undecided,
                self.proposals
            ),
            format!("would have contradicted {contradicts}"),
        ];
        let others = [
            (undecided, "would have decided", "that were left undecided"),
            (
                self.count(ReplayStanding::RefusesDirect),
                "would have refused",
                "calls that were made",
            ),
            (
                self.count(ReplayStanding::AsksDirect),
                "would have asked about",
                "calls that were made",
            ),
        ];
        let others = others.into_iter().filter(|(count, _, _)| *count > 0);
        words.extend(others.map(|(count, verb, what)| format!("{verb} {count} {what}")));
        words.join(", ")
    }
}

/// Tries rules on the calls of the past, in their order, with nothing spent before. Each is judged
/// as it would have been then: with budgets, rates, sums and earlier calls of the past itself.
#[must_use]
pub fn replay<P: Borrow<PastCall>>(
    rules: &RuleSet,
    past: impl IntoIterator<Item = P>,
) -> RuleReplay {
    let mut spent = Spent::default();
    let mut result = RuleReplay::default();
    for past in past {
        result.take(rules, &mut spent, past.borrow());
    }
    result
}

impl RuleReplay {
    /// Takes the next call of the past.
    fn take(&mut self, rules: &RuleSet, spent: &mut Spent, past: &PastCall) {
        let stage = match past.verdict {
            PastVerdict::Direct => CallStage::Direct,
            PastVerdict::Approved
            | PastVerdict::Rejected(_)
            | PastVerdict::Expired
            | PastVerdict::Withdrawn => CallStage::Proposed,
        };
        let count = match stage {
            CallStage::Direct => &mut self.direct,
            CallStage::Proposed => &mut self.proposals,
        };
        *count = count.saturating_add(1);
        let text = format!("{REQUEST}:{}:{}", past.tool.method, past.tool.target);
        let Ok(kind) = KindRef::parse(&text) else {
            return;
        };
        let beside: &[&str] = if past.has_more {
            &["other members"]
        } else {
            &[]
        };
        let call = RuledCall {
            operation: past.operation,
            proposer: &past.proposer,
            to: &past.tool.to,
            kind,
            arguments: past.arguments.as_ref(),
            beside,
            definition: past.definition,
            server: past.server,
            at_ms: past.at_ms,
        };
        let answer = rules.decide(&call, spent, stage);
        let decision = answer.map(|answer| answer.decision());
        let approved_by = answer
            .filter(|answer| answer.decision() == RuleDecision::Approve)
            .map(|answer| answer.name().clone());
        if let Some(answer) = answer {
            self.decided.push(ReplayedCall {
                operation: past.operation,
                verdict: past.verdict,
                rule: answer.name().clone(),
                decision: answer.decision(),
            });
        }
        let was_made = matches!(past.verdict, PastVerdict::Approved | PastVerdict::Direct);
        let runs = match decision {
            Some(RuleDecision::Approve) => true,
            Some(RuleDecision::Reject) => false,
            // A person decides as it was decided.
            Some(RuleDecision::Ask) | None => was_made,
        };
        if !runs {
            return;
        }
        for charge in rules.charges(&call, spent, approved_by.as_ref()) {
            spent.apply(SpentEvent::Charged(charge));
        }
        if past.succeeded
            && let Some(answered) = rules.remembers(&call)
        {
            spent.apply(SpentEvent::Answered(answered));
        }
    }
}

#[cfg(test)]
mod tests;
