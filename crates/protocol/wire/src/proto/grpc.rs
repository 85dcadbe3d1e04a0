//! proto-mcp's service over gRPC: its methods, messages that stay bytes, errors in statuses
//! (proto-mcp v1.0, "gRPC Transport").

use bytes::{Buf as _, BufMut as _, Bytes};
use prost::Message as _;
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

use super::contract::ErrorResponse;
use super::refusal::RpcStatus;
use super::{PayloadKind, code};

/// The service, as paths begin with it.
pub const SERVICE: &str = "/buf.mcp.v1.MCPService/";

/// Each request with its method and its answer.
const METHODS: [(PayloadKind, &str, PayloadKind); 5] = [
    (
        PayloadKind::InitializeRequest,
        "Initialize",
        PayloadKind::InitializeResponse,
    ),
    (
        PayloadKind::ListToolsRequest,
        "ListTools",
        PayloadKind::ListToolsResponse,
    ),
    (
        PayloadKind::CallToolRequest,
        "CallTool",
        PayloadKind::CallToolResponse,
    ),
    (
        PayloadKind::ListResourcesRequest,
        "ListResources",
        PayloadKind::ListResourcesResponse,
    ),
    (
        PayloadKind::ReadResourceRequest,
        "ReadResource",
        PayloadKind::ReadResourceResponse,
    ),
];

/// The request that a method of the service takes.
#[must_use]
pub fn request_of(method: &str) -> Option<PayloadKind> {
    METHODS
        .iter()
        .find(|(_, name, _)| *name == method)
        .map(|(kind, ..)| *kind)
}

/// The method that takes a request, and the kind of its answer.
#[must_use]
pub fn method_of(request: PayloadKind) -> Option<(&'static str, PayloadKind)> {
    METHODS
        .iter()
        .find(|(kind, ..)| *kind == request)
        .map(|(_, name, answer)| (*name, *answer))
}

/// The error that a status of a server is: the one in its details, else one with the code for the
/// status.
#[must_use]
pub fn error_of(status: &Status) -> ErrorResponse {
    let details = RpcStatus::decode(status.details())
        .unwrap_or_default()
        .details;
    let error = details
        .iter()
        .find(|detail| detail.type_url.ends_with("/buf.mcp.v1.ErrorResponse"));
    let error = error.and_then(|error| ErrorResponse::decode(&*error.value).ok());
    error.unwrap_or_else(|| {
        let code = i32::try_from(code::of_grpc_status(status.code() as i32)).unwrap_or_default();
        ErrorResponse {
            code,
            message: status.message().to_owned(),
            data: None,
        }
    })
}

/// The codec of messages that stay as they are.
#[derive(Debug, Clone, Copy)]
pub struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.put(message);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, message: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(message.copy_to_bytes(message.remaining())))
    }
}

#[cfg(test)]
mod tests {
    use model::{Refusal, RefusalCode};
    use tonic::Code;

    use super::*;
    use crate::proto::spell;

    #[test]
    fn each_request_has_a_method() {
        for (kind, name, answer) in METHODS {
            assert_eq!(
                (request_of(name), method_of(kind)),
                (Some(kind), Some((name, answer)))
            );
        }
        assert_eq!(
            (request_of("Other"), method_of(PayloadKind::ErrorResponse)),
            (None, None)
        );
    }

    #[test]
    fn an_error_comes_from_the_details_or_the_status() {
        let spelled = spell(
            &Refusal::new(RefusalCode::SchemaViolation, "no"),
            "tools/call",
        );
        let status = Status::with_details(Code::InvalidArgument, "no", spelled.details());
        assert_eq!(error_of(&status), spelled.error);
        for (status, code) in [
            (Code::InvalidArgument, -32602),
            (Code::NotFound, -32602),
            (Code::Unimplemented, -32601),
            (Code::DeadlineExceeded, -33003),
            (Code::Internal, -32603),
            (Code::FailedPrecondition, -32603),
        ] {
            let error = error_of(&Status::new(status, "why"));
            assert_eq!(
                (error.code, error.message.as_str()),
                (code, "why"),
                "{status:?}"
            );
        }
        // Details that are none.
        let status = Status::with_details(Code::Internal, "why", Bytes::from_static(b"\xff"));
        assert_eq!(error_of(&status).code, -32603);
    }
}
