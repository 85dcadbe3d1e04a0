//! Error type of all readers.

/// Why bytes could not be read as the JSON that was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// Not JSON at all, or not UTF-8, or nested deeper than 128 where the nesting had to be followed.
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
    pub(crate) fn syntax(error: &serde_json::Error) -> Self {
        Self::Syntax(error.to_string())
    }
}
