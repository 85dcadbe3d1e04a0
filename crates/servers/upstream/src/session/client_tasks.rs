//! Tasks that a client made of a session's questions (MCP 2025-11-25): notifications about them are
//! for this server alone.

use std::collections::VecDeque;

use platform::Mutex;

/// Tasks of its client that a session remembers. Beyond it the oldest is forgotten, and its server
/// asks for its state.
pub const CLIENT_TASKS_MAX: usize = 64;
/// Longest id of a client's task that is remembered, in bytes.
pub const CLIENT_TASK_ID_BYTES_MAX: usize = 512;

/// The clients' ids, oldest first.
#[derive(Debug, Default)]
pub(super) struct ClientTasks(Mutex<VecDeque<Box<str>>>);

impl ClientTasks {
    /// Adds one. A longer id is not remembered.
    pub(super) fn add(&self, id: &str) {
        if id.len() > CLIENT_TASK_ID_BYTES_MAX {
            return;
        }
        let mut all = self.0.lock();
        all.retain(|known| **known != *id);
        if all.len() >= CLIENT_TASKS_MAX {
            all.pop_front();
        }
        all.push_back(id.into());
    }

    pub(super) fn has(&self, id: &str) -> bool {
        self.0.lock().iter().any(|known| **known == *id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_tasks_of_a_client_are_remembered() {
        let all = ClientTasks::default();
        for number in 0..=CLIENT_TASKS_MAX {
            all.add(&number.to_string());
            all.add("again");
        }
        assert!(!all.has("0") && !all.has("1") && all.has("2") && all.has("again"));
        let long = "x".repeat(CLIENT_TASK_ID_BYTES_MAX + 1);
        all.add(&long);
        assert!(!all.has(&long) && all.has("2"));
    }
}
