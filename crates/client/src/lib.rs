//! Dialling out: links to MCP servers, and a participant of MCPx topics for agents to use.
//!
//! A [`Participant`] comes into a topic of a gateway, speaks, proposes, and serves tools.
//!
//! A [`Link`] carries JSON-RPC messages as bytes, in both directions, over one of these transports: a child
//! process ([`StdioSpec`]), Streamable HTTP or the older HTTP+SSE pair ([`HttpSpec`]), or a server in this process. It knows where a message came from and
//! whether it may still be answered; it never knows what the message means. The [`guard`] ends children that would
//! otherwise outlive this process.

mod contract;
pub mod guard;
mod http;
mod link;
mod local;
pub mod participant;
mod sse;
mod stdio;

pub use contract::{Bounds, Carrier, Flow, Inbox, LinkFailure, SendMeta, Unsent};
pub use guard::Guard;
pub use http::{HttpLimits, HttpSpec};
/// Safe text for people: agents show strangers' texts, and need no other crate for it.
pub use json::visible;
pub use link::Link;
pub use local::Answerer;
pub use participant::{Participant, ParticipantSpec};
pub use stdio::{StdioLimits, StdioSpec};
