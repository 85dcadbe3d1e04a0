//! Which entries are asked for. Must not know the chain.

use model::{Capability, CapabilityError, KindRef};

use super::entry::Recorded;

/// Which kinds are asked for: a capability, or the exact text of a kind, or `name/*` below a reserved one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kinds {
    text: String,
    capability: Option<Capability>,
}

impl Kinds {
    /// Reads what was asked for.
    ///
    /// # Errors
    /// As [`Capability::parse`]; but `system/...` and `presence/...`, which nobody can be granted, may be asked for.
    pub fn parse(text: &str) -> Result<Kinds, CapabilityError> {
        let capability = match Capability::parse(text) {
            Err(CapabilityError::Reserved) => None,
            parsed => Some(parsed?),
        };
        Ok(Kinds { text: text.to_owned(), capability })
    }

    /// Whether an entry of this kind is asked for. What is no kind at all is found by its exact text.
    #[must_use]
    pub fn matches(&self, kind: &str) -> bool {
        let below = || {
            let below = self.text.strip_suffix('*').filter(|name| name.ends_with('/'));
            self.capability.is_none() && below.is_some_and(|name| kind.starts_with(name))
        };
        let admitted =
            |capability: &Capability| KindRef::parse(kind).is_ok_and(|kind| capability.admits(kind));
        self.text == kind || self.capability.as_ref().is_some_and(admitted) || below()
    }
}

/// Which entries are asked for: those to which all of it applies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Of these kinds.
    pub kinds: Option<Kinds>,
    /// From this participant, or to it.
    pub participant: Option<String>,
    /// In this topic.
    pub topic: Option<String>,
    /// With this verdict, as [`super::Verdict::as_str`].
    pub verdict: Option<String>,
    /// Of this operation, 32 hexadecimal digits.
    pub operation: Option<String>,
    /// Not before this, in Unix milliseconds.
    pub since_ms: Option<u64>,
    /// Before this, in Unix milliseconds.
    pub until_ms: Option<u64>,
}

impl Filter {
    /// Whether this entry is asked for.
    #[must_use]
    pub fn matches(&self, entry: &Recorded<'_>) -> bool {
        let is = |asked: &Option<String>, found: Option<&str>| {
            asked.as_ref().is_none_or(|asked| found.is_some_and(|found| found == asked))
        };
        let takes_part = |name: &String| entry.from == *name || entry.to.iter().any(|to| to == name);
        self.since_ms.is_none_or(|since| entry.at_ms >= since)
            && self.until_ms.is_none_or(|until| entry.at_ms < until)
            && is(&self.topic, entry.topic.as_deref())
            && is(&self.verdict, Some(&entry.verdict))
            && is(&self.operation, entry.operation.as_deref())
            && self.participant.as_ref().is_none_or(takes_part)
            && self.kinds.as_ref().is_none_or(|kinds| kinds.matches(&entry.kind))
    }
}
