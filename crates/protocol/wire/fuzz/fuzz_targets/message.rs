//! Any bytes as a message of proto-mcp: what is found in place is what a decoder finds, and no
//! credential stays in a call.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use prost::Message;
use wire::proto::contract::mcp_message::Payload;
use wire::proto::contract::{CallToolRequest, McpMessage};
use wire::proto::{Content, PayloadKind, ProtoEnvelope, call, message};

const CREDENTIALS: [&str; 4] = ["authorization", "token", "proxy-authorization", "cookie"];

fn decoded(bytes: &Bytes) -> Option<McpMessage> {
    McpMessage::decode(bytes.clone()).ok()
}

fn call_of(bytes: &Bytes) -> Option<CallToolRequest> {
    match decoded(bytes)?.payload? {
        Payload::CallToolRequest(call) => Some(call),
        _ => None,
    }
}

fuzz_target!(|bytes: &[u8]| {
    let bytes = Bytes::copy_from_slice(bytes);
    let Ok(envelope) = ProtoEnvelope::read(&bytes) else {
        return;
    };
    let typed = decoded(&bytes);
    if let Some(typed) = &typed {
        assert_eq!(typed.id, envelope.id);
        assert_eq!(
            typed.payload.is_some(),
            matches!(envelope.content, Content::Payload(..))
        );
    }
    let Content::Payload(kind, field) = envelope.content else {
        return;
    };
    assert_eq!(PayloadKind::split(&field).expect("a payload").0, kind);
    let again = message(envelope.id, &field);
    let read = ProtoEnvelope {
        id: envelope.id,
        content: Content::Payload(kind, field.clone()),
    };
    assert_eq!(ProtoEnvelope::read(&again), Ok(read));
    if let (Some(typed), Some(again)) = (&typed, decoded(&again)) {
        assert_eq!(*typed, again);
    }
    let Ok(Some(named)) = call::read(kind, &field) else {
        return;
    };
    let written = call::write(&named.request, 7, None).expect("a message");
    assert_eq!(
        ProtoEnvelope::read(&written)
            .expect("what is written is read")
            .id,
        7
    );
    let renamed = call::write(&named.request, 7, Some("own"));
    let (Some(mut sent), Some(before)) = (call_of(&written), call_of(&bytes)) else {
        return;
    };
    assert!(
        !sent
            .metadata
            .keys()
            .any(|key| CREDENTIALS.contains(&key.to_lowercase().as_str()))
    );
    assert_eq!(
        (&sent.name, &sent.arguments),
        (&before.name, &before.arguments)
    );
    let Some(renamed) = renamed.and_then(|renamed| call_of(&renamed)) else {
        return;
    };
    sent.name = "own".to_owned();
    assert_eq!(renamed, sent);
});
