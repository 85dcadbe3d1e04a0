//! Changes that a session makes to a request that it sends.

use model::{Form, LogLevel};

/// The trace of a request that is sent. What else its caller passes on beside it, its baggage, goes to
/// no server.
#[derive(Debug, Clone, Copy)]
pub struct OutgoingTrace<'o> {
    /// The `traceparent` in place of the caller's; `None` leaves the caller's.
    pub traceparent: Option<&'o str>,
    /// The `tracestate` beside that, in place of the caller's.
    pub tracestate: Option<&'o str>,
}

/// The changes that a session makes to a request that it sends.
#[derive(Debug, Clone, Copy)]
pub struct OutgoingChanges<'o> {
    /// The form that the server reads.
    pub form: Form,
    /// The session's id of the request; also its progress token, if the caller gave one.
    pub number: u64,
    /// The server's own name, URI or task id, if the caller wrote another.
    pub own: Option<&'o str>,
    /// The client's name and version, for a form that repeats them in each request.
    pub client_info: Option<&'o [u8]>,
    /// The client's capabilities, for the same.
    pub capabilities: &'o [u8],
    /// The level from which on the client wants log messages, for a form that repeats it in each
    /// request.
    pub log_level: Option<LogLevel>,
    /// The server's id of the task that the request belongs to, instead of the caller's.
    pub related_task: Option<&'o str>,
    /// Whether a modern server may answer a converted call with a task.
    pub tasks: bool,
    /// The trace of the request; `None` leaves all as the caller wrote it.
    pub trace: Option<OutgoingTrace<'o>>,
}
