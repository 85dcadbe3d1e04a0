//! The closed inventory of what can happen to a topic.

use std::sync::Arc;

use model::{
    Capabilities, Digest, LinkId, ListKind, Method, OperationId, Outcome, ParticipantId, RateLimit, Refusal,
};

use crate::{
    Audience, Cursor, Handles, Kept, Listener, Manifest, UpstreamNames,
    interests::{Filter, LogLevel},
};

/// For whom a manifest counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum View {
    /// Every caller without a session of its own at that server.
    Shared,
    /// One link: the lists of its own session win over the shared ones.
    Link(LinkId),
}

/// What a request aims at, under its public spelling.
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
    /// What the participant may do. Counts as [`Event::Regrant`], whether or not the participant is in the topic already.
    pub capabilities: Arc<Capabilities>,
    /// The participant's rate limit; `None` is without limit. Replaces an older one.
    pub rate: Option<RateLimit>,
    /// How the link listens to the room; `None` on MCP wires. Replaces the participant's older listening link, which ends
    /// first; of two the one with the greater number is newer, whichever joins first.
    pub listener: Option<Listener>,
    /// From where on a listener wants what it missed.
    pub since: Option<Cursor>,
    /// Whether the link's wire cannot say a proposal, so that calls which may only be proposed are held as proposals. Lists
    /// then show what the caller could call or propose.
    pub promotes: bool,
    /// Whether the link takes notifications that belong to no request. Without, it gets them only on its listen requests.
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
    /// What it aims at; `None` is the gateway itself.
    pub target: Option<Target<'a>>,
    /// What the request changes about the notifications that its link gets.
    pub interest: Interest,
    /// The request itself.
    pub call: H::Call,
}

/// What a request changes about the notifications that its link gets, from its admission on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Interest {
    /// Nothing.
    #[default]
    None,
    /// It subscribes to its target, a resource; undone if the server does not answer with a result.
    Subscribe,
    /// It ends that.
    Unsubscribe,
    /// It sets the level from which on the link gets log messages.
    Level(LogLevel),
    /// It listens for as long as it is open.
    Listen(Filter),
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

/// What is proposed, by whom, and until when.
#[derive(Debug, Clone, Copy)]
pub struct Terms<'a> {
    /// The proposer.
    pub by: &'a ParticipantId,
    /// The method of the proposed request.
    pub method: &'a str,
    /// The server's own name or URI, if the method has one.
    pub context: Option<&'a str>,
    /// The servers or participants that the proposal names; none is anybody.
    pub to: &'a [ParticipantId],
    /// The id of the envelope that proposes.
    pub envelope: &'a str,
    /// The digest of what a reviewer is shown.
    pub digest: Digest,
    /// When the proposal expires.
    pub expires_ms: u64,
}

/// A participant's decision about a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision<'a> {
    /// The proposed request may run, once.
    Approve {
        /// The digest of what the reviewer was shown.
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

/// An envelope that a link sends to the room.
#[derive(Debug)]
pub struct Say<'a, H: Handles> {
    /// The sender's link.
    pub link: LinkId,
    /// The envelope's id.
    pub id: &'a str,
    /// The kind, as it was written.
    pub kind: &'a str,
    /// The addressees; none is everybody.
    pub to: &'a [&'a str],
    /// The id of the envelope that this one answers or fulfils.
    pub correlation: Option<&'a str>,
    /// The digest under which [`Say::correlation`] would be kept if it named a proposal that is over.
    pub correlation_digest: Option<u128>,
    /// The envelope's bytes, of their own.
    pub message: H::Message,
    /// The length of the bytes.
    pub bytes: usize,
    /// What the envelope asks for.
    pub act: Act<'a, H>,
}

/// What an envelope asks for, as far as the gateway or a server that it plays must act on it.
#[derive(Debug)]
pub enum Act<'a, H: Handles> {
    /// Nothing.
    None,
    /// `mcp/request`: servers that it names carry it out.
    Request(Requested<'a, H>),
    /// `mcp/proposal`.
    Propose {
        /// A new, unguessable id for the proposal's life.
        proposal: OperationId,
        /// What is proposed. `by` is the sender.
        terms: Terms<'a>,
        /// The same in full.
        content: H::Content,
    },
    /// `mcp/response`.
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
pub struct Requested<'a, H: Handles> {
    /// The method.
    pub method: Method,
    /// The server's own name or URI, if the method has one.
    pub context: Option<&'a str>,
    /// The name that the sender gave the request.
    pub tag: Option<H::Tag>,
    /// One call for each of [`Say::to`], with a new operation id, in that order.
    pub calls: Vec<(OperationId, H::Call)>,
    /// The digest of the request under what the server lists now, and what comes with it if it decides about a proposal.
    pub ruling: Option<(Option<Digest>, H::Ruling)>,
}

/// What a server's question belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum About {
    /// An open call at the asking server; its caller is asked.
    Call(OperationId),
    /// The session that this link has of its own at the asking server (see [`Event::Attach`]).
    Session(LinkId),
}

/// What a server's notification is about.
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

/// A task at a server, as far as it decides who is notified.
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

