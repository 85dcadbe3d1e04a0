//! Queue of a room: events in the topic's order, and its bound.

use std::sync::Arc;

use platform::{Mutex, MutexGuard};
use tokio::sync::{Notify, futures::Notified};

use crate::event::RoomEvent;

/// Longest queue, in bytes. Beyond it senders wait until the writer has taken the events.
pub const ROOM_QUEUE_BYTES_MAX: usize = 4 << 20;

#[derive(Default)]
struct Queue {
    events: Vec<RoomEvent>,
    bytes: usize,
}

/// The room of one topic.
#[derive(Default)]
pub struct Room {
    queue: Mutex<Queue>,
    /// Wakes the writer.
    wake: Arc<Notify>,
    /// Wakes senders that wait for space.
    taken: Notify,
    /// Wakes readers that wait for an envelope.
    published: Notify,
}

impl Room {
    /// The signal that wakes the writer.
    pub(crate) fn wake(&self) -> Arc<Notify> {
        Arc::clone(&self.wake)
    }

    /// Appends events. Callers hold the topic's lock, so that the queue has the topic's order.
    pub fn push(&self, events: impl IntoIterator<Item = RoomEvent>) {
        let mut published = false;
        let mut queue = self.queue();
        for event in events {
            queue.bytes += event.len();
            published |= matches!(event, RoomEvent::Publish { .. });
            queue.events.push(event);
        }
        drop(queue);
        self.wake.notify_one();
        if published {
            self.published.notify_waiters();
        }
    }

    /// Completes when an envelope is published. Enable it before looking at what there is.
    pub fn published(&self) -> Notified<'_> {
        self.published.notified()
    }

    /// Waits while the queue is full.
    pub async fn wait_for_space(&self) {
        loop {
            let taken = self.taken.notified();
            if !self.is_full() {
                return;
            }
            taken.await;
        }
    }

    /// Whether the queue is beyond its bound: senders must wait.
    pub fn is_full(&self) -> bool {
        self.queue().bytes > ROOM_QUEUE_BYTES_MAX
    }

    /// Number of queued events.
    pub(crate) fn len(&self) -> usize {
        self.queue().events.len()
    }

    /// Takes all queued events.
    pub(crate) fn take(&self) -> Vec<RoomEvent> {
        let mut queue = self.queue();
        queue.bytes = 0;
        let events = std::mem::take(&mut queue.events);
        drop(queue);
        self.taken.notify_waiters();
        events
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock()
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.wake.notify_one();
    }
}
