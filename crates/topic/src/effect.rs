//! Effects of a step: the closed inventory.

use std::sync::Arc;

use model::{Capabilities, LinkId, ListKind, OperationId, Outcome, ParticipantId, ProposalState, Refusal};
use smallvec::SmallVec;

use crate::{Audience, Handles, Listener, Replay};

/// All effects of one step.
#[derive(Debug)]
pub struct Effects<H: Handles> {
    /// The verdict about the event.
    pub verdict: Option<Verdict>,
    /// The refusal of an envelope, for a sender that waits for it.
    pub refusal: Option<Box<Refusal>>,
    /// Effects for the room's queue, in this order and before the next step.
    pub room: SmallVec<[RoomEffect<H>; 1]>,
    /// All other effects, in order.
    pub all: SmallVec<[Effect<H>; 2]>,
}

impl<H: Handles> Default for Effects<H> {
    fn default() -> Self {
        Self { verdict: None, refusal: None, room: SmallVec::new(), all: SmallVec::new() }
    }
}

impl<H: Handles> Effects<H> {
    pub(crate) fn push(&mut self, effect: Effect<H>) {
        self.all.push(effect);
    }

    /// Adds that a decision counts, if a participant made it.
    pub(crate) fn extend_ruled(&mut self, ruling: Option<H::Ruling>) {
        self.all.extend(ruling.map(|ruling| Effect::Ruled { ruling }));
    }

    pub(crate) fn publish(&mut self, effect: RoomEffect<H>) {
        self.room.push(effect);
    }
}

/// The receiver of a notification or question.
#[derive(Debug, Clone)]
pub enum Receiver<H: Handles> {
    /// The caller of an open request, on the way of its answer.
    Call(H::Call),
    /// A link, outside of its requests.
    Link(H::Link),
}

