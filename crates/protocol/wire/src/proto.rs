//! proto-mcp 1.0: MCP over protobuf (`buf.mcp.v1`).
//!
//! The bytes of a call are never decoded into types and written again: [`ProtoEnvelope`] finds the
//! payload in an `MCPMessage`, and [`call`] the name in it. The types of [`contract`] are for what
//! the gateway itself says and reads.
//!
//! | module | contents |
//! |---|---|
//! | [`call`] | requests that are relayed: read with their target, written for a server |
//! | [`code`] | error codes, and the gRPC status of each refusal |
//! | [`contract`] | the messages as Rust types, written from the contract file |
//! | [`mod@frame`] | length-prefixed frames of pipes and sockets |
//! | [`grpc`] | the service: its methods, its codec, errors in statuses |
//! | [`mod@sniff`] | which protocol a connection speaks, by its first byte |

pub mod call;
pub mod code;
#[rustfmt::skip]
#[allow(missing_docs, clippy::all, clippy::pedantic)]
pub mod contract;
mod envelope;
pub mod frame;
pub mod grpc;
mod refusal;
pub mod sniff;

pub use envelope::{Content, PayloadKind, ProtoEnvelope, Unreadable, is_message, message};
pub use refusal::{Spelled, spell};

/// The path under which the contract is imported.
pub const CONTRACT_PATH: &str = "buf/mcp/v1/mcp.proto";
/// The contract's text.
pub const CONTRACT: &str = include_str!("../proto/buf/mcp/v1/mcp.proto");
/// The newest version that the gateway speaks (proto-mcp v1.0, "Version Compatibility").
pub const VERSION: &str = "1.0.0";
/// The subprotocol of WebSockets that carry it.
pub const SUBPROTOCOL: &str = "proto-mcp.v1";
/// The header with which a gateway that accepts a WebSocket says how long a message there may be,
/// in bytes.
pub const MESSAGE_BYTES_HEADER: &str = "portmoot-message-bytes-max";

#[cfg(test)]
mod tests;
