//! Group commit: a queue with permits, and one thread that writes and syncs for all callers.
//!
//! Items that arrive during a sync are the next group. Callers reserve a permit before they add an
//! item; permits and bytes are bounded.

use std::fmt::{self, Debug};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::{sync::Arc, time::Duration};

use platform::{Condvar, Mutex, Taken};

use crate::error::StoreError;

/// Time between two attempts to open a file.
const RETRY: Duration = Duration::from_millis(200);

/// Callback for the result once an item is durable or its write has failed. Runs on the writing
/// thread: it must be short and must not block.
pub(crate) type OnDurable = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// Items that are written together. A queue has two of these: one gathers while the other is
/// written.
pub(crate) trait Items: Default + Send + 'static {
    /// Bytes of all items.
    fn bytes(&self) -> usize;

    /// Removes all items. May keep a bounded amount of memory for the next ones.
    fn clear(&mut self);
}

/// Storage that makes a group of items durable.
pub(crate) trait Sink: Send + 'static {
    type Items: Items;

    /// Whether items whose file could not be opened are written later. Otherwise nothing of them
    /// was written, and they fail alone.
    const RETRIES: bool;

    /// Writes and syncs all items. After [`StoreError::Unopened`] it is called again, with the same
    /// items if it [retries](Sink::RETRIES). After another error never.
    fn commit(&mut self, items: &Self::Items) -> Result<(), StoreError>;
}

/// Limits of a queue: permits, bytes and time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueueLimits {
    /// Items in the queue, reserved permits included.
    pub(crate) permits_max: usize,
    /// Bytes of items. The queue accepts one more item while they are below this.
    pub(crate) bytes_max: usize,
    /// The longest time that items without a callback gather before they are written.
    pub(crate) gather: Duration,
    /// The queue writes at once when it holds this many bytes, or half of `permits_max` items.
    pub(crate) gather_bytes: usize,
}

/// The queue and its thread. When this is dropped, the thread writes the remaining items and ends.
pub(crate) struct GroupCommit<I> {
    shared: Arc<Shared<I>>,
    thread: Option<JoinHandle<()>>,
}

struct Shared<I> {
    queue: Mutex<Queue<I>>,
    wake: Condvar,
    limits: QueueLimits,
    /// Permits of items that are reserved, in the queue or being written.
    permits: AtomicUsize,
    /// Bytes of items that are in the queue or being written.
    bytes: AtomicUsize,
    stopped: AtomicBool,
    /// A file could not be opened; the thread tries again.
    paused: AtomicBool,
}

struct Queue<I> {
    next: Batch<I>,
    /// An item has a callback: the thread writes without gathering.
    urgent: bool,
    closing: bool,
    /// The error that stopped the writing, or for which it waits.
    failure: Option<String>,
}

/// One group of items with their callbacks.
#[derive(Default)]
struct Batch<I> {
    items: I,
    /// Permits that its items have used.
    permits: usize,
    /// Whether it has reached a limit at which it is written at once.
    full: bool,
    callbacks: Vec<OnDurable>,
    /// Parts of their participants' shares that the items take.
    taken: Vec<Taken>,
}

/// Permit to add one item to the queue. Released when dropped.
pub(crate) struct QueuePermit<I> {
    shared: Arc<Shared<I>>,
    used: bool,
    /// On the account of a participant, until the item is durable, and how many bytes of the item
    /// that covers.
    taken: Option<(Taken, usize)>,
}

impl<I> QueuePermit<I> {
    /// The permit, on an account. The bytes of the item that what is taken does not cover are added
    /// to it.
    pub(crate) fn on(self, taken: Taken, covers: usize) -> Self {
        let mut permit = self;
        permit.taken = Some((taken, covers));
        permit
    }
}

