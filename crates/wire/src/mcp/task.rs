//! Tasks: an operation that a caller follows by its id, as 2025-11-25 and as the extension `io.modelcontextprotocol/tasks`
//! write it. One view of the operation for both.
//!
//! It must not know what an operation waits for, nor who may see it.

mod read;
mod relay;
mod view;
mod write;

pub use read::{Asked, asked, declares, declares_legacy, is_offered, watched};
pub use relay::{
    Glimpse, Named, Taker, Wish, fit, glimpse, made, plain, related_in, related_to, renamed, serves_calls,
    supported_by, without_task,
};
pub use view::{Standing, Status, Task, has_list, has_result};
pub use write::{acknowledged, cancelled, changed, created, get, legacy_list, notice, offer, related};

/// The extension's id (SEP-2663).
pub const EXTENSION: &str = "io.modelcontextprotocol/tasks";
/// What a server of 2025-11-25 says that it can: the value of `capabilities.tasks`.
pub const LEGACY_ABILITIES: &str = r#"{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}"#;
/// What a modern server says that it can, beside its other extensions: a member of `capabilities.extensions`.
pub const ABILITIES: &str = r#"{"io.modelcontextprotocol/tasks":{}}"#;

#[cfg(test)]
mod tests;
