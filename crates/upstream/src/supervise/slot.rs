//! The place of one session, and whether anybody uses it. Must not know how sessions are opened.

use std::sync::Arc;
use std::time::Duration;

use platform::Mutex;

use super::super::backoff::Backoff;
use super::super::session::Session;
use super::super::wants::Wants;

/// The place of one session: its successors take the same.
#[derive(Default)]
pub(super) struct Slot {
    pub(super) session: Mutex<Option<Arc<Session>>>,
    pub(super) turn: tokio::sync::Mutex<()>,
    pub(super) wants: Arc<Wants>,
    /// Of a caller's session; the shared one's is the upstream's.
    pub(super) backoff: Mutex<Backoff>,
}

impl Slot {
    /// Whether it has a session, or is about to: whoever opens one holds the slot beside the book.
    pub(super) fn is_taken(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) > 1 || self.session.lock().is_some()
    }

    /// How long its session was of no use to anybody. Nothing while one is opened, called, to tell of a resource or runs tasks.
    pub(super) fn idle(self: &Arc<Self>) -> Option<Duration> {
        self.quiet().filter(|_| self.session.lock().as_ref().is_some_and(|session| session.tasks() == 0))
    }

    /// The same, tasks or not.
    pub(super) fn quiet(self: &Arc<Self>) -> Option<Duration> {
        let session = self.session.lock().clone()?;
        let used = Arc::strong_count(self) > 1 || session.calls() > 0 || self.wants.len() > 0;
        (!used).then(|| session.age().1)
    }

    /// Whether nothing is lost with it: without a session there may still be what its next one has to ask.
    pub(super) fn is_blank(self: &Arc<Self>) -> bool {
        !self.is_taken() && self.wants.len() == 0
    }
}
