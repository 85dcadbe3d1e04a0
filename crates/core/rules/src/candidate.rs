//! Candidates: what a group of decisions would make a rule, before a person sees it.

use std::collections::BTreeSet;

use model::{Digest, NamePattern, ParticipantId};

use crate::bound::{rate_of, uses_after};
use crate::conditions::Conditions;
use crate::evidence::RuledTool;
use crate::guards::RuleGuards;
use crate::name::RuleName;
use crate::pointer::Pointer;
use crate::rule::{CallRule, RuleDecision, RuleScope};
use crate::window::DAY_MS;

/// Days from the acceptance of a learned rule to its end, unless its author says otherwise.
pub const TERM_DAYS: u64 = 14;

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

/// How a candidate was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CandidateSort {
    /// The repetition of one call.
    Exact,
    /// The generalisation of several calls.
    General,
}

/// The conditions of a rule that is not offered yet. They are frozen: any change makes another
/// candidate, whose shadow begins anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleCandidate {
    /// The decisions that it rests on.
    pub group: GroupKey,
    /// How it was made.
    pub sort: CandidateSort,
    /// Its conditions.
    pub when: Conditions,
    /// When it took its form, in milliseconds since 1970.
    pub born_at_ms: u64,
    /// The approvals that shaped it.
    pub frozen: u32,
    /// The approvals that it covered since.
    pub shadow: u32,
    /// The days on which it covered approvals since, counted from 1970 in UTC.
    pub shadow_days: BTreeSet<u64>,
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

    /// The rule that the candidate makes for a person. `times_ms` are those of the approvals that
    /// it covers.
    #[must_use]
    pub fn rule(&self, acceptance: &Acceptance, times_ms: &[u64]) -> Option<CallRule> {
        let uses = match self.sort {
            CandidateSort::Exact => self.approvals(),
            CandidateSort::General => uses_after(self.approvals()),
        };
        let expires_ms = acceptance
            .expires_ms
            .unwrap_or(acceptance.at_ms.saturating_add(TERM_DAYS * DAY_MS));
        let group = &self.group;
        Some(CallRule {
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
        })
    }
}
