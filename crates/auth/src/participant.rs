//! Authenticated participant: id, capabilities, topics, rate.

use std::sync::Arc;

use model::{Capabilities, ParticipantId, RateLimit, TopicName};

/// An authenticated participant with its rights. All of its links share it.
#[derive(Debug, Clone, PartialEq)]
pub struct Participant {
    /// Id.
    pub id: ParticipantId,
    /// Capabilities. Every wire checks these and no others.
    pub capabilities: Arc<Capabilities>,
    /// Topics that it may enter. The first one is its default.
    pub topics: Vec<TopicName>,
    /// Message rate of all its links together; `None` is no limit.
    pub rate: Option<RateLimit>,
}

impl Participant {
    /// Whether it may enter a topic.
    #[must_use]
    pub fn may_enter(&self, topic: &TopicName) -> bool {
        self.topics.contains(topic)
    }
}
