//! Audit entries: members, payload policy, encoding and parsed form.

use std::{borrow::Cow, fmt, net::IpAddr};

use json::Object;
use model::OperationId;
use serde::Deserialize;
use serde_json::value::RawValue;
use strum::VariantNames;

use super::chain::quoted_hex;
use super::redact::{REDACTED, Redaction};

/// The longest text of one member, in bytes. A longer text is cut and ends with an ellipsis.
pub const ENTRY_TEXT_BYTES_MAX: usize = 4096;

/// The longest payload that the log holds in full, in bytes. Of a longer one it holds the digest.
pub const ENTRY_PAYLOAD_BYTES_MAX: usize = 64 * 1024;

/// The kind of entries about the log itself.
pub(super) const OF_LOG: &str = "portmoot/audit";

/// Outcome of an envelope or an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum RecordedVerdict {
    /// The gateway delivered it.
    Admitted,
    /// The gateway refused it.
    Refused,
    /// The gateway holds it as a proposal until a reviewer decides.
    Held,
    /// A reviewer approved the proposal.
    Approved,
    /// The proposer replaced the arguments of the proposal.
    Amended,
    /// A reviewer gave more time to decide about the proposal.
    Extended,
    /// A reviewer rejected the proposal.
    Rejected,
    /// The proposer withdrew the proposal.
    Withdrawn,
    /// The proposal expired before a decision.
    Expired,
    /// The operation completed.
    Completed,
    /// The operation failed, or its outcome is unknown.
    Failed,
    /// Capabilities in shadow would have decided the act otherwise.
    Shadow,
    /// At a start of the gateway the log did not match its stored head.
    Broken,
    /// Retention removed the oldest entries of the log.
    Removed,
}

impl RecordedVerdict {
    /// All names.
    #[must_use]
    pub fn names() -> &'static [&'static str] {
        Self::VARIANTS
    }

    /// Name in the log and in filters.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Kind of an entry, in parts that are joined with colons. Not necessarily a valid kind. `Display`
/// writes the whole text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryKind<'a> {
    /// The first part, or the whole kind.
    pub head: &'a str,
    /// The method, if it is a separate part.
    pub method: Option<&'a str>,
    /// The target, under the name that the request used.
    pub context: Option<&'a str>,
}

impl<'a> EntryKind<'a> {
    fn parts(self) -> impl Iterator<Item = &'a str> + Clone {
        [Some(self.head), self.method, self.context]
            .into_iter()
            .flatten()
    }
}

impl<'a> From<&'a str> for EntryKind<'a> {
    fn from(head: &'a str) -> Self {
        EntryKind {
            head,
            method: None,
            context: None,
        }
    }
}

impl fmt::Display for EntryKind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, part) in self.parts().enumerate() {
            f.write_str(if at == 0 { "" } else { ":" })?;
            f.write_str(part)?;
        }
        Ok(())
    }
}

/// An entry to write. Texts longer than [`ENTRY_TEXT_BYTES_MAX`] are cut.
#[derive(Debug, Clone, Copy)]
pub struct AuditEntry<'a> {
    /// Time in Unix milliseconds.
    pub at_ms: u64,
    /// Topic; `None` for acts outside topics.
    pub topic: Option<&'a str>,
    /// Participant that acted.
    pub from: &'a str,
    /// Where its act came from.
    pub origin: EntryOrigin<'a>,
    /// Kind of the envelope or act.
    pub kind: EntryKind<'a>,
    /// Name of the target at its server, if the request used another name.
    pub own: Option<&'a str>,
    /// Recipients.
    pub to: &'a [&'a str],
    /// Outcome.
    pub verdict: RecordedVerdict,
    /// Reason: the capability that admitted it, the code of the refusal, or the reason of the
    /// reviewer.
    pub why: Option<&'a str>,
    /// Operation.
    pub operation: Option<OperationId>,
    /// Trace to which it belongs, 32 hexadecimal digits, if it is traced.
    pub trace: Option<&'a str>,
    /// Digest to which a decision is bound, 64 hexadecimal digits.
    pub digest: Option<&'a str>,
    /// Payload as received. The [`Policy`] selects what the log holds of it.
    pub payload: Option<&'a [u8]>,
}

