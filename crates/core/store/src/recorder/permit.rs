//! Permit for one entry of the audit log, and an entry of now.

use std::net::IpAddr;

use crate::audit::{AuditEntry, AuditPermit, EntryKind, EntryOrigin, RecordedVerdict};
use model::Refusal;
use platform::unix_ms;

/// Room for one entry, free again when dropped. Without a log it holds nothing.
#[derive(Debug)]
pub struct RecordPermit {
    permit: Option<AuditPermit>,
    /// The address from which the act comes, for an entry without one.
    address: Option<IpAddr>,
}

impl RecordPermit {
    /// No room: an entry that is written here is lost.
    pub fn none() -> Self {
        Self {
            permit: None,
            address: None,
        }
    }

    /// Has the entry say that its act came from this address, unless the entry names one.
    #[must_use]
    pub fn from_address(self, address: Option<IpAddr>) -> Self {
        Self { address, ..self }
    }

    #[cfg(test)]
    pub(super) fn address(&self) -> Option<IpAddr> {
        self.address
    }

    /// Whether an entry that is written here is kept.
    #[must_use]
    pub fn keeps(&self) -> bool {
        self.permit.is_some()
    }

    /// Whether the entry keeps something of its payload.
    #[must_use]
    pub fn keeps_payloads(&self) -> bool {
        self.permit
            .as_ref()
            .is_some_and(AuditPermit::keeps_payloads)
    }

    /// Hands the entry to the log's writer.
    pub fn write(self, entry: &AuditEntry<'_>) {
        let Some(permit) = self.permit else {
            return;
        };
        let origin = EntryOrigin {
            address: entry.origin.address.or(self.address),
            ..entry.origin
        };
        permit.write(&AuditEntry { origin, ..*entry });
    }

    /// Writes how a change of a token or a grant ended: kind, name and topic of what changes, the
    /// participant that asked for it, and the change.
    pub fn write_change<T>(
        self,
        (kind, name, topic): (&str, &str, Option<&str>),
        by: &str,
        change: &str,
        end: &Result<T, Refusal>,
    ) {
        let (verdict, why) = match end {
            Ok(_) => (RecordedVerdict::Admitted, change.to_owned()),
            Err(refusal) => (
                RecordedVerdict::Refused,
                format!("{}: {change}", refusal.code.as_str()),
            ),
        };
        self.write(&AuditEntry {
            to: &[name],
            why: Some(&why),
            ..entry(topic, by, kind, verdict)
        });
    }
}

impl From<AuditPermit> for RecordPermit {
    fn from(permit: AuditPermit) -> Self {
        Self {
            permit: Some(permit),
            address: None,
        }
    }
}

/// An entry of now with these fields only.
#[must_use]
pub fn entry<'e>(
    topic: Option<&'e str>,
    from: &'e str,
    kind: impl Into<EntryKind<'e>>,
    verdict: RecordedVerdict,
) -> AuditEntry<'e> {
    AuditEntry {
        at_ms: unix_ms(),
        topic,
        from,
        origin: EntryOrigin::default(),
        kind: kind.into(),
        own: None,
        to: &[],
        verdict,
        why: None,
        operation: None,
        trace: None,
        digest: None,
        payload: None,
    }
}
