//! Decisions as evidence: who decided what, how deliberately, and what a rule may learn of it.

use std::fmt;
use std::str::FromStr;

use model::{Digest, OperationId, ParticipantId};

use crate::arguments::Arguments;
use crate::conditions::Conditions;
use crate::fit::Fit;
use crate::name::RuleName;
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

/// A text that is no [`PastVerdict`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is no verdict")]
pub struct NoPastVerdict;

impl PastVerdict {
    /// All of them.
    const ALL: [Self; 7] = [
        Self::Approved,
        Self::Rejected(RejectReason::Unsaid),
        Self::Rejected(RejectReason::Arguments),
        Self::Rejected(RejectReason::Context),
        Self::Expired,
        Self::Withdrawn,
        Self::Direct,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::Rejected(RejectReason::Unsaid) => "rejected",
            Self::Rejected(RejectReason::Arguments) => "rejected:arguments",
            Self::Rejected(RejectReason::Context) => "rejected:context",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
            Self::Direct => "direct",
        }
    }

    /// Whether a participant rejected it.
    #[must_use]
    pub fn is_rejection(self) -> bool {
        matches!(self, Self::Rejected(_))
    }
}

/// The text of the journal, such as `rejected:context`.
impl fmt::Display for PastVerdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl FromStr for PastVerdict {
    type Err = NoPastVerdict;

    fn from_str(text: &str) -> Result<Self, NoPastVerdict> {
        let mut all = Self::ALL.into_iter();
        all.find(|one| one.as_str() == text).ok_or(NoPastVerdict)
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

impl RejectReason {
    /// The codes with which a reviewer chooses one.
    pub const CODES: [&str; 2] = ["arguments", "context"];

    /// The reason of a code.
    #[must_use]
    pub fn of_code(code: &str) -> Option<Self> {
        let mut chosen = [Self::Arguments, Self::Context].into_iter();
        chosen.find(|reason| reason.code() == Some(code))
    }

    /// Its code; `None` if none was chosen.
    #[must_use]
    pub fn code(self) -> Option<&'static str> {
        match self {
            Self::Unsaid => None,
            Self::Arguments => Some("arguments"),
            Self::Context => Some("context"),
        }
    }
}

/// Measures of a decision that the gateway takes; by default those of a program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
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

/// A text that is no [`EvidenceWeight`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is no weight of evidence")]
pub struct NoEvidenceWeight;

impl EvidenceWeight {
    /// All of them.
    const ALL: [Self; 3] = [Self::None, Self::Hasty, Self::Deliberate];

    fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Hasty => "hasty",
            Self::Deliberate => "deliberate",
        }
    }
}

/// The text of the journal, such as `hasty`.
impl fmt::Display for EvidenceWeight {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl FromStr for EvidenceWeight {
    type Err = NoEvidenceWeight;

