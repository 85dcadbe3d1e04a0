//! Error codes of proto-mcp, and the gRPC status of each refusal.

use model::RefusalCode;

pub use crate::mcp::code::{SCHEMA_UNRESOLVED, SCHEMA_VIOLATION};

/// The protocol version is not supported. Source: proto-mcp v1.0, "Error Codes".
pub const UNSUPPORTED_VERSION: i64 = -33002;
/// The tool did not answer in time. Source: the same.
pub const TIMEOUT: i64 = -33003;

/// The code of a refusal if proto-mcp has one of its own for it; else MCP's holds.
pub(super) fn own(code: RefusalCode) -> Option<i64> {
    match code {
        RefusalCode::UpstreamTimeout => Some(TIMEOUT),
        RefusalCode::UnsupportedProtocol => Some(UNSUPPORTED_VERSION),
        RefusalCode::TooLarge => Some(crate::rpc::code::INVALID_REQUEST),
        _ => None,
    }
}

/// The status of gRPC (google.rpc.Code) for a refusal.
#[must_use]
pub fn grpc_status(code: RefusalCode) -> u8 {
    match code {
        RefusalCode::Cancelled => 1,
        RefusalCode::Malformed | RefusalCode::SchemaViolation => 3,
        RefusalCode::UpstreamTimeout => 4,
        RefusalCode::UnknownTarget => 5,
        RefusalCode::CapabilityViolation
        | RefusalCode::Forbidden
        | RefusalCode::AuthViolation
        | RefusalCode::NoPlace
        | RefusalCode::InsufficientScope => 7,
        RefusalCode::RateLimited | RefusalCode::TooLarge | RefusalCode::Overloaded => 8,
        RefusalCode::SchemaUnresolved
        | RefusalCode::UnsupportedProtocol
        | RefusalCode::Conflict
        | RefusalCode::ToolChanged
        | RefusalCode::UpstreamLoginNeeded
        | RefusalCode::UpstreamLoginLost
        | RefusalCode::UpstreamClientNeeded => 9,
        RefusalCode::Unsupported => 12,
        RefusalCode::UpstreamFailed
        | RefusalCode::UpstreamMetadataRefused
        | RefusalCode::Internal
        | RefusalCode::OutcomeUnknown => 13,
        RefusalCode::UpstreamBusy
        | RefusalCode::UpstreamDown
        | RefusalCode::LogUnavailable
        | RefusalCode::IssuerUnreachable => 14,
        RefusalCode::Unauthenticated
        | RefusalCode::TokenExpired
        | RefusalCode::TokenForeign
        | RefusalCode::TokenUnknownKey
        | RefusalCode::IssuerUnknown
        | RefusalCode::UnknownSession => 16,
    }
}

/// The error code for a status of gRPC that a server sent without an error of its own.
#[must_use]
pub fn of_grpc_status(status: i32) -> i64 {
    use crate::rpc::code::{INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND};
    match status {
        // Of a name that is not known MCP says the same.
        3 | 5 => INVALID_PARAMS,
        4 => TIMEOUT,
        12 => METHOD_NOT_FOUND,
        _ => INTERNAL_ERROR,
    }
}

/// The status of gRPC for an error code that a server sent.
#[must_use]
pub fn grpc_status_of(code: i64) -> u8 {
    use crate::rpc::code::{INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR};
    match code {
        PARSE_ERROR | INVALID_REQUEST | INVALID_PARAMS | SCHEMA_VIOLATION => 3,
        TIMEOUT => 4,
        crate::mcp::code::RESOURCE_NOT_FOUND => 5,
        SCHEMA_UNRESOLVED | UNSUPPORTED_VERSION => 9,
        METHOD_NOT_FOUND => 12,
        _ => 13,
    }
}