impl<I: Items> GroupCommit<I> {
    /// Starts the thread.
    pub(crate) fn start(
        name: &str,
        sink: impl Sink<Items = I>,
        limits: QueueLimits,
    ) -> std::io::Result<GroupCommit<I>> {
        let queue = Queue {
            next: Batch::default(),
            urgent: false,
            closing: false,
            failure: None,
        };
        let shared = Arc::new(Shared {
            queue: Mutex::new(queue),
            wake: Condvar::new(),
            limits,
            permits: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
            paused: AtomicBool::new(false),
        });
        let for_thread = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || run(&for_thread, sink))?;
        Ok(GroupCommit {
            shared,
            thread: Some(thread),
        })
    }

    /// Reserves a permit. Takes no lock.
    pub(crate) fn reserve(&self) -> Result<QueuePermit<I>, StoreError> {
        let shared = &self.shared;
        if shared.stopped.load(Ordering::Acquire) {
            return Err(StoreError::Stopped);
        }
        if shared.paused.load(Ordering::Relaxed) {
            return Err(StoreError::Paused);
        }
        if shared.bytes.load(Ordering::Relaxed) >= shared.limits.bytes_max {
            return Err(StoreError::Busy);
        }
        if shared.permits.fetch_add(1, Ordering::Relaxed) >= shared.limits.permits_max {
            shared.permits.fetch_sub(1, Ordering::Relaxed);
            return Err(StoreError::Busy);
        }
        Ok(QueuePermit {
            shared: Arc::clone(shared),
            used: false,
            taken: None,
        })
    }

    /// Blocks until all items are durable, or until the writing waits for a file.
    pub(crate) fn flush(&self) -> Result<(), StoreError> {
        let (sender, result) = mpsc::sync_channel(1);
        self.reserve_beyond_limits().fill(
            Some(Box::new(move |result| _ = sender.send(result))),
            |_| {},
        );
        loop {
            match result.recv_timeout(RETRY) {
                Ok(result) => return result,
                Err(RecvTimeoutError::Disconnected) => return Err(StoreError::Stopped),
                Err(RecvTimeoutError::Timeout) if self.shared.paused.load(Ordering::Relaxed) => {
                    return Err(StoreError::Paused);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// A permit, also when the queue is full or stopped.
    pub(crate) fn reserve_beyond_limits(&self) -> QueuePermit<I> {
        self.shared.permits.fetch_add(1, Ordering::Relaxed);
        QueuePermit {
            shared: Arc::clone(&self.shared),
            used: false,
            taken: None,
        }
    }
}

impl<I> GroupCommit<I> {
    /// Permits in use.
    pub(crate) fn permits(&self) -> usize {
        self.shared.permits.load(Ordering::Relaxed)
    }

    /// The error that stopped the writing; `None` while the queue works.
    pub(crate) fn failure(&self) -> Option<String> {
        // Flags and cause change under the lock.
        let queue = self.shared.queue.lock();
        let fails = self.shared.stopped.load(Ordering::Acquire)
            || self.shared.paused.load(Ordering::Relaxed);
        fails.then(|| {
            queue
                .failure
                .clone()
                .unwrap_or_else(|| "the writing thread has ended".into())
        })
    }
}

impl<I: Items> QueuePermit<I> {
    /// Adds an item to the queue: `put` adds it under the queue's lock. A stopped queue does not
    /// call `put`.
    pub(crate) fn fill(mut self, on_durable: Option<OnDurable>, put: impl FnOnce(&mut I)) {
        self.used = true;
        let taken = self.taken.take();
        let shared = &*self.shared;
        let waits = on_durable.is_some();
        let mut queue = shared.queue.lock();
        if shared.stopped.load(Ordering::Acquire) {
            drop(queue);
            shared.release(1, 0);
            on_durable
                .into_iter()
                .for_each(|on_durable| on_durable(Err(StoreError::Stopped)));
            return;
        }
        let batch = &mut queue.next;
        let before = batch.items.bytes();
        put(&mut batch.items);
        batch.permits += 1;
        batch.callbacks.extend(on_durable);
        let bytes = batch.items.bytes() - before;
        shared.bytes.fetch_add(bytes, Ordering::Relaxed);
        if let Some((mut taken, covers)) = taken {
            taken.add(bytes.saturating_sub(covers));
            batch.taken.push(taken);
        }
        let now_full = !batch.full && shared.is_full(batch);
        batch.full |= now_full;
        let first = batch.permits == 1;
        let now_urgent = waits && !queue.urgent;
        queue.urgent |= waits;
        drop(queue);
        if first || now_full || now_urgent {
            shared.wake.notify_one();
        }
    }
}

impl<I> Drop for QueuePermit<I> {
    fn drop(&mut self) {
        if !self.used {
            self.shared.release(1, 0);
        }
    }
}

impl<I> Drop for GroupCommit<I> {
    fn drop(&mut self) {
        self.shared.queue.lock().closing = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self
            .thread
            .take()
            .filter(|thread| thread.thread().id() != thread::current().id())
        {
            let _ = thread.join();
        }
    }
}

impl<I> Debug for QueuePermit<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("QueuePermit")
    }
}

impl<I> Debug for GroupCommit<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupCommit")
            .field("permits", &self.shared.permits)
            .finish_non_exhaustive()
    }
}

