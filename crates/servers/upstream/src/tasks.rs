//! Tasks of servers: what is known of each, looks at it, and its forms. Whose a task is, and whether
//! that participant may have it, is the topic's to know.

pub mod answers;
pub mod look;
mod part;
mod task;
#[cfg(test)]
mod tests;

pub use look::AwaitsEnd;
pub use part::CallTask;
pub use task::{
    KeptResult, LOST, Origin, ServerTask, TASK_KEPT_BYTES_MAX, TASK_KEPT_MS_MAX, TaskEvents,
    instance_of,
};
