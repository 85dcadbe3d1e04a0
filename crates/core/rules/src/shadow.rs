//! Rules in shadow: what they would have decided, beside what was decided.
//!
//! A rule in shadow decides nothing. Of each proposal that it is about it is noted once what it would
//! have decided, and then what became of the proposal. Its budget is spent as if it decided.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::str::FromStr;

use model::OperationId;

use crate::name::RuleName;
use crate::rule::{CallRule, RuleDecision};

/// The last proposals and calls of a rule in shadow that are over and remembered, so that none
/// counts twice.
pub const SHADOWS_KEPT: usize = 128;

/// A rule in shadow before a call that it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShadowLook<'a> {
    /// The rule.
    pub rule: &'a CallRule,
    /// Whether it would decide the call, beside the rules in force.
    pub decides: bool,
}

/// The end of a proposal at which a rule in shadow has looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ShadowEnd {
    /// A participant approved it as it was proposed.
    Approved,
    /// A participant approved it with other arguments.
    Edited,
    /// A participant rejected it.
    Rejected,
    /// A rule decided it.
    ByRule,
    /// Nothing was decided: it expired, or was withdrawn.
    Undecided,
}

/// A text that is no [`ShadowEnd`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is no end of a proposal")]
pub struct NoShadowEnd;

impl ShadowEnd {
    const ALL: [Self; 5] = [
        Self::Approved,
        Self::Edited,
        Self::Rejected,
        Self::ByRule,
        Self::Undecided,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::Edited => "edited",
            Self::Rejected => "rejected",
            Self::ByRule => "by_rule",
            Self::Undecided => "undecided",
        }
    }
}

/// The text of the journal, such as `by_rule`.
impl fmt::Display for ShadowEnd {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl FromStr for ShadowEnd {
    type Err = NoShadowEnd;

    fn from_str(text: &str) -> Result<Self, NoShadowEnd> {
        let mut all = Self::ALL.into_iter();
        all.find(|one| one.as_str() == text).ok_or(NoShadowEnd)
    }
}

/// The decisions that one version of a rule in shadow would have made, by what became of the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ShadowTally {
    /// The proposals that it looked at, those that wait among them.
    pub proposals: u32,
    /// Proposals that it would have answered, and that wait.
    pub waiting: u32,
    /// Proposals that it would have answered, and that people approved as they were proposed.
    pub approved: u32,
    /// Proposals that it would have answered, and that people approved with other arguments.
    pub edited: u32,
    /// Proposals that it would have answered, and that people rejected.
    pub rejected: u32,
    /// Proposals that it would have answered, and that rules decided.
    pub by_rules: u32,
    /// Proposals that it would have answered, and about which nothing was decided.
    pub undecided: u32,
    /// Proposals that it would have left to people.
    pub left: u32,
    /// Of these, the ones that rules decided.
    pub left_by_rules: u32,
    /// Calls that ran without an approval, and that it would have made proposals.
    pub held: u32,
    /// Calls that ran without an approval, and that it would have refused.
    pub refused: u32,
}

impl ShadowTally {
    /// The proposals that it would have answered.
    #[must_use]
    pub fn answered(&self) -> u32 {
        let parts = [
            self.waiting,
            self.approved,
            self.edited,
            self.rejected,
            self.by_rules,
            self.undecided,
        ];
        parts.into_iter().fold(0, u32::saturating_add)
    }

    /// The proposals about which people decided otherwise than a rule of this decision would have.
    #[must_use]
    pub fn otherwise(&self, decision: RuleDecision) -> u32 {
        match decision {
            RuleDecision::Approve => self.rejected.saturating_add(self.edited),
            RuleDecision::Reject => self.approved.saturating_add(self.edited),
            RuleDecision::Ask => 0,
        }
    }

    /// It in words: `would have answered 41 of 52 proposals, 2 of them otherwise than people`.
    #[must_use]
    pub fn words(&self, decision: RuleDecision) -> String {
        let all = self.proposals;
        let proposals = if all == 1 { "proposal" } else { "proposals" };
        let mut words = match decision {
            RuleDecision::Approve | RuleDecision::Reject => {
                let (answered, otherwise) = (self.answered(), self.otherwise(decision));
                let answered = format!("would have answered {answered} of {all} {proposals}");
                vec![
                    answered,
                    format!("{otherwise} of them otherwise than people"),
                ]
            }
            RuleDecision::Ask => Vec::new(),
        };
        if decision == RuleDecision::Ask {
            let left = self.left;
            words.push(format!(
                "would have left {left} of {all} {proposals} to people"
            ));
        } else if self.left > 0 {
            words.push(format!("would have left {} to people", self.left));
        }
        let others = [
            (
                self.by_rules.saturating_add(self.left_by_rules),
                "that rules decided",
            ),
            (self.undecided, "that were left undecided"),
        ];
        let others = others.into_iter().filter(|(count, _)| *count > 0);
        words.extend(others.map(|(count, what)| format!("{count} {what}")));
        let direct = [(self.held, "held"), (self.refused, "refused")];
        let direct = direct.into_iter().filter(|(count, _)| *count > 0);
        words.extend(direct.map(|(count, verb)| {
            let calls = if count == 1 { "call" } else { "calls" };
            format!("would have {verb} {count} {calls} that ran")
        }));
        words.join(", ")
    }

