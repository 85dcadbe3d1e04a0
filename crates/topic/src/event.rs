//! Events of a topic: the closed inventory.

use std::sync::Arc;

use model::{
    Capabilities, Digest, LinkId, ListKind, ListenFilter, Method, OperationId, Outcome, ParticipantId,
    ProposalState, RateLimit, Refusal,
};

use crate::{Audience, Cursor, Handles, Kept, Listener, LogLevel, Manifest, UpstreamNames};

/// An event that a topic takes. An event of a link that is not in the topic has no effects, unless its docs say otherwise.
#[derive(Debug, strum::IntoStaticStr, strum::VariantNames)]
pub enum Event<'a, H: Handles> {
    /// A caller's link joins; its participant joins with the first.
    Join(Join<'a, H>),
    /// A link leaves; its participant leaves with the last. The operations that the link opened are cancelled.
    Leave {
        /// The link.
        link: LinkId,
    },
    /// A participant loses its access to the topic: all its links end, and its pending proposals are withdrawn. It need not be in
    /// the topic.
    Revoke {
        /// The participant.
        participant: &'a ParticipantId,
    },
    /// A participant's capabilities change. Open operations that they no longer admit end, and so do pending proposals that
    /// the participant could no longer make. It need not be in the topic.
    Regrant {
        /// The participant.
        participant: &'a ParticipantId,
        /// Its new capabilities, whole.
        capabilities: Arc<Capabilities>,
    },
    /// The configuration of servers changes, whole. Views of servers that stay are kept; the others leave.
    Configure {
        /// All servers, in configuration order.
        upstreams: &'a [UpstreamNames],
    },
    /// A configured server takes its seat. A participant that has the name is revoked, unless it serves under it.
    Serve {
        /// The server's link.
        link: LinkId,
        /// The server's name.
        server: &'a ParticipantId,
        /// The server itself.
        handle: H::Server,
        /// The server's rights: its configured capabilities judge its answers, notifications and questions.
        capabilities: Arc<Capabilities>,
    },
    /// A link has a session of its own at a server.
    Attach {
        /// The caller's link.
        link: LinkId,
        /// The server.
        server: &'a ParticipantId,
    },
    /// That session is lost or closed: the shared lists count again, and its questions end.
    Detach {
        /// The caller's link.
        link: LinkId,
        /// The server.
        server: &'a ParticipantId,
    },
    /// A server lists its tools, prompts, resources and templates. A list for one link attaches that link. The gateway's own
    /// participant has shared lists only.
    Listed {
        /// The server.
        server: &'a ParticipantId,
        /// The callers that see it.
        scope: ListScope,
        /// All its lists, whole.
        manifest: Manifest,
        /// The lists that the server announced as changed: callers that see such a list are notified even if nothing in it
        /// differs.
        changed: &'a [ListKind],
    },
    /// A caller requests something. The call is refused if its link is not in the topic.
    Request(Request<'a, H>),
    /// A caller comes back for an operation that was answered for now. The topic admits it like any request, and refuses it as
    /// unknown if the proposal is not the caller's.
    Resume(Resume<H>),
    /// The gateway's own participant holds an operation that it serves until a proposal is over. The topic refuses it as unknown
    /// if the proposal is not the caller's.
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
    /// The gateway publishes a message that follows from a decision of the topic, in a participant's name.
    Announce {
        /// The message.
        message: H::Message,
        /// Its length in bytes.
        bytes: usize,
        /// Its audience.
        audience: Audience,
    },
    /// The gateway's own name carries out an approved proposal at a server: once, and exactly the proposed request.
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
        terms: Terms,
        /// The same in full.
        content: H::Content,
        /// The held call (see [`Effect::Hold`](crate::Effect::Hold)).
        held: OperationId,
        /// When its caller is answered for now.
        park_ms: u64,
    },
    /// A held call cannot be proposed.
    Unproposable {
        /// The held call.
        held: OperationId,
        /// The reason, for the caller.
        refusal: Box<Refusal>,
    },
    /// A proposal of before a restart is there again.
    Restore(Restore<'a, H>),
    /// Proposals are over: digests of their envelopes' ids, each with the time until which a request that names it is refused,
    /// whether or not the topic still keeps the proposal. Sent after each [`Effect::Concluded`](crate::Effect::Concluded), and
    /// for all proposals of before a restart.
    Closed {
        /// The digests, in the order of their times.
        closed: Vec<(u64, u128)>,
    },
    /// A participant decides about a proposal. Any participant that could make the request may approve or reject it, except its
    /// proposer; only its proposer may withdraw it. The first decision counts.
    Decide {
        /// The proposal.
        proposal: OperationId,
        /// The participant that decides.
        by: &'a ParticipantId,
        /// Its capabilities, if it is not in the topic and decides through the API.
        outside: Option<&'a Arc<Capabilities>>,
        /// The decision.
        decision: Decision<'a>,
        /// The id of the envelope that announces an approval in the room.
        fulfilment: Option<&'a str>,
        /// The shell's part of the decision.
        ruling: H::Ruling,
    },
    /// The journal has written the latest [`Effect::Store`](crate::Effect::Store) of this proposal, or cannot write it. Then the
    /// topic undoes an opening or a decision; an end holds.
    Written {
        /// The proposal.
        proposal: OperationId,
        /// Whether the change is on disk.
        stored: bool,
    },
    /// Time passes: pending proposals expire, held calls are answered for now. See
    /// [`Topic::next_deadline_ms`](crate::Topic::next_deadline_ms).
    Tick,
    /// The gateway is about to stop: callers of held calls are answered for now, and their proposals last.
    Stop,
    /// A server asks its current caller something: sampling, elicitation, roots.
    Ask(Ask<'a, H>),
    /// A request or question that was delivered to this link has ended there. A late end, a second one and another link's are
    /// ignored.
    Answer {
        /// The answering link.
        link: LinkId,
        /// The operation.
        operation: OperationId,
        /// The end.
        end: End<H::Answer>,
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
    /// The room keeps more or less of its messages from now on.
    Keep {
        /// The messages to keep.
        kept: Kept,
    },
}

/// The target of a request, under its public spelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Target<'a> {
    /// A tool's public name.
    Tool(&'a str),
    /// A prompt's public name.
    Prompt(&'a str),
    /// A resource's public URI, or a public URI template.
    Uri(&'a str),
    /// A server itself, for a method that names nothing in it.
    Upstream(&'a str),
}

impl<'a> Target<'a> {
    /// The context of the request's kind.
    pub fn context(self) -> Option<&'a str> {
        match self {
            Self::Tool(text) | Self::Prompt(text) | Self::Uri(text) => Some(text),
            Self::Upstream(_) => None,
        }
    }
}

/// A caller's link that joins.
#[derive(Debug, Clone)]
pub struct Join<'a, H: Handles> {
    /// The link.
    pub link: LinkId,
    /// Its sending side.
    pub handle: H::Link,
    /// The participant whose link it is.
    pub participant: &'a ParticipantId,
    /// The participant's capabilities. They count as [`Event::Regrant`](crate::Event::Regrant), whether or not the participant is in
    /// the topic already.
    pub capabilities: Arc<Capabilities>,
    /// The participant's rate limit; `None` is without limit. Replaces an older one.
    pub rate: Option<RateLimit>,
    /// What its wire can do.
    pub joining: Joining,
}

/// How a link joins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Joining {
    /// How the link listens to the room; `None` on MCP wires. Replaces the participant's older listening link, which ends
    /// first; of two the one with the greater number is newer, whichever joins first.
    pub listener: Option<Listener>,
    /// The cursor from which on a listener wants the messages that it missed.
    pub since: Option<Cursor>,
    /// Whether the topic holds calls that may only be proposed, because the link's wire has no proposals. Lists then show the
    /// entries that the caller may call or propose.
    pub promotes: bool,
    /// Whether the link takes notifications that belong to no request. Otherwise it gets them only on its listen requests.
    pub notified: bool,
}

/// A caller's request.
#[derive(Debug, Clone)]
pub struct Request<'a, H: Handles> {
    /// The caller's link.
    pub link: LinkId,
    /// A new id for the request's life. An id that is open already is ignored.
    pub operation: OperationId,
    /// The name that the caller gave the request, by which it may cancel.
    pub tag: Option<H::Tag>,
    /// The method under which the request is judged.
    pub method: Method,
    /// The target; `None` is the gateway itself.
    pub target: Option<Target<'a>>,
    /// The change of the notifications that its link gets.
    pub interest: Interest,
    /// The request itself.
    pub call: H::Call,
}

/// The change that a request makes to the notifications of its link, from its admission on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Interest {
    /// No change.
    #[default]
    None,
    /// The link subscribes to the request's target, a resource. The topic undoes it if the server does not answer with a result.
    Subscribe,
    /// The link ends its subscription to the target.
    Unsubscribe,
    /// The link gets log messages from this level on.
    Level(LogLevel),
    /// The request listens for as long as it is open.
    Listen(ListenFilter),
}

/// A caller that comes back for an operation that was answered for now.
#[derive(Debug, Clone)]
pub struct Resume<H: Handles> {
    /// The caller's link.
    pub link: LinkId,
    /// A new id for this request's life.
    pub operation: OperationId,
    /// The name that the caller gave the request.
    pub tag: Option<H::Tag>,
    /// The proposal behind the parked operation.
    pub parked: OperationId,
    /// When the caller is answered for now once more.
    pub until_ms: u64,
    /// The request itself.
    pub call: H::Call,
}

/// An operation of a link, by id or by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperationRef<T> {
    /// The operation of this id.
    Id(OperationId),
    /// The youngest operation to which the link gave this name.
    Tag(T),
}