impl<I> Shared<I> {
    fn release(&self, permits: usize, bytes: usize) {
        self.permits.fetch_sub(permits, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Notes that the writing waits, and sleeps for a moment. False if the queue is closing: then
    /// no more attempts are made.
    fn pause(&self, why: &StoreError) -> bool {
        let mut queue = self.queue.lock();
        if queue.closing {
            return false;
        }
        queue.failure = Some(why.to_string());
        self.paused.store(true, Ordering::Relaxed);
        self.wake
            .wait_while_for(&mut queue, |queue| !queue.closing, RETRY);
        true
    }

    fn resume(&self) {
        if self.paused.load(Ordering::Relaxed) {
            let mut queue = self.queue.lock();
            queue.failure = None;
            self.paused.store(false, Ordering::Relaxed);
        }
    }

    fn stop(&self, why: String) {
        let mut queue = self.queue.lock();
        self.stopped.store(true, Ordering::Release);
        queue.failure.get_or_insert(why);
    }
}

impl<I: Items> Shared<I> {
    fn is_full(&self, batch: &Batch<I>) -> bool {
        let QueueLimits {
            permits_max,
            gather_bytes,
            ..
        } = self.limits;
        batch.permits >= permits_max / 2 || batch.items.bytes() >= gather_bytes
    }

    /// Swaps the next batch for an empty one. Returns false when the queue is closed and empty.
    fn next(&self, batch: &mut Batch<I>) -> bool {
        let mut queue = self.queue.lock();
        while queue.next.permits == 0 && !queue.closing {
            self.wake.wait(&mut queue);
        }
        if !self.limits.gather.is_zero() {
            let still = |queue: &mut Queue<I>| !queue.urgent && !queue.closing && !queue.next.full;
            self.wake
                .wait_while_for(&mut queue, still, self.limits.gather);
        }
        queue.urgent = false;
        std::mem::swap(&mut queue.next, batch);
        batch.permits > 0
    }
}

/// Guard that stops the queue and drops its callbacks when the thread ends, also after a panic.
struct StopOnDrop<'a, I: Items>(&'a Shared<I>);

impl<I: Items> Drop for StopOnDrop<'_, I> {
    fn drop(&mut self) {
        self.0.stop("the writing thread has ended".into());
        let remaining = std::mem::take(&mut self.0.queue.lock().next);
        drop(remaining);
    }
}

fn run<I: Items, S: Sink<Items = I>>(shared: &Shared<I>, mut sink: S) {
    let _end = StopOnDrop(shared);
    let mut batch = Batch::default();
    while shared.next(&mut batch) {
        let mut result = if shared.stopped.load(Ordering::Acquire) {
            Err(StoreError::Stopped)
        } else {
            loop {
                match sink.commit(&batch.items) {
                    Err(error @ StoreError::Unopened { .. })
                        if S::RETRIES && shared.pause(&error) => {}
                    end => break end,
                }
            }
        };
        shared.resume();
        match &result {
            Err(StoreError::Unopened { .. }) if !S::RETRIES => {}
            Err(error) => shared.stop(error.to_string()),
            Ok(()) => {}
        }
        shared.release(batch.permits, batch.items.bytes());
        (batch.permits, batch.full) = (0, false);
        batch.items.clear();
        batch.taken.clear();
        for on_durable in batch.callbacks.drain(..) {
            // The first callback receives the cause, all others `Stopped`.
            let after = if result.is_ok() {
                Ok(())
            } else {
                Err(StoreError::Stopped)
            };
            on_durable(std::mem::replace(&mut result, after));
        }
    }
}

#[cfg(test)]
mod tests;
