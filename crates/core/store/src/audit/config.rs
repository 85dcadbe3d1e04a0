//! Section of the configuration about the audit log: `[audit]`.

use super::entry::{Payloads, Policy};
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
        }
    }
}
