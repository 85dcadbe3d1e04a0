//! Queue of a room: events in the topic's order, and its bound.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use platform::{Mutex, MutexGuard, SHARE_OF_POOL};
use tokio::sync::{Notify, futures::Notified};

use crate::event::RoomEvent;

/// Longest queue, in bytes. Beyond it senders wait until the writer has taken the events.
pub const ROOM_QUEUE_BYTES_MAX: usize = 4 << 20;
/// The share of one sender: beyond it the sender waits, and the others do not.
pub const SENDER_QUEUE_BYTES_MAX: usize = ROOM_QUEUE_BYTES_MAX / SHARE_OF_POOL;

#[derive(Default)]
struct Queue {
    events: Vec<RoomEvent>,
    bytes: usize,
}

/// What one sender has in the queue: since which turn of the writer, and how many bytes.
#[derive(Debug, Default)]
pub struct Queued(Mutex<(u64, usize)>);

/// The room of one topic.
#[derive(Default)]
pub struct Room {
    queue: Mutex<Queue>,
    /// How often the writer has taken the queue.
    turns: AtomicU64,
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

    /// Waits while the queue, or this sender's share of it, is full.
    pub async fn wait_for_space(&self, own: &Queued) {
        loop {
            let taken = self.taken.notified();
            if !self.is_full(own) {
                return;
            }
            taken.await;
        }
    }

    /// Whether the queue, or this sender's share of it, is beyond its bound: the sender must wait.
    pub fn is_full(&self, own: &Queued) -> bool {
        let (turn, bytes) = *own.0.lock();
        let waits = turn == self.turns.load(Ordering::Acquire);
        (waits && bytes > SENDER_QUEUE_BYTES_MAX) || self.queue().bytes > ROOM_QUEUE_BYTES_MAX
    }

    /// Adds bytes that a sender is going to have in the queue.
    pub fn count(&self, own: &Queued, bytes: usize) {
        // Looked at first: what the writer takes meanwhile counts for one turn longer at most.
        let turn = self.turns.load(Ordering::Acquire);
        let mut own = own.0.lock();
        if own.0 != turn {
            *own = (turn, 0);
        }
        own.1 += bytes;
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
        self.turns.fetch_add(1, Ordering::AcqRel);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn publish(room: &Room, own: &Queued, bytes: usize) {
        room.count(own, bytes);
        let envelope = bytes::Bytes::from(vec![b'x'; bytes]);
        room.push([RoomEvent::Direct { link: model::LinkId(1), frame: envelope }]);
    }

    #[test]
    fn a_sender_that_has_its_share_in_the_queue_waits_and_no_other() {
        let (room, greedy, other) = (Room::default(), Queued::default(), Queued::default());
        publish(&room, &greedy, SENDER_QUEUE_BYTES_MAX);
        assert!(!room.is_full(&greedy));
        publish(&room, &greedy, 1);
        publish(&room, &other, 1);
        assert!(room.is_full(&greedy) && !room.is_full(&other));
        room.take();
        assert!(!room.is_full(&greedy), "the writer has taken everything");
        publish(&room, &greedy, SENDER_QUEUE_BYTES_MAX);
        assert!(!room.is_full(&greedy), "what it had before does not count");
        publish(&room, &other, ROOM_QUEUE_BYTES_MAX - SENDER_QUEUE_BYTES_MAX + 1);
        assert!(room.is_full(&greedy) && room.is_full(&Queued::default()), "the whole queue is full");
    }
}
