//! Error type of all readers.

use crate::span::{FRAME_BYTES_MAX, Span};
use serde_json::value::RawValue;

/// Why bytes could not be read as the JSON that was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// Not JSON at all, or not UTF-8, or nested deeper than 128 where the nesting had to be
    /// followed.
    #[error("not valid JSON: {0}")]
    Syntax(String),
    /// Valid JSON, but an object was expected.
    #[error("expected a JSON object")]
    NotAnObject,
    /// Valid JSON, but an array was expected.
    #[error("expected a JSON array")]
    NotAnArray,
    /// A member occurs twice in one object (compared after unescaping).
    #[error("the member {0:?} occurs twice")]
    Duplicate(String),
}

impl JsonError {
    #[cold]
    pub(crate) fn of(frame: &[u8], within: Span, other: Self) -> Self {
        match serde_json::from_slice::<&RawValue>(within.of(frame)) {
            Err(error) => Self::Syntax(error.to_string()),
            Ok(_) if frame.len() > FRAME_BYTES_MAX => Self::Syntax("longer than 4 GiB".to_owned()),
            Ok(_) => other,
        }
    }
    pub(crate) fn half_a_pair() -> Self {
        Self::Syntax("half a surrogate pair in a key".to_owned())
    }
}
