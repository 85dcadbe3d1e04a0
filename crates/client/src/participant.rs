//! A participant of an MCPx topic: dials a gateway, learns who it is, speaks, hears, proposes, and serves tools.
//!
//! [`Participant::connect`] is where to begin; `examples/` has four programs that run. Everything that a stranger sent is
//! checked strictly before it is acted on (MCPx v0.1, section 4.3). It must not know topics from the inside, nor how
//! anything is shown to a person.

mod backoff;
mod conduct;
mod desk;
mod dial;
mod error;
mod event;
mod handle;
mod life;
mod listeners;
mod memory;
mod proposal;
mod review;
mod roster;
mod serve;
mod shared;
mod spec;
mod tools;
mod waiting;

pub use conduct::MISBEHAVING_MAX;
pub use error::{CallError, ConnectError, RpcError};
pub use event::{Event, Proposed};
pub use handle::{Participant, Way};
pub use life::QUEUE_MAX;
pub use listeners::{EVENTS_BYTES_MAX, EVENTS_MAX, Events};
pub use memory::{PROPOSALS_MAX, REPEATS_MAX};
pub use proposal::Proposal;
pub use serve::{Answer, Answering, Asked, CALLS_MAX, Serve};
pub use spec::{FRAME_BYTES_MAX, Mode, ParticipantSpec};
pub use tools::Tools;
pub use waiting::OPEN_MAX;
