//! Audit entry: its members, how they are written, and what is read back.

use std::borrow::Cow;
use std::fmt;

use json::Object;
use model::OperationId;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::chain::quoted_hex;
use super::redact::{REDACTED, Redaction};

/// The longest text of one member, in bytes; what is longer is cut, and ends with an ellipsis.
pub const ENTRY_TEXT_BYTES_MAX: usize = 4096;

/// The longest payload that is written in full, in bytes; of a longer one only the digest is written.
pub const ENTRY_PAYLOAD_BYTES_MAX: usize = 64 * 1024;

/// What became of an envelope or an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Let through.
    Admitted,
    /// Turned down.
    Refused,
    /// Written as a proposal until somebody decides.
    Held,
    /// A proposal may run.
    Approved,
    /// A proposal will not run.
    Rejected,
    /// A proposal was taken back.
    Withdrawn,
    /// Nobody decided in time.
    Expired,
    /// An operation came to its end.
    Completed,
    /// An operation came to a bad end, or its outcome is unknown.
    Failed,
    /// The log itself: what was found at a start did not fit the head that was kept.
    Broken,
}

impl Verdict {
    /// As it is written in the log and asked for.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Admitted => "admitted",
            Verdict::Refused => "refused",
            Verdict::Held => "held",
            Verdict::Approved => "approved",
            Verdict::Rejected => "rejected",
            Verdict::Withdrawn => "withdrawn",
            Verdict::Expired => "expired",
            Verdict::Completed => "completed",
            Verdict::Failed => "failed",
            Verdict::Broken => "broken",
        }
    }
}

/// The kind of an entry, in parts that are written with colons between them; well formed or not. Display gives it whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct What<'a> {
    /// The first part, or all of it.
    pub head: &'a str,
    /// The method, where it is a part of its own.
    pub method: Option<&'a str>,
    /// The target as it was asked for.
    pub context: Option<&'a str>,
}

impl<'a> What<'a> {
    fn parts(self) -> impl Iterator<Item = &'a str> + Clone {
        [Some(self.head), self.method, self.context].into_iter().flatten()
    }
}

impl<'a> From<&'a str> for What<'a> {
    fn from(head: &'a str) -> Self {
        What { head, method: None, context: None }
    }
}

impl fmt::Display for What<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, part) in self.parts().enumerate() {
            f.write_str(if at == 0 { "" } else { ":" })?;
            f.write_str(part)?;
        }
        Ok(())
    }
}

/// What is to be written down. Texts beyond [`ENTRY_TEXT_BYTES_MAX`] are cut.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// When, in Unix milliseconds.
    pub at_ms: u64,
    /// In which topic; `None` outside of topics.
    pub topic: Option<&'a str>,
    /// Who.
    pub from: &'a str,
    /// What.
    pub kind: What<'a>,
    /// The target's own name, where it was asked for by another.
    pub own: Option<&'a str>,
    /// Whom it is addressed to.
    pub to: &'a [&'a str],
    /// What became of it.
    pub verdict: Verdict,
    /// Why: the capability that admitted it, the refusal's code, the words of who decided.
    pub why: Option<&'a str>,
    /// The operation that it belongs to.
    pub operation: Option<OperationId>,
    /// Digest of what a decision is bound to, 64 hexadecimal digits.
    pub digest: Option<&'a str>,
    /// The payload as it came; what of it is written is the policy's affair.
    pub payload: Option<&'a [u8]>,
}

/// What of a payload is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Payloads {
    /// All of it, but for what is redacted.
    Full,
    /// SHA-256 of what `Full` would write, so that no digest betrays a short secret.
    #[default]
    Digest,
    /// Nothing.
    None,
}

/// What of payloads is written, and what never is.
#[derive(Debug, Clone)]
pub struct Policy {
    payloads: Payloads,
    redaction: Redaction,
}

impl Default for Policy {
    fn default() -> Self {
        Policy::new(Payloads::default(), &REDACTED)
    }
}

impl Policy {
    /// Writes this of payloads, and never the values of members with these names ([`REDACTED`] by default).
    pub fn new<S: AsRef<str>>(payloads: Payloads, redact: &[S]) -> Policy {
        Policy { payloads, redaction: Redaction::new(redact) }
    }

    /// What is written of a payload: the costly part, so that no lock is held meanwhile.
    pub(super) fn written<'p>(&self, payload: Option<&'p [u8]>) -> Written<'p> {
        let Some(payload) = payload else { return Written::Nothing };
        match self.payloads {
            Payloads::None => Written::Nothing,
            Payloads::Digest => Written::Digest(self.redaction.digest(payload)),
            Payloads::Full => match self.redaction.apply(payload) {
                Some(text) if text.len() <= ENTRY_PAYLOAD_BYTES_MAX => Written::Full(text),
                // What is no JSON could be anything.
                Some(_) | None => Written::Digest(self.redaction.digest(payload)),
            },
        }
    }
}

