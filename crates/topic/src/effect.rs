//! The closed inventory of what can follow from a step.

use std::sync::Arc;

use model::{Capabilities, LinkId, ListKind, OperationId, Outcome, ParticipantId, ProposalState, Refusal};
use smallvec::SmallVec;

use crate::{Audience, Handles, Listener, Replay, proposal_view::ProposalView};

/// Why something was refused or ended, for records and for wires that must say so. Callers on MCP wires cannot tell
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
    /// The server is not in the topic.
    UpstreamDown,
    /// The server could not take the request, or gave no answer.
    Failed,
    /// Its time was over.
    Expired,
    /// What it belonged to is over.
    Moot,
    /// The name is taken on the other side.
    Taken,
    /// A newer link of the same participant is there.
    Replaced,
    /// A kind that only the gateway itself may use.
    Reserved,
    /// The proposal behind it was rejected.
    Rejected,
    /// The proposal behind it was withdrawn.
    TakenBack,
    /// No participant decides about a proposal of its own.
    Own,
    /// The proposal is decided already, or is being decided.
    Decided,
    /// The decision is about something else than was proposed.
    Differs,
    /// It is not what was proposed.
    Mismatch,
    /// The server describes the tool otherwise now.
    Redefined,
    /// An envelope of this id has proposed already.
    Repeated,
    /// What must be on disk first cannot be written.
    LogUnavailable,
}

impl Cause {
    /// The cause as it is recorded.
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
            Cause::Failed => "failed",
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
            Cause::Mismatch => "conflict: this is not what was proposed",
            Cause::Redefined => "conflict: the server describes the tool otherwise now",
            Cause::Repeated => {
                "malformed: this cannot be proposed: an envelope of this id has proposed already"
            }
            Cause::LogUnavailable => "log_unavailable",
        }
    }
}

/// The capability that admitted an act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The participant's capabilities.
    pub capabilities: Arc<Capabilities>,
    /// The place in them; `None` if the act needs no capability.
    pub at: Option<usize>,
}

impl Rule {
    /// The capability as it was written.
    pub fn as_str(&self) -> Option<&str> {
        self.capabilities.get(self.at?).map(model::Capability::as_str)
    }
}

/// The verdict about a step's event, if it was an act of a participant: a request, an envelope, a resumption.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on.
    Admitted {
        /// The server that has it; `None` for an envelope.
        to: Option<ParticipantId>,
        /// The server's own name or URI, if it differs from what was asked for.
        own: Option<Arc<str>>,
        /// The capability that admitted it.
        rule: Rule,
    },
    /// It is held as a proposal.
    Held {
        /// The server that would have it.
        to: ParticipantId,
        /// The server's own name or URI, if it differs.
        own: Option<Arc<str>>,
    },
    /// It is refused.
    Refused(Cause),
}

/// What follows from one step.
#[derive(Debug)]
pub struct Effects<H: Handles> {
    /// The verdict about the event.
    pub verdict: Option<Verdict>,
    /// The refusal of an envelope, for a sender that waits for it.
    pub refusal: Option<Box<Refusal>>,
    /// What goes into the room's queue, in this order and before the next step.
    pub room: SmallVec<[RoomEffect<H>; 1]>,
    /// Everything else, in order.
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

    /// A decision counts, if it came from a participant.
    pub(crate) fn extend_ruled(&mut self, ruling: Option<H::Ruling>) {
        self.all.extend(ruling.map(|ruling| Effect::Ruled { ruling }));
    }

    pub(crate) fn publish(&mut self, effect: RoomEffect<H>) {
        self.room.push(effect);
    }
}

/// A participant as others in the topic see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// Its id.
    pub id: ParticipantId,
    /// What it may do.
    pub capabilities: Arc<Capabilities>,
}

/// Why the topic ended a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ended {
    /// Its participant was revoked.
    Revoked,
    /// Another link of its participant listens to the room now.
    Replaced,
}

/// What goes into the room's queue.
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
        /// How it listens.
        listener: Listener,
        /// The others in the topic.
        roster: Arc<[Person]>,
        /// What it missed, if the room keeps a history.
        replay: Option<Replay<H::Message>>,
    },
    /// A listener's participant may do other things now: its link is welcomed anew.
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
        /// What is shown.
        mirrored: Mirrored<H>,
        /// Its audience.
        audience: Audience,
    },
    /// A listener leaves; the topic's reason, if it is the topic that ended the link.
    Exit {
        /// The link.
        link: LinkId,
        /// Why.
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
    /// The server's own name or URI, if it differs from what was asked for.
    pub own: Option<Arc<str>>,
    /// How the call ended, with the server's answer if there is one; `None` for the call itself.
    pub end: Option<(Outcome, Option<H::Answer>)>,
}

