//! Section of the configuration about the audit log: `[audit]`.

use std::time::Duration;

use super::entry::{Payloads, Policy};
use super::files::SEGMENT_BYTES_MAX;
use super::redact::{REDACTED, Redaction};

/// The audit log: `[audit]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditConfig {
    /// Whether a gateway with a data directory keeps a log.
    pub enabled: bool,
    /// Form in which payloads are recorded.
    pub payloads: Payloads,
    /// Members whose values are never recorded, besides [`REDACTED`].
    pub redact: Vec<String>,
    /// When a file ends, and how long it is kept.
    pub files: LogFiles,
    /// The command that gets its entries, with its arguments.
    pub export: Option<Vec<String>>,
}

/// The files of the log: when one ends, and when old ones are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogFiles {
    /// Bytes at which a file ends.
    pub rotate_bytes: u64,
    /// The age at which a file ends; `None` at none.
    pub rotate_age: Option<Duration>,
    /// The age at which entries are removed, a file at a time; `None` at none.
    pub keep_age: Option<Duration>,
    /// Bytes of the whole log beyond which the oldest files are removed; `None` at none.
    pub keep_bytes: Option<u64>,
}

impl LogFiles {
    /// Whether old files are removed at all.
    pub(super) fn removes(&self) -> bool {
        self.keep_age.is_some() || self.keep_bytes.is_some()
    }
}

impl Default for LogFiles {
    fn default() -> Self {
        Self {
            rotate_bytes: SEGMENT_BYTES_MAX,
            rotate_age: None,
            keep_age: None,
            keep_bytes: None,
        }
    }
}

impl AuditConfig {
    /// Policy of a gateway's audit log; `None` if it keeps none.
    #[must_use]
    pub fn policy(&self) -> Option<Policy> {
        self.enabled
            .then(|| Policy::new(self.payloads, &self.redacted()))
    }

    /// The members whose values are not kept, whether there is a log or not.
    #[must_use]
    pub fn redaction(&self) -> Redaction {
        Redaction::new(&self.redacted())
    }

    fn redacted(&self) -> Vec<&str> {
        let more = self.redact.iter().map(String::as_str);
        REDACTED.into_iter().chain(more).collect()
    }
}

impl Default for AuditConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            payloads: Payloads::default(),
            redact: Vec::new(),
            files: LogFiles::default(),
            export: None,
        }
    }
}
