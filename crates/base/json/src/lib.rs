//! JSON in a frame: reading some members, changing some bytes, one canonical text.
//!
//! No value is decoded into a tree and written again. Members are read where they lie, a rewrite is
//! a [`Splice`] over the frame, and all other bytes survive. The crate owns syntax only and depends
//! on no other crate of the workspace.
//!
//! - [`members`], [`elements`]: an object's members, an array's elements, with their places.
//!   [`each_member`], [`each_element`] and [`outline`] keep nothing, or only the places.
//! - [`at`]: the value at the end of a path of members.
//! - [`text`], [`integer`], [`is_object`], [`StringSpan`]: single values.
//! - [`check`]: the syntax of a value. [`Tokens`]: its tokens, in order. [`nesting`]: how many lie
//!   inside each other.
//! - [`Splice`], [`edit_object`], [`edited`]: edits of a frame.
//! - [`canonical`], [`refuse_duplicates`]: one text for all spellings of a value. [`compact`]: the
//!   same spelling without white space.
//! - [`Object`], [`Array`], [`object`], [`quote`]: writing.
//! - [`visible`]: safe text for people.

mod canonical;
mod compact;
mod duplicates;
mod edit;
mod error;
mod escape;
mod members;
mod outline;
mod scan;
mod span;
mod splice;
#[cfg(any(test, feature = "proptest"))]
pub mod strategies;
mod string_span;
mod text;
mod tokens;
pub mod visible;
mod write;

pub use canonical::canonical;
pub use compact::compact;
pub use duplicates::{first_duplicate, refuse_duplicates};
pub use edit::{MemberChange, edit_object, edited, leaves_nothing, object_of};
pub use error::JsonError;
pub use escape::quote;
pub use members::{Member, Members, at, each_member, members, members_with_duplicates};
pub use outline::{OUTLINE_MEMBERS_MAX, Outline, outline};
pub use span::Span;
pub use splice::Splice;
pub use string_span::StringSpan;
pub use text::{check, each_element, elements, integer, is_object, text};
pub use tokens::{Token, Tokens, nesting};
pub use write::{Array, Object, object};

#[cfg(test)]
mod tests;
