//! JSON as it lies in a frame: reading some members, changing some bytes.
//!
//! Owns syntax only. It must not know what any member means.

mod canon;
mod deep;
mod edit;
mod error;
mod members;
mod note;
mod quick;
mod splice;
mod spot;
mod text;
mod tokens;

pub use canon::{CANONICAL_DEPTH_MAX, canonical};
pub use deep::refuse_duplicates;
pub use edit::ObjectEdit;
pub(crate) use edit::{Change, edit_object, leaves_nothing, object_of, write_member};
pub use error::JsonError;
#[cfg(test)]
pub(crate) use members::NOTES_MAX;
pub use members::{Member, Members, elements, members};
pub(crate) use members::{duplicate, each, each_element, outline, scan};
pub(crate) use note::Notes;
pub use splice::{Span, Splice};
pub(crate) use spot::Spot;
pub use text::{integer, is_object, quote, text};

#[cfg(test)]
pub(crate) mod tests;
