//! Keys as records have them.

use serde::{Deserialize, Serialize};

/// A key for sealed states or for the chain of the audit log.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealingKey {
    /// 32 bytes, as 64 hexadecimal digits.
    pub key: String,
    /// Time of creation in Unix milliseconds.
    pub created_ms: u64,
}

impl std::fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SealingKey")
            .field("created_ms", &self.created_ms)
            .finish_non_exhaustive()
    }
}
