//! Strings as JSON writes them: quotes, and the escapes that are required; the buffers that they
//! are written into.

use smallvec::{Array, SmallVec};

use crate::scan::{end_of_plain, is_plain};

/// The spellings of control characters.
const CONTROLS: [&str; 32] = [
    "\\u0000", "\\u0001", "\\u0002", "\\u0003", "\\u0004", "\\u0005", "\\u0006", "\\u0007",
    "\\u0008", "\\t", "\\n", "\\u000b", "\\u000c", "\\r", "\\u000e", "\\u000f", "\\u0010",
    "\\u0011", "\\u0012", "\\u0013", "\\u0014", "\\u0015", "\\u0016", "\\u0017", "\\u0018",
    "\\u0019", "\\u001a", "\\u001b", "\\u001c", "\\u001d", "\\u001e", "\\u001f",
];

/// A growing text: `Vec<u8>`, `String`, or bytes of which few need no allocation.
pub(crate) trait Buffer {
    /// Appends a text.
    fn put(&mut self, text: &str);
}

impl Buffer for Vec<u8> {
    #[inline]
    fn put(&mut self, text: &str) {
        self.extend_from_slice(text.as_bytes());
    }
}

impl<A: Array<Item = u8>> Buffer for SmallVec<A> {
    #[inline]
    fn put(&mut self, text: &str) {
        self.extend_from_slice(text.as_bytes());
    }
}

impl Buffer for String {
    #[inline]
    fn put(&mut self, text: &str) {
        self.push_str(text);
    }
}

/// `text` as a JSON string, quotes included.
#[must_use]
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    put_text(&mut out, text);
    out
}

/// Appends `text` as a JSON string, quotes included.
#[inline]
pub(crate) fn put_text<B: Buffer>(out: &mut B, text: &str) {
    out.put("\"");
    put_escaped(out, text);
    out.put("\"");
}

/// Appends a JSON string of several parts with a separator between them.
#[inline]
pub(crate) fn put_joined<'t, B: Buffer>(
    out: &mut B,
    parts: impl IntoIterator<Item = &'t str>,
    separator: &str,
) {
    out.put("\"");
    for (at, part) in parts.into_iter().enumerate() {
        if at > 0 {
            put_escaped(out, separator);
        }
        put_escaped(out, part);
    }
    out.put("\"");
}

#[inline]
fn put_escaped<B: Buffer>(out: &mut B, text: &str) {
    if is_plain(text.as_bytes()) {
        out.put(text);
    } else {
        put_with_escapes(out, text);
    }
}

#[cold]
fn put_with_escapes<B: Buffer>(out: &mut B, mut text: &str) {
    loop {
        let at = end_of_plain(text.as_bytes(), &mut 0).unwrap_or(text.len());
        let (plain, rest) = text.split_at_checked(at).unwrap_or((text, ""));
        out.put(plain);
        let Some(byte) = rest.bytes().next() else {
            return;
        };
        out.put(match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            control => CONTROLS
                .get(usize::from(control))
                .copied()
                .unwrap_or_default(),
        });
        // The byte is ASCII.
        text = rest.get(1..).unwrap_or_default();
    }
}
