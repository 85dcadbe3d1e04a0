//! Guests: participants without a token, in topics with an `anonymous` profile.

use std::sync::Arc;

use auth::{LOCAL_USER, Participant};
use model::{ANONYMOUS_PREFIX, GATEWAY, TopicName};
use platform::Mutex;

/// Guests in one topic at once.
pub const TOPIC_GUESTS_MAX: usize = 1_000;

/// Whether the gateway gives this name out itself, in any case: its own, the local user's, or a
/// guest's.
#[must_use]
pub fn is_gateways_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [GATEWAY, LOCAL_USER].contains(&name.as_str()) || name.starts_with(ANONYMOUS_PREFIX)
}

/// The guests of one connection, one for each topic.
#[derive(Debug, Default)]
pub struct Guests(Mutex<Vec<Arc<Participant>>>);

impl Guests {
    /// The connection's guest in a topic, if it has one.
    pub fn of(&self, topic: &TopicName) -> Option<Arc<Participant>> {
        let known = self.0.lock();
        known.iter().find(|guest| guest.may_enter(topic)).cloned()
    }

    /// All of them.
    pub fn all(&self) -> Vec<Arc<Participant>> {
        self.0.lock().clone()
    }

    /// Adds the connection's guest in a topic.
    pub fn add(&self, guest: &Arc<Participant>) {
        self.0.lock().push(Arc::clone(guest));
    }
}
