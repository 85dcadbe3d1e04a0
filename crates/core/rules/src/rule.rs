//! Rule on the arguments of calls: scope, conditions, guards and limits.

use model::{
    APPROVE, Capabilities, Capability, CapabilityError, Digest, KindRef, NamePattern,
    ParticipantId, REQUEST,
};

use crate::conditions::Conditions;
use crate::guards::RuleGuards;
use crate::name::RuleName;
use crate::window::{DAY_MS, WeekHours};

/// The most names or patterns of proposers of one rule.
pub const PROPOSERS_MAX: usize = 16;
/// The shortest time from a decision to accept a rule to its end: 10 minutes, in milliseconds.
pub const TERM_MS_MIN: u64 = 10 * 60_000;
/// The longest time from a decision to accept a rule to its end: 30 days, in milliseconds.
pub const TERM_MS_MAX: u64 = 30 * DAY_MS;

/// The decision of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RuleDecision {
    /// Rejects the call or proposal.
    Reject,
    /// Leaves it to a person: a call that its proposer may make directly becomes a proposal.
    Ask,
    /// Approves a proposal on its author's authority.
    Approve,
}

impl RuleDecision {
    /// All decisions, those that go before others first.
    pub const ALL: [Self; 3] = [Self::Reject, Self::Ask, Self::Approve];

    /// The decision as rules write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reject => "reject",
            Self::Ask => "ask",
            Self::Approve => "approve",
        }
    }

    /// The decision of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == name)
    }

    /// Whether it only takes: what is ambiguous then counts as covered.
    #[must_use]
    pub fn tightens(self) -> bool {
        self != Self::Approve
    }
}

/// The calls that a rule looks at, before their arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleScope {
    /// The method, such as `tools/call`.
    pub method: Box<str>,
    /// The tool, prompt or URI. Without one, which only rules that reject or ask may be, all of
    /// them.
    pub target: Option<Box<str>>,
    /// The participant that runs the call. Without one, which only rules that reject or ask may be,
    /// all of them.
    pub to: Option<ParticipantId>,
    /// Who proposes: exact names, or, where the rule rejects or asks, patterns.
    pub proposers: Vec<NamePattern>,
    /// Digest of the target's definition; `None` where the rule rejects or asks.
    pub definition: Option<Digest>,
    /// Digest of the server's configured command or URL; `None` where the rule rejects or asks.
    pub server: Option<Digest>,
}

impl RuleScope {
    /// The kind of the calls, as rules write it.
    #[must_use]
    pub fn kind(&self) -> String {
        self.act(REQUEST)
    }

    /// An act with this head on what the calls name.
    fn act(&self, head: &str) -> String {
        match &self.target {
            Some(target) => format!("{head}:{}:{target}", self.method),
            None => format!("{head}:{}", self.method),
        }
    }

    /// Whether a participant is among the proposers.
    #[must_use]
    pub fn has_proposer(&self, proposer: &ParticipantId) -> bool {
        let mut proposers = self.proposers.iter();
        proposers.any(|pattern| pattern.matches(proposer.as_str()))
    }
}

/// One version of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRule {
    /// Id and version.
    pub name: RuleName,
    /// The person on whose authority the rule decides; never a proposer of an approving rule.
    pub author: ParticipantId,
    /// Its decision.
    pub decision: RuleDecision,
    /// The calls that it looks at.
    pub scope: RuleScope,
    /// The tests of their arguments.
    pub when: Conditions,
    /// Its counts and sums, and the calls that must come before.
    pub guards: RuleGuards,
    /// The hours in which it is in force; always, without.
    pub during: Option<WeekHours>,
    /// The end, in milliseconds since 1970 (whole seconds). An approving rule has one.
    pub expires_ms: Option<u64>,
    /// The budget of an approving rule.
    pub uses: Option<u32>,
    /// Whether it may approve calls of destructive tools: its author typed the tool's name.
    pub destructive: bool,
    /// Whether it is in shadow: it decides nothing, and what it would have decided is written beside
    /// what really happens.
    pub shadow: bool,
}

/// Why a rule cannot be accepted at a certain time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TermError {
    /// It ends before [`TERM_MS_MIN`] have passed.
    #[error("the rule would end within ten minutes: give it a later `expires`")]
    TooShort,
    /// It ends after [`TERM_MS_MAX`], or never.
    #[error(
        "the rule would last longer than 30 days: give it an earlier `expires`, and renew it then"
    )]
    TooLong,
}

impl CallRule {
    /// The rights of which its author must have one, at its creation and at each use: to make the
    /// call, or to approve it; all calls of its method if it names none, at the participant that
    /// runs it.
    ///
    /// # Errors
    /// The scope has a name with `*` or one that is too long: no capability can name it alone.
    fn rights(&self) -> Result<[Capability; 2], CapabilityError> {
        Ok([self.right(REQUEST)?, self.right(APPROVE)?])
    }

    fn right(&self, head: &str) -> Result<Capability, CapabilityError> {
        let kind = self.scope.act(head);
        let to = self.scope.to.as_ref().map(ParticipantId::as_str);
        if kind.contains('*') || to.is_some_and(|to| to.contains('*')) {
            return Err(CapabilityError::WideWildcard);
        }
        let capability = Capability::parse(&kind)?;
        match to {
            Some(to) => capability.to([to]),
            None => Ok(capability),
        }
    }

    /// Whether these capabilities of its author cover all that the rule decides.
    #[must_use]
    pub fn is_within(&self, author: &Capabilities) -> bool {
        self.rights()
            .is_ok_and(|rights| author.covers_one_of(&rights))
    }

    /// Checks that the rule, accepted now, lasts neither too short nor too long. Nothing is
    /// clamped.
    ///
    /// # Errors
    /// [`TermError`].
    pub fn check_term(&self, now_ms: u64) -> Result<(), TermError> {
        let Some(expires_ms) = self.expires_ms else {
            return if self.decision.tightens() {
                Ok(())
            } else {
                Err(TermError::TooLong)
            };
        };
        let left_ms = expires_ms.saturating_sub(now_ms);
        if left_ms < TERM_MS_MIN {
            return Err(TermError::TooShort);
        }
        if left_ms > TERM_MS_MAX && !self.decision.tightens() {
            return Err(TermError::TooLong);
        }
        Ok(())
    }

    /// The rule as it would be out of its shadow.
    #[must_use]
    pub fn awake(&self) -> Self {
        Self {
            shadow: false,
            ..self.clone()
        }
    }

    /// Whether the rule is about calls of this proposer that this participant runs.
    #[must_use]
    pub fn is_between(&self, proposer: &ParticipantId, to: &ParticipantId) -> bool {
        let is_to = self.scope.to.as_ref().is_none_or(|own| own == to);
        is_to && self.scope.has_proposer(proposer)
    }

    /// Whether its end has come.
    #[must_use]
    pub fn is_over(&self, now_ms: u64) -> bool {
        self.expires_ms.is_some_and(|end| end <= now_ms)
    }

    /// Whether the rule's scope has a kind, whatever its arguments.
    #[must_use]
    pub fn is_of_kind(&self, kind: KindRef<'_>) -> bool {
        let is_target = |own: &str| kind.context() == Some(own);
        kind.head() == REQUEST
            && kind.method() == Some(&self.scope.method)
            && self.scope.target.as_deref().is_none_or(is_target)
    }
}
