//! A gateway as the command line sees it: a connection, the REST API on it, and an MCP session on it.
//!
//! Must not know commands, nor whether the gateway is far away or in this process.

mod api;
mod http;
mod mcp;
mod source;

pub(crate) use api::Api;
pub(crate) use mcp::{Answers, Question, Session, not_offered};
pub(crate) use source::{Remote, Source, Stream};
