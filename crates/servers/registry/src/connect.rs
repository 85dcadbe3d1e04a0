//! Connect unary: media type, error codes with their HTTP statuses, errors as JSON (Connect
//! protocol, "Error codes").

use http::StatusCode;
use serde::{Deserialize, Serialize};

/// The media type of requests and answers.
pub const PROTO: &str = "application/proto";

/// Why an RPC failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The request is wrong.
    InvalidArgument,
    /// There is no such thing, as far as the caller can see.
    NotFound,
    /// The caller has no valid token.
    Unauthenticated,
    /// The caller may not do this.
    PermissionDenied,
    /// The request is right, and what it is about is not as it must be.
    FailedPrecondition,
    /// Too much, or too often.
    ResourceExhausted,
    /// The registry does not know this.
    Unimplemented,
    /// The registry cannot answer now.
    Unavailable,
    /// The registry failed. Any other code of a foreign registry is read as this one.
    #[serde(other)]
    Internal,
}

impl Code {
    /// The HTTP status that goes with it.
    #[must_use]
    pub fn status(self) -> StatusCode {
        match self {
            Self::InvalidArgument | Self::FailedPrecondition => StatusCode::BAD_REQUEST,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Unauthenticated => StatusCode::UNAUTHORIZED,
            Self::PermissionDenied => StatusCode::FORBIDDEN,
            Self::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
            Self::Unimplemented => StatusCode::NOT_IMPLEMENTED,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// An error as it is sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct ConnectError {
    /// The code.
    pub code: Code,
    /// A sentence.
    #[serde(default)]
    pub message: String,
}

impl ConnectError {
    /// An error with this sentence.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// The body of its response.
    #[must_use]
    pub fn body(&self) -> Vec<u8> {
        // A code and a text are always JSON.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_written_and_read_as_connect_does() {
        let error = ConnectError::new(Code::NotFound, "no \"x\"");
        assert_eq!(
            error.body(),
            br#"{"code":"not_found","message":"no \"x\""}"#
        );
        let read = |text: &str| serde_json::from_str::<ConnectError>(text).unwrap();
        assert_eq!(
            read(r#"{"code":"not_found","message":"no \"x\"","details":[]}"#),
            error
        );
        assert_eq!(
            read(r#"{"code":"data_loss"}"#),
            ConnectError::new(Code::Internal, "")
        );
    }
}
