//! Slot of one session and its successors: open session, interest, back-off, idle time.

use std::sync::Arc;
use std::time::Duration;

use platform::Mutex;

use crate::backoff::Backoff;
use crate::interest::Interest;
use crate::session::Session;

/// The place of one session; a successor takes the same slot.
#[derive(Default)]
pub(super) struct Slot {
    pub(super) session: Mutex<Option<Arc<Session>>>,
    /// Held while a session is opened.
    pub(super) turn: tokio::sync::Mutex<()>,
    pub(super) interest: Arc<Interest>,
    /// The back-off of a caller's own session; the shared session has the server's.
    pub(super) backoff: Mutex<Backoff>,
}

impl Slot {
    /// Whether it has a session or one is being opened: a task that opens one holds a second reference to the slot.
    pub(super) fn is_taken(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) > 1 || self.session.lock().is_some()
    }

    /// How long its session has been idle. `None` while it is being opened, has a call, a subscription or a task.
    pub(super) fn idle(self: &Arc<Self>) -> Option<Duration> {
        self.quiet().filter(|_| self.session.lock().as_ref().is_some_and(|session| session.tasks() == 0))
    }

    /// The same, whether or not it has tasks.
    pub(super) fn quiet(self: &Arc<Self>) -> Option<Duration> {
        let session = self.session.lock().clone()?;
        let used = Arc::strong_count(self) > 1 || session.calls() > 0 || self.interest.len() > 0;
        (!used).then(|| session.since_last_call())
    }

    /// Whether it can be removed without loss: it has neither a session nor subscriptions for the next one.
    pub(super) fn is_blank(self: &Arc<Self>) -> bool {
        !self.is_taken() && self.interest.len() == 0
    }
}
