//! SDK for participants of MCPx topics: agents, tools and people's programs.
//!
//! [`Participant::connect`] joins a topic. `examples/` has four programs. Envelopes of others are checked strictly
//! before the participant acts on them (MCPx v0.1, section 4.3).

mod connection;
mod error;
mod event;
mod handle;
mod pending;
mod proposal;
mod protocol;
mod roster;
mod shared;
mod spec;
mod subscribers;
mod tools;

pub use model::ProposalState;
pub use wire::mcpx::system::{ParticipantInfo, SystemError};
pub use wire::mcpx::{Envelope, check::Call};

pub use connection::SEND_QUEUE_MAX;
pub use error::{CallError, ConnectError, RpcError};
pub use event::{Event, IncomingProposal};
pub use handle::{CallMode, Participant};
pub use pending::PENDING_MAX;
pub use proposal::Proposal;
pub use roster::{RECENT_ENVELOPES_MAX, RECENT_PROPOSALS_MAX, VIOLATORS_MAX};
pub use spec::{FRAME_BYTES_MAX, Mode, ParticipantSpec};
pub use subscribers::{EVENTS_BYTES_MAX, EVENTS_MAX, Events};
pub use tools::{AnswerFuture, CALLS_MAX, FulfilledProposal, IncomingRequest, Serve, ServeResult, Tools};
