//! Ends of proposals as evidence, which the journal keeps so that rules can be tried on the past.

use std::borrow::Cow;

use model::{OperationId, ParticipantId, ProposalState};
use rules::{
    Arguments, Deliberation, EvidenceWeight, PastVerdict, Pointer, RejectReason, RuleEvidence,
    RuledTool,
};
use store::audit::Redaction;
use topic::ProposalChange;

use super::facts::parts_of;
use super::kept::DecidedCall;
use super::tool_facts::{definition_digest, server_digest, upstream_of};
use crate::dispatch::Dispatch;
use crate::live::Live;
use crate::proposals::content::Ruling;
use crate::proposals::kept::OpenedProposal;

/// A decision about a proposal, or its expiry or withdrawal.
struct Conclusion<'c> {
    by: ParticipantId,
    verdict: PastVerdict,
    ruling: Option<&'c Ruling>,
}

/// Arguments as they are kept, and the members whose values are left out.
pub(crate) struct KeptArguments {
    pub(crate) arguments: Arguments,
    pub(crate) redacted: Vec<Pointer>,
}

/// The record of a change that decides a proposal, or ends it without a decision. `None` of any other
/// change, and of a proposal that is for no single entry of one participant, or whose arguments
/// rules cannot read: no rule approves such a one, and none is learned from it.
pub(crate) fn of_change(
    dispatch: &Dispatch,
    proposal: OperationId,
    opened: &OpenedProposal,
    change: &ProposalChange<Live>,
    at_ms: u64,
) -> Option<DecidedCall> {
    let conclusion = Conclusion::of(change)?;
    // One decision about several calls says little of each.
    if opened.plan.is_some() {
        return None;
    }
    let ([to], Some(target)) = (opened.to.as_slice(), &opened.context) else {
        return None;
    };
    let to = ParticipantId::new(to).ok()?;
    let ruling = conclusion.ruling;
    let edited = ruling.and_then(|ruling| ruling.params.as_deref());
    let (arguments, beside) = parts_of(&opened.method, edited.or(opened.params.as_deref()));
    let kept = KeptArguments::of(arguments.ok()?, dispatch.audit.redaction())?;
    let upstream = dispatch.with(|topic| upstream_of(topic, &to));
    let decision = RuleEvidence {
        operation: proposal,
        at_ms,
        tool: RuledTool {
            to,
            method: opened.method.as_str().into(),
            target: target.as_str().into(),
        },
        definition: opened.tool.as_deref().and_then(definition_digest),
        server: upstream.as_deref().and_then(server_digest),
        proposer: ParticipantId::new(&opened.by).ok()?,
        weight: conclusion.weight(opened),
        by: conclusion.by,
        rule: ruling.and_then(|ruling| Some(ruling.rule.as_ref()?.name.clone())),
        verdict: conclusion.verdict,
        arguments: kept.arguments,
        redacted: kept.redacted,
        has_more: !beside.is_empty(),
    };
    Some(DecidedCall {
        topic: dispatch.name().to_string(),
        decision: decision.into(),
    })
}

impl<'c> Conclusion<'c> {
    fn of(change: &'c ProposalChange<Live>) -> Option<Self> {
        match change {
            ProposalChange::Decided {
                by, state, ruling, ..
            } => Some(Self {
                by: by.clone(),
                verdict: verdict_of(*state, ruling.as_deref()),
                ruling: ruling.as_deref(),
            }),
            ProposalChange::Ended {
                state: ProposalState::Expired,
                ..
            } => Some(Self {
                by: ParticipantId::gateway(),
                verdict: PastVerdict::Expired,
                ruling: None,
            }),
            // The end of one that was decided is kept already.
            // What several participants approve is decided with the last of them.
            ProposalChange::Opened
            | ProposalChange::Counted { .. }
            | ProposalChange::Extended { .. }
            | ProposalChange::Amended { .. }
            | ProposalChange::Ended { .. } => None,
        }
    }

    /// The weight of the decision about a proposal. A rejection names no version: of one that its
    /// proposer has amended it says something only if the reviewer was shown this version before.
    fn weight(&self, opened: &OpenedProposal) -> EvidenceWeight {
        let is_about_it = self.ruling.is_some_and(|ruling| {
            ruling.deliberation.shown_ms > 0 && ruling.rejects.as_ref() == Some(&opened.digest)
        });
        match self.verdict {
            PastVerdict::Rejected(_) if opened.amendments > 0 && !is_about_it => {
                EvidenceWeight::None
            }
            PastVerdict::Approved | PastVerdict::Rejected(_) => {
                let measures = self.ruling.map(|ruling| &ruling.deliberation);
                measures.map_or(EvidenceWeight::None, Deliberation::weight)
            }
            PastVerdict::Expired | PastVerdict::Withdrawn | PastVerdict::Direct => {
                EvidenceWeight::None
            }
        }
    }
}

/// The verdict of a decision, by the state of the proposal after it.
fn verdict_of(state: ProposalState, ruling: Option<&Ruling>) -> PastVerdict {
    match state {
        ProposalState::Running => PastVerdict::Approved,
        ProposalState::Rejected => {
            let chosen = ruling.map_or(RejectReason::Unsaid, |ruling| ruling.code);
            PastVerdict::Rejected(chosen)
        }
        // The topic decides nothing else.
        ProposalState::Withdrawn
        | ProposalState::Pending
        | ProposalState::Completed
        | ProposalState::Failed
        | ProposalState::Expired => PastVerdict::Withdrawn,
    }
}

impl KeptArguments {
    /// The arguments without the values that are not kept. `None` if they could not be read again.
    pub(crate) fn of(arguments: Arguments, redaction: &Redaction) -> Option<Self> {
        let shortened = match redaction.apply(arguments.text().as_bytes())? {
            Cow::Borrowed(_) => None,
            Cow::Owned(text) => Some(text),
        };
        let Some(text) = shortened else {
            return Some(Self {
                arguments,
                redacted: Vec::new(),
            });
        };
        let kept = Arguments::read(&text).ok()?;
        let changed = kept
            .leaves()
            .filter(|(pointer, value)| arguments.get(pointer) != Some(*value));
        Some(Self {
            redacted: changed.map(|(pointer, _)| pointer.clone()).collect(),
            arguments: kept,
        })
    }
}

#[cfg(test)]
mod tests;
