//! Sessions that a call was sent to, one after the other.

use std::sync::{Arc, OnceLock};

use upstream::Session;

/// The sessions of a call, oldest first: mostly one. Another follows if it did not take the call, or
/// let the call wait behind one that asks its caller.
#[derive(Default)]
pub(crate) struct Sessions {
    first: OnceLock<Arc<Session>>,
    later: OnceLock<Box<Sessions>>,
}

impl Sessions {
    /// Enters the session that the call is sent to now.
    pub(crate) fn enter(&self, session: &Arc<Session>) {
        let mut place = self;
        while place.first.set(Arc::clone(session)).is_err() {
            place = place.later.get_or_init(Box::default);
        }
    }

    /// The session that it was sent to last.
    pub(crate) fn last(&self) -> Option<&Arc<Session>> {
        let later = self.later.get().and_then(|later| later.last());
        later.or_else(|| self.first.get())
    }
}
