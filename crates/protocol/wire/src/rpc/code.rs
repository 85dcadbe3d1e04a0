//! Error codes that JSON-RPC 2.0 itself defines.

/// Not JSON, or not UTF-8.
pub const PARSE_ERROR: i64 = -32700;
/// JSON, but no JSON-RPC message.
pub const INVALID_REQUEST: i64 = -32600;
/// The receiver does not have the method.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The params do not fit the method.
pub const INVALID_PARAMS: i64 = -32602;
/// The receiver failed.
pub const INTERNAL_ERROR: i64 = -32603;
