//! Effects of a step: the closed inventory.

mod addressee;
mod proposal;
mod room;
mod verdict;

use std::sync::Arc;

use model::{LinkId, ListKind, LogLevel, OperationId, ParticipantId, Refusal};
use smallvec::SmallVec;

use crate::Handles;
pub use addressee::Addressee;
pub use proposal::{Claim, DECIDERS_SHOWN_MAX, NotedApproval, ProposalChange, ProposalView};
pub use room::{Mirrored, RoomEffect};
pub use verdict::{AdmittedBy, Cause, Ended, HeldFor, Ignored, Verdict};

/// All effects of one step.
#[derive(Debug)]
pub struct Effects<H: Handles> {
    /// The verdict about the event.
    pub verdict: Option<Verdict>,
    /// The refusal of an envelope or of a link that may not join, for a sender that waits for it.
    pub refusal: Option<Box<Refusal>>,
    /// The fate of the requests of an envelope that was admitted.
    pub requests: RequestsFate,
    /// Effects for the room's queue, in this order and before the next step.
    pub room: SmallVec<[RoomEffect<H>; 1]>,
    /// All other effects, in order. Each has one addressee (see [`Effect::addressee`]).
    pub all: SmallVec<[Effect<H>; 2]>,
}

impl<H: Handles> Default for Effects<H> {
    fn default() -> Self {
        Self {
            verdict: None,
            refusal: None,
            requests: RequestsFate::default(),
            room: SmallVec::new(),
            all: SmallVec::new(),
        }
    }
}

impl<H: Handles> Effects<H> {
    pub(crate) fn push(&mut self, effect: Effect<H>) {
        self.all.push(effect);
    }

    /// Takes the refusal for a sender that waits for it. The effect by which the sender would learn
    /// of it otherwise is none any more.
    pub fn take_refusal(&mut self) -> Option<Box<Refusal>> {
        let refusal = self.refusal.take()?;
        self.all
            .retain(|effect| !matches!(effect, Effect::Withhold { .. }));
        Some(refusal)
    }

    /// Adds that a decision counts, if a participant made it.
    pub(crate) fn extend_ruled(&mut self, ruling: Option<H::Ruling>) {
        self.all
            .extend(ruling.map(|ruling| Effect::Ruled { ruling }));
    }

    pub(crate) fn publish(&mut self, effect: RoomEffect<H>) {
        self.room.push(effect);
    }
}

/// The fate of the requests of an envelope that was admitted: it may name several participants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestsFate {
    begun: bool,
    turned_away: bool,
}

impl RequestsFate {
    /// Whether they were turned away, all of them: they repeat what was sent, fulfil what is decided, or
    /// are to participants that are not there or do not offer it.
    #[must_use]
    pub fn are_turned_away(self) -> bool {
        self.turned_away && !self.begun
    }

    pub(crate) fn begin(&mut self) {
        self.begun = true;
    }

