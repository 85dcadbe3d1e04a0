//! Mailboxes: effects of one addressee, carried out one at a time and in the topic's order.
//!
//! A step makes the mailboxes of its effects busy under the topic's lock, and its thread carries
//! these effects out afterwards. What other steps have for a busy mailbox waits for the thread that
//! has the mailbox. So no thread waits for another one.

use std::sync::atomic::{AtomicU8, Ordering};

use foldhash::{HashMap, HashMapExt};
use platform::Mutex;
use smallvec::SmallVec;

/// No thread carries out its effects.
const IDLE: u8 = 0;
/// A thread carries out its effects, and none waits.
const BUSY: u8 = 1;
/// A thread carries out its effects, and others wait for the same thread.
const WAITING: u8 = 2;

/// The mailbox of a call, a link, or the gateway itself.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    /// [`IDLE`], [`BUSY`] or [`WAITING`].
    state: AtomicU8,
}

impl Mailbox {
    /// Makes it busy for the calling thread; false if it is busy. The caller holds the topic's lock.
    pub(crate) fn begin(&self) -> bool {
        if self.state.load(Ordering::Acquire) != IDLE {
            return false;
        }
        // A load and a store do, as only steps make a mailbox busy, and they hold the topic's lock.
        self.state.store(BUSY, Ordering::Relaxed);
        true
    }

    /// Its address, by which its effects wait: they keep its owner in memory.
    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

/// The effects that wait in busy mailboxes. Few do, so that all mailboxes of a topic have one table.
///
/// No number bounds them, as a step cannot wait and no effect may be lost. They are few nevertheless:
/// the thread that has a mailbox waits for nothing before it takes what waits there, all at once, and
/// what others can step meanwhile is bounded where it comes in. A link has so many open operations, a
/// participant has a rate, and a session hands in the messages of its server one after the other,
/// from one task, which takes turns with the one that goes on here.
#[derive(Debug)]
pub(crate) struct Waiting<T>(Mutex<HashMap<usize, InOrder<T>>>);

/// Effects of one mailbox, in the topic's order: mostly one or two.
pub(crate) type InOrder<T> = SmallVec<[T; 2]>;

impl<T> Default for Waiting<T> {
    fn default() -> Self {
        Self(Mutex::new(HashMap::new()))
    }
}

impl<T> Waiting<T> {
    /// Lets an effect wait for the thread that has its mailbox. The caller holds the topic's lock.
    ///
    /// # Errors
    /// The effect, if no thread has the mailbox any more. It is busy for the calling thread then.
    pub(crate) fn add(&self, mailbox: &Mailbox, effect: T) -> Result<(), T> {
        let mut waiting = self.0.lock();
        let state = &mailbox.state;
        match state.compare_exchange(BUSY, WAITING, Ordering::AcqRel, Ordering::Acquire) {
            // Its thread has left it since the caller looked. No other step can have it now: the
            // caller holds the topic's lock.
            Err(IDLE) => {
                state.store(BUSY, Ordering::Relaxed);
                Err(effect)
            }
            // Some wait already, or this is the first.
            Ok(_) | Err(_) => {
                waiting.entry(mailbox.address()).or_default().push(effect);
                Ok(())
            }
        }
    }

    /// The effects that wait in a mailbox, for the thread that has it. `None` if there are none:
    /// then the mailbox is idle again.
    pub(crate) fn next(&self, mailbox: &Mailbox) -> Option<InOrder<T>> {
        let state = &mailbox.state;
        if state
            .compare_exchange(BUSY, IDLE, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
        {
            return None;
        }
        // Some wait. More may come before the lock is taken, by `add` under the same lock: they are
        // taken too, so that none waits when the state says that none does.
        let mut waiting = self.0.lock();
        state.store(BUSY, Ordering::Relaxed);
        Some(waiting.remove(&mailbox.address()).unwrap_or_default())
    }
}
