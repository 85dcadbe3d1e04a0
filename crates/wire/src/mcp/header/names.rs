//! Header names, in lower case.

/// `MCP-Protocol-Version`.
pub const PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// `Mcp-Method`.
pub(crate) const METHOD: &str = "mcp-method";
/// `Mcp-Name`.
pub(crate) const NAME: &str = "mcp-name";
/// The prefix of all headers for arguments.
pub(crate) const PARAM_PREFIX: &str = "mcp-param-";
