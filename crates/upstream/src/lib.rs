//! Upstreams: the servers behind the gateway, kept warm.
//!
//! An [`Upstream`] is one configured server with its state; a [`Session`] is one conversation with it, shared or one
//! caller's own. What comes out of a session goes to the sinks that the pump hands in. Nothing here knows public names,
//! topics or doors, and no refusal that leaves here holds a command, a path, a URL or a secret.

mod backoff;
pub mod config;
mod demo;
pub mod dial_in;
mod dialer;
mod fault;
mod greet;
mod headers;
mod lists;
mod manifest;
mod relay;
mod schema;
mod session;
mod sink;
mod spec;
mod status;
mod subscriptions;
mod supervise;
#[cfg(test)]
mod tests;
mod wants;

pub use dialer::Dialer;
pub use manifest::{List, Manifest};
pub use session::{Hold, Session, SessionSink};
pub use sink::{Answer, CallSink, Hello, Outgoing, QuestionId, SessionKey, Ticket};
pub use spec::{Questions, UpstreamBounds, UpstreamSpec};
pub use status::{Quarantined, State, Status};
pub use supervise::{Ground, Upstream};
