//! The upstream as a server of proto-mcp, with its schema inline.

use std::collections::HashMap;
use std::io::{self, Read, Write};

use bytes::{Bytes, BytesMut};
use portmoot_bench::proto::Text;
use prost::Message as _;
use schema::{FieldNumbering, ListedTool as Described, Module};
use wire::proto::contract::{
    CallToolRequest, CallToolResponse, InitializeResponse, ListToolsResponse, ServerCapabilities,
    Tool, ToolCapabilities, ToolContent, ToolResult, call_tool_response, tool, tool_content,
};
use wire::proto::frame::{FRAME_BYTES_MAX, Frame, Frames, of_field};
use wire::proto::{Content, PayloadKind, ProtoEnvelope, VERSION};

/// Answers on its pipe until the pipe ends.
pub(super) fn serve() -> io::Result<()> {
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    let (list, mut buffer) = (list(), vec![0; 64 << 10]);
    let mut frames = Frames::new(FRAME_BYTES_MAX, BytesMut::new());
    loop {
        let count = input.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        frames.buffer().extend_from_slice(&buffer[..count]);
        let mut out = Vec::new();
        while let Some(frame) = frames.next_frame() {
            let Frame::Message(message) = frame else {
                continue;
            };
            out.extend_from_slice(&answer(&message, &list).unwrap_or_default());
        }
        output.write_all(&out)?;
        output.flush()?;
    }
}

/// The answer as a frame, if the message needs one.
fn answer(message: &Bytes, list: &ListToolsResponse) -> Option<Bytes> {
    let ProtoEnvelope {
        id,
        content: Content::Payload(_, field),
    } = ProtoEnvelope::read(message).ok()?
    else {
        return None;
    };
    let (kind, body) = PayloadKind::split(&field)?;
    let field = match kind {
        PayloadKind::InitializeRequest => {
            let capabilities = ServerCapabilities {
                tools: Some(ToolCapabilities::default()),
                ..Default::default()
            };
            PayloadKind::InitializeResponse.field_of(&InitializeResponse {
                protocol_version: VERSION.to_owned(),
                capabilities: Some(capabilities),
                ..Default::default()
            })
        }
        PayloadKind::ListToolsRequest => PayloadKind::ListToolsResponse.field_of(list),
        PayloadKind::CallToolRequest => {
            let call = CallToolRequest::decode(body).ok()?;
            let text = Text::decode(&*call.arguments?.value).ok()?.text;
            let content = ToolContent {
                mime_type: "text/plain".to_owned(),
                content: Some(tool_content::Content::Text(text)),
            };
            let result = ToolResult {
                content: vec![content],
                is_error: false,
            };
            PayloadKind::CallToolResponse.field_of(&CallToolResponse {
                result: Some(call_tool_response::Result::Success(result)),
                ..Default::default()
            })
        }
        _ => return None,
    };
    of_field(id, &field)
}

fn list() -> ListToolsResponse {
    let input = br#"{"type":"object","properties":{"text":{"type":"string"}}}"#;
    let described = Described {
        name: "echo",
        description: None,
        input,
        output: None,
    };
    let module = Module::new("echo.v1", &[described], &FieldNumbering::default());
    let schema = module.tool("echo").expect("it converts");
    let metadata = HashMap::from([(
        "mcp.input_message".to_owned(),
        schema.input().full_name().to_owned(),
    )]);
    let tool = Tool {
        name: "echo".to_owned(),
        description: "Answers with its text.".to_owned(),
        metadata,
        schema_source: Some(tool::SchemaSource::InlineSchema(schema.set())),
    };
    ListToolsResponse {
        tools: vec![tool],
        next_cursor: String::new(),
    }
}
