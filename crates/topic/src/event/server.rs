//! Servers' side of events: manifests, questions, notifications, and ends of requests.

use model::{LinkId, Method, OperationId, Outcome, ParticipantId, Refusal};

use crate::handles::Handles;

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