/// A change of a proposal that must be on disk before anything follows from it.
#[derive(Debug, Clone)]
pub enum Record<H: Handles> {
    /// It was made.
    Opened,
    /// It was decided. Rejected and withdrawn, it is over; no [`Record::Ended`] follows.
    Decided {
        /// The participant that decided.
        by: ParticipantId,
        /// [`ProposalState::Running`] if it was approved, or rejected or withdrawn.
        state: ProposalState,
        /// Why, in words for the proposer.
        reason: Option<Arc<str>>,
        /// What came with the decision; `None` if the topic withdraws the proposal itself.
        ruling: Option<H::Ruling>,
    },
    /// It is over: completed, failed or expired, or withdrawn after it was approved and before it ran.
    Ended {
        /// How.
        state: ProposalState,
        /// Why, in words for the proposer.
        reason: Option<Arc<str>>,
        /// The answer of the server or participant that carried it out.
        answer: Option<H::Answer>,
    },
}

/// Where a notification goes.
#[derive(Debug, Clone)]
pub enum Receiver<H: Handles> {
    /// To the caller of an open request, with its answer to come.
    Call(H::Call),
    /// To a link, outside of its requests.
    Link(H::Link),
}

/// What follows from an event.
#[derive(Debug, Clone, strum::IntoStaticStr, strum::VariantNames)]
pub enum Effect<H: Handles> {
    /// A link may not join.
    NotJoined {
        /// The link's sending side.
        handle: H::Link,
        /// What the caller is told.
        refusal: Box<Refusal>,
        /// Why, for records.
        cause: Cause,
    },
    /// The topic ended a link, or it left: nothing names it afterwards.
    Closed {
        /// The link.
        link: LinkId,
        /// Its sending side.
        handle: H::Link,
        /// Why, if it is the topic that ended it.
        why: Option<Ended>,
    },
    /// An envelope is not published; its sender is told.
    Withhold {
        /// The sender's link.
        handle: H::Link,
        /// The envelope.
        message: H::Message,
        /// What the sender is told.
        refusal: Box<Refusal>,
        /// Why, for records.
        cause: Cause,
    },
    /// An envelope answers or is about a request that the gateway sent to its sender alone: it is for the server's session, and
    /// is not published.
    Hear {
        /// The sender's link.
        link: LinkId,
        /// The sender's server side, if it serves here.
        server: Option<H::Server>,
        /// The envelope.
        message: H::Message,
    },
    /// An envelope was published, and a receiver that the gateway plays does not act on it.
    Ignore {
        /// The sender's link.
        link: Option<H::Link>,
        /// The sender.
        from: ParticipantId,
        /// The envelope.
        message: H::Message,
        /// The receivers.
        by: Vec<ParticipantId>,
        /// Why.
        why: Ignored,
    },
    /// A request goes to a server.
    Deliver {
        /// The request's id.
        operation: OperationId,
        /// The request.
        call: H::Call,
        /// The server's link, by which it answers.
        link: LinkId,
        /// The server.
        server: H::Server,
        /// The server's own name or URI; `None` if it is spelled as it was asked.
        own: Option<Arc<str>>,
        /// The approved proposal that the request carries out.
        proposal: Option<Box<ProposalView<H>>>,
    },
    /// A request may only be proposed, so it waits: answer with [`Event::Propose`](crate::Event::Propose) or
    /// [`Event::Unproposable`](crate::Event::Unproposable).
    Hold {
        /// The request's id.
        operation: OperationId,
        /// The request.
        call: H::Call,
        /// The server's name.
        to: ParticipantId,
        /// The server.
        server: H::Server,
        /// The server's own name or URI; `None` if it is spelled as it was asked.
        own: Option<Arc<str>>,
    },
    /// The caller of a held call, or of an operation that waits for a proposal, is answered for now.
    Park {
        /// The request.
        call: H::Call,
        /// The proposal that it waits for.
        proposal: Box<ProposalView<H>>,
    },
    /// The same once the proposal is over: the caller gets what it came to.
    Report {
        /// The request.
        call: H::Call,
        /// The proposal.
        proposal: Box<ProposalView<H>>,
    },
    /// A request is over; its caller gets the answer.
    Settle {
        /// The request's id.
        operation: OperationId,
        /// The request.
        call: H::Call,
        /// The answer.
        answer: H::Answer,
        /// The approved proposal that the request carried out.
        proposal: Option<Box<ProposalView<H>>>,
    },
    /// A request is over without an answer; its caller gets the refusal.
    Refuse {
        /// The request's id.
        operation: OperationId,
        /// The request.
        call: H::Call,
        /// What the caller is told.
        refusal: Box<Refusal>,
        /// Why, for records.
        cause: Cause,
    },
    /// A request is over and its caller waits for no answer: it cancelled the request or left, or its request fulfils a proposal
    /// whose held call is carried out instead.
    Drop {
        /// The request.
        call: H::Call,
    },
    /// A server need not go on with a request.
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
        /// Where the caller is asked.
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
        /// What the server is told.
        refusal: Box<Refusal>,
        /// Why, for records.
        cause: Cause,
    },
    /// A caller need not go on with a question.
    CancelAsk {
        /// The question's id.
        operation: OperationId,
        /// Where the caller was asked.
        to: Receiver<H>,
    },
    /// A server's notification goes to a caller.
    Notify {
        /// Where.
        to: Receiver<H>,
        /// The notification.
        notice: H::Notice,
        /// The resource's public URI, if it is spelled otherwise there.
        public: Option<Arc<str>>,
        /// The same or another resource, or a task, under the spelling by which the caller listens.
        about: Option<Arc<str>>,
    },
    /// The list that these callers see may have changed.
    ListChanged {
        /// Which list; never [`ListKind::Templates`], which change with resources.
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
    /// Write this down, then send [`Event::Stored`](crate::Event::Stored) or
    /// [`Event::NotStored`](crate::Event::NotStored). Until then nothing follows from it.
    Store {
        /// The proposal.
        proposal: OperationId,
        /// What was proposed.
        content: H::Content,
        /// The change.
        record: Record<H>,
    },
    /// A proposal is open to decisions.
    Proposed {
        /// The proposal.
        proposal: Box<ProposalView<H>>,
    },
    /// A proposal was not taken, or could not be written down. There is none.
    NotProposed {
        /// Its id.
        proposal: OperationId,
        /// The proposer.
        by: ParticipantId,
        /// What was proposed.
        content: H::Content,
        /// Whether a call was held behind it, whose caller is refused.
        held: bool,
        /// What the proposer is told.
        refusal: Box<Refusal>,
        /// Why, for records.
        cause: Cause,
    },
    /// A proposal runs now, once: in this step with a held call, else with [`Event::Execute`](crate::Event::Execute) at the
    /// servers named here, else by a participant that answers in the room.
    Approved {
        /// The proposal.
        proposal: Box<ProposalView<H>>,
        /// The servers that the gateway has carry it out.
        servers: Vec<ParticipantId>,
    },
    /// A proposal is over.
    Concluded {
        /// The proposal.
        proposal: Box<ProposalView<H>>,
    },
    /// A participant's answer in the room is the outcome of a proposal whose proposer it does not name: the proposer is told.
    Relay {
        /// The answer.
        message: H::Message,
        /// The proposer.
        to: ParticipantId,
    },
    /// A decision counts: it is on disk.
    Ruled {
        /// What came with the decision.
        ruling: H::Ruling,
    },
    /// A decision does not count.
    RefuseDecision {
        /// The proposal.
        proposal: OperationId,
        /// What was proposed, if there is such a proposal.
        content: Option<H::Content>,
        /// The participant that decided.
        by: ParticipantId,
        /// What came with the decision.
        ruling: H::Ruling,
        /// Whether calls that came with it are refused too, so that the participant learns of it there.
        answered: bool,
        /// What the participant is told.
        refusal: Box<Refusal>,
        /// Why, for records.
        cause: Cause,
    },
}

/// Why a receiver that the gateway plays does not act on an envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ignored {
    /// An envelope of this id and sender was acted on before.
    Repeat,
    /// Kind and payload differ.
    Mismatch,
    /// An answer to a request that named other participants.
    NotAsked,
}
