//! The queue of a room: what was said and not yet written, in the topic's order.
//!
//! Owns its bound. Must not know who hears.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::item::Item;

/// Bytes that may wait for the room's next turn. Whoever says more waits until the turn has taken them.
pub const ROOM_QUEUE_BYTES_MAX: usize = 4 << 20;

#[derive(Default)]
struct Queue {
    items: Vec<Item>,
    bytes: usize,
}

/// One topic's room, as those see it who say something in it.
#[derive(Default)]
pub struct Room {
    queue: Mutex<Queue>,
    wake: Arc<Notify>,
    taken: Notify,
}

impl Room {
    /// What wakes the task that takes turns.
    pub(super) fn wake(&self) -> Arc<Notify> {
        Arc::clone(&self.wake)
    }

    /// Adds to the queue. Called while the topic is locked, so that the order is the topic's.
    pub(crate) fn push(&self, item: Item) {
        let mut queue = self.queue();
        queue.bytes += item.len();
        queue.items.push(item);
        drop(queue);
        self.wake.notify_one();
    }

    /// Waits until what was said has been taken, if it is too much to go on.
    pub async fn has_room(&self) {
        loop {
            let taken = self.taken.notified();
            if self.queue().bytes <= ROOM_QUEUE_BYTES_MAX {
                return;
            }
            taken.await;
        }
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
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.wake.notify_one();
    }
}
