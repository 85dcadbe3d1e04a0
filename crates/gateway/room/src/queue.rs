//! Queue of a room: events in the topic's order, and its bound.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use platform::{Mutex, MutexGuard, SHARE_OF_POOL, Share, Shares, Taken};
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
    /// Bytes of queued messages on the accounts of their senders.
    counted: Vec<Taken>,
}

/// The room of one topic.
pub struct Room {
    queue: Mutex<Queue>,
    senders: Arc<Shares>,
    /// Wakes the writer.
    wake: Arc<Notify>,
    /// Wakes senders that wait for space.
    taken: Notify,
    /// Wakes readers that wait for an envelope.
    published: Notify,
    /// Interval of pings to silent sockets, in milliseconds.
    ping_ms: AtomicU64,
}

impl Default for Room {
    fn default() -> Self {
        let (queue, wake, taken, published) = <_>::default();
        // All together are bounded by the queue itself.
        let senders = Shares::new(usize::MAX, SENDER_QUEUE_BYTES_MAX);
        Self {
            queue,
            senders,
            wake,
            taken,
            published,
            ping_ms: AtomicU64::new(1),
        }
    }
}

impl Room {
    /// The account of a sender: what it has in the queue over all its links.
    pub fn account(&self, sender: &str) -> Arc<Share> {
        self.senders.of(sender)
    }

    /// Has silent sockets pinged at this interval from now on, in milliseconds.
    pub fn ping_every(&self, ping_ms: u64) {
        let before = self.ping_ms.swap(ping_ms.max(1), Ordering::Relaxed);
        if before != ping_ms {
            self.wake.notify_one();
        }
    }

    /// The interval of pings to silent sockets, in milliseconds.
    pub(crate) fn ping_ms(&self) -> u64 {
        self.ping_ms.load(Ordering::Relaxed)
    }

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
    pub async fn wait_for_space(&self, own: Option<&Arc<Share>>) {
        loop {
            // Before the look, so that what the writer takes after it is not missed.
            let taken = self.taken.notified();
            if !self.is_full(own) {
                return;
            }
            taken.await;
        }
    }

    /// Whether the queue, or this sender's share of it, is beyond its bound: the sender must wait.
    pub fn is_full(&self, own: Option<&Arc<Share>>) -> bool {
        let queue = self.queue();
        let is_beyond = || own.is_some_and(|own| own.taken() > SENDER_QUEUE_BYTES_MAX);
        // The writer takes an empty queue only when something wakes it.
        !queue.events.is_empty() && (queue.bytes > ROOM_QUEUE_BYTES_MAX || is_beyond())
    }

    /// Adds bytes that a sender is going to have in the queue, until the writer takes it.
    pub fn count(&self, own: Option<&Arc<Share>>, bytes: usize) {
        let Some(own) = own else { return };
        let counted = &mut self.queue().counted;
        match counted.last_mut().filter(|last| last.is_of(own)) {
            Some(last) => last.add(bytes),
            None => counted.push(own.taken_beyond(bytes)),
        }
    }

    /// Number of queued events.
    pub(crate) fn len(&self) -> usize {
        self.queue().events.len()
    }

    /// Empties the queue, and returns its events. Senders that wait for space may go on.
    pub(crate) fn take(&self) -> Vec<RoomEvent> {
        let mut queue = self.queue();
        queue.bytes = 0;
        queue.counted.clear();
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

#[cfg(test)]
mod tests {
    use super::*;

    fn publish(room: &Room, own: &Arc<Share>, bytes: usize) {
        room.count(Some(own), bytes);
        let envelope = bytes::Bytes::from(vec![b'x'; bytes]);
        room.push([RoomEvent::Direct {
            link: model::LinkId(1),
            frame: envelope,
        }]);
    }

    #[test]
    fn a_sender_that_has_its_share_in_the_queue_waits_and_no_other() {
        let room = Room::default();
        let greedy = room.account("greedy");
        let other = room.account("other");
        publish(&room, &greedy, SENDER_QUEUE_BYTES_MAX);
        assert!(!room.is_full(Some(&greedy)));
        publish(&room, &greedy, 1);
        publish(&room, &other, 1);
        assert!(room.is_full(Some(&greedy)) && !room.is_full(Some(&other)));
        assert!(
            room.is_full(Some(&room.account("greedy"))),
            "each of its links waits"
        );
        room.take();
        assert!(
            !room.is_full(Some(&greedy)),
            "the writer has taken everything"
        );
        publish(&room, &greedy, SENDER_QUEUE_BYTES_MAX);
        assert!(
            !room.is_full(Some(&greedy)),
            "what it had before does not count"
        );
        publish(
            &room,
            &other,
            ROOM_QUEUE_BYTES_MAX - SENDER_QUEUE_BYTES_MAX + 1,
        );
        assert!(
            room.is_full(Some(&greedy)) && room.is_full(None),
            "the whole queue is full"
        );
    }

    #[test]
    fn no_sender_waits_for_messages_that_never_came() {
        let room = Room::default();
        let own = room.account("refused");
        room.count(Some(&own), SENDER_QUEUE_BYTES_MAX + 1);
        assert!(!room.is_full(Some(&own)));
    }
}
