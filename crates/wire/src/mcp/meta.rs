//! The keys of `_meta` that the protocol owns.

/// The revision in which a modern request is written; required on each.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// What a modern client can do; required on each request.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// Who a modern client says it is.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// From which level on a modern request wants log messages.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// Who a modern server says it is; on results.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// Which listen stream a modern notification belongs to: the id of its request.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// Which task of revision 2025-11-25 a message belongs to.
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
/// By which token progress is reported; in both eras.
pub const PROGRESS_TOKEN: &str = "progressToken";
/// The keys that a modern request has and a legacy one has not.
pub const REQUEST_KEYS: [&str; 4] = [PROTOCOL_VERSION, CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL];
/// The keys that a modern result or notification has and a legacy one has not.
pub const ANSWER_KEYS: [&str; 2] = [SERVER_INFO, SUBSCRIPTION_ID];
