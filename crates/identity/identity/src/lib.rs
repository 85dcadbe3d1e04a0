//! Identity: who may come in, with which capabilities; what follows of it from the configuration and
//! from the journal, and its keys.
//!
//! - [`config`]: participants, issuers, scopes and topics as they are configured.
//! - [`bearers`]: access tokens that were checked, and the participants that came with them.
//! - [`issuers`]: issuers of access tokens, their subjects as participants, scopes.
//! - [`tokens`], [`identities`]: tokens that are issued and revoked, and the participants that may
//!   come in.
//! - [`grants`]: changes of capabilities while the gateway runs.
//! - [`login`], [`sign_ins`]: the gateway's own authorization server as configured; sign-ins in
//!   force.
//! - [`Authority`]: by which right a token is issued or revoked.
//! - [`AccessState`], [`AccessRecord`]: what the journal has of tokens, grants and sign-ins;
//!   [`AccessJournal`] changes it.
//! - [`Guests`]: participants without a token. [`sealer`]: the seal of ids and states, with its
//!   keys in the journal.

mod authority;
pub mod bearers;
pub mod config;
pub mod grants;
mod guests;
pub mod identities;
pub mod issuers;
mod journal;
pub mod login;
mod record;
mod sealing;
pub mod sign_ins;
mod state;
pub mod tokens;

pub use authority::{
    ACCOUNTS, AUDIT, Authority, CONFIGURE, GRANTS, PINS, RESTART, SERVERS,
    STANDING_APPROVAL_MS_MAX, TOKENS,
};
pub use guests::{Guests, TOPIC_GUESTS_MAX, is_gateways_name};
pub use journal::{AccessJournal, Standing};
pub use record::{
    AccessRecord, Consent, Family, GrantChange, IssuedToken, RenewedFamily, client_digest,
};
pub use sealing::{SealingKeys, SealingRecord, kept_sealer, sealer};
pub use state::{AccessState, Grant, PARTICIPANT_CONSENTS_MAX, PARTICIPANT_FAMILIES_MAX};
