//! Tool schemas in protobuf: JSON Schema to proto3 messages with the rules of `buf.validate`.
//!
//! The messages are a relaxation of the JSON Schema: whatever it allows they can carry, except members that it does not name.
//! What protobuf cannot express is `google.protobuf.Struct`, `Value` or `ListValue`. The crate does no I/O.
//!
//! - [`convert`]: a tool's schemas as a [`File`]; [`Numbers`] of an earlier conversion stay.
//! - [`File::text`], [`File::messages`]: the file as a person writes it.
//! - [`compile`]: its descriptors.

mod compile;
mod convert;
mod file;
mod names;
mod node;
mod numbers;
mod print;
mod reference;
mod rules;
mod shape;

pub use compile::{CompileError, VALIDATE_PROTO, VALIDATE_TEXT, compile};
pub use convert::{Converted, STRUCT, Style, Tool, convert};
pub use file::File;
pub use names::{Names, pascal, snake};
pub use numbers::Numbers;
pub use reference::{BadReference, REFERENCE_BYTES_MAX, Reference, is_commit};
