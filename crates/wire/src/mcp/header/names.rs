//! Header names, in lower case.

/// `MCP-Protocol-Version`.
pub const PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// `Mcp-Method`.
pub const METHOD: &str = "mcp-method";
/// `Mcp-Name`.
pub const NAME: &str = "mcp-name";
/// The prefix of all headers for arguments.
pub const PARAM_PREFIX: &str = "mcp-param-";
/// `Mcp-Session-Id`, legacy only.
pub const SESSION_ID: &str = "mcp-session-id";
