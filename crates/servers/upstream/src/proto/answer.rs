//! Answers of a proto-mcp server, read for the session and for callers that read JSON.

use bytes::Bytes;
use prost::Message as _;
use transcode::server::error::ServerError;
use transcode::server::schemas::SentTool;
use transcode::server::{handshake, resources, tools};
use wire::mcp::Version;
use wire::proto::contract::{
    CallToolResponse, InitializeResponse, ListResourcesResponse, ListToolsResponse,
    call_tool_response::Result as Called,
};
use wire::proto::{Content, PayloadKind};
use wire::rpc::{self, Id};

use crate::session::Session;

/// The answer of JSON-RPC under this number, which asked for `wanted`, perhaps of a tool; or why
/// there is none. `session` keeps the schemas of tools until all are listed.
pub(super) fn to_json(
    session: &Session,
    number: u64,
    wanted: PayloadKind,
    tool: Option<&SentTool>,
    content: Content,
) -> Result<Bytes, String> {
    let id = Id::number(number);
    let Content::Payload(kind, field) = content else {
        return Err("it answers with nothing".to_owned());
    };
    let message = PayloadKind::split(&field)
        .map(|(_, message)| message)
        .ok_or("it cannot be read")?;
    let unreadable = |_| "it cannot be read".to_owned();
    let answer = match kind {
        // A server may answer any request with the error of a call.
        PayloadKind::CallToolResponse if wanted != PayloadKind::CallToolResponse => {
            match CallToolResponse::decode(message)
                .map_err(unreadable)?
                .result
            {
                Some(Called::Error(error)) => Err(ServerError::from(error)),
                Some(Called::Success(_)) | None => {
                    return Err("it answers another request".to_owned());
                }
            }
        }
        kind if kind != wanted && kind != PayloadKind::ErrorResponse => {
            return Err("it answers another request".to_owned());
        }
        PayloadKind::CallToolResponse
        | PayloadKind::ReadResourceResponse
        | PayloadKind::ErrorResponse => {
            let tool = tool.map(|tool| &tool.schema);
            transcode::server::answer(&field, tool).ok_or("it cannot be read")?
        }
        PayloadKind::ListToolsResponse => {
            let page = tools::page(ListToolsResponse::decode(message).map_err(unreadable)?);
            session.sent_schemas.add(page.schemas);
            Ok(page.result)
        }
        PayloadKind::ListResourcesResponse => Ok(resources::page(
            ListResourcesResponse::decode(message).map_err(unreadable)?,
        )),
        PayloadKind::InitializeResponse => {
            let answer = InitializeResponse::decode(message).map_err(unreadable)?;
            handshake::result(answer, Version::NEWEST_LEGACY.as_str())
        }
        PayloadKind::InitializeRequest
        | PayloadKind::ListToolsRequest
        | PayloadKind::CallToolRequest
        | PayloadKind::ListResourcesRequest
        | PayloadKind::ReadResourceRequest => return Err("it is a request".to_owned()),
    };
    Ok(match answer {
        Ok(result) => rpc::result(&id, result.to_string().as_bytes()),
        Err(error) => rpc::error_object(&id, error.to_json().to_string().as_bytes()),
    })
}
