//! Keys of `_meta` that the protocol owns.

/// The revision in which a modern request is written; required on each.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The capabilities of a modern client; required on each request.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// Name and version of a modern client.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// The lowest level of the log messages that a modern request wants.
pub(crate) const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// Name and version of a modern server; on results.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The listen stream that a modern notification belongs to: the id of its request.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// The task of revision 2025-11-25 that a message belongs to.
pub(crate) const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
/// The token of progress notifications; in both eras.
pub(crate) const PROGRESS_TOKEN: &str = "progressToken";
/// The span of a request's sender (W3C Trace Context).
pub(crate) const TRACEPARENT: &str = "traceparent";
/// Positions of the same trace in other systems (W3C Trace Context).
pub(crate) const TRACESTATE: &str = "tracestate";
/// What the sender of a request passes on beside it (W3C Baggage).
pub(crate) const BAGGAGE: &str = "baggage";
/// What reviewers said when they approved the call; on results, of the gateway alone.
pub const APPROVAL: &str = "portmoot/approval";
/// On a call of a client of 2025-11-25: [`AS_TASK`] if it takes a task once the gateway holds the
/// call, and only then. Of the gateway alone: servers do not get it.
pub const HELD: &str = "portmoot/held";
/// The one value of [`HELD`].
pub const AS_TASK: &str = "task";
/// The keys of modern requests that legacy ones do not have.
pub(crate) const REQUEST_KEYS: [&str; 4] = [
    PROTOCOL_VERSION,
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    LOG_LEVEL,
];
/// The keys of modern results and notifications that legacy ones do not have.
pub(crate) const ANSWER_KEYS: [&str; 2] = [SERVER_INFO, SUBSCRIPTION_ID];
