//! The key of the audit log's chain, in the journal.

use serde::{Deserialize, Serialize};

use crate::fold::Fold;
use crate::key::SealingKey;

/// The part of the audit log in the journal: the key of its chain.
#[derive(Debug, Default)]
pub(super) struct AuditKey {
    /// A data directory has one for its whole life: the first one counts.
    pub(super) key: Option<SealingKey>,
}

/// A record of the audit log.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub(super) enum AuditRecord {
    /// The key of the chain.
    AuditKey(SealingKey),
}

impl Fold for AuditKey {
    const OWNER: &'static str = "audit";
    type Record = AuditRecord;

    fn apply(&mut self, record: &AuditRecord) {
        let AuditRecord::AuditKey(key) = record;
        self.key.get_or_insert_with(|| key.clone());
    }

    fn live(&self) -> usize {
        usize::from(self.key.is_some())
    }

    fn records(&mut self, _: u64) -> Vec<AuditRecord> {
        self.key
            .iter()
            .cloned()
            .map(AuditRecord::AuditKey)
            .collect()
    }
}
