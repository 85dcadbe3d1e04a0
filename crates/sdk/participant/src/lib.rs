//! SDK for programs that take part in topics: agents, reviewers, servers that dial out.
//!
#![doc = include_str!("../README.md")]
//!
//! # The parts
//!
//! - [`Participant`] joins a topic as a [`ParticipantSpec`] says. It sends, requests, proposes and
//!   reviews.
//! - [`Participant::like`] makes a rule that approves the like of a proposal for some hours.
//! - [`Event`]s arrive by [`Participant::events`]. Envelopes of others are checked strictly before
//!   the participant acts on them (MCPx v0.1, section 4.3).
//! - [`Tools`] answers the requests of others; [`Serve`] is what it implements.
//! - [`proxy::ProxyClient`] reaches everything behind a server's tool `proxy` (MCP Proxy Extension
//!   v0.1).
//! - `rules::RuleSet`, with the feature `rules`, decides about proposals by rules on their arguments.
//! - [`visible`] makes strangers' texts safe for a terminal.

mod api;
mod checked;
mod connection;
mod definition;
mod dial;
mod error;
mod event;
mod handle;
mod like;
mod pending;
mod prompts;
mod proposal;
mod protocol;
pub mod proxy;
mod resources;
mod review;
mod roster;
#[cfg(feature = "rules")]
pub mod rules;
mod serve;
mod shared;
mod spec;
mod subscribers;
mod tools;

/// Safe text for people: agents show strangers' texts, and need no other crate for it.
pub use json::visible;
pub use model::{Capability, CapabilityError, GATEWAY, KindError, KindRef, ProposalState};
/// Params and results are JSON: the crate in the version that this one uses.
pub use serde_json;
/// Authorities that a participant trusts, and the certificate that it shows, where the gateway
/// speaks TLS.
pub use tls::{ClientFiles, ClientTls, Oldest, TlsError};
pub use wire::mcpx::check::{Act, EnvelopeCall, Mismatch};
pub use wire::mcpx::system::{Narrowed, ParticipantInfo, SystemError};
pub use wire::mcpx::{Breach, Chat, Envelope, EnvelopePlace, Format};

pub use checked::{CheckError, check};
pub use connection::SEND_QUEUE_MAX;
pub use definition::LIST_PAGES_MAX;
pub use error::{CallError, ConnectError, RpcError};
pub use event::{Claim, Event, IncomingProposal, Note};
pub use handle::{CallMode, Participant};
pub use like::{LikeRule, LikeTerms};
pub use pending::PENDING_MAX;
pub use prompts::PromptArgument;
pub use proposal::Proposal;
pub use protocol::Cursor;
pub use review::{PlanPosition, WaitingProposal, WaitingStep};
pub use roster::{RECENT_ENVELOPES_MAX, RECENT_PROPOSALS_MAX, VIOLATORS_MAX};
pub use serve::{AnswerFuture, CALLS_MAX, FulfilledProposal, IncomingRequest, Serve, ServeResult};
pub use spec::{FRAME_BYTES_MAX, Mode, ParticipantSpec};
pub use subscribers::{EVENTS_BYTES_MAX, EVENTS_MAX, Events};
pub use tools::Tools;
