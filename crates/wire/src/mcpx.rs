//! MCPx v0.1: envelopes on a topic, and what the gateway itself says there.
//!
//! Owns the protocol's bytes (MCPx v0.1, Decision 002). It must not know topics, sockets or who may do what.

mod chat;
pub mod check;
mod envelope;
mod kind;
pub mod payload;
pub mod refusal;
pub mod shown;
pub mod system;
mod write;

pub use chat::{CHAT, Chat, Format};
pub use envelope::{Breach, BreachCode, Envelope, ID_BYTES_MAX, KIND_BYTES_MAX, TO_MAX};
pub use kind::{Head, kind_of};
pub use write::{Draft, envelope};

/// The protocol's name and version, as every envelope carries it (section 3).
pub const PROTOCOL: &str = "mcpx/v0.1";

#[cfg(test)]
mod tests;
