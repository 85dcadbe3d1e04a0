//! Records of sessions that are over. Must not know what a session is.

use serde::{Deserialize, Serialize};

/// Sessions that were ended for good: nobody takes them up again, after a restart neither.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedSessions {
    /// What tells each of their ids from all others, as the gateway spells it.
    pub marks: Vec<String>,
    /// When this was written, in Unix milliseconds.
    pub at_ms: u64,
    /// From when on none of these ids is good any more, in Unix milliseconds.
    pub until_ms: u64,
}
