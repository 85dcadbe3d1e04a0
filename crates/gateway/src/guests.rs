//! Those who come without a token, where a topic lets them in: participants of its `anonymous` profile.
//!
//! Owns their names, and who of them speaks on one connection. Must not know who may come in.

use std::sync::Arc;

use auth::{Participant, Rate};
use model::{ParticipantId, TopicName};
use platform::Mutex;

/// How the names of all of them begin; no configured participant has such a name.
pub const ANONYMOUS_PREFIX: &str = "anonymous-";
/// Guests that one topic holds at once.
pub const TOPIC_GUESTS_MAX: usize = 1_000;

/// How often one of them may ask, unless the topic says otherwise.
pub const GUEST_RATE: Rate = Rate { per_minute: 600, burst: 100 };

/// Whether this is the name of a guest.
#[must_use]
pub fn is_guest(id: &ParticipantId) -> bool {
    id.as_str().starts_with(ANONYMOUS_PREFIX)
}

/// The guests that one connection is, one a topic.
#[derive(Debug, Default)]
pub struct Guests(Mutex<Vec<Arc<Participant>>>);

impl Guests {
    /// The guest of a topic, if the connection was one already.
    pub fn of(&self, topic: &TopicName) -> Option<Arc<Participant>> {
        let known = self.0.lock();
        known.iter().find(|guest| guest.may_enter(topic)).cloned()
    }

    /// Remembers a guest.
    pub fn add(&self, guest: &Arc<Participant>) {
        self.0.lock().push(Arc::clone(guest));
    }
}
