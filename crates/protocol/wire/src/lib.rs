//! Codecs: JSON-RPC, MCP's eras, MCPx, proto-mcp, and the refusals of each.
//!
//! Everything here is a pure function over bytes. There is no socket, no clock and no state of a
//! topic. A relayed message is never decoded into a typed model and written again: the readers find
//! the few members that matter in place ([`json::members`]), and a rewrite is a [`json::Splice`]
//! over the frame, so that all other bytes survive.
//!
//! | module | contents |
//! |---|---|
//! | [`digest`] | a call as a reviewer sees it, and its digest |
//! | [`mod@line`] | newline framing of stdio |
//! | [`sse`] | server-sent events of Streamable HTTP |
//! | [`rpc`] | JSON-RPC 2.0 messages, ids, batches |
//! | [`mcpx`] | MCPx v0.1: envelopes, system messages, chat, refusals |
//! | [`time`] | RFC 3339 timestamps |
//! | `proto` | proto-mcp 1.0: frames, `MCPMessage`, the contract's messages, refusals; a feature that is on by default |
//! | [`mcp`] | MCP: revisions, methods, params, headers, lists, URIs, translation between the eras, refusals |

pub mod digest;
pub mod line;
pub mod mcp;
pub mod mcpx;
#[cfg(feature = "proto")]
pub mod proto;
pub mod rpc;
pub mod sse;
pub mod time;
mod twin;
