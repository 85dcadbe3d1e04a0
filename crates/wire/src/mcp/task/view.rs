//! An operation as a task: what both revisions tell of it. Must not know how either writes it.

use json::Span;

use crate::mcp::Era;

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
    /// The state that is written so; `None` for what the protocol does not have.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let all = [Self::Working, Self::InputRequired, Self::Completed, Self::Failed, Self::Cancelled];
        all.into_iter().find(|status| status.as_str() == text)
    }

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
    pub fn status(&self, era: Era) -> Status {
        match self.standing {
            Standing::Working => Status::Working,
            Standing::InputRequired(_) => Status::InputRequired,
            Standing::Result(raw) if era == Era::Legacy && is_error(raw) => Status::Failed,
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
