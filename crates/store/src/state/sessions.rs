//! What the records of ended sessions add up to: the last of them, as long as their ids would be good. Pure: must not know
//! files.

use std::collections::VecDeque;

use crate::record::{EndedSessions, Record};

/// How many ended sessions are remembered; the oldest go first, with those that were written down beside them.
pub const ENDED_SESSIONS_KEPT: usize = 65_536;

/// All ended sessions that are known, oldest first, as they were written down.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Sessions {
    ended: VecDeque<EndedSessions>,
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
        let good = self.ended.iter().filter(move |ended| now_ms < ended.until_ms);
        good.flat_map(|ended| &ended.marks).map(String::as_str)
    }

    pub(super) fn records(&self) -> impl Iterator<Item = Record> + '_ {
        self.ended.iter().cloned().map(Record::SessionsEnded)
    }

    pub(super) fn len(&self) -> usize {
        self.ended.len()
    }
}
