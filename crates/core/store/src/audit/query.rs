//! Filters of audit queries: kind, participant, topic, verdict, operation, time.

use model::{Capability, CapabilityError, KindRef};

use super::entry::RecordedEntry;

/// Pattern of kinds: a capability, the exact text of a kind, or `name/*` for reserved kinds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindPattern {
    text: String,
    capability: Option<Capability>,
}

impl KindPattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// As [`Capability::parse`], except that the reserved `system/...` and `presence/...` are valid
    /// patterns.
    pub fn parse(text: &str) -> Result<KindPattern, CapabilityError> {
        let capability = match Capability::parse(text) {
            Err(CapabilityError::Reserved) => None,
            parsed => Some(parsed?),
        };
        Ok(KindPattern {
            text: text.to_owned(),
            capability,
        })
    }

    /// Whether the pattern matches a kind. A text that is not a valid kind matches only its exact
    /// pattern.
    #[must_use]
    pub fn matches(&self, kind: &str) -> bool {
        let below = || {
            let below = self
                .text
                .strip_suffix('*')
                .filter(|name| name.ends_with('/'));
            self.capability.is_none() && below.is_some_and(|name| kind.starts_with(name))
        };
        let admitted = |capability: &Capability| {
            KindRef::parse(kind).is_ok_and(|kind| capability.admits(kind))
        };
        self.text == kind || self.capability.as_ref().is_some_and(admitted) || below()
    }
}

/// Filter of entries; an entry must match all members that are set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EntryFilter {
    /// Pattern of its kind.
    pub kinds: Option<KindPattern>,
    /// Sender or recipient.
    pub participant: Option<String>,
    /// Topic.
    pub topic: Option<String>,
    /// Verdict, as [`super::RecordedVerdict::as_str`].
    pub verdict: Option<String>,
    /// Operation: its 32 hexadecimal digits, or the first of them.
    pub operation: Option<String>,
    /// Earliest time, in Unix milliseconds.
    pub since_ms: Option<u64>,
    /// Time before which it was written, in Unix milliseconds.
    pub until_ms: Option<u64>,
}

impl EntryFilter {
    /// Whether an entry matches.
    #[must_use]
    pub fn matches(&self, entry: &RecordedEntry<'_>) -> bool {
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted
                .as_ref()
                .is_none_or(|wanted| found.is_some_and(|found| found == wanted))
        };
        let begins = |wanted: &String| {
            let found = entry.operation.as_deref();
            found.is_some_and(|found| found.starts_with(wanted.as_str()))
        };
        let takes_part =
            |name: &String| entry.from == *name || entry.to.iter().any(|to| to == name);
        self.since_ms.is_none_or(|since| entry.at_ms >= since)
            && self.until_ms.is_none_or(|until| entry.at_ms < until)
            && is(&self.topic, entry.topic.as_deref())
            && is(&self.verdict, Some(&entry.verdict))
            && self.operation.as_ref().is_none_or(begins)
            && self.participant.as_ref().is_none_or(takes_part)
            && self
                .kinds
                .as_ref()
                .is_none_or(|kinds| kinds.matches(&entry.kind))
    }
}
