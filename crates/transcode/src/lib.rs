//! Payloads of proto-mcp to and from MCP's JSON.
//!
//! [`server`] is for servers that read protobuf, and callers that read JSON. Everything here is pure: bytes in, bytes out.

pub mod server;
