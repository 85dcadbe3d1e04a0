//! Texts of requests: written piece by piece, and never beyond their bound.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

/// Characters that are not percent-encoded: the unreserved ones of RFC 3986.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A text, percent-encoded: none of its characters means anything in a URL.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, UNRESERVED).to_string()
}

/// A value as one text.
pub(crate) fn plain(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Null => Cow::Borrowed(""),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Cow::Owned(value.to_string())
        }
    }
}

/// A part of a request while it is written. One key of an argument may be repeated for each item of
/// a list, so that a part can be far longer than its arguments: what would go beyond the bound is
/// not written.
pub(crate) struct Written {
    /// Which part, in words for the caller.
    part: &'static str,
    /// The most bytes.
    max: usize,
    bytes: Vec<u8>,
}

/// A way to write a text.
pub(crate) type Put = fn(&mut Written, &str) -> Result<(), String>;

impl Written {
    /// Nothing yet, of a part that may have this many bytes.
    pub(crate) fn new(part: &'static str, max: usize) -> Self {
        Self {
            part,
            max,
            bytes: Vec::new(),
        }
    }

    /// Writes bytes.
    ///
    /// # Errors
    /// The part would be too long, in words for the caller.
    pub(crate) fn extend(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.spare(bytes.len())?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Writes a text as it is.
    pub(crate) fn push(&mut self, text: &str) -> Result<(), String> {
        self.extend(text.as_bytes())
    }

    /// Writes a text percent-encoded: none of its characters means anything in a URL.
    pub(crate) fn encoded(&mut self, text: &str) -> Result<(), String> {
        utf8_percent_encode(text, UNRESERVED).try_for_each(|piece| self.push(piece))
    }

    /// Whether this many bytes more can be written.
    pub(crate) fn spare(&self, more: usize) -> Result<(), String> {
        if more > self.max.saturating_sub(self.bytes.len()) {
            return Err(format!(
                "the request would be too long: {} may have at most {} bytes",
                self.part, self.max
            ));
        }
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The text; all that is written here piece by piece is UTF-8.
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes).unwrap_or_default()
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Pairs of names and values, as a query, a form or cookies have them.
pub(crate) struct Pairs {
    /// Text between two of them.
    by: &'static str,
    pub(crate) written: Written,
}

impl Pairs {
    pub(crate) fn new(by: &'static str, written: Written) -> Self {
        Self { by, written }
    }

    /// Begins a pair: its value is written after it.
    pub(crate) fn name(&mut self, name: &str) -> Result<&mut Written, String> {
        if self.written.len() > 0 {
            self.written.push(self.by)?;
        }
        self.written.encoded(name)?;
        self.written.push("=")?;
        Ok(&mut self.written)
    }

    /// Adds a pair.
    pub(crate) fn pair(&mut self, name: &str, value: &str) -> Result<(), String> {
        self.name(name)?.encoded(value)
    }
}

/// The names of other parameters of the same place, as servers may compare them. No key of an
/// argument becomes a name among these: else a caller would set an argument that is preset, hidden
/// or a credential.
#[derive(Default)]
pub(crate) struct Others(Vec<String>);

impl Others {
    pub(crate) fn new<'n>(names: impl Iterator<Item = &'n str>) -> Self {
        Self(names.map(folded).collect())
    }

    /// Refuses a name that is made of an argument's keys.
    ///
    /// # Errors
    /// It is another parameter's, in words for the caller.
    pub(crate) fn refuse(&self, name: &str) -> Result<(), String> {
        if self.0.is_empty() {
            return Ok(());
        }
        let folded = folded(name);
        // A server may read either of two names as a member of the other.
        let is_other = |other: &String| is_within(&folded, other) || is_within(other, &folded);
        if !self.0.iter().any(is_other) {
            return Ok(());
        }
        let shown: String = name.chars().take(64).collect();
        Err(format!(
            "a key would be sent as `{}`, which is the name of another parameter",
            shown.escape_debug()
        ))
    }
}

/// Whether a name is another one, or a member of it in brackets: `owner[]` and `owner[x]` are
/// spellings of `owner` for some servers.
fn is_within(name: &str, other: &str) -> bool {
    match name.strip_prefix(other) {
        Some(rest) => rest.is_empty() || rest.starts_with('['),
        None => false,
    }
}

/// A name as servers may compare it: many read `apiKey`, `api_key`, `api.key` and `API-KEY` as one.
fn folded(name: &str) -> String {
    let kept = |c: &char| !matches!(c, '_' | '-' | '.') && !c.is_whitespace() && !c.is_control();
    name.chars()
        .filter(kept)
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_written_up_to_its_longest_and_not_beyond() {
        let mut written = Written::new("its body", 4);
        assert_eq!(written.push("abc"), Ok(()));
        let refused = written.encoded("ü").unwrap_err();
        assert_eq!(
            refused,
            "the request would be too long: its body may have at most 4 bytes"
        );
        assert_eq!((written.push("d"), written.push("")), (Ok(()), Ok(())));
        assert!(written.push("e").is_err());
        assert_eq!(written.text(), "abcd");
    }

    #[test]
    fn a_name_of_another_parameter_is_refused_in_every_spelling() {
        let others = Others::new(["apiKey", "filter[owner]"].into_iter());
        for name in [
            "apiKey",
            "APIKEY",
            "api_key",
            "api.key",
            " api-key",
            "api_key[]",
            "apiKey[x]",
        ] {
            assert!(others.refuse(name).is_err(), "{name}");
        }
        for name in ["filter[owner]", "filter[OWNER][x]", "filter"] {
            assert!(others.refuse(name).is_err(), "{name}");
        }
        for name in [
            "key",
            "apiKeys",
            "filter[x]",
            "filters",
            "filter[ownership]",
        ] {
            assert_eq!(others.refuse(name), Ok(()), "{name}");
        }
        assert_eq!(Others::default().refuse("any"), Ok(()));
    }
}
