//! `MCPMessage`: its id and payload, found in place and written around bytes that stay.

use bytes::{BufMut as _, Bytes, BytesMut};
use fields::Fields;
use prost::encoding::{encode_varint, encoded_len_varint};

pub use fields::NoMessage as Unreadable;

/// Whether bytes are a protobuf message of any kind.
#[must_use]
pub fn is_message(bytes: &[u8]) -> bool {
    Fields::of(bytes).all(|field| field.is_ok())
}

/// The payload of an `MCPMessage`, by its field's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::FromRepr)]
#[repr(u32)]
pub enum PayloadKind {
    /// `initialize_request`
    InitializeRequest = 2,
    /// `initialize_response`
    InitializeResponse = 3,
    /// `list_tools_request`
    ListToolsRequest = 4,
    /// `list_tools_response`
    ListToolsResponse = 5,
    /// `call_tool_request`
    CallToolRequest = 6,
    /// `call_tool_response`
    CallToolResponse = 7,
    /// `list_resources_request`
    ListResourcesRequest = 8,
    /// `list_resources_response`
    ListResourcesResponse = 9,
    /// `read_resource_request`
    ReadResourceRequest = 10,
    /// `read_resource_response`
    ReadResourceResponse = 11,
    /// `error_response`
    ErrorResponse = 12,
}

impl PayloadKind {
    /// The method of MCP that a request of this kind is; `None` for answers.
    #[must_use]
    pub fn method(self) -> Option<&'static str> {
        match self {
            Self::InitializeRequest => Some("initialize"),
            Self::ListToolsRequest => Some("tools/list"),
            Self::CallToolRequest => Some("tools/call"),
            Self::ListResourcesRequest => Some("resources/list"),
            Self::ReadResourceRequest => Some("resources/read"),
            Self::InitializeResponse
            | Self::ListToolsResponse
            | Self::CallToolResponse
            | Self::ListResourcesResponse
            | Self::ReadResourceResponse
            | Self::ErrorResponse => None,
        }
    }

    /// The payload field with this message: tag, length, message.
    #[must_use]
    pub fn field(self, message: &[u8]) -> Bytes {
        let len = message.len() as u64;
        let mut field = BytesMut::with_capacity(1 + encoded_len_varint(len) + message.len());
        self.begin(message.len(), &mut field);
        field.put_slice(message);
        field.freeze()
    }

    /// The payload field with a message of the contract.
    #[must_use]
    pub fn field_of(self, message: &impl prost::Message) -> Bytes {
        let len = message.encoded_len();
        let mut field = BytesMut::with_capacity(1 + encoded_len_varint(len as u64) + len);
        self.begin(len, &mut field);
        // The buffer has room.
        let _ = message.encode(&mut field);
        field.freeze()
    }

    /// Writes the tag and the length of a message that follows.
    pub(super) fn begin(self, len: usize, out: &mut BytesMut) {
        encode_varint(u64::from(self as u32) << 3 | 2, out);
        encode_varint(len as u64, out);
    }

    /// Splits a payload field into its kind and the message in it.
    #[must_use]
    pub fn split(field: &Bytes) -> Option<(Self, Bytes)> {
        let read = Fields::of(field).next()?.ok()?;
        Some((Self::from_repr(read.number)?, field.slice(read.place?)))
    }
}

/// Content of an `MCPMessage`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Nothing but an id: a ping, or its answer.
    Ping,
    /// A payload: its kind, and the field's bytes (tag, length, message).
    Payload(PayloadKind, Bytes),
    /// A payload that the contract does not define.
    Unknown,
}

/// An `MCPMessage` as it was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtoEnvelope {
    /// The id that answers repeat. 0 for messages that answer nothing.
    pub id: u64,
    /// Content of the envelope.
    pub content: Content,
}

impl ProtoEnvelope {
    /// Reads a message.
    ///
    /// # Errors
    /// [`Unreadable`] if the bytes are no protobuf message, or if the id or a payload occurs twice:
    /// readers differ in which of them holds.
    pub fn read(message: &Bytes) -> Result<Self, Unreadable> {
        let (mut id, mut content, mut start) = (None, Content::Ping, 0);
        for field in Fields::of(message) {
            let field = field?;
            let end = field.place.as_ref().map(|place| place.end);
            match (field.number, PayloadKind::from_repr(field.number), end) {
                (1, _, None) if id.is_none() => id = Some(field.varint),
                (_, Some(kind), Some(end)) if !matches!(content, Content::Payload(..)) => {
                    content = Content::Payload(kind, message.slice(start..end));
                }
                (1, ..) | (_, Some(_), _) => return Err(Unreadable),
                (_, None, _) if content == Content::Ping => content = Content::Unknown,
                (_, None, _) => {}
            }
            start = field.end;
        }
        Ok(Self {
            id: id.unwrap_or_default(),
            content,
        })
    }
}

/// An `MCPMessage` of this id around a payload field.
#[must_use]
pub fn message(id: u64, field: &[u8]) -> Bytes {
    let mut message = BytesMut::with_capacity(message_len(id, field));
    write_message(id, field, &mut message);
    message.freeze()
}

/// The length of that message.
pub(super) fn message_len(id: u64, field: &[u8]) -> usize {
    if id == 0 {
        field.len()
    } else {
        1 + encoded_len_varint(id) + field.len()
    }
}

/// Appends that message.
pub(super) fn write_message(id: u64, field: &[u8], out: &mut BytesMut) {
    // The default value of a field is not written.
    if id != 0 {
        out.put_u8(0x08);
        encode_varint(id, out);
    }
    out.put_slice(field);
}

#[cfg(test)]
mod tests;
