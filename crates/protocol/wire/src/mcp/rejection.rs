//! Rejections of requests: a JSON-RPC error with its HTTP status.

use bytes::Bytes;

use crate::mcp::{Version, code};
use crate::rpc::{self, Id, Malformed};

/// The JSON-RPC error that answers a request which is not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Rejection {
    /// The HTTP status, for an answer that has not begun.
    pub status: u16,
    /// The JSON-RPC code.
    pub code: i64,
    /// The cause and what to do next; clients may read it.
    pub message: String,
    /// `data` of the error, valid JSON.
    pub data: Option<Vec<u8>>,
}

impl Rejection {
    /// The JSON-RPC error that answers the request of this id.
    #[must_use]
    pub fn answer(&self, id: Option<&Id>) -> Bytes {
        rpc::error(id, self.code, &self.message, self.data.as_deref())
    }

    /// Header and body disagree, or a header is missing: -32020.
    #[must_use]
    pub(crate) fn mismatch(message: impl Into<String>) -> Self {
        Self {
            status: 400,
            code: code::HEADER_MISMATCH,
            message: message.into(),
            data: None,
        }
    }

    /// The request needs client capabilities that it did not declare: -32021. `required` is a
    /// capabilities object.
    #[must_use]
    pub fn missing_capability(required: &str) -> Self {
        Self {
            status: 400,
            code: code::MISSING_CAPABILITY,
            message: "this request needs a client capability that it did not declare".to_owned(),
            data: Some(json::object(|data| {
                data.raw("requiredCapabilities", required.as_bytes());
            })),
        }
    }

    /// The gateway does not support the revision: -32022, with the supported ones, newest first.
    #[must_use]
    pub fn unsupported_version(requested: &str) -> Self {
        Self {
            status: 400,
            code: code::UNSUPPORTED_VERSION,
            message: "this protocol version is not supported".to_owned(),
            data: Some(json::object(|data| {
                data.texts(
                    "supported",
                    Version::ALL.iter().rev().map(|version| version.as_str()),
                );
                data.text("requested", requested);
            })),
        }
    }

    /// The body lacks a member that every modern request has: -32602.
    #[must_use]
    pub(crate) fn params(message: impl Into<String>) -> Self {
        Self {
            status: 400,
            code: rpc::code::INVALID_PARAMS,
            message: message.into(),
            data: None,
        }
    }
}

impl From<Malformed> for Rejection {
    fn from(malformed: Malformed) -> Self {
        Self {
            status: 400,
            code: malformed.code,
            message: malformed.message,
            data: None,
        }
    }
}
