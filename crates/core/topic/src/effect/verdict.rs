//! Verdicts of a step and causes of refusals and ends, for records and wires.

use std::sync::Arc;

use model::{Capabilities, ParticipantId};

/// The capability that admitted a request or envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmittedBy {
    /// The participant's capabilities.
    pub capabilities: Arc<Capabilities>,
    /// The place in them; `None` if none is needed.
    pub at: Option<usize>,
}

impl AdmittedBy {
    /// The text of the capability.
    pub fn as_str(&self) -> Option<&str> {
        self.capabilities
            .get(self.at?)
            .map(model::Capability::as_str)
    }
}

/// The verdict about a step's event, if a participant requested something: a request, an envelope,
/// a resumption.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The request or envelope is admitted.
    Admitted {
        /// The server that gets it; `None` for an envelope.
        to: Option<ParticipantId>,
        /// The server's own name or URI, if it differs from the requested one.
        own: Option<Arc<str>>,
        /// The capability that admitted it.
        by: AdmittedBy,
    },
    /// The request is held as a proposal.
    Held {
        /// The server that it is for.
        to: ParticipantId,
        /// The server's own name or URI, if it differs.
        own: Option<Arc<str>>,
        /// Why it is held.
        why: HeldFor,
    },
    /// The request or envelope is refused.
    Refused(Cause),
}

/// The reason for which a request is held as a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HeldFor {
    /// Its caller may only propose it.
    Capability,
    /// Its caller may make it, and a rule asks for a decision.
    Rule,
    /// Its caller may make it, and is paused.
    Pause,
}

/// The cause of a refusal or an end, for records and for wires that name it. On MCP wires the
/// refusals of [`Cause::Unknown`] and [`Cause::NotAdmitted`] are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Cause {
    /// No target has this name.
    Unknown,
    /// No capability admits it.
    NotAdmitted,
    /// A capability admits it, and a rule asks for a decision about it, which its sender has to
    /// propose.
    RuleAsks,
    /// A capability admits it, and a rule rejects it.
    RuleRejects,
    /// A capability admits it, and its sender is paused.
    Paused,
    /// It was admitted, and the capability has been withdrawn since.
    Withdrawn,
    /// The method or the target is no part of a kind.
    Malformed,
    /// The participant exceeds its rate limit.
    RateLimited,
    /// The topic is at one of its limits.
    Limit,
    /// The server is not in the topic.
    UpstreamDown,
    /// The server could not take the request, or gave no answer.
    Failed,
    /// Its time has run out.
    Expired,
    /// The call, session or link that it belonged to is over.
    Moot,
    /// The name is taken on the other side.
    Taken,
    /// A newer link of the same participant is there.
    Replaced,
    /// A kind that only the gateway itself may use.
    Reserved,
    /// A participant tried to decide about a proposal of its own.
    Own,
    /// The proposal is already decided, or its decision is being written.
    Decided,
    /// The participant has approved the proposal already: another one must.
    Counted,
    /// The expiry of the proposal was moved as often as it may be.
    Extended,
    /// The proposer has replaced the arguments of the proposal as often as it may.
    Amended,
    /// The proposal is a later step of a plan, of which the first is decided about.
    LaterStep,
    /// A plan is decided about as a whole, and runs as it was proposed.
    WholePlan,
    /// The reviewer saw another request than the proposed one.
    Differs,
    /// The request is not the proposed one.
    #[strum(serialize = "conflict: this is not what was proposed")]
    Mismatch,
    /// The server has changed its description of the tool.
    #[strum(serialize = "conflict: the server describes the tool otherwise now")]
    Redefined,
    /// The server has changed the tool or prompt since it was pinned.
    ToolChanged,
    /// The envelope's id names another proposal already.
    #[strum(serialize = "conflict: this id names another proposal")]
    Repeated,
    /// The participants that would carry out the proposal are away for a moment.
    Away,
    /// Another node of the cluster decides about it: this one carries out what needs no decision.
    #[strum(serialize = "home_elsewhere")]
    Elsewhere,
    /// The journal or the audit log cannot write the record that must be on disk first.
    LogUnavailable,
}

impl Cause {
    /// The name of the cause in records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The reason for which the topic ended a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ended {
    /// Its participant was revoked.
    Revoked,
    /// Another link of its participant listens to the room now.
    Replaced,
}

/// The reason for which a receiver that the gateway plays does not act on an envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ignored {
    /// The receiver has already acted on an envelope of this id and sender.
    Repeat,
    /// Kind and payload differ.
    Mismatch,
    /// An answer to a request that named other participants.
    NotAsked,
    /// A request between participants, of which none is in the topic to answer.
    Absent,
}
