//! Tool schemas in protobuf: JSON Schema to proto3 messages with the rules of `buf.validate`.
//!
//! The messages are a relaxation of the JSON Schema: whatever it allows they can carry, except
//! members that it does not name. What protobuf cannot express is `google.protobuf.Struct`, `Value`
//! or `ListValue`. The crate does no I/O.
//!
//! - [`convert`]: a tool's schemas as a [`File`]; [`FieldNumbering`] of an earlier conversion stay.
//! - [`File::text`], [`File::messages`]: the file as a person writes it.
//! - [`compile`]: its descriptors. [`compile_sources`]: those of files of strangers.
//! - [`Module`]: all of that for the tools of a server. [`Descriptors`]: the schemas of a peer,
//!   from their bytes.
//! - [`json_schema`]: a message as JSON Schema.
//! - [`Reference`]: where a schema is in a registry.
//! - [`ToolSchema`]: the messages of one tool; JSON to messages ([`Typed`]) and back, and their
//!   rules.

mod back;
mod common;
mod compile;
mod convert;
mod costs;
mod cycles;
mod descriptor;
mod file;
mod files;
mod module;
mod names;
mod node;
mod numbers;
mod pattern;
mod print;
mod reference;
mod rules;
mod set;
mod sets;
mod shape;
mod sources;
mod tool;
mod validate;
mod values;

pub use back::json_schema;
pub use compile::{CompileError, VALIDATE_PROTO, VALIDATE_TEXT, compile};
pub use convert::{Converted, ListedTool, STRUCT, Style, convert};
pub use file::File;
pub use files::SetError;
pub use module::{Module, convert_all, package_of};
pub use names::{Names, pascal, snake};
pub use numbers::FieldNumbering;
pub use reference::{LABELS, NoReference, OWNER, Reference};
pub use set::Descriptors;
pub use sources::{ModuleSources, compile_sources};
pub use tool::{ToolReference, ToolSchema};
pub use validate::{Invalid, RuleViolation};
pub use values::{Typed, UnsaidParts, ValueError, struct_from_json, type_url};
