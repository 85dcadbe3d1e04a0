//! Servers that read protobuf: their lists, calls, results and errors for callers that read JSON.
//!
//! | module | contents |
//! |---|---|
//! | [`handshake`] | `initialize` and its answer |
//! | [`tools`], [`resources`] | pages of lists; contents of resources |
//! | [`schemas`] | what came with the tools: their messages |
//! | [`call`] | calls and their arguments |
//! | [`result`] | results of calls |
//! | [`error`] | errors of both kinds |

pub mod call;
mod data;
pub mod error;
pub mod handshake;
mod items;
pub mod resources;
pub mod result;
pub mod schemas;
pub mod tools;
mod value;

use bytes::Bytes;
use prost::Message as _;
use schema::ToolSchema;
use serde_json::Value as Json;
use wire::proto::PayloadKind;
use wire::proto::contract::{CallToolResponse, ErrorResponse, ReadResourceResponse};

/// The answer to a call of this tool, or to a read, as a result or error of MCP: `field` is the
/// payload field. `None` if it cannot be read, or answers something else.
#[must_use]
pub fn answer(
    field: &Bytes,
    tool: Option<&ToolSchema>,
) -> Option<Result<Json, error::ServerError>> {
    let (kind, message) = PayloadKind::split(field)?;
    Some(match kind {
        PayloadKind::CallToolResponse => {
            result::called(CallToolResponse::decode(message).ok()?, tool)
        }
        PayloadKind::ReadResourceResponse => {
            Ok(resources::read(ReadResourceResponse::decode(message).ok()?))
        }
        PayloadKind::ErrorResponse => Err(ErrorResponse::decode(message).ok()?.into()),
        _ => return None,
    })
}
