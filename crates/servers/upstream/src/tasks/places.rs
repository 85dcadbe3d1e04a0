//! Places for servers' tasks: how many each participant has, and how many there are in all.

use std::sync::Arc;

use model::{ParticipantId, account};
use platform::{SHARE_OF_POOL, Share, Shares, Taken};

/// Tasks of servers in one topic, including calls that may still become one.
pub const TOPIC_TASKS_MAX: usize = 10_000;
/// Tasks of one participant in one topic, and of all guests together. Beyond it a call does not
/// become a task, unless an older task is over: that is forgotten then.
pub const PARTICIPANT_TASKS_MAX: usize = 256;

const _: () = assert!(PARTICIPANT_TASKS_MAX <= TOPIC_TASKS_MAX / SHARE_OF_POOL);

/// The places of one topic.
#[derive(Debug)]
pub struct Places(Arc<Shares>);

/// Room for one task; free again when dropped.
pub type TaskPlace = Taken;

impl Default for Places {
    fn default() -> Self {
        Self(Shares::new(TOPIC_TASKS_MAX, PARTICIPANT_TASKS_MAX))
    }
}

impl Places {
    /// The account of a participant.
    pub fn of(&self, id: &ParticipantId) -> Arc<Share> {
        self.0.of(account(id.as_str()))
    }
}