    fn from_str(text: &str) -> Result<Self, NoEvidenceWeight> {
        let mut all = Self::ALL.into_iter();
        all.find(|one| one.as_str() == text).ok_or(NoEvidenceWeight)
    }
}

/// About the bytes that a decision takes in memory beside its texts.
const OWN_BYTES: usize = 512;
/// About the bytes that a leaf of its arguments takes beside its pointer.
const LEAF_BYTES: usize = 64;

/// One decision as evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleEvidence {
    /// The operation.
    pub operation: OperationId,
    /// When it was decided, in milliseconds since 1970.
    pub at_ms: u64,
    /// The tool.
    pub tool: RuledTool,
    /// Digest of the tool's definition, as the one that decided was shown it; `None` if there was
    /// none.
    pub definition: Option<Digest>,
    /// Digest of the server's configured command or URL; `None` if it has neither.
    pub server: Option<Digest>,
    /// The proposer.
    pub proposer: ParticipantId,
    /// The participant that decided: the author of a rule that did, the proposer of a withdrawal,
    /// the gateway of one that expired.
    pub by: ParticipantId,
    /// The rule that decided, if one did.
    pub rule: Option<RuleName>,
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
            && self.definition.is_some()
            && self.server.is_some()
            && self.redacted.is_empty()
            && !self.has_more
    }

    /// Whether it says what is not approved.
    #[must_use]
    pub fn warns(&self) -> bool {
        self.verdict.is_rejection() && self.weight != EvidenceWeight::None
    }

    /// Whether both are about one and the same call of one proposer.
    #[must_use]
    pub fn is_same_call(&self, other: &Self) -> bool {
        self.tool == other.tool
            && self.proposer == other.proposer
            && self.arguments == other.arguments
    }

    /// Whether conditions may cover it, in a closed world and in any reading. A redacted member may
    /// have had any value.
    #[must_use]
    pub fn may_lie_in(&self, when: &Conditions) -> bool {
        when.fit_redacted(&self.arguments, &self.redacted) != Fit::Failed
    }

    /// About the bytes that it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let leaves = self.arguments.leaves();
        let of_leaves: usize = leaves
            .map(|(pointer, _)| pointer.as_str().len() + LEAF_BYTES)
            .sum();
        let redacted = self.redacted.iter();
        let of_redacted: usize = redacted
            .map(|pointer| pointer.as_str().len() + LEAF_BYTES)
            .sum();
        let of_tool = self.tool.method.len() + self.tool.target.len();
        OWN_BYTES + of_tool + self.arguments.text().len() + of_leaves + of_redacted
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

    /// Whether the rule names a member that was redacted of a decided call: what it would have
    /// decided is not known.
    #[must_use]
    pub fn names_redacted(&self, decision: &RuleEvidence) -> bool {
        self.names_one_of(&decision.redacted)
    }

    /// Whether the rule names one of these members, a part of one, or what one is a part of.
    #[must_use]
    pub fn names_one_of(&self, members: &[Pointer]) -> bool {
        let guards = &self.guards;
        let after = guards.after.iter().flat_map(|after| &after.same);
        let of_guards = guards
            .sums
            .iter()
            .map(|sum| &sum.of)
            .chain(guards.counts.iter().map(|count| &count.same))
            .chain(after.map(|(here, _)| here));
        let mut named = self.when.iter().map(|(member, _)| member).chain(of_guards);
        named.any(|named| {
            let mut members = members.iter();
            members.any(|one| one.holds(named) || named.holds(one))
        })
    }

    /// Whether what it decides depends on the arguments of a call.
    #[must_use]
    pub fn looks_at_arguments(&self) -> bool {
        let guards = &self.guards;
        let has_guards =
            !guards.sums.is_empty() || !guards.counts.is_empty() || !guards.after.is_empty();
        !self.decision.tightens() || !self.when.is_empty() || has_guards
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{approval, approving};

    #[test]
    fn a_reviewer_chooses_a_reason_by_its_code() {
        for code in RejectReason::CODES {
            let reason = RejectReason::of_code(code).unwrap();
            assert_eq!(reason.code(), Some(code));
        }
        for no_code in ["", "unsaid", "Arguments", "context ", "policy"] {
            assert_eq!(RejectReason::of_code(no_code), None, "{no_code}");
        }
    }

    #[test]
    fn a_rule_names_a_redacted_member_and_what_holds_it_or_lies_inside() {
        let pointer = |text: &str| Pointer::parse(text).unwrap();
        let decision = RuleEvidence {
            redacted: vec![pointer("/key/token")],
            ..approval(1, r#"{"key":{"token":"[redacted]"}}"#)
        };
        for (when, is_named) in [
            ("\"/amount\" = { integer = [1, 9] }", false),
            ("\"/key/tokens\" = { equals = 1 }", false),
            ("\"/key/token\" = { equals = 1 }", true),
            ("\"/key\" = { absent = true }", true),
            ("\"/key/token/id\" = { equals = 1 }", true),
        ] {
            let rule = approving("r1", "scout", when);
            assert_eq!(rule.names_redacted(&decision), is_named, "{when}");
        }
        let mut rule = approving("r1", "scout", "");
        rule.guards.counts.push(crate::guards::CountGuard {
            same: pointer("/key/token"),
            max: 1,
            within: crate::window::RuleWindow::of_ms(crate::window::DAY_MS),
        });
        assert!(rule.names_redacted(&decision));
    }

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
