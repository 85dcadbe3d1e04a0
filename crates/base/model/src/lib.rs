//! Nouns of Portmoot: acts, participants, messages, lists, proposals and refusals.
//!
//! All other crates use these types. This crate contains no protocol's field names, no sockets, no
//! clock and no async.
//!
//! - [`KindRef`]: the path that names an act, `HEAD[:METHOD[:CONTEXT]]`.
//! - [`Capability`] and [`Capabilities`]: which acts are admitted, and to whom.
//! - [`Narrowing`], [`Scopes`]: what an access token is good for.
//! - [`ParticipantId`], [`LinkId`], [`OperationId`], [`TopicName`]: identity, connection, operation
//!   and topic.
//! - [`Request`], [`Answer`], [`Notice`], [`Payload`], [`Form`]: messages between a door and a far
//!   end, as untouched bytes.
//! - [`Latest`]: what is kept of many participants, none of which pushes out what others have.
//! - [`ListKind`], [`ListenFilter`], [`LogLevel`], [`RateLimit`], [`DeliveryMode`]: types that
//!   several crates share.
//! - [`method`]: what each method of MCP is to the topic and to the gateway.
//! - [`ProposalState`], [`Digest`]: the states of a proposal, and the digest that a decision is
//!   bound to.
//! - [`NameFilter`], [`NamePattern`]: names that a configuration chooses by patterns.
//! - [`Refusal`], [`RefusalCode`]: a refusal, as participants may see it.

mod capabilities;
mod capability;
mod context;
mod delivery;
mod ids;
mod kind;
mod latest;
mod list;
mod log_level;
pub mod method;
mod name_filter;
mod narrowing;
mod pattern;
mod proposal;
mod rate;
mod refusal;
mod relay;

pub use capabilities::{CAPABILITIES_MAX, Capabilities};
pub use capability::{Capability, CapabilityError};
pub use context::PERCENT_LAYERS_MAX;
pub use delivery::DeliveryMode;
pub use ids::{
    ANONYMOUS_PREFIX, GATEWAY, IdError, LinkId, OperationId, PARTICIPANT_BYTES_MAX, ParticipantId,
    RULES, SYSTEM, TopicName, account,
};
pub use kind::{APPROVE, KindError, KindRef, PAUSE, PROPOSAL, REJECT, REQUEST, RESUME};
pub use latest::Latest;
pub use list::{ListKind, ListenFilter};
pub use log_level::LogLevel;
pub use method::MethodFacts;
pub use name_filter::{NAME_PATTERN_BYTES_MAX, NameFilter, NamePattern, NamePatternError};
pub use narrowing::{Narrowing, Scope, Scopes};
pub use pattern::overlap;
pub use proposal::{Digest, NoDigest, ProposalState};
pub use rate::RateLimit;
pub use refusal::{Refusal, RefusalCode, Violation};
pub use relay::{
    Answer, Coding, Form, Marks, Method, Notice, Outcome, Payload, Range, Request, Target,
};
