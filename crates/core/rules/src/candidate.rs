//! Candidates: conditions that a group of decisions would make a rule, before a person sees them.

use model::{Digest, NamePattern, ParticipantId};

use crate::bound::{rate_of, uses_after};
use crate::conditions::Conditions;
use crate::evidence::RuledTool;
use crate::guards::RuleGuards;
use crate::name::RuleName;
use crate::parse::reads_back;
use crate::pointer::Pointer;
use crate::rule::{CallRule, RuleDecision, RuleScope};
use crate::window::DAY_MS;

/// Days from the acceptance of a learned rule to its end, unless its author says otherwise.
pub const TERM_DAYS: u64 = 14;

/// The least time between the beginnings of two days in the shadow: 12 hours, in milliseconds.
pub const SHADOW_DAY_MS: u64 = DAY_MS / 2;

/// Decisions that may make one rule together: of one tool with one definition on one configured
/// server, one proposer, and one set of members.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupKey {
    /// The tool.
    pub tool: RuledTool,
    /// Digest of its definition.
    pub definition: Digest,
    /// Digest of the server's configured command or URL.
    pub server: Digest,
    /// The proposer.
    pub proposer: ParticipantId,
    /// The members that are there.
    pub members: Vec<Pointer>,
}

/// The making of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CandidateSort {
    /// The generalisation of several calls.
    General,
    /// The repetition of one call, or of several that differ in one member.
    Exact,
}

/// The conditions of a rule that is not offered yet. They are frozen: any change makes another
/// candidate, whose shadow begins anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleCandidate {
    /// The decisions that it rests on.
    pub group: GroupKey,
    /// Its making.
    pub sort: CandidateSort,
    /// Its conditions.
    pub when: Conditions,
    /// When it took its form, in milliseconds since 1970.
    pub born_at_ms: u64,
    /// The approvals that shaped it.
    pub frozen: u32,
    /// The approvals that it covered since.
    pub shadow: u32,
    /// The beginnings of the days on which it covered approvals since, in milliseconds since 1970.
    /// They lie at least [`SHADOW_DAY_MS`] apart: a session that passes midnight is one day.
    pub shadow_days: Vec<u64>,
}

/// The person who would accept a candidate, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acceptance {
    /// Id and version of the rule.
    pub name: RuleName,
    /// The person, on whose authority the rule will decide.
    pub author: ParticipantId,
    /// The time, in milliseconds since 1970.
    pub at_ms: u64,
    /// The end, in milliseconds since 1970; [`TERM_DAYS`] later, if it is `None`.
    pub expires_ms: Option<u64>,
    /// Whether the author typed the name of a destructive tool.
    pub destructive: bool,
}

impl RuleCandidate {
    /// The approvals that it covers, before and after it took its form.
    #[must_use]
    pub fn approvals(&self) -> u32 {
        self.frozen.saturating_add(self.shadow)
    }

    /// Counts a day in the shadow, if an approval at this time begins another one.
    pub(crate) fn count_day(&mut self, at_ms: u64) {
        let is_another = self.shadow_days.last().is_none_or(|begun| {
            at_ms.saturating_sub(*begun) >= SHADOW_DAY_MS && at_ms / DAY_MS != begun / DAY_MS
        });
        if is_another {
            self.shadow_days.push(at_ms);
        }
    }

    /// The rule that the candidate makes for a person. `times_ms` are those of the approvals that
    /// it covers and that are still kept: its budget rests on them. `None` if there are none, or if
    /// no rule can say what the candidate covers, such as for a proposer whose name has a `*`.
    #[must_use]
    pub fn rule(&self, acceptance: &Acceptance, times_ms: &[u64]) -> Option<CallRule> {
        let approvals = u32::try_from(times_ms.len()).ok()?;
        let uses = match self.sort {
            CandidateSort::Exact => approvals,
            CandidateSort::General => uses_after(approvals),
        };
        let expires_ms = acceptance
            .expires_ms
            .unwrap_or(acceptance.at_ms.saturating_add(TERM_DAYS * DAY_MS));
        let group = &self.group;
        let rule = CallRule {
            name: acceptance.name.clone(),
            author: acceptance.author.clone(),
            decision: RuleDecision::Approve,
            scope: RuleScope {
                method: group.tool.method.clone(),
                target: Some(group.tool.target.clone()),
                to: Some(group.tool.to.clone()),
                proposers: vec![NamePattern::parse(group.proposer.as_str()).ok()?],
                definition: Some(group.definition),
                server: Some(group.server),
            },
            when: self.when.clone(),
            guards: RuleGuards {
                rate: Some(rate_of(times_ms)),
                ..RuleGuards::default()
            },
            during: None,
            expires_ms: Some(expires_ms - expires_ms % 1000),
            uses: Some(uses.min(crate::guards::USES_MAX)),
            destructive: acceptance.destructive,
            shadow: false,
        };
        let is_rule = approvals > 0 && reads_back(&rule).is_ok();
        is_rule.then_some(rule)
    }
}
