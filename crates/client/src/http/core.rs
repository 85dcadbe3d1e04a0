//! What the tasks of one HTTP link share: the server, the inbox, and which requests are open.
//!
//! It must not know how a request is carried out.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use foldhash::fast::RandomState;
use platform::{Mutex, MutexGuard};
use tokio::task::AbortHandle;

use super::peer::Peer;
use crate::contract::{Inbox, LinkFailure};

/// What the tasks of one link share.
pub(super) struct Core {
    pub(super) peer: Peer,
    pub(super) inbox: Arc<dyn Inbox>,
    open: Mutex<Open>,
    /// Notifications and answers on their way.
    pub(super) notes: AtomicUsize,
    pub(super) closed: AtomicBool,
}

#[derive(Debug, Default)]
pub(super) struct Open {
    pub(super) requests: HashMap<u64, AbortHandle, RandomState>,
    pub(super) listen: Option<AbortHandle>,
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core").field("server", &self.peer.name).finish_non_exhaustive()
    }
}

impl Core {
    pub(super) fn new(peer: Peer, inbox: Arc<dyn Inbox>) -> Self {
        Self {
            peer,
            inbox,
            open: Mutex::default(),
            notes: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
        }
    }

    pub(super) fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock()
    }

    /// Tells the inbox, once, that the link has ended, and stops everything that runs on it.
    pub(super) fn end(&self, why: LinkFailure) {
        if self.closed.swap(true, Ordering::SeqCst) {
            return;
        }
        let (requests, listen) = {
            let mut open = self.open();
            (std::mem::take(&mut open.requests), open.listen.take())
        };
        for task in requests.values().chain(&listen) {
            task.abort();
        }
        self.inbox.closed(why);
    }
}
