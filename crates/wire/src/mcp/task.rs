//! Tasks: an operation that a caller follows by its id, as 2025-11-25 and as the extension `io.modelcontextprotocol/tasks`
//! write it. One view of the operation for both.
//!
//! It must not know what an operation waits for, nor who may see it.

mod read;
mod write;

pub use read::{Asked, asked, declares, declares_legacy, watched};
pub use write::{ACKNOWLEDGED, changed, created, get, legacy_cancelled, legacy_list, offer, related};

use crate::json::{self, Span};

/// The extension's id (SEP-2663).
pub const EXTENSION: &str = "io.modelcontextprotocol/tasks";
/// What a server of 2025-11-25 says that it can: the value of `capabilities.tasks`.
pub const LEGACY_ABILITIES: &str = r#"{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}"#;
/// What a modern server says that it can, beside its other extensions: a member of `capabilities.extensions`.
pub const ABILITIES: &str = r#"{"io.modelcontextprotocol/tasks":{}}"#;

/// How far an operation is. The raw parts are valid JSON objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing<'a> {
    /// Held, or being carried out.
    Working,
    /// The caller must answer these questions first: `inputRequests` of the modern form.
    InputRequired(&'a [u8]),
    /// Answered with this result.
    Result(&'a [u8]),
    /// Answered with this JSON-RPC error object.
    Error(&'a [u8]),
    /// Taken back.
    Cancelled,
}

/// The states that both forms have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Under way.
    Working,
    /// Waits for the caller.
    InputRequired,
    /// Over, with a result.
    Completed,
    /// Over, without one.
    Failed,
    /// Taken back.
    Cancelled,
}

impl Status {
    /// The state as it is written.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InputRequired => "input_required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether nothing more can become of it.
    #[must_use]
    pub fn is_over(self) -> bool {
        !matches!(self, Self::Working | Self::InputRequired)
    }
}

/// An operation as its caller sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task<'a> {
    /// The task id: the operation's, which nobody can guess.
    pub id: &'a str,
    /// How far it is.
    pub standing: Standing<'a>,
    /// What is waited for or became of it, in words.
    pub message: Option<&'a str>,
    /// When it began, in milliseconds since 1970.
    pub created_ms: u64,
    /// When it last changed, in milliseconds since 1970.
    pub updated_ms: u64,
    /// How long it is kept, from its beginning; `None` means for ever.
    pub ttl_ms: Option<u64>,
    /// How long to wait between two looks at it.
    pub poll_ms: Option<u64>,
}

impl Task<'_> {
    /// Its state in this era. A tool's own error (`isError`) is a failure in 2025-11-25 only.
    #[must_use]
    pub fn status(&self, era: super::Era) -> Status {
        match self.standing {
            Standing::Working => Status::Working,
            Standing::InputRequired(_) => Status::InputRequired,
            Standing::Result(raw) if era == super::Era::Legacy && is_error(raw) => Status::Failed,
            Standing::Result(_) => Status::Completed,
            Standing::Error(_) => Status::Failed,
            Standing::Cancelled => Status::Cancelled,
        }
    }
}

fn is_error(result: &[u8]) -> bool {
    json::members(result, Span::all(result))
        .is_ok_and(|members| members.get("isError").is_some_and(|member| member.raw == b"true"))
}

#[cfg(test)]
mod tests;