/// How a delivered operation ended at the far end.
#[derive(Debug, Clone)]
pub enum End<A> {
    /// With an answer.
    Answered {
        /// [`Outcome::Ok`] or [`Outcome::Error`].
        outcome: Outcome,
        /// The answer.
        answer: A,
    },
    /// Without: it could not be delivered, was lost, or took too long.
    Failed(Box<Refusal>),
}

/// What can happen. An event of a link that is not in the topic has no effects, unless its docs say otherwise.
#[derive(Debug, strum::IntoStaticStr, strum::VariantNames)]
pub enum Event<'a, H: Handles> {
    /// A caller's link joins; its participant joins with the first.
    Join(Join<'a, H>),
    /// A link leaves; its participant leaves with the last. What the link opened is cancelled.
    Leave {
        /// The link.
        link: LinkId,
    },
    /// A participant may not be here any more: all its links end, and its pending proposals are withdrawn. It need not be
    /// in the topic.
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
        /// What the server may send: its configured capabilities judge its answers, notifications and questions.
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
    /// A server lists what it has. A view of one link attaches that link. The gateway's own participant has a shared view
    /// only.
    Listed {
        /// The server.
        server: &'a ParticipantId,
        /// For whom this counts.
        view: View,
        /// Everything that it has, whole.
        manifest: Manifest,
        /// The lists that the server itself called changed: callers that see such a list are notified even if nothing in it
        /// differs.
        changed: &'a [ListKind],
    },
    /// A caller requests something. The call is refused if its link is not in the topic.
    Request(Request<'a, H>),
    /// A caller comes back for an operation that was answered for now. Admitted like any request; refused as unknown if the
    /// proposal is not the caller's.
    Resume(Resume<H>),
    /// The gateway's own participant holds an operation that it serves until a proposal is over. Refused as unknown if
    /// the proposal is not the caller's.
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
    /// The gateway publishes a message that follows from what the topic has decided, in a participant's name.
    Announce {
        /// The message.
        message: H::Message,
        /// Its length in bytes.
        bytes: usize,
        /// Its audience.
        audience: Audience,
    },
    /// The gateway's own name carries out an approved proposal at a server: once, and nothing else than what was proposed.
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
        /// What is proposed.
        terms: Terms<'a>,
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
        /// Why.
        refusal: Box<Refusal>,
    },
    /// A proposal that was pending before a restart is pending again.
    Restore {
        /// Its id.
        proposal: OperationId,
        /// What is proposed.
        terms: Terms<'a>,
        /// The same in full.
        content: H::Content,
        /// Whether it was a held call.
        held: bool,
        /// The public name or URI under which the call was held.
        public: Option<&'a str>,
    },
    /// A proposal of before a restart is over; kept for queries.
    RestoreEnded {
        /// Its id.
        proposal: OperationId,
        /// What was proposed.
        terms: Terms<'a>,
        /// The same in full.
        content: H::Content,
        /// Whether it was a held call.
        held: bool,
        /// How it ended.
        end: crate::EndedProposal<H>,
    },
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
        /// What it may do, if it is not in the topic and decides through the API.
        outside: Option<&'a Arc<Capabilities>>,
        /// The decision.
        decision: Decision<'a>,
        /// The id of the envelope that stands for an approval in the room.
        fulfilment: Option<&'a str>,
        /// What comes with it.
        ruling: H::Ruling,
    },
    /// The journal has what [`Effect::Store`](crate::Effect::Store) named last of this proposal.
    Stored {
        /// The proposal.
        proposal: OperationId,
    },
    /// The journal cannot take it. Openings and decisions are then as if they had never been; an end holds.
    NotStored {
        /// The proposal.
        proposal: OperationId,
    },
    /// Time passes: pending proposals expire, held calls are answered for now. See
    /// [`Topic::next_deadline_ms`](crate::Topic::next_deadline_ms).
    Tick,
    /// The gateway is about to stop: callers of held calls are answered for now, and their proposals last.
    Stop,
    /// A server asks its current caller something: sampling, elicitation, roots.
    Ask {
        /// The asking server.
        server: &'a ParticipantId,
        /// A new id for the question's life.
        operation: OperationId,
        /// The name that the server gave the question.
        tag: Option<H::Tag>,
        /// What it belongs to.
        about: About,
        /// The method.
        method: Method,
        /// The question itself.
        question: H::Question,
    },
    /// A request or question that was delivered to this link has ended there. A late end, a second one and another link's are
    /// ignored.
    Answer {
        /// The answering link.
        link: LinkId,
        /// The operation.
        operation: OperationId,
        /// How it ended.
        end: End<H::Answer>,
    },
    /// The link that opened an operation cancels it.
    Cancel {
        /// The link.
        link: LinkId,
        /// The operation.
        which: Which<H::Tag>,
    },
    /// A server notifies outside of answers and questions.
    Notice {
        /// The server.
        server: &'a ParticipantId,
        /// What it is about.
        subject: Subject<'a>,
        /// The level, if it is a log message.
        level: Option<LogLevel>,
        /// The notification itself.
        notice: H::Notice,
    },
    /// The room keeps more or less of its messages from now on.
    Keep {
        /// How much.
        kept: Kept,
    },
}

/// Which operation of a link is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which<T> {
    /// By its id.
    Id(OperationId),
    /// By the name that the link gave it; the youngest of that name.
    Tag(T),
}
