//! Accounts of senders that are not known yet: one for each address, of one pool.

use std::sync::Arc;

use platform::{Shares, default_share};

/// Bytes that all newcomers together may have the gateway hold. An address has a quarter.
const NEWCOMERS_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The accounts, by address.
pub(super) fn accounts() -> Arc<Shares> {
    Shares::new(NEWCOMERS_BYTES_MAX, default_share(NEWCOMERS_BYTES_MAX))
}