/// An envelope that a link sends to the room.
#[derive(Debug)]
pub struct Say<'a, H: Handles> {
    /// The sender's link.
    pub link: LinkId,
    /// The envelope's id.
    pub id: &'a str,
    /// The kind, as it was written.
    pub kind: &'a str,
    /// The addressees; an envelope without addressees is for all participants.
    pub to: &'a [&'a str],
    /// The id of the envelope that this one answers or fulfils.
    pub correlation: Option<&'a str>,
    /// The digest under which [`Say::correlation`] would be kept if it named a proposal that is over.
    pub correlation_digest: Option<u128>,
    /// The envelope's bytes.
    pub message: H::Message,
    /// The length of the bytes.
    pub bytes: usize,
    /// The receiver's task.
    pub intent: Intent<H>,
}

/// The task that an envelope sets the gateway, or a server that the gateway plays.
#[derive(Debug)]
pub enum Intent<H: Handles> {
    /// None: the room gets the envelope, and the gateway takes no further step.
    None,
    /// `mcp/request`: servers that it names carry it out.
    Request(Requested<H>),
    /// `mcp/proposal`: the sender proposes a request.
    Propose {
        /// A new, unguessable id for the proposal's life.
        proposal: OperationId,
        /// The proposed request. `by` is the sender.
        terms: Terms,
        /// The same in full.
        content: H::Content,
    },
    /// `mcp/response`: the sender answers a request.
    Answer {
        /// [`Outcome::Ok`] or [`Outcome::Error`].
        outcome: Outcome,
        /// The answer.
        answer: H::Answer,
    },
    /// `mcp/request` of a notification. Only the participant that called may cancel.
    Cancel {
        /// The name of the request that the sender cancels.
        tag: H::Tag,
    },
    /// Kind and payload differ, so that no receiver may act on it (MCPx v0.1, section 4.3).
    Mismatch,
}

