//! Callers' side of events: links that join, requests, resumptions, and cancelled operations.

use std::sync::Arc;

use model::{Capabilities, LinkId, Method, OperationId, ParticipantId, RateLimit};

use crate::{
    audience::Listener,
    handles::Handles,
    interests::{Filter, LogLevel},
    replay::Cursor,
};

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

/// Which operation of a link is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperationRef<T> {
    /// By its id.
    Id(OperationId),
    /// By the name that the link gave it; the youngest of that name.
    Tag(T),
}
