//! OAuth towards others (MCP "Authorization", 2025-11-25 and 2026-07-28): the gateway as client of
//! servers, and what it asks of the issuers of its callers' tokens.
//!
//! - [`dialer`]: the one way to fetch from an address that was learnt from outside.
//! - [`issuer`]: keys of issuers, and their answers about opaque tokens.
//! - [`discovery`], [`metadata`], [`registration`], [`token`]: the steps of a sign-in, each a
//!   request to a server.
//! - [`Account`](account::Account): the tokens of one participant at one server, which sessions ask
//!   for ([`client::Authorize`]).
//! - [`ServerAccounts`]: those of all servers; [`logins::Logins`]: sign-ins under way;
//!   [`connect::Connects`]: callers that are to begin one.
//! - [`token_uses`]: uses of refresh tokens among processes that have the same ones.
//! - [`person`]: people who sign in for the gateway's own pages.
//! - [`vault::Vault`]: what is kept, sealed; [`outside`]: texts of the operator's that no
//!   configuration has, such as its key.

pub mod account;
mod authorize;
pub mod challenge;
pub mod config;
pub mod connect;
pub mod dialer;
pub mod discovery;
pub mod issuer;
pub mod jwt;
mod kept_accounts;
pub mod key;
pub mod logins;
pub mod metadata;
pub mod outside;
pub mod person;
mod pkce;
pub mod registration;
mod retries;
mod secret;
mod server;
pub mod site;
#[cfg(test)]
mod tests;
pub mod token;
pub mod token_uses;
mod trouble;
pub mod vault;

pub use kept_accounts::{AccountRecord, KeptAccounts, UpstreamAccount, UpstreamClient};
pub use logins::LoginError;
pub use secret::Secret;
pub use server::{
    AccountServer, CheckedToken, Configured, ConnectRequest, EXCHANGED_TOKENS_MAX,
    SERVER_ACCOUNTS_MAX, ServerAccounts,
};
pub use trouble::Trouble;
