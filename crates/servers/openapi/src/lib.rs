//! HTTP APIs as tools: what an OpenAPI description (3.0 or 3.1) says, and the requests and results
//! that follow from it.
//!
//! [`Document::read`] reads JSON or YAML within bounds. [`Document::operations`] makes each
//! operation a tool of MCP: a name, an input schema, annotations. [`Operation::request`] builds the
//! HTTP request of a call, and [`OperationAnswer::result`] the tool's result.
//!
//! Nothing here connects to anything, and no reference to another document is followed. A request's
//! path and query come from the description and from arguments that are percent-encoded; its origin
//! is not part of it.

mod answer;
mod body;
mod document;
mod error;
mod names;
mod operation;
mod parameter;
mod path;
mod refs;
mod request;
mod schema;
mod security;
mod style;
mod written;
mod yaml;

pub use answer::OperationAnswer;
pub use document::Document;
pub use error::{DEPTH_MAX, DOCUMENT_BYTES_MAX, DescriptionError, EXPANDED_BYTES_MAX, VALUES_MAX};
pub use names::TOOL_NAME_CHARS_MAX;
pub use operation::{
    DEFINITIONS_BYTES_MAX, LeftOut, OPERATIONS_MAX, Operation, Operations, Presets, TEXT_CHARS_MAX,
};
pub use request::OperationRequest;
pub use schema::{INPUT_SCHEMA_BYTES_MAX, OUTPUT_SCHEMA_BYTES_MAX};
pub use security::{ApiCredential, Sent};
