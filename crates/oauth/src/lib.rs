//! The gateway as OAuth client of servers (MCP "Authorization", 2025-11-25 and 2026-07-28).
//!
//! - [`dialer`]: the one way to fetch from an address that was learnt from outside.

pub mod dialer;
