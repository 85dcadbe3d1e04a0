//! Renewals under way at the home of the common journal.

use std::collections::BTreeMap;
use std::sync::Arc;

/// The step of a renewal.
#[derive(Debug, Clone)]
pub(crate) enum RenewalStep<R> {
    /// The record of the intent, which is not durable yet.
    Recording {
        /// The tokens of the use before, which came late: they are stored, and no request is sent.
        late: Option<R>,
    },
    /// The request, which is sent here or at a former home, and is over by then.
    Flying { until_ms: u64 },
    /// The record of the end, which is not durable yet.
    Ending {
        /// Whether its result is known.
        known: bool,
        /// The line with the new tokens.
        line: Option<R>,
        /// The ends that are on their way to the log.
        ends: u32,
    },
}

/// The use of a refresh token.
#[derive(Debug, Clone)]
pub(crate) struct Renewal<R> {
    /// The number of the intent; 0 before it is durable.
    pub(crate) flight: u64,
    pub(crate) step: RenewalStep<R>,
    /// The runner's numbers of those that wait for it.
    pub(crate) tickets: Vec<u64>,
}

/// The renewals of a home, by account.
#[derive(Debug, Clone)]
pub(crate) struct Renewals<R> {
    pub(crate) open: BTreeMap<Arc<str>, Renewal<R>>,
    /// The latest flight of each account whose result this home has stored.
    pub(crate) stored: BTreeMap<Arc<str>, u64>,
}

impl<R> Default for Renewals<R> {
    fn default() -> Self {
        Self {
            open: BTreeMap::new(),
            stored: BTreeMap::new(),
        }
    }
}