/// A request in the room.
#[derive(Debug)]
pub struct Requested<H: Handles> {
    /// The method.
    pub method: Method,
    /// The server's own name or URI, if the method has one.
    pub context: Option<Arc<str>>,
    /// The name that the sender gave the request.
    pub tag: Option<H::Tag>,
    /// One call for each of [`Say::to`], with a new operation id, in that order.
    pub calls: Vec<(OperationId, H::Call)>,
    /// The digest of the request as the server lists its target now, and the shell's part of the decision, if the request decides
    /// about a proposal.
    pub ruling: Option<(Option<Digest>, H::Ruling)>,
}

/// The terms of a proposal: proposer, request, addressees, expiry.
#[derive(Debug, Clone)]
pub struct Terms {
    /// The proposer.
    pub by: ParticipantId,
    /// The method of the proposed request.
    pub method: Method,
    /// The server's own name or URI, if the method has one.
    pub context: Option<Arc<str>>,
    /// The servers or participants that the proposal names. A proposal that names none is for any of them.
    pub to: Box<[ParticipantId]>,
    /// The id of the envelope that proposes.
    pub envelope: Arc<str>,
    /// The digest of the request as reviewers see it.
    pub digest: Digest,
    /// When the proposal expires.
    pub expires_ms: u64,
}

/// A participant's decision about a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision<'a> {
    /// The proposed request may run, once.
    Approve {
        /// The digest of the request as this reviewer saw it.
        shown: Digest,
        /// The digest of the same with what the server lists now; `None` if it cannot be made any more.
        current: Option<Digest>,
    },
    /// It never runs.
    Reject {
        /// Why, in words for the proposer.
        reason: Option<&'a str>,
    },
    /// The proposer withdraws it.
    Withdraw {
        /// Why, for the record.
        reason: Option<&'a str>,
    },
}

/// A proposal of before a restart.
#[derive(Debug, Clone)]
pub struct Restore<'a, H: Handles> {
    /// Its id.
    pub proposal: OperationId,
    /// The proposed request.
    pub terms: Terms,
    /// The same in full.
    pub content: H::Content,
    /// Whether it was a held call.
    pub held: bool,
    /// The public name or URI under which the call was held.
    pub public: Option<&'a str>,
    /// Its end: it is kept for queries. Without an end it is pending.
    pub end: Option<EndedProposal<H>>,
}

/// The end of a proposal from before a restart.
#[derive(Debug, Clone)]
pub struct EndedProposal<H: Handles> {
    /// One of the states that are over.
    pub state: ProposalState,
    /// The reason, in words for the proposer.
    pub reason: Option<Arc<str>>,
    /// The participant that decided, with the shell's part of its decision.
    pub decided: Option<(ParticipantId, H::Ruling)>,
    /// The answer of the server or participant that carried it out.
    pub answer: Option<H::Answer>,
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
    /// The session that this link has of its own at the asking server (see [`Event::Attach`](crate::Event::Attach)).
    Session(LinkId),
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
    /// A resource, under the server's own URI; on the session of one link's own, or on a shared one.
    Resource {
        /// The URI.
        own: &'a str,
        /// The link whose session it is.
        session: Option<LinkId>,
    },
    /// A task of one participant.
    Task(TaskRef<'a>),
}

/// A task at a server, with the facts that decide which callers get its notifications.
#[derive(Debug, Clone, Copy)]
pub struct TaskRef<'a> {
    /// Its caller.
    pub holder: &'a ParticipantId,
    /// The tool that became the task, under its public name.
    pub tool: &'a str,
    /// Whether the call had been held as a proposal.
    pub held: bool,
    /// The task's id at the gateway's door.
    pub public: &'a str,
    /// The link that asked about it last.
    pub link: Option<LinkId>,
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
