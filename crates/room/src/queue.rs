//! The queue of a room: what was said and not yet written, in the topic's order.
//!
//! Owns its bound. Must not know who hears.

use std::sync::Arc;

use platform::{Mutex, MutexGuard, random};
use tokio::sync::Notify;

use super::item::Item;
use super::ring::{Kept, Mark, Ring, Since};

/// Bytes that may wait for the room's next turn. Whoever says more waits until the turn has taken them.
pub const ROOM_QUEUE_BYTES_MAX: usize = 4 << 20;

#[derive(Default)]
struct Queue {
    items: Vec<Item>,
    bytes: usize,
    /// What was said lately, where somebody may read it.
    ring: Option<Ring>,
}

/// One topic's room, as those see it who say something in it.
#[derive(Default)]
pub struct Room {
    queue: Mutex<Queue>,
    wake: Arc<Notify>,
    taken: Notify,
    /// Something was added to the ring.
    kept: Notify,
}

impl Room {
    /// What wakes the task that takes turns.
    pub(super) fn wake(&self) -> Arc<Notify> {
        Arc::clone(&self.wake)
    }

    /// Adds to the queue. Called while the topic is locked, so that the order is the topic's.
    pub fn push(&self, item: Item) {
        let mut queue = self.queue();
        queue.bytes += item.len();
        let mut kept = false;
        // What is only to be seen is nobody's to read later.
        if let (Some(ring), Item::Say(said)) = (&mut queue.ring, &item)
            && let Some(but) = said.reach.but()
        {
            ring.keep(Kept { envelope: said.envelope.clone(), but });
            kept = true;
        }
        queue.items.push(item);
        drop(queue);
        self.wake.notify_one();
        if kept {
            self.kept.notify_waiters();
        }
    }

    /// Begins to keep what is said for readers, or ends it.
    pub fn keep(&self, on: bool) {
        let mut queue = self.queue();
        if queue.ring.is_some() != on {
            queue.ring = on.then(|| Ring::new(u64::from_le_bytes(random()) >> 12));
            drop(queue);
            self.kept.notify_waiters();
        }
    }

    /// The place of what will be said next; none where nothing is kept.
    pub fn end(&self) -> Option<Mark> {
        self.queue().ring.as_ref().map(Ring::end)
    }

    /// What was said since this place; none where nothing is kept.
    pub fn since(&self, from: Mark) -> Option<Since> {
        self.queue().ring.as_ref().map(|ring| ring.since(from))
    }

    /// Waits until something is said after this place, or nothing is kept any more.
    pub async fn said_after(&self, place: Mark) {
        loop {
            let mut kept = std::pin::pin!(self.kept.notified());
            kept.as_mut().enable();
            if self.end().is_none_or(|end| end != place) {
                return;
            }
            kept.await;
        }
    }

    /// Waits until what was said has been taken, if it is too much to go on.
    pub async fn has_room(&self) {
        loop {
            let taken = self.taken.notified();
            if !self.is_full() {
                return;
            }
            taken.await;
        }
    }

    /// Whether so much was said that nobody may go on.
    pub fn is_full(&self) -> bool {
        self.queue().bytes > ROOM_QUEUE_BYTES_MAX
    }

    /// How much was said since the last turn.
    pub(super) fn waiting(&self) -> usize {
        self.queue().items.len()
    }

    /// Everything that was said since the last turn.
    pub(super) fn take(&self) -> Vec<Item> {
        let mut queue = self.queue();
        queue.bytes = 0;
        let items = std::mem::take(&mut queue.items);
        drop(queue);
        self.taken.notify_waiters();
        items
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
