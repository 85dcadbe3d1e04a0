//! Spans that have ended.

use crate::context::{SpanId, TraceContext};
use crate::span_attributes::SpanAttribute;

/// The side of a request on which a span is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// It serves the request of a client.
    Server,
    /// It makes a request to a server.
    Client,
    /// Neither.
    Internal,
}

/// The name of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanName<'r> {
    /// The action, such as a method.
    pub action: &'r str,
    /// The object of the action, such as a tool: it follows one blank behind.
    pub target: Option<&'r str>,
}

/// A span that has ended. Its texts are borrowed: it is written at once as it will be sent, so that none
/// of them needs memory of its own.
#[derive(Debug, Clone)]
pub struct SpanRecord<'r> {
    /// Its ids.
    pub context: TraceContext,
    /// Its parent in the same trace.
    pub parent: Option<SpanId>,
    /// Another span that it has to do with.
    pub link: Option<TraceContext>,
    /// Its name.
    pub name: SpanName<'r>,
    /// Its side of a request.
    pub kind: SpanKind,
    /// Its begin, in microseconds of Unix time.
    pub start_us: u64,
    /// Its duration, in microseconds.
    pub duration_us: u64,
    /// Its attributes.
    pub attributes: &'r [SpanAttribute<'r>],
    /// Whether it is an error.
    pub is_error: bool,
}
