//! Sessions with MCP servers: handshake, calls, lists, subscriptions, supervision.
//!
//! An [`Upstream`] supervises one configured server. A [`Session`] is one conversation with that
//! server: shared by callers, or owned by one of them. The gateway passes [`CallEvents`] with each
//! call and [`SessionEvents`] for everything else. A refusal from this crate never contains a
//! command, a path, a URL or a secret.
//!
//! Must not know topics, rooms or doors: a house test reads the manifest.

mod arguments;
pub mod config;
pub mod curation;
mod declared;
mod demo;
pub mod dial_in;
mod fault;
mod field_numbers;
mod handshake;
mod interest;
mod judged;
mod kept;
mod listen_stream;
mod lists;
mod manifest;
mod measured;
pub mod openapi;
mod origin;
mod pinning;
mod proto;
mod question;
mod relisting;
mod schema;
mod sent;
mod session;
mod session_api;
mod spec;
mod starts;
mod startup;
mod status;
mod supervisor;
pub mod tasks;
#[cfg(test)]
mod tests;
mod words;

pub use arguments::Checks;
pub use client::processes::{Root, Usage, usage};
pub use field_numbers::{FieldNumbers, KeepNumbers};
pub use interest::Subscription;
pub use kept::{KEPT_BYTES_MAX, KeptManifests, ToolUse, today};
pub use manifest::{Compiled, List, Manifest};
pub use measured::{
    CallDurations, DURATION_BOUNDS, TOOLS_MEASURED_MAX, ToolDurations, answer_error_type,
};
pub use pinning::Pinning;
pub use question::{Asking, Question};
pub use sent::SentTools;
pub use sent::{RETRY_MAX, Resolve, Resolving};
pub use session::{
    CLIENT_TASK_ID_BYTES_MAX, CLIENT_TASKS_MAX, Environment, Session, SessionEvent, SessionEvents,
    TASK_QUESTIONS_MAX, TaskHold, TaskQuestions, Unanswered, UnsentCall,
};
pub use session_api::{
    AtServer, CallEvents, CallNumber, Caller, ClientProfile, Outgoing, RequestNumbers, SessionKey,
};
pub use spec::UpstreamSpec;
pub use starts::{PROBES_AT_ONCE, STARTS_AT_ONCE, StartLimits, Starts};
pub use status::{QuarantinedTool, ServerState, ServerStatus};
pub use supervisor::Upstream;
pub use words::telling;