/// What is written of one payload.
#[derive(Debug)]
pub(super) enum Written<'p> {
    Nothing,
    /// On one line, redacted.
    Full(Cow<'p, [u8]>),
    /// SHA-256 of that.
    Digest([u8; 32]),
}

impl Entry<'_> {
    /// Writes the entry's members, without number, mac and braces. Never holds a line feed.
    pub(super) fn spell(&self, out: &mut Vec<u8>, payload: &Written<'_>) {
        Object::write_members(out, |entry| {
            entry.number("at_ms", self.at_ms);
            if let Some(topic) = self.topic {
                entry.text("topic", &cut(topic));
            }
            entry.text("from", &cut(self.from));
            spell_kind(entry, self.kind);
            if let Some(own) = self.own {
                entry.text("own", &cut(own));
            }
            if !self.to.is_empty() {
                entry.texts("to", self.to.iter().map(|name| cut(name)));
            }
            entry.text("verdict", self.verdict.as_str());
            if let Some(why) = self.why {
                entry.text("why", &cut(why));
            }
            if let Some(digest) = self.digest {
                entry.text("digest", &cut(digest));
            }
            if let Some(operation) = self.operation {
                entry.raw("operation", &quoted_hex::<34>(&operation.0.to_be_bytes()));
            }
            match payload {
                Written::Nothing => {}
                Written::Full(text) => {
                    entry.raw("payload", text);
                }
                Written::Digest(digest) => {
                    entry.raw("payload_sha256", &quoted_hex::<66>(digest));
                }
            }
        });
    }
}

/// An entry as it is found in the log.
#[derive(Debug, Clone, Deserialize)]
pub struct Recorded<'a> {
    /// Its number, from 1.
    pub seq: u64,
    /// When, in Unix milliseconds.
    pub at_ms: u64,
    /// In which topic.
    #[serde(borrow, default)]
    pub topic: Option<Cow<'a, str>>,
    /// Who.
    #[serde(borrow)]
    pub from: Cow<'a, str>,
    /// What.
    #[serde(borrow)]
    pub kind: Cow<'a, str>,
    /// The target's own name, where it was asked for by another.
    #[serde(borrow, default)]
    pub own: Option<Cow<'a, str>>,
    /// Whom it is addressed to.
    #[serde(borrow, default)]
    pub to: Vec<Cow<'a, str>>,
    /// What became of it, as [`Verdict::as_str`].
    #[serde(borrow)]
    pub verdict: Cow<'a, str>,
    /// Why.
    #[serde(borrow, default)]
    pub why: Option<Cow<'a, str>>,
    /// Digest of what a decision is bound to.
    #[serde(borrow, default)]
    pub digest: Option<Cow<'a, str>>,
    /// The operation, 32 hexadecimal digits.
    #[serde(borrow, default)]
    pub operation: Option<Cow<'a, str>>,
    /// The payload, redacted.
    #[serde(borrow, default)]
    pub payload: Option<&'a RawValue>,
    /// SHA-256 of the redacted payload, where it is not written itself.
    #[serde(borrow, default)]
    pub payload_sha256: Option<Cow<'a, str>>,
}

fn cut(text: &str) -> Cow<'_, str> {
    if text.len() <= ENTRY_TEXT_BYTES_MAX {
        return Cow::Borrowed(text);
    }
    let longest = ENTRY_TEXT_BYTES_MAX - '\u{2026}'.len_utf8();
    let kept = (0..=longest).rev().find_map(|end| text.get(..end)).unwrap_or_default();
    Cow::Owned(format!("{kept}\u{2026}"))
}

fn spell_kind(entry: &mut Object<'_>, what: What<'_>) {
    let length: usize = what.parts().map(|part| part.len() + 1).sum();
    if length > ENTRY_TEXT_BYTES_MAX {
        entry.text("kind", &cut(&what.to_string()));
    } else {
        entry.joined("kind", what.parts(), ":");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_in_parts_is_written_as_the_whole() {
        let long = "x".repeat(ENTRY_TEXT_BYTES_MAX);
        for head in ["", "mcp/request", "a\n", long.as_str()] {
            for method in [None, Some(""), Some("tools/call")] {
                for context in
                    [None, Some(""), Some("a:b"), Some("\""), long.get(..4096 - 24), long.get(..4096 - 22)]
                {
                    let what = What { head, method, context };
                    let (mut parts, mut whole) = (Vec::new(), Vec::new());
                    Object::write(&mut parts, |entry| spell_kind(entry, what));
                    Object::write(&mut whole, |entry| {
                        entry.text("kind", &cut(&what.to_string()));
                    });
                    assert_eq!(parts, whole, "{what:?}");
                }
            }
        }
    }
}