/// Where an act came from, as far as it is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EntryOrigin<'a> {
    /// Address of the other end of its connection.
    pub address: Option<IpAddr>,
    /// Name and version of its client, as the client says.
    pub client: Option<&'a str>,
}

/// Form in which the log holds payloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Payloads {
    /// The payload after redaction.
    Full,
    /// SHA-256 of the payload after redaction, so that no digest depends on a short secret.
    #[default]
    Digest,
    /// No trace of the payload.
    None,
}

/// Payload policy: form and redaction.
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
    /// A policy that redacts the values of members with these names ([`REDACTED`] by default).
    pub fn new<S: AsRef<str>>(payloads: Payloads, redact: &[S]) -> Policy {
        Policy {
            payloads,
            redaction: Redaction::new(redact),
        }
    }

    /// Whether the log has anything of payloads.
    pub(super) fn keeps_payloads(&self) -> bool {
        self.payloads != Payloads::None
    }

    /// Redacts or digests a payload. Costly: call it without a lock.
    pub(super) fn apply<'p>(&self, payload: Option<&'p [u8]>) -> LoggedPayload<'p> {
        let Some(payload) = payload else {
            return LoggedPayload::None;
        };
        match self.payloads {
            Payloads::None => LoggedPayload::None,
            Payloads::Digest => LoggedPayload::Digest(self.redaction.digest(payload)),
            Payloads::Full => match self.redaction.apply(payload) {
                Some(text) if text.len() <= ENTRY_PAYLOAD_BYTES_MAX => LoggedPayload::Full(text),
                // A payload that is not JSON could hold a secret anywhere.
                Some(_) | None => LoggedPayload::Digest(self.redaction.digest(payload)),
            },
        }
    }
}

/// A payload in its form for the log.
#[derive(Debug)]
pub(super) enum LoggedPayload<'p> {
    None,
    /// Redacted, on one line.
    Full(Cow<'p, [u8]>),
    /// SHA-256 of the redacted payload.
    Digest([u8; 32]),
}

impl<'a> AuditEntry<'a> {
    /// An entry of the gateway about the log itself.
    pub(super) fn of_log(at_ms: u64, verdict: RecordedVerdict, why: &'a str) -> Self {
        Self {
            at_ms,
            topic: None,
            from: model::GATEWAY,
            origin: EntryOrigin::default(),
            kind: OF_LOG.into(),
            own: None,
            to: &[],
            verdict,
            why: Some(why),
            operation: None,
            trace: None,
            digest: None,
            payload: None,
        }
    }

    /// Writes the members of the entry without number, MAC, braces and line feeds.
    pub(super) fn write_members(&self, out: &mut Vec<u8>, payload: &LoggedPayload<'_>) {
        Object::write_members(out, |entry| {
            entry.number("at_ms", self.at_ms);
            entry.optional_text("topic", self.topic.map(cut).as_deref());
            entry.text("from", &cut(self.from));
            write_kind(entry, self.kind);
            entry.optional_text("own", self.own.map(cut).as_deref());
            if !self.to.is_empty() {
                entry.texts("to", self.to.iter().map(|name| cut(name)));
            }
            entry.text("verdict", self.verdict.as_str());
            entry.optional_text("why", self.why.map(cut).as_deref());
            entry.optional_text("digest", self.digest.map(cut).as_deref());
            if let Some(operation) = self.operation {
                entry.raw("operation", &quoted_hex::<34>(&operation.0.to_be_bytes()));
            }
            entry.optional_text("trace", self.trace.map(cut).as_deref());
            if let Some(address) = self.origin.address {
                entry.text("address", &address.to_canonical().to_string());
            }
            entry.optional_text("client", self.origin.client.map(cut).as_deref());
            match payload {
                LoggedPayload::None => {}
                LoggedPayload::Full(text) => {
                    entry.raw("payload", text);
                }
                LoggedPayload::Digest(digest) => {
                    entry.raw("payload_sha256", &quoted_hex::<66>(digest));
                }
            }
        });
    }
}

