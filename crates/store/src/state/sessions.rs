//! Ended sessions of the state: the last ones whose ids have not expired.

use std::collections::VecDeque;

use crate::record::{EndedSessions, Record};

/// Ended sessions in the state at most. The oldest record is dropped first, with all of its sessions.
pub const ENDED_SESSIONS_KEPT: usize = 65_536;

/// All ended sessions of the state, oldest record first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Sessions {
    pub(super) ended: VecDeque<EndedSessions>,
    count: usize,
}

impl Sessions {
    pub(super) fn ended(&mut self, ended: &EndedSessions) {
        self.count += ended.marks.len();
        self.ended.push_back(ended.clone());
        while let Some(oldest) = self.ended.front() {
            if ended.at_ms < oldest.until_ms && self.count <= ENDED_SESSIONS_KEPT {
                return;
            }
            self.count -= oldest.marks.len();
            self.ended.pop_front();
        }
    }

    pub(super) fn marks(&self, now_ms: u64) -> impl Iterator<Item = &str> {
        let unexpired = self.ended.iter().filter(move |ended| now_ms < ended.until_ms);
        unexpired.flat_map(|ended| &ended.marks).map(String::as_str)
    }

    pub(super) fn records(&self) -> impl Iterator<Item = Record> + '_ {
        self.ended.iter().cloned().map(Record::SessionsEnded)
    }
}
