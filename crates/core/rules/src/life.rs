//! Life of a rule: offered, shadow, active, suspended, ended; what moves it, and what may not.

use std::fmt;
use std::str::FromStr;

use model::{Digest, OperationId, ParticipantId};

use crate::acceptance::{ToolRules, ToolTraits};
use crate::name::RuleName;
use crate::rule::{CallRule, TermError};
use crate::spent::Spent;
use crate::window::DAY_MS;

/// A rule that was not used for this long is suspended: 7 days, in milliseconds.
pub const DORMANT_MS: u64 = 7 * DAY_MS;
/// So many failures among the last uses suspend a rule.
pub const FAILURES_MAX: usize = 3;

/// Why a rule decides nothing for now. Each cause says what brings the rule back. Prints as the code
/// that records have: a word, and what it is about, as in `contradicted:` and an operation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SuspendCause {
    /// The name of its author, or of one of its proposers, has another bearer than when the rule came
    /// into force, or none. A renewal takes the present ones.
    BearerReplaced(Box<str>),
    /// The definition of its tool changed. A renewal accepts the new one.
    DefinitionChanged,
    /// The configuration of its server changed. A renewal accepts the new one.
    ServerChanged,
    /// A person rejected a call that it covers. A renewal excludes it, or stands by the rule.
    Contradicted(OperationId),
    /// Its author may not do what it decides any more. It can be resumed when its author may again.
    AuthorLostRight,
    /// Its budget is used up. A renewal shows the uses, and gives another one.
    BudgetSpent,
    /// Its end came. A renewal gives another one.
    Expired,
    /// It was not used for [`DORMANT_MS`]. It can be resumed.
    Dormant,
    /// A person rejected another call of its tool, and said that the arguments were not the reason, or
    /// its author had approved that call before: nothing is learned of the tool for a while. It can be
    /// resumed. [`suspends`] does not find it: the owner of the decisions does, by
    /// [`QuarantineCause::of_rejection`](crate::QuarantineCause::of_rejection).
    ToolQuarantined,
    /// Its uses cannot be recorded. It can be resumed. [`suspends`] does not find it: the owner of the
    /// journal does.
    LogUnavailable,
    /// [`FAILURES_MAX`] of its last uses failed. It can be resumed.
    Failing,
    /// The operator wants a person for each call of its tool. It can be resumed when that ends.
    OperatorForbids,
    /// Its tool counts as destructive, and its author has not typed the tool's name. A renewal asks
    /// for it.
    Destructive,
}

/// Why a text is no code of a [`SuspendCause`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no cause of a suspension has this code")]
pub struct NoSuspendCause;

impl SuspendCause {
    /// Causes whose code is their word alone.
    const ALONE: [Self; 11] = [
        Self::DefinitionChanged,
        Self::ServerChanged,
        Self::AuthorLostRight,
        Self::BudgetSpent,
        Self::Expired,
        Self::Dormant,
        Self::ToolQuarantined,
        Self::LogUnavailable,
        Self::Failing,
        Self::OperatorForbids,
        Self::Destructive,
    ];