/// An entry read from the log.
#[derive(Debug, Clone, Deserialize)]
pub struct RecordedEntry<'a> {
    /// Number, from 1.
    pub seq: u64,
    /// Time in Unix milliseconds.
    pub at_ms: u64,
    /// Topic.
    pub topic: Option<Cow<'a, str>>,
    /// Participant that acted.
    #[serde(borrow)]
    pub from: Cow<'a, str>,
    /// Kind of the envelope or act.
    #[serde(borrow)]
    pub kind: Cow<'a, str>,
    /// Name of the target at its server, if the request used another name.
    pub own: Option<Cow<'a, str>>,
    /// Recipients.
    #[serde(default)]
    pub to: Vec<Cow<'a, str>>,
    /// Outcome, as [`RecordedVerdict::as_str`].
    #[serde(borrow)]
    pub verdict: Cow<'a, str>,
    /// Reason.
    pub why: Option<Cow<'a, str>>,
    /// Digest to which a decision is bound.
    pub digest: Option<Cow<'a, str>>,
    /// Operation, 32 hexadecimal digits.
    pub operation: Option<Cow<'a, str>>,
    /// Trace, 32 hexadecimal digits.
    pub trace: Option<Cow<'a, str>>,
    /// Address from which the act came.
    pub address: Option<Cow<'a, str>>,
    /// Name and version of its client.
    pub client: Option<Cow<'a, str>>,
    /// Payload after redaction.
    #[serde(borrow, default)]
    pub payload: Option<&'a RawValue>,
    /// SHA-256 of the payload after redaction, if the log does not hold the payload.
    pub payload_sha256: Option<Cow<'a, str>>,
    /// The part of the log that is removed, of an entry that proves it.
    pub removed: Option<RecordedRemoval>,
}

impl<'a> RecordedEntry<'a> {
    /// Reads a line of the log.
    #[must_use]
    pub fn read(line: &'a str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }
}

/// The member `removed` of an entry.
#[derive(Debug, Clone, Deserialize)]
pub struct RecordedRemoval {
    pub(super) head: String,
    pub(super) entries: u64,
    pub(super) from_ms: u64,
    pub(super) to_ms: u64,
    pub(super) findings: u64,
}

fn cut(text: &str) -> Cow<'_, str> {
    if text.len() <= ENTRY_TEXT_BYTES_MAX {
        return Cow::Borrowed(text);
    }
    let longest = ENTRY_TEXT_BYTES_MAX - '\u{2026}'.len_utf8();
    let kept = (0..=longest)
        .rev()
        .find_map(|end| text.get(..end))
        .unwrap_or_default();
    Cow::Owned(format!("{kept}\u{2026}"))
}

fn write_kind(entry: &mut Object<'_>, kind: EntryKind<'_>) {
    let length: usize = kind.parts().map(|part| part.len() + 1).sum();
    if length > ENTRY_TEXT_BYTES_MAX {
        entry.text("kind", &cut(&kind.to_string()));
    } else {
        entry.joined("kind", kind.parts(), ":");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_in_parts_equals_the_joined_text() {
        let long = "x".repeat(ENTRY_TEXT_BYTES_MAX);
        for head in ["", "mcp/request", "a\n", long.as_str()] {
            for method in [None, Some(""), Some("tools/call")] {
                for context in [
                    None,
                    Some(""),
                    Some("a:b"),
                    Some("\""),
                    long.get(..4096 - 24),
                    long.get(..4096 - 22),
                ] {
                    let kind = EntryKind {
                        head,
                        method,
                        context,
                    };
                    let mut parts = Vec::new();
                    let mut whole = Vec::new();
                    Object::write(&mut parts, |entry| write_kind(entry, kind));
                    Object::write(&mut whole, |entry| {
                        entry.text("kind", &cut(&kind.to_string()));
                    });
                    assert_eq!(parts, whole, "{kind:?}");
                }
            }
        }
    }
}
