//! Who somebody is and what they hold. Must not know how they proved it.

use std::sync::Arc;

use model::{Capabilities, ParticipantId, TopicName};

/// An identity with what it may do. Shared by all of its links.
#[derive(Debug, Clone, PartialEq)]
pub struct Participant {
    /// Its name.
    pub id: ParticipantId,
    /// What it may do; every wire asks these and only these.
    pub capabilities: Arc<Capabilities>,
    /// Topics it may enter, the first one is where it goes unless it says another.
    pub topics: Vec<TopicName>,
    /// How many messages it may send, all links together; `None` is not limited.
    pub rate: Option<Rate>,
}

/// A rate of messages: a bucket that holds `burst` and is filled with `per_minute`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Messages a minute in the long run.
    pub per_minute: u32,
    /// Messages at once.
    pub burst: u32,
}

impl Participant {
    /// Whether it may enter a topic.
    #[must_use]
    pub fn may_enter(&self, topic: &TopicName) -> bool {
        self.topics.contains(topic)
    }
}
