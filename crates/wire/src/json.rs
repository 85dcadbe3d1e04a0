//! JSON as it lies in a frame: reading some members, changing some bytes.
//!
//! Owns syntax only. It must not know what any member means.

mod deep;
mod edit;
mod members;
mod splice;
mod text;

pub use deep::refuse_duplicates;
pub use edit::ObjectEdit;
pub(crate) use edit::write_member;
pub(crate) use members::scan;
pub use members::{Member, Members, elements, members};
pub use splice::{Span, Splice};
pub use text::{integer, is_object, quote, text};

/// Why bytes could not be read as the JSON that was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
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

#[cfg(test)]
pub(crate) mod tests;
