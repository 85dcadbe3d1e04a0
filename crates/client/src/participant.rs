//! SDK for participants of MCPx topics: agents, tools and people's programs.
//!
//! [`Participant::connect`] joins a topic. `examples/` has four programs. Envelopes of others are checked strictly
//! before the participant acts on them (MCPx v0.1, section 4.3).

mod backoff;
mod connection;
mod dial;
mod error;
mod event;
mod handle;
mod pending;
mod proposal;
mod protocol;
mod recent;
mod roster;
mod serve;
mod shared;
mod spec;
mod subscribers;
mod tools;
mod violations;

pub use model::ProposalState;
pub use wire::mcpx::Envelope;
pub use wire::mcpx::check::Call;
pub use wire::mcpx::system::{ParticipantInfo, SystemError};

pub use connection::SEND_QUEUE_MAX;
pub use error::{CallError, ConnectError, RpcError};
pub use event::{Event, IncomingProposal};
pub use handle::{CallMode, Participant};
pub use pending::PENDING_MAX;
pub use proposal::Proposal;
pub use recent::{RECENT_ENVELOPES_MAX, RECENT_PROPOSALS_MAX};
pub use serve::{AnswerFuture, CALLS_MAX, FulfilledProposal, IncomingRequest, Serve, ServeResult};
pub use spec::{FRAME_BYTES_MAX, Mode, ParticipantSpec};
pub use subscribers::{EVENTS_BYTES_MAX, EVENTS_MAX, Events};
pub use tools::Tools;
pub use violations::VIOLATORS_MAX;
