//! SDK errors: failed connections and failed calls.

use model::ProposalState;
use serde::Deserialize;
use serde_json::Value;
use wire::mcpx::system::SystemError;

/// Why a participant is not connected to its topic.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// The URL cannot be used.
    #[error("the gateway's URL cannot be used: {0}")]
    BadUrl(&'static str),
    /// No connection could be opened.
    #[error("cannot connect to the gateway: {0}")]
    Unreachable(String),
    /// The gateway requires a token, or another one (401).
    #[error("the gateway requires a valid token: {0}")]
    Unauthenticated(String),
    /// The participant may not join this topic (403).
    #[error("access to the topic is denied: {0}")]
    Forbidden(String),
    /// The gateway answered with another status.
    #[error("the gateway answered with status {status}: {message}")]
    Http {
        /// The status.
        status: u16,
        /// The gateway's explanation, if any.
        message: String,
    },
    /// The connection broke or was closed, or no welcome arrived in time.
    #[error("the connection broke: {0}")]
    Broken(String),
    /// Another connection of the same participant replaced this one.
    #[error("another connection of the same participant took over")]
    Replaced,
    /// The participant was closed from this side.
    #[error("closed")]
    Closed,
}

impl ConnectError {
    /// Whether another attempt may succeed.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::Broken(_) => true,
            Self::Http { status, .. } => *status == 429 || *status >= 500,
            Self::BadUrl(_)
            | Self::Unauthenticated(_)
            | Self::Forbidden(_)
            | Self::Replaced
            | Self::Closed => false,
        }
    }
}

/// A JSON-RPC error: to answer a request with, or the answer of another participant.
#[derive(Debug, Clone, PartialEq, thiserror::Error, Deserialize)]
#[error("{message} ({code})")]
pub struct RpcError {
    /// The code, of JSON-RPC or MCP.
    pub code: i64,
    /// The cause.
    pub message: String,
    /// Details; null if there are none.
    #[serde(default)]
    pub data: Value,
}

impl RpcError {
    /// An error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: Value::Null,
        }
    }

    /// The method is not supported.
    #[must_use]
    pub fn method_not_found(method: &str) -> Self {
        Self::new(-32601, format!("the method `{method}` is not supported"))
    }

    /// The params are not valid for the method.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(-32602, message)
    }
}

/// Why a call, or an envelope, failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CallError {
    /// The latest welcome allows neither a request nor a proposal of this; nothing was sent.
    #[error("your capabilities allow neither a request nor a proposal of `{kind}`")]
    NotAllowed {
        /// The kind of the request.
        kind: String,
    },
    /// It cannot be written as a valid envelope; nothing was sent.
    #[error("invalid envelope: {0}")]
    Invalid(String),
    /// There is no connection at the moment; nothing was sent.
    #[error("not connected to the gateway at the moment")]
    NotConnected,
    /// Too many envelopes wait to be sent, or too many requests to be answered; nothing was sent.
    #[error("too many requests are pending")]
    Busy,
    /// The gateway refused it.
    #[error("the gateway refused it: {} ({})", .0.message, .0.error)]
    Refused(SystemError),
    /// The answer is an error.
    #[error("answered with an error: {0}")]
    Answered(RpcError),
    /// A tool of the gateway, such as `withdraw_proposal`, answered with an error in words.
    #[error("the gateway's tool failed: {0}")]
    ToolFailed(String),
    /// A list of tools cannot be read, or not in one way only.
    #[error("the list of tools cannot be read: {0}")]
    BadList(String),
    /// No answer arrived in time. The call may still have been made.
    #[error("no answer in time; the call may still have been made")]
    Timeout,
    /// The connection broke before the answer arrived. The call may have been made.
    #[error("the connection broke before the answer; the call may have been made")]
    Lost,
    /// The proposal ended without an answer to it.
    #[error("the proposal is {state}{}", .reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default())]
    Ended {
        /// Its final state.
        state: ProposalState,
        /// The reason that the reviewer or the gateway gave.
        reason: Option<String>,
    },
}
