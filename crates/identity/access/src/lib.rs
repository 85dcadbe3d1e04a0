//! Access: the checked configuration, and the identities, capabilities and keys that follow from it
//! and from the journal.
//!
//! - [`config`]: the configuration of a gateway, as values.
//! - [`bearers`]: access tokens that were checked, and the participants that came with them.
//! - [`issuers`]: issuers of access tokens, their subjects as participants, scopes.
//! - [`tokens`], [`identities`]: tokens that are issued and revoked, and the participants that may
//!   come in.
//! - [`grants`]: changes of capabilities while the gateway runs.
//! - [`login`], [`sign_ins`]: the gateway's own authorization server as configured; sign-ins in
//!   force.
//! - [`Authority`]: by which right a token is issued or revoked.
//! - [`Bounds`]: the bytes that may wait for a participant.
//! - [`AccessState`], [`AccessRecord`]: what the journal has of tokens, grants and sign-ins;
//!   [`AccessJournal`] changes it.
//! - [`Pins`]: what of servers' definitions is trusted, and what is found in them.
//! - [`references`]: what resolves the schemas of servers' tools.
//! - [`Guests`]: participants without a token. [`sealer`]: the seal of ids and states, with its
//!   keys in the journal; [`TaskId`].

mod authority;
pub mod bearers;
mod bounds;
pub mod config;
pub mod grants;
mod guests;
pub mod identities;
pub mod issuers;
mod journal;
pub mod login;
mod pins;
mod purpose;
mod record;
pub mod references;
mod sealing;
pub mod sign_ins;
mod state;
mod task_id;
pub mod tokens;

pub use authority::{ACCOUNTS, Authority, CONFIGURE, GRANTS, RESTART, SERVERS, TOKENS};
pub use bounds::{Bounds, STREAM_UNSENT_BYTES_MAX};
pub use guests::{
    ANONYMOUS_PREFIX, GUEST_RATE, Guests, TOPIC_GUESTS_MAX, account, is_gateways_name, is_guest,
};
pub use journal::{AccessJournal, Standing, not_written};
pub use pins::{KeptPins, PINS, PinRecord, PinnedDefinition, Pins};
pub use purpose::Purpose;
pub use record::{AccessRecord, Consent, Family, GrantChange, IssuedToken, RenewedFamily};
pub use sealing::{SealingKeys, SealingRecord, sealer};
pub use state::{AccessState, Grant, PARTICIPANT_CONSENTS_MAX, PARTICIPANT_FAMILIES_MAX};
pub use task_id::TaskId;