    /// The word of its code.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::BearerReplaced(_) => "bearer_replaced",
            Self::DefinitionChanged => "definition_changed",
            Self::ServerChanged => "server_changed",
            Self::Contradicted(_) => "contradicted",
            Self::AuthorLostRight => "author_lost_right",
            Self::BudgetSpent => "budget_spent",
            Self::Expired => "expired",
            Self::Dormant => "dormant",
            Self::ToolQuarantined => "tool_quarantined",
            Self::LogUnavailable => "log_unavailable",
            Self::Failing => "failing",
            Self::OperatorForbids => "operator_forbids",
            Self::Destructive => "destructive",
        }
    }

    /// Whether one key brings the rule back as it is. All other causes need a new version, which
    /// its author accepts.
    #[must_use]
    pub fn can_resume(&self) -> bool {
        match self {
            Self::AuthorLostRight
            | Self::Dormant
            | Self::ToolQuarantined
            | Self::LogUnavailable
            | Self::Failing
            | Self::OperatorForbids => true,
            Self::BearerReplaced(_)
            | Self::DefinitionChanged
            | Self::ServerChanged
            | Self::Contradicted(_)
            | Self::BudgetSpent
            | Self::Expired
            | Self::Destructive => false,
        }
    }

    /// Whether an offer, too, ends by it: what was offered is not so any more.
    fn ends_offers(&self) -> bool {
        !matches!(self, Self::Dormant | Self::LogUnavailable | Self::Failing)
    }

    /// Its weight among the causes of one suspension: a renewal must not forget a rejection, nor a
    /// resumption what needs a renewal.
    fn gravity(&self) -> u8 {
        match self {
            Self::Contradicted(_) => 2,
            grave if !grave.can_resume() => 1,
            _ => 0,
        }
    }

    /// The cause in words.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::BearerReplaced(name) => {
                format!("`{name}` is not the name of the same participant any more")
            }
            Self::DefinitionChanged => "the tool's definition changed".to_owned(),
            Self::ServerChanged => "the server's configuration changed".to_owned(),
            Self::Contradicted(operation) => format!("it covers {operation}, which was rejected"),
            Self::AuthorLostRight => "its author may not do this any more".to_owned(),
            Self::BudgetSpent => "its budget is used up".to_owned(),
            Self::Expired => "its end came".to_owned(),
            Self::Dormant => "it was not used for 7 days".to_owned(),
            Self::ToolQuarantined => {
                "decisions about its tool depend on more than arguments".to_owned()
            }
            Self::LogUnavailable => "its uses cannot be recorded".to_owned(),
            Self::Failing => "its last uses failed".to_owned(),
            Self::OperatorForbids => "the operator wants a person for each call".to_owned(),
            Self::Destructive => {
                "its tool may destroy data, and its author has not typed its name".to_owned()
            }
        }
    }
}

impl fmt::Display for SuspendCause {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.as_str();
        match self {
            Self::BearerReplaced(name) => write!(out, "{word}:{name}"),
            Self::Contradicted(operation) => write!(out, "{word}:{operation}"),
            Self::DefinitionChanged
            | Self::ServerChanged
            | Self::AuthorLostRight
            | Self::BudgetSpent
            | Self::Expired
            | Self::Dormant
            | Self::ToolQuarantined
            | Self::LogUnavailable
            | Self::Failing
            | Self::OperatorForbids
            | Self::Destructive => out.write_str(word),
        }
    }
}

impl FromStr for SuspendCause {
    type Err = NoSuspendCause;

    fn from_str(text: &str) -> Result<Self, NoSuspendCause> {
        let cause = match text.split_once(':') {
            None => Self::ALONE.into_iter().find(|cause| cause.as_str() == text),
            Some(("bearer_replaced", name)) => Some(Self::BearerReplaced(name.into())),
            Some(("contradicted", operation)) => operation.parse().ok().map(Self::Contradicted),
            Some(_) => None,
        };
        cause.ok_or(NoSuspendCause)
    }
}

/// Why a rule will never decide again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RuleEnd {
    /// A person declined the offer.
    Declined(ParticipantId),
    /// A person who could decide all that it covers revoked it.
    Revoked(ParticipantId),
    /// Its author was removed.
    AuthorRemoved,
    /// A reviewer marked one of its uses as wrong.
    MarkedWrong(OperationId),
    /// A newer version took its place.
    Superseded(RuleName),
    /// Something that would have suspended it came before its acceptance.
    OfferOutdated(SuspendCause),
}

/// Where a rule is in its life.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RulePhase {
    /// A person may accept it. It decides nothing.
    Offered,
    /// Accepted, and decides nothing: what it would have decided is written beside each decision.
    Shadow,
    /// It decides.
    Active,
    /// It decides nothing for now.
    Suspended {
        /// The cause.
        cause: SuspendCause,
        /// Whether it was in its shadow before.
        was_shadow: bool,
    },
    /// It will never decide again.
    Ended(RuleEnd),
}

