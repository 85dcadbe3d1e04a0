//! The codecs: JSON-RPC, MCP's eras, and how a refusal is spelled on each.
//!
//! Everything here is a pure function over bytes. There is no socket, no clock and no state of a topic. What is
//! relayed is never decoded into a typed model and written again: the few members that matter are read where they
//! lie ([`json::members`]), and a rewrite is a [`json::Splice`] over the frame, so that all other bytes survive.
//!
//! | module | what it owns |
//! |---|---|
//! | [`digest`] | what a reviewer is shown of a call, and its digest |
//! | [`mod@line`] | newline framing, as stdio has it |
//! | [`sse`] | server-sent events, as Streamable HTTP has them |
//! | [`rpc`] | JSON-RPC 2.0 messages, ids, batches |
//! | [`mcpx`] | MCPx v0.1: envelopes, system messages, chat, refusals |
//! | [`time`] | moments as RFC 3339 |
//! | [`mcp`] | MCP: revisions, methods, params, headers, lists, URIs, translation between the eras, refusals |

pub mod digest;
pub mod line;
pub mod mcp;
pub mod mcpx;
pub mod rpc;
pub mod sse;
pub mod time;
