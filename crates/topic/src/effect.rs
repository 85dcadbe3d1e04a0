//! Owns the closed inventory of what can follow from a step.
//! Must not know how any of it is carried out.

use std::sync::Arc;

use model::{LinkId, OperationId, Outcome, ParticipantId, ProposalState, Refusal};
use smallvec::SmallVec;

use crate::ListKind;

/// The effects of one step, in the order in which everybody sees them. Up to two need no allocation.
pub type Effects = SmallVec<[Effect; 2]>;

/// Why something was refused, for records and for wires that must tell. Callers on MCP wires cannot tell
/// [`Cause::Unknown`] from [`Cause::NotAdmitted`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Nothing has this name.
    Unknown,
    /// No capability admits it.
    NotAdmitted,
    /// It was admitted, and the capability has been withdrawn since.
    Withdrawn,
    /// The method or the target is no part of a kind.
    Malformed,
    /// The rate limit.
    RateLimited,
    /// A limit of the topic.
    Limit,
    /// The upstream is not in the topic.
    UpstreamDown,
    /// Its time was over.
    Expired,
    /// What it belonged to is over.
    Moot,
    /// A name that is taken on the other side.
    Taken,
    /// A newer link of the same participant is there.
    Replaced,
    /// A kind that only the gateway itself may say.
    Reserved,
    /// The proposal behind it was rejected.
    Rejected,
    /// The proposal behind it was taken back.
    TakenBack,
    /// Nobody decides about a proposal of their own.
    Own,
    /// A proposal that is decided already, or is being decided.
    Decided,
    /// What was decided about is not what was proposed.
    Differs,
    /// What must be written down first cannot be written down.
    LogUnavailable,
}

impl Cause {
    /// As it is recorded.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Cause::Unknown => "unknown",
            Cause::NotAdmitted => "not_admitted",
            Cause::Withdrawn => "withdrawn",
            Cause::Malformed => "malformed",
            Cause::RateLimited => "rate_limited",
            Cause::Limit => "limit",
            Cause::UpstreamDown => "upstream_down",
            Cause::Expired => "expired",
            Cause::Moot => "moot",
            Cause::Taken => "taken",
            Cause::Replaced => "replaced",
            Cause::Reserved => "reserved",
            Cause::Rejected => "rejected",
            Cause::TakenBack => "taken_back",
            Cause::Own => "own",
            Cause::Decided => "decided",
            Cause::Differs => "differs",
            Cause::LogUnavailable => "log_unavailable",
        }
    }
}

/// What is to be written down about a proposal before it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// It was made.
    Opened,
    /// It was decided. Rejected and withdrawn, it is over; no [`Record::Ended`] follows.
    Decided {
        /// Who decided.
        by: ParticipantId,
        /// [`ProposalState::Running`] if it was approved, or rejected or withdrawn.
        state: ProposalState,
        /// Why, in words for the proposer.
        reason: Option<Arc<str>>,
    },
    /// It is over: completed, failed or expired, or withdrawn after it was approved and before it ran.
    Ended {
        /// How.
        state: ProposalState,
        /// Why, in words for the proposer.
        reason: Option<Arc<str>>,
    },
}

/// Why the topic ended a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    /// Its participant was cut off.
    Revoked,
    /// Another link of its participant listens to the room now.
    Replaced,
}

