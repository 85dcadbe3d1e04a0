//! The nouns of Portmoot: what can be said, by whom, about what, and how it is refused.
//!
//! Everything above speaks in these words. This crate knows no protocol's field names, no sockets,
//! no clock and no async.
//!
//! - [`Kind`] and [`KindRef`]: the path that names an act, `HEAD[:METHOD[:CONTEXT]]`.
//! - [`Capability`] and [`Capabilities`]: which acts are admitted, and to whom.
//! - [`ParticipantId`], [`LinkId`], [`OperationId`], [`TopicName`]: who and what is meant.
//! - [`Request`], [`Answer`], [`Notice`], [`Payload`], [`Form`]: what flows from a door to a far end and back, as untouched bytes.
//! - [`ListKind`], [`RateLimit`]: nouns that several crates share.
//! - [`ProposalState`], [`Digest`]: the life of a proposal, and what a decision is bound to.
//! - [`Refusal`], [`RefusalCode`]: a no, as it may be told outside.

mod capabilities;
mod capability;
mod ids;
mod kind;
mod list;
mod pattern;
mod proposal;
mod rate;
mod refusal;
mod relay;

pub use capabilities::{CAPABILITIES_MAX, Capabilities};
pub use capability::{CAPABILITY_BYTES_MAX, Capability, CapabilityError};
pub use ids::{
    GATEWAY, IdError, LinkId, OperationId, PARTICIPANT_BYTES_MAX, ParticipantId, SYSTEM, TOPIC_BYTES_MAX,
    TopicName,
};
pub use kind::{Kind, KindError, KindRef, PROPOSAL, REQUEST, RESPONSE};
pub use list::ListKind;
pub use pattern::overlap;
pub use proposal::{Digest, NoDigest, NoSuchState, ProposalState};
pub use rate::RateLimit;
pub use refusal::{Refusal, RefusalCode};
pub use relay::{Answer, Form, Marks, Method, Notice, Outcome, Payload, Range, Request, Target};