/// An effect that the shell carries out.
#[derive(Debug, Clone, strum::IntoStaticStr, strum::VariantNames)]
pub enum Effect<H: Handles> {
    /// A link may not join.
    NotJoined {
        /// The link's sending side.
        handle: H::Link,
        /// The refusal that the caller gets.
        refusal: Box<Refusal>,
    },
    /// The topic ended a link, or the link left. No later effect names it.
    Closed {
        /// Its sending side.
        handle: H::Link,
        /// The topic's reason, if the topic ended it.
        why: Option<Ended>,
    },
    /// The topic does not publish an envelope; its sender gets the refusal.
    Withhold {
        /// The sender's link.
        handle: H::Link,
        /// The envelope.
        message: H::Message,
        /// The refusal that the sender gets.
        refusal: Box<Refusal>,
    },
    /// The gateway's session with a participant receives an envelope of it: a private answer, which is not published, or a
    /// notification of a participant that serves.
    Receive {
        /// The sender's link.
        link: LinkId,
        /// The sender's server side, if it serves here.
        server: Option<H::Server>,
        /// The envelope.
        message: H::Message,
    },
    /// An envelope was published, and a receiver that the gateway plays does not act on it.
    Ignore {
        /// The sender.
        from: ParticipantId,
        /// The envelope.
        message: H::Message,
        /// The receivers.
        by: Vec<ParticipantId>,
        /// The reason.
        why: Ignored,
    },
    /// A request goes to a server.
    Deliver {
        /// The request.
        call: H::Call,
        /// The server's link, by which it answers.
        link: LinkId,
        /// The server.
        server: H::Server,
        /// The server's own name or URI; `None` if the caller spelled it so.
        own: Option<Arc<str>>,
        /// The approved proposal that the request carries out.
        proposal: Option<Box<ProposalView<H>>>,
    },
    /// A caller may only propose its request, so the request waits. The shell answers with
    /// [`Event::Propose`](crate::Event::Propose) or [`Event::Unproposable`](crate::Event::Unproposable).
    Hold {
        /// The request.
        call: H::Call,
        /// The server's name.
        to: ParticipantId,
        /// The server.
        server: H::Server,
        /// The server's own name or URI; `None` if the caller spelled it so.
        own: Option<Arc<str>>,
    },
    /// The caller of a held call, or of an operation that waits for a proposal, is answered for now.
    Park {
        /// The request.
        call: H::Call,
        /// The proposal that it waits for.
        proposal: Box<ProposalView<H>>,
    },
    /// The same once the proposal is over: the caller gets its outcome.
    Report {
        /// The request.
        call: H::Call,
        /// The proposal.
        proposal: Box<ProposalView<H>>,
    },
    /// A request is over; its caller gets the answer.
    Settle {
        /// The request.
        call: H::Call,
        /// The answer.
        answer: H::Answer,
        /// The approved proposal that the request carried out.
        proposal: Option<Box<ProposalView<H>>>,
    },
    /// A request is over without an answer; its caller gets the refusal.
    Refuse {
        /// The request.
        call: H::Call,
        /// The refusal that the caller gets.
        refusal: Box<Refusal>,
        /// The cause, for records.
        cause: Cause,
    },
    /// A request is over and its caller waits for no answer: it cancelled the request or left, or its request fulfils a proposal
    /// whose held call is carried out instead.
    Drop {
        /// The request.
        call: H::Call,
    },
    /// A server may stop to work on a request.
    Cancel {
        /// The request.
        call: H::Call,
    },
    /// A question goes to a caller.
    Ask {
        /// The question's id, by which the caller answers.
        operation: OperationId,
        /// The question.
        question: H::Question,
        /// The caller's link.
        link: LinkId,
        /// The receiver of the question.
        to: Receiver<H>,
    },
    /// A question is over; the server gets the caller's answer.
    SettleAsk {
        /// The question.
        question: H::Question,
        /// The answer.
        answer: H::Answer,
    },
    /// A question is over without an answer; the server gets the refusal.
    RefuseAsk {
        /// The question.
        question: H::Question,
        /// The refusal that the server gets.
        refusal: Box<Refusal>,
    },
    /// A caller no longer needs to answer a question.
    CancelAsk {
        /// The question's id.
        operation: OperationId,
        /// The receiver of the question.
        to: Receiver<H>,
    },
    /// A server's notification goes to a caller.
    Notify {
        /// The receiver.
        to: Receiver<H>,
        /// The notification.
        notice: H::Notice,
        /// The resource's public URI, if the receiver knows it under another spelling than the server.
        public: Option<Arc<str>>,
        /// The same or another resource, or a task, under the spelling by which the caller listens.
        about: Option<Arc<str>>,
    },
    /// The list that these callers see may have changed.
    ListChanged {
        /// The list; never [`ListKind::Templates`], which change with resources.
        list: ListKind,
        /// The callers.
        to: Vec<Receiver<H>>,
    },
    /// No caller on this link is interested in a resource any more.
    Unsubscribe {
        /// The caller's link.
        handle: H::Link,
        /// The server.
        server: H::Server,
        /// The server's own URI.
        own: Arc<str>,
    },
    /// No listen request on this link names these tasks any more.
    Unwatch {
        /// The caller's link.
        handle: H::Link,
        /// The tasks' ids at the gateway's door.
        tasks: Vec<Arc<str>>,
    },
    /// The journal writes this; the shell then sends [`Event::Written`](crate::Event::Written). Until then the change has no
    /// effects.
    Store {
        /// The proposal.
        proposal: OperationId,
        /// The proposed request.
        content: H::Content,
        /// The change.
        record: Record<H>,
    },
    /// A proposal is open to decisions.
    Proposed {
        /// The proposal.
        proposal: Box<ProposalView<H>>,
    },
    /// The topic did not accept a proposal, or the journal could not write it. The proposal does not exist.
    NotProposed {
        /// Its id.
        proposal: OperationId,
        /// The proposer.
        by: ParticipantId,
        /// The proposed request.
        content: H::Content,
        /// Whether it was a held call; its caller is refused.
        held: bool,
        /// The refusal that the proposer gets.
        refusal: Box<Refusal>,
        /// The cause, for records.
        cause: Cause,
    },
    /// A proposal runs now, once: in this step with a held call, else with [`Event::Execute`](crate::Event::Execute) at the
    /// servers named here, else by a participant that answers in the room.
    Approved {
        /// The proposal.
        proposal: Box<ProposalView<H>>,
        /// The servers at which the gateway carries it out.
        servers: Vec<ParticipantId>,
    },
    /// A proposal is over.
    Concluded {
        /// The proposal.
        proposal: Box<ProposalView<H>>,
    },
    /// A participant's answer in the room is the outcome of a proposal whose proposer it does not name: the gateway informs the
    /// proposer.
    Relay {
        /// The answer.
        message: H::Message,
        /// The proposer.
        to: ParticipantId,
    },
    /// A decision counts: it is on disk.
    Ruled {
        /// The shell's part of the decision.
        ruling: H::Ruling,
    },
    /// A decision does not count.
    RefuseDecision(RefusedDecision<H>),
}

