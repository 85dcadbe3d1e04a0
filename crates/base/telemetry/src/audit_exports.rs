//! Progress of the export of the audit log.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The place to which the entries of an audit log go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditTarget {
    /// A collector.
    Otlp,
    /// A command.
    Command,
}

impl AuditTarget {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Otlp, Self::Command];

    /// Its name in metrics, logs and files.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Otlp => "otlp",
            Self::Command => "command",
        }
    }
}

/// The progress of the exports of one gateway.
#[derive(Debug, Default)]
pub struct AuditExports([AuditExport; AuditTarget::ALL.len()]);

/// The progress of the export to one target.
#[derive(Debug, Default)]
struct AuditExport {
    is_on: AtomicBool,
    sent: AtomicU64,
    missing: AtomicU64,
    /// Number of the last entry that has arrived.
    seq: AtomicU64,
}

/// The progress of the export to one target, as read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditExportCount {
    /// The target.
    pub target: AuditTarget,
    /// Entries that have arrived.
    pub sent: u64,
    /// Entries that will never arrive.
    pub missing: u64,
    /// Number of the last entry that has arrived.
    pub seq: u64,
}

impl AuditExports {
    /// Notes that entries are sent there, from the one after this number on.
    pub fn begin(&self, target: AuditTarget, seq: u64) {
        let export = self.of(target);
        export.seq.store(seq, Ordering::Relaxed);
        export.is_on.store(true, Ordering::Relaxed);
    }

    /// Counts entries that have arrived, the last one with this number.
    pub fn sent(&self, target: AuditTarget, number: u64, seq: u64) {
        let export = self.of(target);
        export.sent.fetch_add(number, Ordering::Relaxed);
        export.seq.store(seq, Ordering::Relaxed);
    }

    /// Counts entries that will never arrive.
    pub fn miss(&self, target: AuditTarget, number: u64) {
        self.of(target).missing.fetch_add(number, Ordering::Relaxed);
    }

    /// The progress of those that have begun.
    pub fn read(&self) -> impl Iterator<Item = AuditExportCount> {
        let all = AuditTarget::ALL.into_iter().zip(&self.0);
        all.filter(|(_, export)| export.is_on.load(Ordering::Relaxed))
            .map(|(target, export)| AuditExportCount {
                target,
                sent: export.sent.load(Ordering::Relaxed),
                missing: export.missing.load(Ordering::Relaxed),
                seq: export.seq.load(Ordering::Relaxed),
            })
    }

    fn of(&self, target: AuditTarget) -> &AuditExport {
        let [otlp, command] = &self.0;
        match target {
            AuditTarget::Otlp => otlp,
            AuditTarget::Command => command,
        }
    }
}