/// A change of a rule's life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LifeEvent {
    /// A person accepts the offer, by the digest of the text that was shown.
    Accepted {
        /// The person. Only the rule's author can.
        by: ParticipantId,
        /// The digest.
        digest: Digest,
        /// Whether it begins in its shadow.
        shadow: bool,
        /// The time, in milliseconds since 1970, from which its term counts.
        at_ms: u64,
    },
    /// Its author ends its shadow.
    Activated {
        /// The person.
        by: ParticipantId,
    },
    /// Something suspends it.
    Suspended(SuspendCause),
    /// A person brings it back as it is.
    Resumed {
        /// The person. Only the rule's author can.
        by: ParticipantId,
    },
    /// Something ends it.
    Ended(RuleEnd),
}

/// Why an event does not apply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LifeError {
    /// The rule has ended.
    #[error("the rule has ended: accept a new one")]
    Over,
    /// Another participant than the author.
    #[error("only {0}, on whose authority the rule decides, can do this")]
    NotAuthor(ParticipantId),
    /// The text is another one than the person saw.
    #[error("the rule is not the one that was shown: look at it again")]
    OtherText,
    /// It would last too short or too long.
    #[error(transparent)]
    Term(#[from] TermError),
    /// The event is not for this phase.
    #[error("the rule is {0}: this does not apply")]
    Phase(&'static str),
    /// The cause of the suspension needs a new version.
    #[error("the rule is suspended because {0}: renew it")]
    NeedsRenewal(String),
}

impl RulePhase {
    /// The name of the phase.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Offered => "offered",
            Self::Shadow => "shadow",
            Self::Active => "active",
            Self::Suspended { .. } => "suspended",
            Self::Ended(_) => "ended",
        }
    }

    /// Whether the rule decides.
    #[must_use]
    pub fn decides(&self) -> bool {
        *self == Self::Active
    }

    /// The phase after an event. An event that a crash brings twice changes nothing the second
    /// time.
    ///
    /// # Errors
    /// Why the event does not apply.
    pub fn step(&self, rule: &CallRule, event: &LifeEvent) -> Result<Self, LifeError> {
        if let Self::Ended(own) = self {
            return match event {
                LifeEvent::Ended(end) if end == own => Ok(self.clone()),
                LifeEvent::Suspended(cause) if *own == RuleEnd::OfferOutdated(cause.clone()) => {
                    Ok(self.clone())
                }
                LifeEvent::Accepted { .. }
                | LifeEvent::Activated { .. }
                | LifeEvent::Suspended(_)
                | LifeEvent::Resumed { .. }
                | LifeEvent::Ended(_) => Err(LifeError::Over),
            };
        }
        match event {
            LifeEvent::Accepted {
                by,
                digest,
                shadow,
                at_ms,
            } => {
                only_author(rule, by)?;
                if *digest != rule.digest() {
                    return Err(LifeError::OtherText);
                }
                rule.check_term(*at_ms)?;
                self.accepted(*shadow)
            }
            LifeEvent::Activated { by } => {
                only_author(rule, by)?;
                match self {
                    Self::Shadow | Self::Active => Ok(Self::Active),
                    Self::Offered | Self::Suspended { .. } | Self::Ended(_) => {
                        Err(LifeError::Phase(self.as_str()))
                    }
                }
            }
            LifeEvent::Suspended(cause) => Ok(self.suspended(cause)),
            LifeEvent::Resumed { by } => self.resumed(rule, by),
            LifeEvent::Ended(end) => Ok(Self::Ended(end.clone())),
        }
    }

    fn accepted(&self, shadow: bool) -> Result<Self, LifeError> {
        let next = if shadow { Self::Shadow } else { Self::Active };
        match self {
            Self::Offered => Ok(next),
            same if *same == next => Ok(next),
            Self::Shadow | Self::Active | Self::Suspended { .. } | Self::Ended(_) => {
                Err(LifeError::Phase(self.as_str()))
            }
        }
    }

    /// The phase after a suspension. A graver cause takes the place of a lighter one; never the other
    /// way. An offer ends.
    #[must_use]
    pub fn suspended(&self, cause: &SuspendCause) -> Self {
        match self {
            Self::Suspended {
                cause: own,
                was_shadow,
            } if cause.gravity() > own.gravity() => Self::Suspended {
                cause: cause.clone(),
                was_shadow: *was_shadow,
            },
            Self::Shadow | Self::Active => Self::Suspended {
                cause: cause.clone(),
                was_shadow: *self == Self::Shadow,
            },
            Self::Offered if cause.ends_offers() => {
                Self::Ended(RuleEnd::OfferOutdated(cause.clone()))
            }
            Self::Offered | Self::Suspended { .. } | Self::Ended(_) => self.clone(),
        }
    }

    fn resumed(&self, rule: &CallRule, by: &ParticipantId) -> Result<Self, LifeError> {
        only_author(rule, by)?;
        match self {
            Self::Suspended { cause, .. } if !cause.can_resume() => {
                Err(LifeError::NeedsRenewal(cause.words()))
            }
            Self::Suspended {
                was_shadow: true, ..
            } => Ok(Self::Shadow),
            Self::Suspended { .. } | Self::Active => Ok(Self::Active),
            Self::Offered | Self::Shadow | Self::Ended(_) => Err(LifeError::Phase(self.as_str())),
        }
    }
}