/// A decision that does not count.
#[derive(Debug, Clone)]
pub struct RefusedDecision<H: Handles> {
    /// The proposal.
    pub proposal: OperationId,
    /// The proposed request, if there is such a proposal.
    pub content: Option<H::Content>,
    /// The participant that decided.
    pub by: ParticipantId,
    /// The shell's part of the decision.
    pub ruling: H::Ruling,
    /// Whether calls that came with it are refused too, so that the participant learns of it there.
    pub answered: bool,
    /// The refusal that the participant gets.
    pub refusal: Box<Refusal>,
    /// The cause, for records.
    pub cause: Cause,
}

/// The capability that admitted a request or envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The participant's capabilities.
    pub capabilities: Arc<Capabilities>,
    /// The place in them; `None` if none is needed.
    pub at: Option<usize>,
}

impl Rule {
    /// The text of the capability.
    pub fn as_str(&self) -> Option<&str> {
        self.capabilities.get(self.at?).map(model::Capability::as_str)
    }
}

/// The verdict about a step's event, if a participant requested something: a request, an envelope, a resumption.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The request or envelope is admitted.
    Admitted {
        /// The server that gets it; `None` for an envelope.
        to: Option<ParticipantId>,
        /// The server's own name or URI, if it differs from the requested one.
        own: Option<Arc<str>>,
        /// The capability that admitted it.
        rule: Rule,
    },
    /// The request is held as a proposal.
    Held {
        /// The server that it is for.
        to: ParticipantId,
        /// The server's own name or URI, if it differs.
        own: Option<Arc<str>>,
    },
    /// The request or envelope is refused.
    Refused(Cause),
}

/// The cause of a refusal or an end, for records and for wires that name it. On MCP wires the refusals of [`Cause::Unknown`] and
/// [`Cause::NotAdmitted`] are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Cause {
    /// No target has this name.
    Unknown,
    /// No capability admits it.
    NotAdmitted,
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
    /// The reviewer saw another request than the proposed one.
    Differs,
    /// The request is not the proposed one.
    #[strum(serialize = "conflict: this is not what was proposed")]
    Mismatch,
    /// The server has changed its description of the tool.
    #[strum(serialize = "conflict: the server describes the tool otherwise now")]
    Redefined,
    /// An envelope of this id has already proposed a request.
    #[strum(serialize = "malformed: this cannot be proposed: an envelope of this id has proposed already")]
    Repeated,
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
}

/// A change of a proposal that must be on disk before it has effects.
#[derive(Debug, Clone)]
pub enum Record<H: Handles> {
    /// A participant opened it.
    Opened,
    /// A participant decided about it. A rejected or withdrawn proposal is over; no [`Record::Ended`] follows.
    Decided {
        /// The participant that decided.
        by: ParticipantId,
        /// [`ProposalState::Running`] if it was approved, or rejected or withdrawn.
        state: ProposalState,
        /// The reason, in words for the proposer.
        reason: Option<Arc<str>>,
        /// The shell's part of the decision; `None` if the topic withdraws the proposal itself.
        ruling: Option<H::Ruling>,
    },
    /// It is over: completed, failed or expired, or withdrawn after it was approved and before it ran.
    Ended {
        /// Its last state.
        state: ProposalState,
        /// The reason, in words for the proposer.
        reason: Option<Arc<str>>,
        /// The answer of the server or participant that carried it out.
        answer: Option<H::Answer>,
    },
}

