//! Events of servers' tasks: a call becomes one, its server writes about it, its session ends.

use std::sync::Arc;

use model::{LinkId, Narrowing, OperationId, ParticipantId};

use crate::Handles;

/// The right by which a participant has a task: the call that became it, as it was judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TaskRight<'a> {
    /// The server.
    pub server: &'a ParticipantId,
    /// The tool, under the name by which the call was judged.
    pub tool: &'a str,
    /// Whether the call was held until it was approved: then the right to propose it is enough.
    pub held: bool,
}

/// A task that a request is about, as its id at the gateway names it. The shell has sealed the id
/// for the participant of the link, so no other participant can name the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NamedTask<'a> {
    /// The id at the gateway.
    pub public: &'a str,
    /// The number of the server's session in which it runs; 0 if any session knows it.
    pub session: u64,
    /// The server's own id of it.
    pub own: &'a str,
    /// The right by which its participant has it.
    pub right: TaskRight<'a>,
    /// Whether its server cannot be asked any more. Counts only for a task that the topic does not
    /// have.
    pub lost: bool,
}

/// A task at a server that the topic takes into its book.
#[derive(Debug, Clone)]
pub struct NewTask<'a, H: Handles> {
    /// Its id in the topic: the call's, if a call has become it, else a new one.
    pub task: OperationId,
    /// The way in which the shell knows it.
    pub origin: TaskOrigin,
    /// The participant that has it, and no other one.
    pub holder: &'a ParticipantId,
    /// The right by which it has it.
    pub right: TaskRight<'a>,
    /// The part of its capabilities that the access token is good for of a request that names the
    /// task; `None` is all of them. A task that a call has become, or that the journal had, needs
    /// none: each request about it is judged by its own token.
    pub narrowing: Option<&'a Narrowing>,
    /// The number of the server's session in which it runs; 0 if any session knows it, or none is
    /// needed.
    pub session: u64,
    /// The server's own id of it.
    pub own: Arc<str>,
    /// Its id at the gateway.
    pub public: Arc<str>,
    /// The link that gets notifications about it until another one asks about it.
    pub link: Option<LinkId>,
    /// Whether it has ended.
    pub over: bool,
    /// The time on the steady clock at which it is forgotten, milliseconds.
    pub until_ms: u64,
    /// The task itself.
    pub handle: H::Task,
}

/// The way in which a shell knows a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskOrigin {
    /// The open call of the task's id has become it.
    Call {
        /// Whether the gateway follows it for the call, whose caller never learns of a task.
        follows: bool,
        /// Whether the journal must have it before its holder does
        /// ([`Event::TaskWritten`](crate::Event::TaskWritten)).
        durable: bool,
    },
    /// A request names it, and the topic does not have it.
    Named,
    /// The journal had it before a restart.
    Journal,
}
