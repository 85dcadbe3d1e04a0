//! Section of the configuration about the audit log: `[audit]`.

use super::entry::{Payloads, Policy};
use super::redact::REDACTED;

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
        let more = self.redact.iter().map(String::as_str);
        let redact: Vec<&str> = REDACTED.into_iter().chain(more).collect();
        self.enabled.then(|| Policy::new(self.payloads, &redact))
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