/// A participant as others in the topic see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// Its id.
    pub id: ParticipantId,
    /// Its capabilities.
    pub capabilities: Arc<Capabilities>,
}

/// An effect for the room's queue.
#[derive(Debug, Clone, strum::IntoStaticStr, strum::VariantNames)]
pub enum RoomEffect<H: Handles> {
    /// A listener enters and is welcomed.
    Enter {
        /// Its link.
        link: LinkId,
        /// The link's sending side.
        handle: H::Link,
        /// The participant.
        person: Person,
        /// Its delivery mode and echo.
        listener: Listener,
        /// The others in the topic.
        roster: Arc<[Person]>,
        /// The messages that it missed, if the room keeps a history.
        replay: Option<Replay<H::Message>>,
    },
    /// The capabilities of a listener's participant have changed: its link is welcomed anew.
    Renew {
        /// The link.
        link: LinkId,
        /// The participant.
        person: Person,
        /// The others in the topic.
        roster: Arc<[Person]>,
    },
    /// A participant has joined.
    Joined(Person),
    /// A participant has left.
    Left(ParticipantId),
    /// A message to its audience.
    Publish {
        /// The message.
        message: H::Message,
        /// Its audience.
        audience: Audience,
    },
    /// An MCP client's call, shown to watchers.
    Mirror {
        /// The call or its end.
        mirrored: Mirrored<H>,
        /// Its audience.
        audience: Audience,
    },
    /// A listener leaves.
    Exit {
        /// The link.
        link: LinkId,
        /// The topic's reason, if the topic ended the link.
        why: Option<Ended>,
    },
}

/// A call that is shown to watchers, or its end.
#[derive(Debug, Clone)]
pub struct Mirrored<H: Handles> {
    /// The operation.
    pub operation: OperationId,
    /// The caller.
    pub from: ParticipantId,
    /// The server.
    pub to: ParticipantId,
    /// The request.
    pub call: H::Call,
    /// The server's own name or URI, if it differs from the requested one.
    pub own: Option<Arc<str>>,
    /// The outcome of the call, with the server's answer if there is one; `None` for the call itself.
    pub end: Option<(Outcome, Option<H::Answer>)>,
}

/// The most participants that a [`ProposalView`] names as able to decide.
pub const DECIDERS_SHOWN_MAX: usize = 16;

/// A proposal at one moment, with the shell's handles.
#[derive(Debug, Clone)]
pub struct ProposalView<H: Handles> {
    /// Its id.
    pub id: OperationId,
    /// The proposer.
    pub by: ParticipantId,
    /// The id of the envelope that proposed.
    pub envelope: Arc<str>,
    /// The proposed request, in full.
    pub content: H::Content,
    /// Whether it was a held call.
    pub held: bool,
    /// Its state.
    pub state: ProposalState,
    /// The reason for its end, in words for the proposer.
    pub reason: Option<Arc<str>>,
    /// The participant that decided.
    pub decided_by: Option<ParticipantId>,
    /// The shell's part of the decision.
    pub ruling: Option<H::Ruling>,
    /// The envelope that fulfils it.
    pub fulfilment: Option<Arc<str>>,
    /// The outcome and the answer.
    pub answer: Option<H::Answer>,
    /// The time of its latest change, on the clock of [`Topic::step`](crate::Topic::step).
    pub updated_ms: u64,
    /// While it is pending, participants in the topic that could decide; [`DECIDERS_SHOWN_MAX`] at most. Empty in lists of
    /// proposals.
    pub deciders: Vec<ParticipantId>,
}
