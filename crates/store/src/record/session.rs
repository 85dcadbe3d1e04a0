//! Record of ended sessions.

use serde::{Deserialize, Serialize};

/// Sessions that no client can resume, also after a restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedSessions {
    /// One unique text for each session id, in the format of the gateway.
    pub marks: Vec<String>,
    /// Time of the record in Unix milliseconds.
    pub at_ms: u64,
    /// Time at which the last of these ids expires, in Unix milliseconds.
    pub until_ms: u64,
}
