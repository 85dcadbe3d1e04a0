//! Events of a caller's link: it joins, requests, comes back.

use std::sync::Arc;

use model::{
    Capabilities, LinkId, ListenFilter, LogLevel, Method, Narrowing, OperationId, ParticipantId,
    RateLimit,
};

use crate::{Cause, Cursor, Handles, Listener, NamedTask};

/// The target of a request, under its public spelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PublicTarget<'a> {
    /// A tool's public name.
    Tool(&'a str),
    /// A prompt's public name.
    Prompt(&'a str),
    /// A resource's public URI, or a public URI template.
    Uri(&'a str),
    /// A server itself, for a method that names nothing in it.
    Upstream(&'a str),
    /// A server's task.
    Task(&'a NamedTask<'a>),
    /// A result that the gateway keeps for this caller. Reading it needs no capability.
    Kept,
}

impl<'a> PublicTarget<'a> {
    /// The context of the request's kind.
    pub fn context(self) -> Option<&'a str> {
        match self {
            Self::Tool(text) | Self::Prompt(text) | Self::Uri(text) => Some(text),
            Self::Upstream(_) | Self::Task(_) | Self::Kept => None,
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
    /// The participant's capabilities. They count as [`Event::Regrant`](crate::Event::Regrant),
    /// whether or not the participant is in the topic already.
    pub capabilities: Arc<Capabilities>,
    /// The participant's rate limit; `None` is without limit. Replaces an older one.
    pub rate: Option<RateLimit>,
    /// Abilities of the caller's wire, and its listening.
    pub joining: Joining,
}

/// Way in which a link joins: the abilities of its wire, and its listening.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Joining {
    /// Listening of the link to the room; `None` on MCP wires. Replaces the participant's older
    /// listening link, which ends first; of two the one with the greater number is newer, whichever
    /// joins first.
    pub listener: Option<Listener>,
    /// The cursor from which on a listener wants the messages that it missed.
    pub since: Option<Cursor>,
    /// Whether the topic holds calls that may only be proposed, because the link's wire has no
    /// proposals. Lists then show the entries that the caller may call or propose.
    pub promotes: bool,
    /// Whether the link takes notifications that belong to no request. Otherwise it gets them only
    /// on its listen requests.
    pub notified: bool,
    /// Whether the link's wire has no questions: the topic answers a call of it for now with the
    /// questions about it, and the caller comes back with the answers (MCP 2026-07-28, "Multi
    /// Round-Trip Requests").
    pub pauses: bool,
}

/// A caller's request.
#[derive(Debug, Clone)]
pub struct RequestEvent<'a, H: Handles> {
    /// The caller's link.
    pub link: LinkId,
    /// A new id for the request's life. An id that is open already is ignored.
    pub operation: OperationId,
    /// The name that the caller gave the request, by which it may cancel.
    pub tag: Option<H::Tag>,
    /// The method under which the request is judged.
    pub method: Method,
    /// The target; `None` is the gateway itself.
    pub target: Option<PublicTarget<'a>>,
    /// The change of the notifications that its link gets.
    pub interest: Interest,
    /// The log messages that the caller gets about the request.
    pub logs: Logs,
    /// Whether its caller can come back with answers if its link [pauses](Joining::pauses): an
    /// operation of a batch has no caller of its own that does.
    pub returns: bool,
    /// The part of its participant's capabilities that the request's access token is good for;
    /// `None` is all of them.
    pub narrowing: Option<&'a Narrowing>,
    /// The decision of a rule, if its caller may make it.
    pub tightening: Option<Tightening>,
    /// The request itself.
    pub call: H::Call,
}

/// The decision of a rule about a request that its sender may make without an approval. It only takes:
/// what capabilities refuse, or let be proposed alone, stays so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tightening {
    /// Another participant decides: the request is held as a proposal, or refused where the topic
    /// holds none.
    Ask,
    /// It never runs.
    Reject {
        /// The rule that rejects it, in words for the sender.
        by: Arc<str>,
    },
}

impl Tightening {
    /// The cause of the refusal of a request of which it takes all.
    pub(crate) fn cause(&self) -> Cause {
        match self {
            Self::Ask => Cause::RuleAsks,
            Self::Reject { .. } => Cause::RuleRejects,
        }
    }
}

/// The log messages that a caller gets about its request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Logs {
    /// From the level on that its link has set; all, unless it has set one (MCP 2025-11-25,
    /// "Logging").
    #[default]
    OfLink,
    /// None.
    None,
    /// From this level on.
    From(LogLevel),
}

/// The change that a request makes to the notifications of its link, from its admission on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Interest {
    /// No change.
    #[default]
    None,
    /// The link subscribes to the request's target, a resource. The topic undoes it if the server
    /// does not answer with a result.
    Subscribe,
    /// The link ends its subscription to the target.
    Unsubscribe,
    /// The link gets log messages from this level on.
    Level(LogLevel),
    /// The request listens for as long as it is open.
    Listen(Box<ListenFilter>),
}

/// A caller that comes back for an operation that was answered for now.
#[derive(Debug, Clone)]
pub struct Resume<'a, H: Handles> {
    /// The caller's link.
    pub link: LinkId,
    /// The id of the request's life: a new one if it waits for a proposal, else the paused call's.
    pub operation: OperationId,
    /// The name that the caller gave the request.
    pub tag: Option<H::Tag>,
    /// The reason for which it was answered for now.
    pub parked: Parked<H>,
    /// As of a [`RequestEvent`]: a caller may come back with another token.
    pub narrowing: Option<&'a Narrowing>,
    /// The request itself.
    pub call: H::Call,
}

/// The reason for which a caller was answered for now.
#[derive(Debug, Clone)]
pub enum Parked<H: Handles> {
    /// Its call was held as a proposal.
    Proposal {
        /// The proposal.
        proposal: OperationId,
        /// When the caller is answered for now once more.
        until_ms: u64,
    },
    /// Its call asked questions ([`Effect::Pause`](crate::Effect::Pause)).
    Questions {
        /// The number of that pause: each is good for one return.
        round: u32,
        /// The answers, each with the id of its question. Answers to no open question are ignored;
        /// what is not answered is asked again.
        answers: Vec<(OperationId, H::Answer)>,
    },
}

/// An operation of a link, by the request that waits for it or by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperationRef<T> {
    /// The operation, as long as its caller waits with this request.
    Request {
        /// The operation.
        operation: OperationId,
        /// The round in which the request came back ([`Parked::Questions`]); 0 of the first one.
        round: u32,
    },
    /// The youngest operation to which the link gave this name.
    Tag(T),
}
