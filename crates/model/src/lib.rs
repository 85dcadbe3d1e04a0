//! The nouns of Portmoot: what can be said, by whom, about what, and how it is refused.
//!
//! Everything above speaks in these words. This crate knows no protocol's field names, no sockets,
//! no clock and no async.
//!
//! - [`Kind`] and [`KindRef`]: the path that names an act, `HEAD[:METHOD[:CONTEXT]]`.
//! - [`Capability`] and [`Capabilities`]: which acts are admitted, and to whom.
//! - [`ParticipantId`], [`LinkId`], [`OperationId`], [`TopicName`]: who and what is meant.
//! - [`Envelope`], [`Payload`], [`Era`]: one thing that happens, as bytes of one era.
//! - [`Operation`], [`Outcome`]: the life of one request.
//! - [`ProposalState`], [`Digest`]: the life of a proposal, and what a decision is bound to.
//! - [`Refusal`], [`RefusalCode`]: a no, as it may be told outside.

mod capabilities;
mod capability;
mod envelope;
mod ids;
mod kind;
mod operation;
mod pattern;
mod proposal;
mod refusal;

pub use capabilities::{CAPABILITIES_MAX, Capabilities};
pub use capability::{CAPABILITY_BYTES_MAX, Capability, CapabilityError};
pub use envelope::{Envelope, Era, Payload};
pub use ids::{
    GATEWAY, IdError, LinkId, OperationId, PARTICIPANT_BYTES_MAX, ParticipantId, SYSTEM, TOPIC_BYTES_MAX,
    TopicName,
};
pub use kind::{Kind, KindError, KindRef, PROPOSAL, REQUEST};
pub use operation::{Operation, OperationState, Outcome};
pub use pattern::overlap;
pub use proposal::{Digest, NoDigest, NoSuchState, ProposalState};
pub use refusal::{Refusal, RefusalCode};
