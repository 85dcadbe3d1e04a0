//! Writing an envelope, in the order of the specification's examples.
//!
//! It must not know payloads: they are bytes.

use bytes::Bytes;
use json::{quote, write_member};

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
    out.push(b'{');
    write_member(&mut out, "protocol", quote(PROTOCOL).as_bytes());
    add_text(&mut out, "id", Some(draft.id));
    add_text(&mut out, "ts", draft.ts);
    add_text(&mut out, "from", Some(draft.from));
    if !draft.to.is_empty() {
        add(&mut out, "to", list_of_text(draft.to).as_bytes());
    }
    add_text(&mut out, "kind", Some(draft.kind));
    add_text(&mut out, "correlation_id", draft.correlation_id);
    add(&mut out, "payload", draft.payload);
    out.push(b'}');
    Bytes::from(out)
}

/// Appends a further member of an object.
pub(super) fn add(out: &mut Vec<u8>, key: &str, raw: &[u8]) {
    out.push(b',');
    write_member(out, key, raw);
}

/// Appends a further member that is a string, if there is one.
pub(super) fn add_text(out: &mut Vec<u8>, key: &str, text: Option<&str>) {
    if let Some(text) = text {
        add(out, key, quote(text).as_bytes());
    }
}

/// An array of strings.
pub(super) fn list_of_text(texts: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let quoted: Vec<String> = texts.into_iter().map(|text| quote(text.as_ref())).collect();
    format!("[{}]", quoted.join(","))
}
