//! `MCPMessage`: the golden frames of proto-mcp's exchanges, and bytes that are no message.

use super::*;
use crate::proto::contract::{
    CallToolRequest, ClientCapabilities, ErrorResponse, InitializeRequest, InitializeResponse,
    ListToolsRequest, ListToolsResponse, ServerCapabilities, ToolCapabilities,
};
use crate::proto::frame::framed;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes the message, and reads it again.
#[track_caller]
fn check(id: u64, kind: PayloadKind, body: &impl prost::Message, golden: &str) {
    let field = kind.field_of(body);
    let written = message(id, &field);
    assert_eq!(hex(&framed(&written).unwrap()), golden.replace(' ', ""));
    let read = ProtoEnvelope::read(&written).unwrap();
    assert_eq!(
        read,
        ProtoEnvelope {
            id,
            content: Content::Payload(kind, field.clone())
        }
    );
    assert_eq!(
        PayloadKind::split(&field),
        Some((kind, body.encode_to_vec().into()))
    );
}

/// Source: proto-mcp v1.0, "Complete Wire Examples"; the lengths printed there are not those of the
/// messages.
#[test]
fn golden_frames() {
    let version = "1.0.0".to_owned();
    let encodings = vec!["protobuf".to_owned()];
    let capabilities = ClientCapabilities {
        supports_bsr_refs: true,
        encodings,
        ..Default::default()
    };
    let asked = InitializeRequest {
        protocol_version: version.clone(),
        capabilities: Some(capabilities),
        ..Default::default()
    };
    check(
        1,
        PayloadKind::InitializeRequest,
        &asked,
        "00000019080112150a05312e302e30120c08011a0870726f746f627566",
    );
    let tools = Some(ToolCapabilities {
        supports_list_changed: true,
    });
    let capabilities = ServerCapabilities {
        supports_bsr_refs: true,
        tools,
        ..Default::default()
    };
    let answer = InitializeResponse {
        protocol_version: version,
        capabilities: Some(capabilities),
        ..Default::default()
    };
    check(
        1,
        PayloadKind::InitializeResponse,
        &answer,
        "0000001308011a0f0a05312e302e30120608011a020801",
    );
    let arguments = prost_types::Any {
        type_url: "type.googleapis.com/acme.tools.v1.WebSearchRequest".to_owned(),
        value: vec![0x0A, 8, b'p', b'r', b'o', b't', b'o', b'b', b'u', b'f'],
    };
    let url = hex(arguments.type_url.as_bytes());
    let call = CallToolRequest {
        name: "web_search".to_owned(),
        arguments: Some(arguments),
        ..Default::default()
    };
    let golden = format!(
        "00000052 0802324e0a0a7765625f736561726368 12400a32 {url} 120a0a08 {}",
        hex(b"protobuf")
    );
    check(2, PayloadKind::CallToolRequest, &call, &golden);
    check(
        2,
        PayloadKind::ListToolsRequest,
        &ListToolsRequest::default(),
        "0000000408022200",
    );
    check(
        0,
        PayloadKind::ListToolsResponse,
        &ListToolsResponse::default(),
        "000000022a00",
    );
    let error = ErrorResponse {
        code: -33002,
        message: "unsupported protocol version".to_owned(),
        data: None,
    };
    let golden = format!(
        "0000002d080462290896fefdffffffffffff01121c {}",
        hex(error.message.as_bytes())
    );
    check(4, PayloadKind::ErrorResponse, &error, &golden);
}

#[test]
fn a_ping_has_nothing_but_an_id() {
    let ping = message(3, b"");
    assert_eq!(hex(&framed(&ping).unwrap()), "000000020803");
    assert_eq!(
        ProtoEnvelope::read(&ping).unwrap(),
        ProtoEnvelope {
            id: 3,
            content: Content::Ping
        }
    );
}

#[test]
fn an_unknown_payload_is_no_ping() {
    // Field 13, and a known one written as a number.
    let read = |bytes: &[u8]| ProtoEnvelope::read(&Bytes::copy_from_slice(bytes));
    assert_eq!(
        read(&[0x08, 3, 0x6A, 0]).unwrap(),
        ProtoEnvelope {
            id: 3,
            content: Content::Unknown
        }
    );
    assert_eq!(read(&[0x08, 3, 0x68, 0, 0x22, 0]).unwrap().id, 3);
    assert_eq!(read(&[0x08, 3, 0x10, 0]), Err(Unreadable));
}

#[test]
fn bytes_that_are_no_message_are_refused() {
    for bad in [
        &[0x08][..],
        &[0x08, 0x80],
        &[0x22],
        &[0x22, 5, 0],
        &[0x00, 0],
        &[0x08, 1, 0x08, 2],
        &[0x22, 0, 0x32, 0],
        &[0x23, 0x24],
        &[0xFF; 16],
    ] {
        assert_eq!(
            ProtoEnvelope::read(&Bytes::copy_from_slice(bad)),
            Err(Unreadable),
            "{bad:x?}"
        );
    }
}
