//! Room for one entry of the audit log, and an entry of now.
//!
//! Must not know what is recorded, nor how the log is kept.

use model::Refusal;
use platform::unix_ms;
use store::audit::{AuditPlace, Entry, Verdict, What};

/// Room for one entry, given back when dropped. Without a log it takes nothing.
#[derive(Debug)]
pub struct Place(Option<AuditPlace>);

impl Place {
    /// A place in the log.
    pub(super) fn of(place: AuditPlace) -> Place {
        Place(Some(place))
    }

    /// No place: what is written to it is lost.
    pub(super) fn none() -> Place {
        Place(None)
    }

    /// Whether anything that is written here is kept.
    #[must_use]
    pub fn keeps(&self) -> bool {
        self.0.is_some()
    }

    /// Writes the entry, soon.
    pub fn write(self, entry: &Entry<'_>) {
        if let Some(place) = self.0 {
            place.write(entry);
        }
    }

    /// Writes what became of somebody's wish about a name of the gateway's own, a token or a grant: kind, name and topic.
    pub fn write_change<T>(
        self,
        (kind, name, topic): (&str, &str, Option<&str>),
        by: &str,
        what: &str,
        end: &Result<T, Refusal>,
    ) {
        let (verdict, why) = match end {
            Ok(_) => (Verdict::Admitted, what.to_owned()),
            Err(refusal) => (Verdict::Refused, format!("{}: {what}", refusal.code.as_str())),
        };
        self.write(&Entry { to: &[name], why: Some(&why), ..entry(topic, by, kind, verdict) });
    }
}

/// An entry of now that says no more than this.
#[must_use]
pub fn entry<'e>(
    topic: Option<&'e str>,
    from: &'e str,
    kind: impl Into<What<'e>>,
    verdict: Verdict,
) -> Entry<'e> {
    Entry {
        at_ms: unix_ms(),
        topic,
        from,
        kind: kind.into(),
        own: None,
        to: &[],
        verdict,
        why: None,
        operation: None,
        digest: None,
        payload: None,
    }
}
