//! Why a participant cannot come in, and why something it asked for came to nothing.

use model::ProposalState;
use serde::Deserialize;
use serde_json::Value;
use wire::mcpx::system::Told;

/// Why a participant is not in its topic.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// The URL is wrong.
    #[error("the gateway's URL cannot be used: {0}")]
    BadUrl(&'static str),
    /// No connection could be made.
    #[error("no gateway answers: {0}")]
    Unreachable(String),
    /// The gateway wants a token, or another one (401).
    #[error("the gateway wants a valid token: {0}")]
    Unauthenticated(String),
    /// The participant may not enter this topic (403).
    #[error("the topic is closed to you: {0}")]
    Forbidden(String),
    /// The gateway answered with another status.
    #[error("the gateway answered with status {status}: {message}")]
    Http {
        /// The status.
        status: u16,
        /// The gateway's words, if any.
        message: String,
    },
    /// The connection stood, but it broke, was closed, or no welcome came in time.
    #[error("the connection broke: {0}")]
    Broken(String),
    /// Another connection of the same participant took over.
    #[error("another connection of the same participant took over")]
    Replaced,
    /// It was closed from this side.
    #[error("closed")]
    Closed,
}

impl ConnectError {
    /// Whether trying again later could help.
    #[must_use]
    pub fn may_pass(&self) -> bool {
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

/// An error as JSON-RPC says it: to answer with, or as another participant answered.
#[derive(Debug, Clone, PartialEq, thiserror::Error, Deserialize)]
#[error("{message} ({code})")]
pub struct RpcError {
    /// JSON-RPC's or MCP's code.
    pub code: i64,
    /// What happened.
    pub message: String,
    /// More about it, null if nothing.
    #[serde(default)]
    pub data: Value,
}

impl RpcError {
    /// An error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: Value::Null }
    }

    /// The method is not served here.
    #[must_use]
    pub fn method_not_found(method: &str) -> Self {
        Self::new(-32601, format!("the method `{method}` is not served here"))
    }

    /// The params are not what the method needs.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(-32602, message)
    }
}

/// Why something that was asked for, or only said, came to nothing.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CallError {
    /// The latest welcome allows neither to request nor to propose this; nothing was sent.
    #[error("your capabilities allow neither a request nor a proposal of `{kind}`")]
    NotAllowed {
        /// The kind of the request.
        kind: String,
    },
    /// It cannot be written as an envelope; nothing was sent.
    #[error("this cannot be said: {0}")]
    Unspeakable(String),
    /// There is no connection at this moment; nothing was sent.
    #[error("not connected to the gateway at this moment")]
    Away,
    /// Too much waits to be sent or answered; nothing was sent.
    #[error("too much is under way already")]
    Busy,
    /// The gateway refused it.
    #[error("the gateway refused: {} ({})", .0.message, .0.error)]
    Refused(Told),
    /// It was answered with an error.
    #[error("answered with an error: {0}")]
    Answered(RpcError),
    /// No answer came in time. It may still have been done.
    #[error("no answer in time; it may still have been done")]
    Timeout,
    /// The connection broke before the answer came. It may have been done.
    #[error("the connection broke before the answer; it may have been done")]
    Lost,
    /// The proposal ended, and no answer to it was heard.
    #[error("the proposal is {state}{}", .reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default())]
    Ended {
        /// How it ended.
        state: ProposalState,
        /// Why, in the words of whoever decided.
        reason: Option<String>,
    },
}
