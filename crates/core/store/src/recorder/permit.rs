//! Permit for one entry of the audit log, and an entry of now.

use crate::audit::{AuditEntry, EntryKind, EntryOrigin, RecordedVerdict};
use model::Refusal;
use platform::unix_ms;

/// Room for one entry, free again when dropped. Without a log it holds nothing.
#[derive(Debug)]
pub struct RecordPermit(pub(super) Option<crate::audit::AuditPermit>);

impl RecordPermit {
    /// No room: an entry that is written here is lost.
    pub fn none() -> Self {
        Self(None)
    }

    /// Whether an entry that is written here is kept.
    #[must_use]
    pub fn keeps(&self) -> bool {
        self.0.is_some()
    }

    /// Whether the entry keeps something of its payload.
    #[must_use]
    pub fn keeps_payloads(&self) -> bool {
        self.0
            .as_ref()
            .is_some_and(crate::audit::AuditPermit::keeps_payloads)
    }

    /// Hands the entry to the log's writer.
    pub fn write(self, entry: &AuditEntry<'_>) {
        if let Some(permit) = self.0 {
            permit.write(entry);
        }
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
