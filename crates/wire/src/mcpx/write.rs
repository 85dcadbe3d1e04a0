//! Writer of envelopes, in the order of the specification's examples; payloads are bytes.

use bytes::Bytes;
use json::Object;

use super::PROTOCOL;

/// What an envelope is to say. The payload goes in as it is, and must be a JSON object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draft<'a> {
    /// The message's id.
    pub id: &'a str,
    /// When it is sent, as RFC 3339 (see [`crate::time::rfc3339`]).
    pub ts: Option<&'a str>,
    /// Who sends it.
    pub from: &'a str,
    /// Whom it is for; none means everybody, and `to` is left out.
    pub to: &'a [&'a str],
    /// What it is.
    pub kind: &'a str,
    /// The id of the envelope that it answers, fulfils or continues.
    pub correlation_id: Option<&'a str>,
    /// The payload, byte for byte.
    pub payload: &'a [u8],
}

/// Writes an envelope (section 3).
#[must_use]
pub fn envelope(draft: &Draft<'_>) -> Bytes {
    let mut out = Vec::with_capacity(160 + draft.kind.len() + draft.payload.len());
    Object::write(&mut out, |envelope| {
        envelope.text("protocol", PROTOCOL).text("id", draft.id).optional_text("ts", draft.ts);
        envelope.text("from", draft.from);
        if !draft.to.is_empty() {
            envelope.texts("to", draft.to);
        }
        envelope.text("kind", draft.kind).optional_text("correlation_id", draft.correlation_id);
        envelope.raw("payload", draft.payload);
    });
    Bytes::from(out)
}
