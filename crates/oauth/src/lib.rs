//! OAuth towards others (MCP "Authorization", 2025-11-25 and 2026-07-28): the gateway as client of servers, and what it asks of
//! the issuers of its callers' tokens.
//!
//! - [`dialer`]: the one way to fetch from an address that was learnt from outside.
//! - [`issuer`]: keys of issuers, and their answers about opaque tokens.

pub mod dialer;
pub mod issuer;
