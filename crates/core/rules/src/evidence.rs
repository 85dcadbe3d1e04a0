//! Decisions as evidence: who decided what, how deliberately, and what a rule may learn of it.

use model::{Digest, OperationId, ParticipantId};

use crate::arguments::Arguments;
use crate::conditions::Conditions;
use crate::fit::Fit;
use crate::pointer::Pointer;
use crate::rule::{CallRule, RuleScope};

/// The least time that a card must have been shown in full before the decision, in milliseconds:
/// less is no deliberate decision.
pub const DELIBERATE_MS_MIN: u32 = 1_500;
/// A reviewer whose last decisions all took less than this, in milliseconds, is in a hurry.
pub const HURRIED_MS: u32 = 2_000;
/// The number of a reviewer's last decisions that are looked at.
pub const HURRIED_DECISIONS: usize = 20;

/// A tool of a server, of whatever definition.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuledTool {
    /// The participant that runs it.
    pub to: ParticipantId,
    /// The method.
    pub method: Box<str>,
    /// The tool, prompt or URI.
    pub target: Box<str>,
}

/// The end of a call or proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PastVerdict {
    /// A participant approved it.
    Approved,
    /// A participant rejected it.
    Rejected(RejectReason),
    /// Nothing was decided in time.
    Expired,
    /// Its proposer withdrew it.
    Withdrawn,
    /// It needed no approval, and was made.
    Direct,
}

impl PastVerdict {
    /// Whether a participant rejected it.
    #[must_use]
    pub fn is_rejection(self) -> bool {
        matches!(self, Self::Rejected(_))
    }
}

/// The reason that a reviewer chose with a rejection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RejectReason {
    /// None was chosen.
    #[default]
    Unsaid,
    /// The act itself, as the arguments show it.
    Arguments,
    /// The wrong time, moment or context: nothing that arguments show.
    Context,
}

/// Measures of a decision that the gateway takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deliberation {
    /// Whether a person decided, signed in at a console or a terminal.
    pub by_person: bool,
    /// Whether a rule decided.
    pub by_rule: bool,
    /// Whether several proposals were decided at once.
    pub in_batch: bool,
    /// The time that the proposal was shown alone and in full, in milliseconds.
    pub shown_ms: u32,
    /// The times that the reviewer's last decisions took, in milliseconds, the latest last.
    pub last_ms: Vec<u32>,
}

impl Deliberation {
    /// The weight of the decision as evidence.
    #[must_use]
    pub fn weight(&self) -> EvidenceWeight {
        let is_deliberate = self.by_person
            && !self.by_rule
            && !self.in_batch
            && self.shown_ms >= DELIBERATE_MS_MIN
            && !is_hurried(&self.last_ms);
        if is_deliberate {
            EvidenceWeight::Deliberate
        } else if self.by_person && !self.by_rule {
            EvidenceWeight::Hasty
        } else {
            EvidenceWeight::None
        }
    }
}

/// Whether a reviewer's last [`HURRIED_DECISIONS`] decisions all took less than [`HURRIED_MS`].
/// Such a reviewer is offered no rules.
#[must_use]
pub fn is_hurried(last_ms: &[u32]) -> bool {
    let last = last_ms.iter().rev().take(HURRIED_DECISIONS);
    last_ms.len() >= HURRIED_DECISIONS && last.into_iter().all(|took| *took < HURRIED_MS)
}

/// The weight of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EvidenceWeight {
    /// Of a program or a rule, or of no decision at all: remembered for replays alone.
    None,
    /// Of a person in a hurry or in a batch: its approvals teach nothing, its rejections count.
    Hasty,
    /// Of a person who looked.
    Deliberate,
}

/// One decision as evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleEvidence {
    /// The operation.
    pub operation: OperationId,
    /// When it was decided, in milliseconds since 1970.
    pub at_ms: u64,
    /// The tool.
    pub tool: RuledTool,
    /// Digest of the tool's definition.
    pub definition: Digest,
    /// Digest of the server's configured command or URL.
    pub server: Digest,
    /// The proposer.
    pub proposer: ParticipantId,
    /// The participant that decided.
    pub by: ParticipantId,
    /// The decision.
    pub verdict: PastVerdict,
    /// Its weight.
    pub weight: EvidenceWeight,
    /// The arguments that were decided, after redaction.
    pub arguments: Arguments,
    /// The members that were redacted. No rule is learned from a call that has one.
    pub redacted: Vec<Pointer>,
    /// Whether the call had members beside its arguments. No rule is learned from one that has.
    pub has_more: bool,
}

impl RuleEvidence {
    /// Whether it teaches what is approved.
    #[must_use]
    pub fn teaches(&self) -> bool {
        self.verdict == PastVerdict::Approved
            && self.weight == EvidenceWeight::Deliberate
            && self.by != self.proposer
            && self.redacted.is_empty()
            && !self.has_more
    }

    /// Whether it says what is not approved.
    #[must_use]
    pub fn warns(&self) -> bool {
        self.verdict.is_rejection() && self.weight != EvidenceWeight::None
    }

    /// Whether conditions may cover it, in a closed world and in any reading. A redacted member may
    /// have had any value.
    #[must_use]
    pub fn may_lie_in(&self, when: &Conditions) -> bool {
        when.fit_redacted(&self.arguments, &self.redacted) != Fit::Failed
    }

    /// The members that are there: calls with other ones are of another group.
    #[must_use]
    pub fn members(&self) -> Vec<Pointer> {
        self.arguments
            .leaves()
            .map(|(pointer, _)| pointer.clone())
            .collect()
    }
}

impl RuleScope {
    /// Whether it names this tool.
    #[must_use]
    pub fn is_of_tool(&self, tool: &RuledTool) -> bool {
        self.method == tool.method
            && self.target.as_ref() == Some(&tool.target)
            && self.to.as_ref() == Some(&tool.to)
    }
}

impl CallRule {
    /// Whether the rule covers a decided call, of any proposer: a rejection that an approving rule
    /// covers suspends it.
    #[must_use]
    pub fn covers(&self, decision: &RuleEvidence) -> bool {
        self.scope.is_of_tool(&decision.tool) && decision.may_lie_in(&self.when)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_deliberate_decisions_teach() {
        let looked = Deliberation {
            by_person: true,
            by_rule: false,
            in_batch: false,
            shown_ms: DELIBERATE_MS_MIN,
            last_ms: Vec::new(),
        };
        let check = |change: &dyn Fn(&mut Deliberation), expect| {
            let mut one = looked.clone();
            change(&mut one);
            assert_eq!(one.weight(), expect, "{one:?}");
        };
        check(&|_| {}, EvidenceWeight::Deliberate);
        check(&|one| one.shown_ms -= 1, EvidenceWeight::Hasty);
        check(&|one| one.in_batch = true, EvidenceWeight::Hasty);
        check(&|one| one.by_person = false, EvidenceWeight::None);
        check(&|one| one.by_rule = true, EvidenceWeight::None);
        let fast = vec![HURRIED_MS - 1; HURRIED_DECISIONS];
        check(&|one| one.last_ms = fast.clone(), EvidenceWeight::Hasty);
        check(
            &|one| one.last_ms = fast[1..].to_vec(),
            EvidenceWeight::Deliberate,
        );
        let mut slow_once = fast.clone();
        slow_once[3] = HURRIED_MS;
        check(
            &|one| one.last_ms = slow_once.clone(),
            EvidenceWeight::Deliberate,
        );
    }
}
