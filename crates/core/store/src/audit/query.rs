//! Filters of audit queries: kind, participant, topic, verdict, operation, time. The command and the
//! API read them here.

use model::{Capability, CapabilityError, KindRef};

use super::entry::{RecordedEntry, RecordedVerdict};

/// The longest text of a filter, in bytes.
pub const FILTER_BYTES_MAX: usize = 1024;

/// The filters of a query in words, as people write them.
#[derive(Debug, Clone, Copy, Default)]
pub struct EntryQuery<'q> {
    /// Pattern of kinds.
    pub kinds: Option<&'q str>,
    /// Sender or recipient.
    pub participant: Option<&'q str>,
    /// Topic.
    pub topic: Option<&'q str>,
    /// Verdict.
    pub verdict: Option<&'q str>,
    /// Id of an operation, or its beginning.
    pub operation: Option<&'q str>,
    /// Earliest time, in Unix milliseconds.
    pub since_ms: Option<u64>,
    /// Time before which it was written, in Unix milliseconds.
    pub until_ms: Option<u64>,
}

/// A filter cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EntryQueryError {
    /// The text is longer than [`FILTER_BYTES_MAX`].
    #[error("a filter has more than {FILTER_BYTES_MAX} bytes")]
    TooLong,
    /// The text is no pattern of kinds.
    #[error("\"{}\" is not a list of kinds: {cause}", text.escape_debug())]
    Kinds {
        /// The text.
        text: String,
        /// Why not.
        cause: CapabilityError,
    },
    /// The text is no verdict.
    #[error("there is no verdict `{}`", .0.escape_debug())]
    Verdict(String),
    /// The text is not the beginning of an id.
    #[error("`{}` is not the beginning of an operation's id", .0.escape_debug())]
    Operation(String),
}

impl EntryQueryError {
    /// The advice to write something else.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::TooLong => "use the beginning of it, with `*`".to_owned(),
            Self::Kinds { .. } => {
                "for example chat, mcp/request:tools/call:read_* or system/*".to_owned()
            }
            Self::Verdict(_) => format!("one of: {}", RecordedVerdict::names().join(", ")),
            Self::Operation(_) => {
                "an id has hexadecimal digits: portmoot proposals ls --all".to_owned()
            }
        }
    }
}

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
    /// Reads filters.
    ///
    /// # Errors
    /// When one of them cannot be used.
    pub fn read(query: &EntryQuery<'_>) -> Result<Self, EntryQueryError> {
        let texts = [
            query.kinds,
            query.participant,
            query.topic,
            query.verdict,
            query.operation,
        ];
        let mut given = texts.into_iter().flatten();
        if given.any(|text| text.len() > FILTER_BYTES_MAX) {
            return Err(EntryQueryError::TooLong);
        }
        Ok(Self {
            kinds: query.kinds.map(kinds_of).transpose()?,
            participant: query.participant.map(str::to_owned),
            topic: query.topic.map(str::to_owned),
            verdict: query.verdict.map(verdict_of).transpose()?,
            operation: query.operation.map(beginning_of).transpose()?,
            since_ms: query.since_ms,
            until_ms: query.until_ms,
        })
    }

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

fn kinds_of(text: &str) -> Result<KindPattern, EntryQueryError> {
    KindPattern::parse(text).map_err(|cause| EntryQueryError::Kinds {
        text: text.to_owned(),
        cause,
    })
}

fn verdict_of(text: &str) -> Result<String, EntryQueryError> {
    let is_one = RecordedVerdict::names().contains(&text);
    let wrong = || EntryQueryError::Verdict(text.to_owned());
    is_one.then(|| text.to_owned()).ok_or_else(wrong)
}

/// The beginning of an operation's id, as the log has it.
fn beginning_of(text: &str) -> Result<String, EntryQueryError> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(EntryQueryError::Operation(text.to_owned()));
    }
    Ok(text.to_lowercase())
}
