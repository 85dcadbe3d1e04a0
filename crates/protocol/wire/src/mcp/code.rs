//! Error codes that MCP, and for schemas proto-mcp, adds to those of JSON-RPC.

/// A schema reference does not resolve. Source: proto-mcp v1.0, "Error Codes"; the same on every
/// wire.
pub const SCHEMA_UNRESOLVED: i64 = -33000;
/// The arguments break a rule of their schema. Source: the same.
pub const SCHEMA_VIOLATION: i64 = -33001;
/// Legacy: no such resource. Must not be sent to modern peers.
pub(crate) const RESOURCE_NOT_FOUND: i64 = -32002;
/// Modern: a header is missing, unreadable, or differs from the body.
pub const HEADER_MISMATCH: i64 = -32020;
/// Modern: the request needs a client capability that it did not declare.
pub const MISSING_CAPABILITY: i64 = -32021;
/// Modern: the receiver does not support the revision.
pub const UNSUPPORTED_VERSION: i64 = -32022;
/// 2025-11-25: a URL must be opened first. Must not be sent to modern peers.
pub const URL_ELICITATION_REQUIRED: i64 = -32042;
