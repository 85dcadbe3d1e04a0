//! Owns the closed inventory of what can follow from a step.
//! Must not know how any of it is carried out.

use std::sync::Arc;

use model::{LinkId, OperationId, Outcome, ParticipantId, Refusal};
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
    /// A kind that only the gateway itself may say.
    Reserved,
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
