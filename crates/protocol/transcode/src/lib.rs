//! Payloads of proto-mcp to and from MCP's JSON, by the schemas of tools.
//!
//! Pure functions over bytes. What protobuf cannot express travels as `google.protobuf.Struct`;
//! what the contract has no field for travels in `metadata`, under keys that begin with `mcp.`.
//!
//! | module | contents |
//! |---|---|
//! | [`client`] | what clients of proto-mcp ask of servers that speak JSON, and what these answer |
//! | [`server`] | what callers that speak JSON ask of servers of proto-mcp, and what these answer |
//! | [`shown`] | requests and answers between two peers of proto-mcp, in JSON for people |

mod arguments;
pub mod client;
pub mod server;
pub mod shown;
mod value;

/// Keys of `metadata` that MCP's members travel under (docs/proto.md).
pub mod key {
    /// The full name of a tool's input message.
    pub const INPUT_MESSAGE: &str = "mcp.input_message";
    /// The full name of a tool's output message.
    pub const OUTPUT_MESSAGE: &str = "mcp.output_message";
    /// The reference of a schema that is sent inline.
    pub const REFERENCE: &str = "mcp.bsr_ref";
    /// The places of empty lists and maps: a JSON array of JSON pointers.
    pub const EMPTY: &str = "mcp.empty";
    /// The places of nulls: the same.
    pub const NULL: &str = "mcp.null";
    /// `_meta`, or what of it is no text: JSON.
    pub const META: &str = "mcp._meta";
    /// A human-readable name.
    pub const TITLE: &str = "mcp.title";
    /// The JSON Schema of a tool's arguments.
    pub const INPUT_SCHEMA: &str = "mcp.input_schema";
    /// The JSON Schema of a tool's results.
    pub const OUTPUT_SCHEMA: &str = "mcp.output_schema";
}

/// The media type of a block of content that travels as `google.protobuf.Struct`.
pub const CONTENT_TYPE: &str = "application/vnd.mcp.content+json";
