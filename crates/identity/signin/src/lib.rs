//! The gateway's own authorization server: clients sign in as participants where there is no
//! identity provider.
//!
//! It is narrow: authorization codes with PKCE for clients without secrets, refresh tokens that
//! change with each use, opaque access tokens for this gateway alone. It is off unless `[login]`
//! enables it. Sources: OAuth 2.1 draft 13, RFC 6749, 7009, 7591, 7636, 8252, 8414, 8707, 9207,
//! 9700, and the chapters on authorization of MCP 2025-11-25 and 2026-07-28.
//!
//! - [`router`]: the endpoints and pages. [`SignIn`]: the server of one gateway, and what operators
//!   do about sign-ins.
//! - [`Connect`]: the pages at which participants give servers access to accounts of their own, and
//!   the callback of such sign-ins. [`OwnPlace`]: this server, as people of the console sign in at it.
//! - [`redirect`], [`client`], [`registration`], [`request`], [`codes`], [`refresh`]: the protocol,
//!   with time and randomness as arguments.

pub mod client;
pub mod codes;
mod connect;
mod console;
mod cookies;
mod document;
mod grants;
mod interactive;
mod manage;
mod metadata;
mod one_time;
mod own_place;
mod pages;
mod params;
pub mod redirect;
pub mod refresh;
pub mod registration;
#[cfg(test)]
mod rendered;
pub mod request;
mod routes;
mod service;

pub use connect::{
    CONNECT_CODE_DIGITS, CONNECT_CODE_MS, CONNECT_CODES_MAX, CONNECT_TRIES_MAX, Connect,
    ConnectCode, connect_router,
};
pub use cookies::{REMEMBERED_MAX, REMEMBERED_MS};
pub use document::{DOCUMENT_BYTES_MAX, DOCUMENTS_MAX, FETCHES_MAX};
pub use identity::login::OWN_PLACE;
pub use manage::{Asker, EndedSignIns, GivenConsent, OneTimeCode, SignedInClient};
pub use one_time::{CODE_DIGITS, ONE_TIME_CODES_MAX, ONE_TIME_MS, WRONG_TRIES_MAX};
pub use own_place::OwnPlace;
pub use params::{FormParams, PARAMS_BYTES_MAX, PARAMS_MAX};
pub use routes::router;
pub use service::{
    DOCUMENTS_PER_MINUTE, Home, LOGIN, REFUSALS_PER_MINUTE, REGISTRATIONS_PER_MINUTE, SignIn,
    TRIES_PER_MINUTE,
};
