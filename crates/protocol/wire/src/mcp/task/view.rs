//! Tasks as their callers see them, in either revision.

use model::Form;

use crate::mcp::result::says_error;

/// The standing of an operation. The raw parts are valid JSON objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationState<'a> {
    /// Held, or in execution.
    Working,
    /// The caller must answer these questions first: `inputRequests` of the modern form.
    InputRequired(&'a [u8]),
    /// Answered with this result.
    Result(&'a [u8]),
    /// Answered with this JSON-RPC error object.
    Error(&'a [u8]),
    /// Cancelled.
    Cancelled,
}

/// The states that both forms have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum TaskStatus {
    /// In execution.
    Working,
    /// Waits for input of the caller.
    InputRequired,
    /// Ended with a result.
    Completed,
    /// Ended without a result.
    Failed,
    /// Cancelled.
    Cancelled,
}

impl TaskStatus {
    /// The state's name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether the state is final.
    #[must_use]
    pub fn is_over(self) -> bool {
        !matches!(self, Self::Working | Self::InputRequired)
    }
}

/// Whether this form has `tasks/list`, and results apart from states (`tasks/result`). The
/// extension has neither: its tasks contain their results.
#[must_use]
pub fn has_list(form: Form) -> bool {
    match form {
        Form::Legacy => true,
        Form::Modern => false,
    }
}

/// Whether an answer to a request about a task of this state contains the task's result.
#[must_use]
pub fn has_result(form: Form, method: &str, is_ok: bool, status: TaskStatus) -> bool {
    match (form, method) {
        (Form::Legacy, "tasks/result") => is_ok || status == TaskStatus::Failed,
        (Form::Modern, "tasks/get") => is_ok && status.is_over(),
        (Form::Legacy | Form::Modern, _) => false,
    }
}

/// An operation as its caller sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskView<'a> {
    /// The task id: the operation's, which other clients cannot guess.
    pub id: &'a str,
    /// Its standing.
    pub standing: OperationState<'a>,
    /// The current state or outcome, in words.
    pub message: Option<&'a str>,
    /// Its creation, in milliseconds since 1970.
    pub created_ms: u64,
    /// Its last change, in milliseconds since 1970.
    pub updated_ms: u64,
    /// The time for which it is kept from its creation; `None` means for ever.
    pub ttl_ms: Option<u64>,
    /// The time to wait between two polls.
    pub poll_ms: Option<u64>,
    /// Whether it is a call that is not made before it is approved.
    pub awaits_approval: bool,
}

impl TaskView<'_> {
    /// Its state in this form. A tool's own error (`isError`) is a failure in 2025-11-25 only.
    #[must_use]
    pub fn status(&self, form: Form) -> TaskStatus {
        match self.standing {
            OperationState::Working => TaskStatus::Working,
            OperationState::InputRequired(_) => TaskStatus::InputRequired,
            OperationState::Result(raw) => match form {
                Form::Legacy if says_error(raw) => TaskStatus::Failed,
                Form::Legacy | Form::Modern => TaskStatus::Completed,
            },
            OperationState::Error(_) => TaskStatus::Failed,
            OperationState::Cancelled => TaskStatus::Cancelled,
        }
    }
}
