//! Shared state of the tasks of one HTTP link: the server, the inbox, the open requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use platform::Mutex;
use tokio::task::AbortHandle;

use super::peer::Peer;
use super::requests::Requests;
use crate::error::LinkError;
use crate::transport::Inbox;

/// State that the tasks of one link share.
pub(crate) struct LinkState {
    pub(crate) peer: Peer,
    pub(crate) inbox: Arc<dyn Inbox>,
    /// Notifications and answers on their way.
    pub(super) notes: AtomicUsize,
    /// The task that reads the stream for messages that belong to no request.
    pub(crate) listener: Mutex<Option<AbortHandle>>,
    pub(super) requests: Mutex<Requests>,
    closed: AtomicBool,
}

impl LinkState {
    pub(crate) fn new(peer: Peer, inbox: Arc<dyn Inbox>) -> Self {
        Self {
            requests: Mutex::new(Requests::new(peer.limits.idle_connections_max)),
            peer,
            inbox,
            notes: AtomicUsize::new(0),
            listener: Mutex::default(),
            closed: AtomicBool::new(false),
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Ends the link: stops its tasks and reports the reason to the inbox. Does nothing when the link has ended before.
    pub(crate) fn end(&self, why: LinkError) {
        if self.closed.swap(true, Ordering::SeqCst) {
            return;
        }
        self.requests.lock().abort_all();
        if let Some(listener) = self.listener.lock().take() {
            listener.abort();
        }
        self.inbox.closed(why);
    }
}