    pub(crate) fn turn_away(&mut self) {
        self.turned_away = true;
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
    /// The gateway's session with a participant receives an envelope of it: a private answer, which
    /// is not published, or a notification of a participant that serves.
    Receive {
        /// The sender's link.
        handle: H::Link,
        /// The sender's server side, if it serves here.
        server: Option<H::Server>,
        /// The envelope.
        message: H::Message,
    },
    /// An envelope was admitted, and a receiver that the gateway plays does not act on it.
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
        /// The level from which on its caller wants log messages; `None` if it asks for none, or
        /// has set none.
        logs: Option<LogLevel>,
        /// The approved proposal that the request carries out.
        proposal: Option<Box<ProposalView<H>>>,
    },
    /// A caller may only propose its request, or a rule asks for a decision about it, so the request
    /// waits. The shell answers with
    /// [`Event::Propose`](crate::Event::Propose) or
    /// [`Event::Unproposable`](crate::Event::Unproposable).
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
    /// The caller of a held call, or of an operation that waits for a proposal, is answered for
    /// now.
    Park {
        /// The request.
        call: H::Call,
        /// The proposal that it waits for.
        proposal: Box<ProposalView<H>>,
    },
    /// The caller of an open call is answered for now with the questions about it, because its wire
    /// has none.
    Pause {
        /// The call.
        call: H::Call,
        /// The number of this pause, with which the caller comes back.
        round: u32,
        /// The questions, each with its id.
        questions: Vec<(OperationId, H::Question)>,
    },
    /// The caller of a paused call is back with another request: what belongs to the call goes to
    /// that request from now on.
    Return {
        /// The call.
        call: H::Call,
        /// The request with which its caller came back.
        by: H::Call,
    },
    /// Work that an effect began for a call, and could not wait for, goes on: the call is still
    /// open.
    Proceed {
        /// The call.
        call: H::Call,
        /// The rest of that effect.
        work: H::Work,
    },
    /// The outcome of a proposal goes to a caller that waited for it.
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
    /// A request is over and its caller waits for no answer: it cancelled the request or left, or
    /// its request fulfils a proposal whose held call is carried out instead.
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
        /// The resource's public URI, if the receiver knows it under another spelling than the
        /// server.
        public: Option<Arc<str>>,
        /// The resource or the task that the notification is about, under the spelling by which the
        /// caller listens; it may be another resource than the server names.
        about: Option<Arc<str>>,
    },
    /// The list that a caller sees may have changed.
    ListChanged {
        /// The list; never [`ListKind::Templates`], which change with resources.
        list: ListKind,
        /// The caller.
        to: Receiver<H>,
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
    /// A task is no participant's any more: its server need not go on.
    CancelTask {
        /// The task.
        task: H::Task,
    },
    /// The topic does not have a task any more: its session need not stay open for it.
    ForgetTask {
        /// The task.
        task: H::Task,
    },
    /// The session in which a task ran has ended. Its holder is notified if it was not over.
    LoseTask {
        /// The task.
        task: H::Task,
    },
    /// The journal writes this; the shell then sends [`Event::Written`](crate::Event::Written).
    /// Until then the change has no effects.
    Store {
        /// The proposal.
        proposal: OperationId,
        /// The proposed request.
        content: H::Content,
        /// The change.
        record: Box<ProposalChange<H>>,
    },
    /// A proposal is open to decisions.
    Proposed {
        /// The proposal.
        proposal: Box<ProposalView<H>>,
    },
    /// The topic did not accept a proposal, or the journal could not write it. The proposal does
    /// not exist.
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
    /// An envelope proposes nothing, and its id can never be fulfilled: its sender hears of it.
    Rejected {
        /// The sender.
        by: ParticipantId,
        /// The envelope's id.
        envelope: Arc<str>,
        /// The reason that the sender gets.
        refusal: Box<Refusal>,
    },
    /// A participant has sent a proposal of its own once more: it gets the present state.
    Remind {
        /// The sender's link.
        handle: H::Link,
        /// The proposal.
        proposal: Box<ProposalView<H>>,
    },
    /// An approval counts, and others must come before the proposal runs.
    Counted(CountedDecision<H>),
    /// Other participants look at a proposal than before.
    Claimed {
        /// The proposal.
        proposal: Box<ProposalView<H>>,
    },
    /// There is more time to decide about a proposal: the view has its new expiry.
    Extended {
        /// The proposal.
        proposal: Box<ProposalView<H>>,
        /// The participant that gave it.
        by: ParticipantId,
        /// The shell's part of the extension.
        ruling: H::Ruling,
    },
    /// The proposer of a proposal has replaced its arguments: the view has the new ones, and all
    /// approvals so far are void.
    Amended {
        /// The proposal.
        proposal: Box<ProposalView<H>>,
        /// The shell's part of the amendment.
        ruling: H::Ruling,
    },
    /// A proposal expires soon, unless it is decided.
    Expiring {
        /// The proposal.
        proposal: Box<ProposalView<H>>,
    },
    /// A proposal runs now, once: in this step with a held call, else with
    /// [`Event::Execute`](crate::Event::Execute) at the servers named here, else by a participant
    /// that answers in the room.
    Approved {
        /// The proposal.
        proposal: Box<ProposalView<H>>,
        /// The servers at which the gateway carries it out.
        servers: Vec<ParticipantId>,
    },
    /// The turn of a step of an approved plan has come: the step before it succeeded, and that is on
    /// disk. The shell answers with [`Event::RunStep`](crate::Event::RunStep).
    StepDue {
        /// The step.
        proposal: Box<ProposalView<H>>,
    },
    /// A proposal is over.
    Concluded {
        /// The proposal.
        proposal: Box<ProposalView<H>>,
    },
    /// A participant's answer in the room is the outcome of a proposal whose proposer it does not
    /// name: the gateway informs the proposer.
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

/// An approval that counts, of a proposal that needs others.
#[derive(Debug, Clone)]
pub struct CountedDecision<H: Handles> {
    /// The proposal, as it is after that.
    pub proposal: Box<ProposalView<H>>,
    /// The participant that approved.
    pub by: ParticipantId,
    /// Whether it is about other arguments than before, so that earlier approvals are void.
    pub is_amended: bool,
    /// The shell's part of the approval.
    pub ruling: H::Ruling,
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
