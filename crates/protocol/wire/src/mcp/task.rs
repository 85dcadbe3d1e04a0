//! Tasks: operations that a caller follows by id, in the forms of 2025-11-25 and of the extension
//! `io.modelcontextprotocol/tasks`. One view of the operation serves both.

mod convert;
mod fit;
mod read;
mod report;
mod view;
mod write;

pub(crate) use convert::declared;
pub use convert::{
    answer, end_of, got, made_in, notice_to_legacy, notice_to_modern, poll_ms, related_answer,
    request, standing_of, status_of, to_legacy, to_modern, unmarked, unrelated, wants_extension,
};
pub use fit::{
    Becomes, Fitted, Taker, TaskSupport, TaskWish, fit, plain, serves_calls, support_of,
    takes_task_if_held, without_held,
};
pub use read::{TaskListing, asked_ttl, check_params, declares, is_offered, shown};
pub use report::{TaskMention, TaskReport, made, related_in, related_to, renamed, report};
pub use view::{OperationState, TaskStatus, TaskView, has_list, has_result};
pub use write::{acknowledged, cancelled, created, get, notice, offer, related};

/// The extension's id (SEP-2663).
pub const EXTENSION: &str = "io.modelcontextprotocol/tasks";
/// The declaration of a server of 2025-11-25: the value of `capabilities.tasks`.
pub const LEGACY_ABILITIES: &str = r#"{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}"#;
/// The declaration of a modern server, beside its other extensions: a member of
/// `capabilities.extensions`.
pub const ABILITIES: &str = r#"{"io.modelcontextprotocol/tasks":{}}"#;

#[cfg(test)]
mod tests;
