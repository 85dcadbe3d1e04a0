//! What a client of proto-mcp sends and gets: the handshake, the tool's message, one call with its
//! place for a marker.

use bytes::Bytes;
use memchr::memmem;
use prost::Message as _;
use prost_types::Any;
use wire::proto::contract::{
    CallToolRequest, InitializeRequest, ListToolsRequest, ListToolsResponse,
};
use wire::proto::{PayloadKind, ProtoEnvelope, VERSION, frame};

use crate::call::{DIGITS, MARK, mark, put};

/// The first request, as the payload of a message.
pub fn initialize() -> Bytes {
    let hello = InitializeRequest {
        protocol_version: VERSION.to_owned(),
        ..Default::default()
    };
    PayloadKind::InitializeRequest.field_of(&hello)
}

/// A request for a page of the list of tools.
pub fn list(cursor: &str) -> ListToolsRequest {
    ListToolsRequest {
        include_schemas: true,
        cursor: cursor.to_owned(),
        ..Default::default()
    }
}

/// The message of a tool's arguments, if it is on this page.
pub fn message_of(page: &ListToolsResponse, tool: &str) -> Option<String> {
    let tool = page.tools.iter().find(|listed| listed.name == tool)?;
    tool.metadata.get("mcp.input_message").cloned()
}

/// The message whose first field is a text.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Text {
    /// The text.
    #[prost(string, tag = "1")]
    pub text: String,
}

/// A call that can be sent again and again, as `CallToolRequest`.
pub struct ProtoCall {
    bytes: Vec<u8>,
    mark_at: usize,
}

impl ProtoCall {
    /// A call of `tool` with a text of as many bytes as the JSON-RPC call of the same load has.
    ///
    /// # Panics
    /// When the JSON has no text.
    pub fn new(tool: &str, message: &str, json: &str) -> Self {
        let json: serde_json::Value = serde_json::from_str(json).expect("a call");
        let text = json["params"]["arguments"]["text"]
            .as_str()
            .expect("a text")
            .to_owned();
        let arguments = Any {
            type_url: format!("type.googleapis.com/{message}"),
            value: Text { text }.encode_to_vec(),
        };
        let call = CallToolRequest {
            name: tool.to_owned(),
            arguments: Some(arguments),
            ..Default::default()
        };
        let bytes = call.encode_to_vec();
        let mark_at = memmem::find(&bytes, MARK.as_bytes()).expect("a marker") + MARK.len();
        Self { bytes, mark_at }
    }

    /// The request of call `n`.
    pub fn number(&mut self, n: u64) -> &[u8] {
        put(
            &mut self.bytes[self.mark_at..self.mark_at + DIGITS],
            mark(n),
        );
        &self.bytes
    }

    /// The frame of call `n`, whose id is `n`.
    ///
    /// # Panics
    /// When it is too long.
    pub fn frame(&mut self, n: u64) -> Bytes {
        let field = PayloadKind::CallToolRequest.field(self.number(n));
        frame::of_field(n, &field).expect("a short message")
    }
}

/// The number of an answer.
pub fn answered(message: &Bytes) -> Option<u64> {
    ProtoEnvelope::read(message)
        .ok()
        .map(|envelope| envelope.id)
}

/// Whether an answer holds the marker of call `n`, or the text that all answers have.
pub fn is_answer(body: &[u8], n: u64, text: Option<&str>) -> bool {
    let mut marker = *b"mark-0000000000";
    put(&mut marker[5..], mark(n));
    memmem::find(body, text.map_or(&marker[..], str::as_bytes)).is_some()
}
