//! Events of a topic: the closed inventory.

mod brake;
mod caller;
mod claim;
mod configure;
mod envelope;
mod plan;
mod plan_place;
mod task;

use std::sync::Arc;

use model::{
    Capabilities, Digest, LinkId, ListKind, LogLevel, Method, Narrowing, OperationId, Outcome,
    ParticipantId, Refusal,
};

use crate::{Audience, Handles, ServerLists};
pub use brake::Brake;
pub use caller::{
    Interest, Join, Joining, Logs, OperationRef, Parked, PublicTarget, RequestEvent, Resume,
    Tightening,
};
pub use claim::Claiming;
pub use configure::{Configure, Seating, SharedLists};
pub use envelope::{
    Amended, CountedApproval, Decision, EndedProposal, Intent, Requested, Restore, Say, Terms,
};
pub use plan::{PlanStep, ProposePlan, RunStep};
pub use plan_place::PlanPlace;
pub use task::{NamedTask, NewTask, TaskOrigin, TaskRight};

/// An event that a topic takes. An event of a link that is not in the topic has no effects, unless
/// its docs say otherwise.
#[derive(Debug, strum::IntoStaticStr, strum::VariantNames)]
pub enum Event<'a, H: Handles> {
    /// A caller's link joins; its participant joins with the first.
    Join(Join<'a, H>),
    /// A link leaves; its participant leaves with the last. The operations that the link opened are
    /// cancelled.
    Leave {
        /// The link.
        link: LinkId,
    },
    /// A participant loses its access to the topic: all its links end, its pending proposals are
    /// withdrawn, and its tasks are cancelled at their servers. It need not be in the topic.
    Revoke {
        /// The participant.
        participant: &'a ParticipantId,
    },
    /// A name has another bearer from now on: what the former one was sent and has proposed is none
    /// of the next one's, and neither are its tasks. It need not be in the topic.
    Disown {
        /// The name.
        participant: &'a ParticipantId,
    },
    /// A participant's capabilities change. Open operations that they no longer admit end, and so
    /// do pending proposals that the participant could no longer make, and requests about tasks of
    /// tools that it may no longer call. It need not be in the topic.
    Regrant {
        /// The participant.
        participant: &'a ParticipantId,
        /// Its new capabilities, whole.
        capabilities: Arc<Capabilities>,
    },
    /// A participant is paused, or resumed. It need not be in the topic. While it is paused, what it
    /// could request directly is held as a proposal, or refused where the topic holds none; it
    /// decides nothing, and withdraws its own. What it has begun goes on. The verdict is
    /// [`Verdict::Refused`](crate::Verdict::Refused) if too many participants are paused.
    Brake {
        /// The participant.
        participant: &'a ParticipantId,
        /// Its pause; `None` resumes it.
        brake: Option<Brake>,
    },
    /// The configuration changes, whole: callers see what was there before, or all of what is there
    /// from now on, and are notified once of the difference.
    Configure(Configure<'a, H>),
    /// A configured server runs or does not run: the others see it join and leave. It keeps its
    /// seat, its lists and its open operations. A participant that serves joins and leaves by
    /// itself.
    Available {
        /// The server.
        server: &'a ParticipantId,
        /// Whether it runs.
        runs: bool,
    },
    /// A link has a session of its own at a server.
    Attach {
        /// The caller's link.
        link: LinkId,
        /// The server.
        server: &'a ParticipantId,
    },
    /// That session is lost or closed, and its questions end.
    Detach {
        /// The caller's link.
        link: LinkId,
        /// The server.
        server: &'a ParticipantId,
        /// Whether its lists still count; else the shared ones count again.
        keeps_lists: bool,
    },
    /// A server lists its tools, prompts, resources and templates. A list for one link attaches
    /// that link. The gateway's own participant has shared lists only.
    Listed {
        /// The server.
        server: &'a ParticipantId,
        /// The callers that see it.
        scope: ListScope,
        /// All its lists, whole.
        manifest: ServerLists,
        /// The lists that the server announced as changed: callers that see such a list are
        /// notified even if nothing in it differs.
        changed: &'a [ListKind],
    },
    /// A caller requests something. The call is refused if its link is not in the topic.
    Request(RequestEvent<'a, H>),
    /// A caller comes back for an operation that was answered for now. The topic admits it like any
    /// request, and refuses it as unknown if the proposal or paused call is not the caller's.
    Resume(Resume<'a, H>),
    /// The gateway's own participant holds an operation that it serves until a proposal is over.
    /// The topic refuses it as unknown if the proposal is not the caller's.
    Wait {
        /// The operation.
        operation: OperationId,
        /// The proposal.
        proposal: OperationId,
        /// When the caller is answered for now; `None` waits for as long as the proposal lasts.
        until_ms: Option<u64>,
    },
    /// A link sends an envelope to the room.
    Say(Say<'a, H>),
    /// The gateway publishes a message that follows from a decision of the topic, in a
    /// participant's name.
    Announce {
        /// The message.
        message: H::Message,
        /// Its length in bytes.
        bytes: usize,
        /// Its audience.
        audience: Audience,
    },
    /// The gateway's own name carries out an approved proposal at a server: once, and exactly the
    /// proposed request.
    Execute {
        /// The proposal.
        proposal: OperationId,
        /// A new id for the request's life.
        operation: OperationId,
        /// The server.
        server: &'a ParticipantId,
        /// The request itself.
        call: H::Call,
    },
    /// A held call is proposed.
    Propose {
        /// A new, unguessable id for the proposal's life.
        proposal: OperationId,
        /// The proposed request.
        terms: Box<Terms>,
        /// Content of the proposed request, in full.
        content: H::Content,
        /// The held call (see [`Effect::Hold`](crate::Effect::Hold)).
        held: OperationId,
        /// When its caller is answered for now.
        park_ms: u64,
    },
    /// A participant proposes a plan: several calls that are decided about as one.
    ProposePlan(ProposePlan<'a, H>),
    /// The turn of a step of a plan has come: the shell's answer to
    /// [`Effect::StepDue`](crate::Effect::StepDue).
    RunStep(RunStep<'a, H>),
    /// A held call is not proposed.
    Unproposable {
        /// The held call.
        held: OperationId,
        /// Answer that the caller gets instead of a proposal.
        end: End<H::Answer>,
    },
    /// A proposal of before a restart is there again.
    Restore(Restore<'a, H>),
    /// Proposals are over: digests of their envelopes' ids, each with the time until which a
    /// request that names it is refused, whether or not the topic still keeps the proposal. Sent
    /// after each [`Effect::Concluded`](crate::Effect::Concluded), and for all proposals of before
    /// a restart.
    Closed {
        /// The digests, in the order of their times.
        closed: Vec<(u64, u128)>,
    },
    /// A participant decides about a proposal. Any participant that could make the request, or may
    /// approve it, may approve or reject it, except its proposer; only its proposer may withdraw it, with an access
    /// token that is good for it. The first decision counts.
    Decide {
        /// The proposal.
        proposal: OperationId,
        /// The participant that decides.
        by: &'a ParticipantId,
        /// Its capabilities, if it is not in the topic and decides through the API.
        outside: Option<&'a Arc<Capabilities>>,
        /// The part of its capabilities that its access token is good for; `None` is all of them.
        narrowing: Option<&'a Narrowing>,
        /// The decision.
        decision: Decision<'a>,
        /// The id of the envelope that announces an approval in the room.
        fulfilment: Option<&'a str>,
        /// The proposal with other arguments, of an approval that is about those. Only where several
        /// participants must approve: the next ones see these, and approvals of before count no more.
        amended: Option<Amended<H>>,
        /// The shell's part of the decision.
        ruling: H::Ruling,
    },
    /// A participant looks at a proposal, for others who may decide to see, from now on or for longer.
    /// It ends by itself after [`CLAIM_MS`](crate::CLAIM_MS), with the proposal, and when its holder
    /// leaves the topic or may not decide any more. The verdict is
    /// [`Verdict::Refused`](crate::Verdict::Refused) if the participant may not decide.
    Claim(Claiming<'a>),
    /// A pending proposal that had no definition of its tool has one now: its server lists the tool
    /// for the first time. Reviewers are shown it from now on, and decide about it.
    Describe {
        /// The proposal.
        proposal: OperationId,
        /// The digest of the request as reviewers see it from now on.
        digest: Digest,
        /// The proposal in full, as reviewers see it from now on.
        content: H::Content,
        /// The bytes of this content.
        bytes: usize,
    },
    /// The journal has written the latest [`Effect::Store`](crate::Effect::Store) of this proposal,
    /// or cannot write it. Then the topic undoes an opening or a decision; an end holds.
    Written {
        /// The proposal.
        proposal: OperationId,
        /// Whether the change is on disk.
        stored: bool,
    },
    /// Time passes: pending proposals and paused calls expire, held calls are answered for now. See
    /// [`Topic::next_deadline_ms`](crate::Topic::next_deadline_ms).
    Tick,
    /// The gateway is about to stop: callers of held calls are answered for now, and their
    /// proposals last.
    Stop,
    /// A server asks its current caller something: sampling, elicitation, roots.
    Ask(Ask<'a, H>),
    /// A request or question that was delivered to this link has ended there. A late end, a second
    /// one and another link's are ignored.
    Answer {
        /// The answering link.
        link: LinkId,
        /// The operation.
        operation: OperationId,
        /// The end.
        end: End<H::Answer>,
    },
    /// An effect that began with a call and could not wait can go on. The topic drops the work if the
    /// call is over by then.
    Proceed {
        /// The call.
        operation: OperationId,
        /// The rest of the effect.
        work: H::Work,
    },
    /// The link that opened an operation cancels it.
    Cancel {
        /// The link.
        link: LinkId,
        /// The operation.
        which: OperationRef<H::Tag>,
    },
    /// A server sends a notification.
    Notice {
        /// The server.
        server: &'a ParticipantId,
        /// The subject of the notification.
        subject: Subject<'a>,
        /// The level, if it is a log message.
        level: Option<LogLevel>,
        /// The notification itself.
        notice: H::Notice,
    },
    /// An open call may become a task of its server: a place is kept for it. The verdict is
    /// [`Verdict::Refused`](crate::Verdict::Refused) if its caller has as many tasks as it may have.
    MayBecomeTask {
        /// The call.
        operation: OperationId,
    },
    /// The topic takes a task at a server into its book.
    Task(Box<NewTask<'a, H>>),
    /// The journal has a task that it must have before its holder, or cannot write it.
    TaskWritten {
        /// The task.
        task: OperationId,
        /// Whether it is on disk.
        stored: bool,
    },
    /// A task has ended, or lasts for another time.
    TaskChanged {
        /// The task.
        task: OperationId,
        /// Whether it has ended.
        over: bool,
        /// The time on the steady clock at which it is forgotten, milliseconds.
        until_ms: u64,
    },
    /// A server's session has ended, and with it the tasks that ran in it.
    SessionLost {
        /// The server.
        server: &'a ParticipantId,
        /// The number of the session.
        session: u64,
    },
}

/// The callers for which a manifest counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ListScope {
    /// Every caller without a session of its own at that server.
    Shared,
    /// One link: the lists of its own session win over the shared ones.
    Link(LinkId),
}

/// The call or session that a server's question belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum About {
    /// An open call at the asking server; its caller is asked.
    Call(OperationId),
    /// The session that this link has of its own at the asking server (see
    /// [`Event::Attach`](crate::Event::Attach)).
    Session(LinkId),
    /// A task at the asking server: the caller of the request that waits for its result is asked.
    Task {
        /// The task.
        task: OperationId,
        /// The link whose own session it is in which the server asks: without such a request its
        /// caller is asked.
        session: Option<LinkId>,
    },
}

/// A server's question.
#[derive(Debug, Clone)]
pub struct Ask<'a, H: Handles> {
    /// The asking server.
    pub server: &'a ParticipantId,
    /// A new id for the question's life.
    pub operation: OperationId,
    /// The name that the server gave the question.
    pub tag: Option<H::Tag>,
    /// The call or session that the question belongs to.
    pub about: About,
    /// The method.
    pub method: Method,
    /// The question itself.
    pub question: H::Question,
}

/// The subject of a server's notification.
#[derive(Debug, Clone, Copy)]
pub enum Subject<'a> {
    /// An open call.
    Call(OperationId),
    /// A session of one link's own.
    Session(LinkId),
    /// A resource, under the server's own URI; on the session of one link's own, or on a shared
    /// one.
    Resource {
        /// The URI.
        own: &'a str,
        /// The link whose session it is.
        session: Option<LinkId>,
    },
    /// A task: its holder gets the notification.
    Task(OperationId),
    /// The call that has become a task: the request that waits for the task's result gets the
    /// notification, else its holder.
    TaskCall(OperationId),
}

/// The end of a delivered operation at its receiver.
#[derive(Debug, Clone)]
pub enum End<A> {
    /// With an answer.
    Answered {
        /// [`Outcome::Ok`] or [`Outcome::Error`].
        outcome: Outcome,
        /// The answer.
        answer: A,
    },
    /// Without an answer: the operation could not be delivered, was lost, or took too long.
    Failed(Box<Refusal>),
}

impl<A> End<A> {
    /// The outcome for watchers and for the proposal that the operation carries out.
    pub(crate) fn outcome(&self) -> Outcome {
        match self {
            Self::Answered { outcome, .. } => *outcome,
            Self::Failed(_) => Outcome::Refused,
        }
    }

    /// The answer, if there is one.
    pub(crate) fn answer(&self) -> Option<&A> {
        match self {
            Self::Answered { answer, .. } => Some(answer),
            Self::Failed(_) => None,
        }
    }

    /// The reason for which there is no answer.
    pub(crate) fn failure(&self) -> Option<&str> {
        match self {
            Self::Answered { .. } => None,
            Self::Failed(refusal) => Some(&refusal.message),
        }
    }
}
