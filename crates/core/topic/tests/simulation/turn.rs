//! Terms of one step: calls, questions and decisions that its event brings, and links that it ends.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use model::{Capabilities, Digest, LinkId, Narrowing, OperationId, Outcome, ParticipantId};
use topic::{Ended, Listener};

use crate::books::{calls::Call, deals::Deal, questions::Question, room::Message, tasks::TaskTurn};

/// A decision, as the event has it.
#[derive(Debug, Clone)]
pub(crate) struct Decided {
    pub(crate) by: ParticipantId,
    pub(crate) ruling: u64,
    /// The participant's capabilities, if it is not in the topic.
    pub(crate) outside: Option<Arc<Capabilities>>,
    pub(crate) token: Option<Narrowing>,
    /// The digest that the reviewer saw, and the one of what the server lists now, of an approval.
    pub(crate) digests: Option<(Digest, Option<Digest>)>,
    pub(crate) withdraws: bool,
    pub(crate) approves: bool,
    pub(crate) extends: bool,
    /// The other content, of an amendment.
    pub(crate) amends: Option<u64>,
    pub(crate) fulfilment: Option<String>,
    /// It came as a request in the room, to these participants.
    pub(crate) requested: bool,
    pub(crate) named: Vec<ParticipantId>,
}

impl Decided {
    /// Whether it is about a proposal as it is now.
    pub(crate) fn is_about(&self, deal: &Deal) -> bool {
        let own = deal.digest();
        let is_it = |(shown, current)| (shown, current) == (own, Some(own));
        self.digests.is_none_or(is_it)
    }

    /// Whether it decides nothing.
    pub(crate) fn changes(&self) -> bool {
        self.extends || self.amends.is_some()
    }
}

/// An answer in the room.
#[derive(Debug, Clone)]
pub(crate) struct RoomAnswer {
    pub(crate) proposal: OperationId,
    pub(crate) outcome: Outcome,
    pub(crate) answer: u64,
}

/// A caller's link that joins, if it may.
#[derive(Debug, Clone)]
pub(crate) struct Arrival {
    pub(crate) link: LinkId,
    pub(crate) participant: ParticipantId,
    pub(crate) listener: Option<Listener>,
    pub(crate) since: Option<topic::Cursor>,
}

/// The answer to an open operation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answering {
    pub(crate) operation: OperationId,
    /// `None` if there is none.
    pub(crate) answer: Option<u64>,
    pub(crate) outcome: Outcome,
}

/// A caller that comes back with answers.
#[derive(Debug, Clone)]
pub(crate) struct Returning {
    pub(crate) operation: OperationId,
    pub(crate) link: LinkId,
    pub(crate) tag: Option<u8>,
    pub(crate) round: u32,
    pub(crate) answers: Vec<(OperationId, u64)>,
}

#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// The calls that the event hands in, by handle, each with its operation.
    pub(crate) calls: BTreeMap<u64, (OperationId, Call)>,
    /// The question that it hands in.
    pub(crate) question: Option<(OperationId, Question)>,
    /// The decision that it brings, about this proposal.
    pub(crate) decision: Option<(OperationId, Decided)>,
    /// The proposal that it makes.
    pub(crate) proposing: Option<OperationId>,
    /// The id of its envelope names another proposal.
    pub(crate) taken: bool,
    /// The proposal of which its sender gets the state.
    pub(crate) reminds: Option<OperationId>,
    /// Links that it ends.
    pub(crate) leaving: Vec<(LinkId, Option<Ended>)>,
    pub(crate) joining: Option<Arrival>,
    /// A participant whose capabilities change.
    pub(crate) regrants: Option<ParticipantId>,
    /// Servers that leave.
    pub(crate) dismissed: Vec<ParticipantId>,
    /// Servers that take their seats.
    pub(crate) serving: Vec<ParticipantId>,
    /// The server that begins or ceases to run.
    pub(crate) available: Option<(ParticipantId, bool)>,
    /// Participants whose new capabilities the others must learn.
    pub(crate) changes: BTreeSet<ParticipantId>,
    pub(crate) answering: Option<Answering>,
    /// The operation that its opener cancels.
    pub(crate) cancelling: Option<OperationId>,
    /// The proposal about which the journal answers, and whether it has the record.
    pub(crate) journal: Option<(OperationId, bool)>,
    /// The message that it publishes.
    pub(crate) message: Option<Message>,
    /// Its envelope names a proposal, which decides whether it is published.
    pub(crate) waits: bool,
    pub(crate) room_answer: Option<RoomAnswer>,
    /// The proposal whose proposer makes its own request.
    pub(crate) own: Option<OperationId>,
    /// A caller that comes back with answers.
    pub(crate) returning: Option<Returning>,
    /// The paused call whose end waits for its caller from now on.
    pub(crate) keeps: Option<OperationId>,
    /// Callers may be answered for now.
    pub(crate) parks: bool,
    pub(crate) tasks: TaskTurn,
}