fn only_author(rule: &CallRule, by: &ParticipantId) -> Result<(), LifeError> {
    if *by == rule.author {
        Ok(())
    } else {
        Err(LifeError::NotAuthor(rule.author.clone()))
    }
}

/// The surroundings of a rule now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surrounding {
    /// The time, in milliseconds since 1970.
    pub now_ms: u64,
    /// When the rule was accepted or resumed last, in milliseconds since 1970.
    pub since_ms: u64,
    /// Digest of the tool's definition; `None` while it is not known.
    pub definition: Option<Digest>,
    /// Digest of the server's configuration; `None` while it is not known.
    pub server: Option<Digest>,
    /// Whether the author has, at this moment, the right to all that the rule decides.
    pub author_may: bool,
    /// The name of the author or of a proposer that has another bearer than when the rule came into
    /// force, or none.
    pub replaced: Option<Box<str>>,
    /// Traits of the tool.
    pub traits: ToolTraits,
}

/// The cause that suspends an approving rule now, if there is one: to be asked before each use. A
/// definition that is not known suspends nothing; the rule does not match then.
///
/// A rule that rejects or asks is never suspended: without it, another one would approve what it is
/// there to keep back.
#[must_use]
pub fn suspends(rule: &CallRule, spent: &Spent, around: &Surrounding) -> Option<SuspendCause> {
    if rule.decision.tightens() {
        return None;
    }
    let now_ms = spent.not_before(around.now_ms);
    let replaced = around.replaced.clone().map(SuspendCause::BearerReplaced);
    let changed = |own: Option<Digest>, now: Option<Digest>| now.is_some() && own != now;
    let used_ms = spent.last_use_ms(&rule.name.id).unwrap_or_default();
    let idle_ms = now_ms.saturating_sub(used_ms.max(around.since_ms));
    let traits = around.traits;
    let causes = [
        (
            changed(rule.scope.definition, around.definition),
            SuspendCause::DefinitionChanged,
        ),
        (
            changed(rule.scope.server, around.server),
            SuspendCause::ServerChanged,
        ),
        (
            traits.is_destructive() && !rule.destructive,
            SuspendCause::Destructive,
        ),
        (
            rule.uses.is_some_and(|most| spent.uses(&rule.name) >= most),
            SuspendCause::BudgetSpent,
        ),
        (rule.is_over(now_ms), SuspendCause::Expired),
        (!around.author_may, SuspendCause::AuthorLostRight),
        (
            traits.rules == ToolRules::Never,
            SuspendCause::OperatorForbids,
        ),
        (
            spent.failures(&rule.name) >= FAILURES_MAX,
            SuspendCause::Failing,
        ),
        (idle_ms >= DORMANT_MS, SuspendCause::Dormant),
    ];
    let mut causes = causes.into_iter().filter(|(holds, _)| *holds);
    replaced.or_else(|| causes.next().map(|(_, cause)| cause))
}

#[cfg(test)]
mod tests;