/// What follows from an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// A participant is in the topic: its first link came.
    Joined {
        /// Who.
        participant: ParticipantId,
    },
    /// A link was not let in.
    NotJoined {
        /// The link.
        link: LinkId,
        /// What may be told.
        refusal: Box<Refusal>,
        /// Why, for records.
        cause: Cause,
    },
    /// A participant is out of the topic. Nothing names it afterwards.
    Left {
        /// Who.
        participant: ParticipantId,
    },
    /// The topic ended a link: close it. Nothing names it afterwards.
    Ended {
        /// The link.
        link: LinkId,
        /// Why.
        why: End,
    },
    /// What a link says goes to everybody who hears it, in this place of the one order.
    Publish {
        /// Who says it.
        link: LinkId,
    },
    /// What a link says goes to nobody.
    Withhold {
        /// Who says it, and is told.
        link: LinkId,
        /// What may be told.
        refusal: Box<Refusal>,
        /// Why, for records.
        cause: Cause,
    },
    /// A participant that listens to the room has other capabilities: this link needs a new welcome.
    Regranted {
        /// The link that listens.
        link: LinkId,
    },
    /// A request goes to an upstream.
    Deliver {
        /// The request.
        operation: OperationId,
        /// Who asked.
        from: LinkId,
        /// The upstream, or the gateway itself.
        to: ParticipantId,
        /// The upstream's own name or URI; `None` if it is spelled as it was asked.
        own: Option<Arc<str>>,
    },
    /// A request may only be proposed, so it waits: propose it, with this operation held behind it.
    Hold {
        /// The request.
        operation: OperationId,
        /// Who asked.
        from: LinkId,
        /// The upstream that it would go to.
        to: ParticipantId,
        /// The upstream's own name or URI; `None` if it is spelled as it was asked.
        own: Option<Arc<str>>,
    },
    /// Write this down, then say [`Event::Stored`](crate::Event::Stored) or
    /// [`Event::NotStored`](crate::Event::NotStored). Until then nobody is told.
    Store {
        /// The proposal.
        proposal: OperationId,
        /// What happened to it.
        what: Record,
    },
    /// A proposal is open to decisions.
    Proposed {
        /// Which.
        proposal: OperationId,
    },
    /// A proposal was not taken, or could not be written down. There is none.
    NotProposed {
        /// Which.
        proposal: OperationId,
        /// Whose.
        by: ParticipantId,
        /// What may be told.
        refusal: Box<Refusal>,
        /// Why, for records.
        cause: Cause,
    },
    /// A proposal runs now, once. A call that is held behind it is delivered in the same step; else whoever
    /// carries it out says [`Event::Execute`](crate::Event::Execute) or, in the end,
    /// [`Event::Outcome`](crate::Event::Outcome).
    Approved {
        /// Which.
        proposal: OperationId,
        /// On whose authority.
        by: ParticipantId,
    },
    /// A proposal is over: its proposer is told. Nothing names it afterwards.
    Told {
        /// Which.
        proposal: OperationId,
        /// Whose.
        by: ParticipantId,
        /// How it ended.
        state: ProposalState,
        /// Why, in words for the proposer.
        reason: Option<Arc<str>>,
    },
    /// A decision does not count.
    RefuseDecision {
        /// About which proposal.
        proposal: OperationId,
        /// Whose decision.
        by: ParticipantId,
        /// What may be told.
        refusal: Box<Refusal>,
        /// Why, for records.
        cause: Cause,
    },
    /// An ask goes to a caller.
    DeliverAsk {
        /// The ask.
        operation: OperationId,
        /// The upstream that asks.
        from: ParticipantId,
        /// The caller's link.
        to: LinkId,
        /// The call that it belongs to, if it belongs to one.
        about: Option<OperationId>,
    },
    /// A request is over; the answer goes to whoever asked.
    Settle {
        /// The request.
        operation: OperationId,
        /// Who asked.
        to: LinkId,
        /// How it ended.
        outcome: Outcome,
    },
    /// A request is over without an answer.
    Refuse {
        /// The request.
        operation: OperationId,
        /// Who asked.
        to: LinkId,
        /// What may be told.
        refusal: Box<Refusal>,
        /// Why, for records.
        cause: Cause,
    },
    /// An ask is over; the answer goes to the upstream.
    SettleAsk {
        /// The ask.
        operation: OperationId,
        /// The upstream that asked.
        to: ParticipantId,
        /// How it ended.
        outcome: Outcome,
    },
    /// An ask is over without an answer.
    RefuseAsk {
        /// The ask.
        operation: OperationId,
        /// The upstream that asked.
        to: ParticipantId,
        /// What may be told.
        refusal: Box<Refusal>,
        /// Why, for records.
        cause: Cause,
    },
    /// An upstream need not go on with a request.
    CancelAt {
        /// The request.
        operation: OperationId,
        /// The upstream that has it.
        upstream: ParticipantId,
    },
    /// A caller need not go on with an ask.
    CancelAsk {
        /// The ask.
        operation: OperationId,
        /// The caller's link that has it.
        to: LinkId,
    },
    /// What these links see of a list may have changed.
    ListChanged {
        /// Which list.
        list: ListKind,
        /// The links, by number.
        links: Vec<LinkId>,
    },
}

impl Effect {
    pub(crate) fn is_list_changed(&self) -> bool {
        matches!(self, Self::ListChanged { .. })
    }
}
