//! Tasks of servers as their callers have them: places, state, the part of a call in one.

pub mod answers;
pub mod look;
mod part;
mod places;
mod table;
mod task;
#[cfg(test)]
mod tests;

pub use look::AwaitsEnd;
pub use part::CallTask;
pub use places::{PARTICIPANT_TASKS_MAX, TOPIC_TASKS_MAX, TaskPlace};
pub use table::{Tasks, instance_of};
pub use task::{KeptResult, LOST, Origin, TASK_KEPT_BYTES_MAX, TASK_KEPT_MS_MAX, Task};
