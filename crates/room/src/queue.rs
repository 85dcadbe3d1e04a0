//! Queue of a room: events in the topic's order, its bound, and the recent messages for readers.

use std::sync::Arc;

use model::ParticipantId;
use platform::{Mutex, MutexGuard, random};
use tokio::sync::Notify;

use crate::event::{Audience, RoomEvent};
use crate::recent::{Cursor, RecentMessage, RecentMessages, RecentPage};

/// Longest queue, in bytes. Beyond it senders wait until the writer has taken the events.
pub const ROOM_QUEUE_BYTES_MAX: usize = 4 << 20;

#[derive(Default)]
struct Queue {
    events: Vec<RoomEvent>,
    bytes: usize,
    /// Recent messages, where a built-in tool reads them.
    recent: Option<RecentMessages>,
}

/// The room of one topic.
#[derive(Default)]
pub struct Room {
    queue: Mutex<Queue>,
    /// Wakes the writer.
    wake: Arc<Notify>,
    /// Wakes senders that wait for space.
    taken: Notify,
    /// Wakes readers that wait for a message.
    added: Notify,
}

impl Room {
    /// The signal that wakes the writer.
    pub(crate) fn wake(&self) -> Arc<Notify> {
        Arc::clone(&self.wake)
    }

    /// Appends an event. Callers hold the topic's lock, so that the queue has the topic's order.
    pub fn push(&self, event: RoomEvent) {
        let mut queue = self.queue();
        queue.bytes += event.len();
        let mut added = false;
        if let (Some(recent), RoomEvent::Message(message)) = (&mut queue.recent, &event)
            && let Some(except) = readers_except(&message.audience)
        {
            recent.push(RecentMessage { envelope: message.envelope.clone(), except });
            added = true;
        }
        queue.events.push(event);
        drop(queue);
        self.wake.notify_one();
        if added {
            self.added.notify_waiters();
        }
    }

    /// Begins or stops to keep recent messages for readers.
    pub fn keep_recent(&self, on: bool) {
        let mut queue = self.queue();
        if queue.recent.is_some() != on {
            queue.recent = on.then(|| RecentMessages::new(u64::from_le_bytes(random()) >> 12));
            drop(queue);
            self.added.notify_waiters();
        }
    }

    /// The cursor of the next message; `None` if no messages are kept.
    pub fn end(&self) -> Option<Cursor> {
        self.queue().recent.as_ref().map(RecentMessages::end)
    }

    /// The messages since a cursor; `None` if no messages are kept.
    pub fn since(&self, from: Cursor) -> Option<RecentPage> {
        self.queue().recent.as_ref().map(|recent| recent.since(from))
    }

    /// Waits for a message after the cursor; returns also when the room stops to keep messages.
    pub async fn message_after(&self, cursor: Cursor) {
        loop {
            let mut added = std::pin::pin!(self.added.notified());
            added.as_mut().enable();
            if self.end().is_none_or(|end| end != cursor) {
                return;
            }
            added.await;
        }
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

/// The participant that may not read a message; `None` for mirrored calls, which are not kept at all.
fn readers_except(audience: &Audience) -> Option<Option<ParticipantId>> {
    match audience {
        Audience::Matching => Some(None),
        Audience::MatchingExcept(except) => Some(Some(except.clone())),
        Audience::Observers { .. } => None,
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.wake.notify_one();
    }
}
