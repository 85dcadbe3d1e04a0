//! Status of gRPC for what is refused, with proto-mcp's `ErrorResponse` in its details.

use bytes::Bytes;
use model::Refusal;
use prost::Message as _;
use tonic::{Code, Status};
use wire::proto::code::grpc_status_of;
use wire::proto::contract::ErrorResponse;
use wire::proto::{Spelled, spell};
use wire::rpc::code::PARSE_ERROR;

/// The status of a refusal of a request of this method.
pub(super) fn of_refusal(refusal: &Refusal, method: &str) -> Status {
    of(&spell(refusal, method))
}

/// The status for an `ErrorResponse` as a server wrote it.
pub(super) fn of_error(message: &Bytes) -> Status {
    let Ok(error) = ErrorResponse::decode(message.clone()) else {
        return Status::internal("the server's error cannot be read");
    };
    let status = grpc_status_of(i64::from(error.code));
    of(&Spelled { error, status })
}

/// The status of bytes that are no message.
pub(super) fn unreadable() -> Status {
    let code = PARSE_ERROR;
    let message = "the bytes are no protobuf message".to_owned();
    let error = ErrorResponse {
        code: i32::try_from(code).unwrap_or_default(),
        message,
        data: None,
    };
    of(&Spelled {
        error,
        status: grpc_status_of(code),
    })
}

fn of(spelled: &Spelled) -> Status {
    let code = Code::from_i32(i32::from(spelled.status));
    Status::with_details(code, spelled.error.message.clone(), spelled.details())
}
