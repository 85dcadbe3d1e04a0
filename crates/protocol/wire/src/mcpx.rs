//! MCPx v0.1 with Decision 002: envelopes on a topic, and the messages of the gateway itself.

mod chat;
pub mod check;
mod envelope;
mod kind;
pub mod mirror;
pub mod payload;
mod place;
pub mod system;

pub use chat::{CHAT, Chat, Format};
pub use envelope::{Breach, Draft, Envelope, KIND_BYTES_MAX, NESTING_MAX, envelope, is_too_deep};
pub use kind::{Head, kind_of};
pub use place::{EnvelopePlace, PLACE_KEY};

/// The protocol's name and version, as every envelope carries it (section 3).
pub(crate) const PROTOCOL: &str = "mcpx/v0.1";

#[cfg(test)]
mod tests;
