//! Notifications and answers on their way to an HTTP server, in the order in which they were sent.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use platform::Mutex;
use tokio::sync::oneshot;

use crate::{error::SendError, transport::SendMeta};

/// One entry of the queue.
#[derive(Debug)]
pub(super) enum Note {
    /// A message.
    Message(Bytes, SendMeta),
    /// A waiter that is notified when the messages before it have been sent.
    Reached(oneshot::Sender<()>),
}

/// The messages without an answer of one link.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// All that wait or are being sent.
    count: AtomicUsize,
    /// Notes that wait; `None` while no task sends them.
    queue: Mutex<Option<VecDeque<Note>>>,
}

impl Notes {
    /// Counts one more message, of at most so many.
    pub(super) fn count(&self, max: usize) -> Result<(), SendError> {
        if self.count.fetch_add(1, Ordering::SeqCst) >= max {
            self.uncount();
            return Err(SendError::Busy);
        }
        Ok(())
    }

    /// Forgets a message that has arrived or failed.
    pub(super) fn uncount(&self) {
        self.count.fetch_sub(1, Ordering::SeqCst);
    }

    /// Adds one to the queue; true if a task must be started that sends it.
    pub(super) fn push(&self, note: Note) -> bool {
        let mut queue = self.queue.lock();
        let starts = queue.is_none();
        queue.get_or_insert_default().push_back(note);
        starts
    }

    /// The next one for the task that sends them; after `None` the task ends.
    pub(super) fn next(&self) -> Option<Note> {
        let mut queue = self.queue.lock();
        let next = queue.as_mut()?.pop_front();
        if next.is_none() {
            *queue = None;
        }
        next
    }
}
