//! The codes that JSON-RPC 2.0 itself defines.

/// Not JSON, or not UTF-8.
pub const PARSE_ERROR: i64 = -32700;
/// JSON, but not a message.
pub const INVALID_REQUEST: i64 = -32600;
/// The method does not exist here.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The params are not what the method wants.
pub const INVALID_PARAMS: i64 = -32602;
/// Something went wrong inside.
pub const INTERNAL_ERROR: i64 = -32603;