    /// The count to which a proposal belongs that is over.
    fn count(&mut self, decision: RuleDecision, end: ShadowEnd) {
        let one = |count: &mut u32| *count = count.saturating_add(1);
        if decision == RuleDecision::Ask {
            one(&mut self.left);
            if end == ShadowEnd::ByRule {
                one(&mut self.left_by_rules);
            }
            return;
        }
        one(match end {
            ShadowEnd::Approved => &mut self.approved,
            ShadowEnd::Edited => &mut self.edited,
            ShadowEnd::Rejected => &mut self.rejected,
            ShadowEnd::ByRule => &mut self.by_rules,
            ShadowEnd::Undecided => &mut self.undecided,
        });
    }
}

/// A look of a rule in shadow at one proposal or call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ShadowMark {
    /// The version of the rule.
    pub version: u32,
    /// The decision that it would have made, if it would have made one.
    pub decision: Option<RuleDecision>,
}

/// A decision that a rule in shadow would have made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShadowDecision {
    /// The rule and its version.
    pub rule: RuleName,
    /// The decision.
    pub decision: RuleDecision,
}

/// The looks of one rule in shadow, as a journal carries them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShadowTotals {
    /// Proposals that wait.
    pub open: Vec<(OperationId, ShadowMark)>,
    /// The looks of the latest version that are over.
    pub tally: ShadowTally,
    /// The last ones that are over, the latest last.
    pub ended: Vec<(OperationId, ShadowMark)>,
}

/// The looks of one rule in shadow.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ShadowLooks {
    open: BTreeMap<OperationId, ShadowMark>,
    /// Of the latest version, without those that are open.
    tally: ShadowTally,
    ended: VecDeque<(OperationId, ShadowMark)>,
}

impl ShadowLooks {
    /// The looks that these totals of a journal carry.
    pub(crate) fn carried(totals: ShadowTotals) -> Self {
        Self {
            open: totals.open.into_iter().collect(),
            tally: totals.tally,
            ended: totals.ended.into(),
        }
    }

    /// They, for a journal to carry.
    pub(crate) fn totals(&self) -> ShadowTotals {
        ShadowTotals {
            open: self.open.iter().map(|(id, mark)| (*id, *mark)).collect(),
            tally: self.tally,
            ended: self.ended.iter().copied().collect(),
        }
    }

    /// Begins another version.
    pub(crate) fn begin(&mut self) {
        self.tally = ShadowTally::default();
    }

    pub(crate) fn is_open(&self, operation: OperationId) -> bool {
        self.open.contains_key(&operation)
    }

    pub(crate) fn has_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// The look at a proposal or call: of one that waits, or of one of the last that are over.
    pub(crate) fn mark(&self, operation: OperationId) -> Option<ShadowMark> {
        let ended = || {
            let mut ended = self.ended.iter().rev();
            ended.find(|(known, _)| *known == operation)
        };
        let open = self.open.get(&operation).copied();
        open.or_else(|| ended().map(|(_, mark)| *mark))
    }

    /// Takes a look at a proposal. A later one counts only if the rule would decide, and the one
    /// before would not.
    pub(crate) fn open(&mut self, operation: OperationId, mark: ShadowMark) {
        match self.mark(operation) {
            Some(known) if known.decision.is_some() || !self.is_open(operation) => {}
            Some(_) | None => _ = self.open.insert(operation, mark),
        }
    }

    /// Takes a look at a call that ran without an approval. `latest` is the version that is counted.
    pub(crate) fn run(&mut self, operation: OperationId, mark: ShadowMark, latest: u32) {
        if self.mark(operation).is_some() {
            return;
        }
        self.keep(operation, mark);
        let count = match mark.decision {
            Some(RuleDecision::Ask) => &mut self.tally.held,
            Some(RuleDecision::Reject) => &mut self.tally.refused,
            Some(RuleDecision::Approve) | None => return,
        };
        if mark.version == latest {
            *count = count.saturating_add(1);
        }
    }

    /// Takes the end of a proposal.
    pub(crate) fn end(&mut self, operation: OperationId, end: ShadowEnd, latest: u32) {
        let Some(mark) = self.open.remove(&operation) else {
            return;
        };
        self.keep(operation, mark);
        if mark.version != latest {
            return;
        }
        self.tally.proposals = self.tally.proposals.saturating_add(1);
        if let Some(decision) = mark.decision {
            self.tally.count(decision, end);
        }
    }

    /// All looks of the latest version, those at proposals that wait among them.
    pub(crate) fn tally(&self, latest: u32) -> ShadowTally {
        let mut tally = self.tally;
        for mark in self.open.values().filter(|mark| mark.version == latest) {
            tally.proposals = tally.proposals.saturating_add(1);
            match mark.decision {
                Some(RuleDecision::Ask) => tally.left = tally.left.saturating_add(1),
                Some(RuleDecision::Approve | RuleDecision::Reject) => {
                    tally.waiting = tally.waiting.saturating_add(1);
                }
                None => {}
            }
        }
        tally
    }

    fn keep(&mut self, operation: OperationId, mark: ShadowMark) {
        self.ended.push_back((operation, mark));
        if self.ended.len() > SHADOWS_KEPT {
            self.ended.pop_front();
        }
    }
}

#[cfg(test)]
mod tests;
