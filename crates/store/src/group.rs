//! Group commit: one thread writes for all, and whatever comes while it syncs is its next group. Bounded by places that
//! are reserved before. Must not know what is written.

use std::fmt::{self, Debug};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use platform::{Condvar, Mutex, MutexGuard};

use crate::error::StoreError;

/// Who is told once an item is durable, or cannot be. Runs on the writing thread: it must be short and must not wait.
pub(crate) type Told = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// Items that wait to be written together. There are two of it, one that gathers and one that is written, in turns.
pub(crate) trait Items: Default + Send + 'static {
    /// Bytes of all that is in it.
    fn bytes(&self) -> usize;

    /// Takes all out. May keep its memory for what comes next, but not without a bound.
    fn clear(&mut self);
}

/// What makes a group of items durable.
pub(crate) trait Sink: Send + 'static {
    type Items: Items;

    /// Writes and syncs them all. After an error it is not called again.
    fn commit(&mut self, items: &Self::Items) -> Result<(), StoreError>;
}

/// How much may wait, and how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Items, reserved places included.
    pub(crate) places_max: usize,
    /// Bytes of items. One more item is taken while they are below this.
    pub(crate) bytes_max: usize,
    /// How long items for which nobody waits may gather before they are written.
    pub(crate) gather: Duration,
    /// So many bytes gather no longer, nor do half of `places_max`.
    pub(crate) gather_bytes: usize,
}

/// The queue and its thread. The thread ends, with all that waits written, when this is dropped.
pub(crate) struct Group<I> {
    shared: Arc<Shared<I>>,
    thread: Option<JoinHandle<()>>,
}

struct Shared<I> {
    queue: Mutex<Queue<I>>,
    wake: Condvar,
    bounds: Bounds,
    /// Places reserved or in the queue or being written.
    places: AtomicUsize,
    /// Bytes in the queue or being written.
    bytes: AtomicUsize,
    stopped: AtomicBool,
}

struct Queue<I> {
    waiting: Waiting<I>,
    /// Somebody waits for an item, or the end has come: no gathering.
    urgent: bool,
    closing: bool,
    /// Why nothing is written any more.
    trouble: Option<String>,
}

/// A group, as far as it has gathered.
#[derive(Default)]
struct Waiting<I> {
    items: I,
    /// Places that it has taken.
    places: usize,
    /// Whether it is so much that it gathers no longer.
    enough: bool,
    told: Vec<Told>,
}

/// A place in the queue, kept free for one item. Given back when dropped.
pub(crate) struct Place<I> {
    shared: Arc<Shared<I>>,
    used: bool,
}

impl<I: Items> Group<I> {
    /// Starts the thread.
    pub(crate) fn start(name: &str, sink: impl Sink<Items = I>, bounds: Bounds) -> std::io::Result<Group<I>> {
        let queue = Queue { waiting: Waiting::default(), urgent: false, closing: false, trouble: None };
        let shared = Arc::new(Shared {
            queue: Mutex::new(queue),
            wake: Condvar::new(),
            bounds,
            places: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
        });
        let for_thread = Arc::clone(&shared);
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || run(&for_thread, sink))?;
        Ok(Group { shared, thread: Some(thread) })
    }

    /// Keeps a place free. Takes no lock.
    pub(crate) fn reserve(&self) -> Result<Place<I>, StoreError> {
        let shared = &self.shared;
        if shared.stopped.load(Ordering::Acquire) {
            return Err(StoreError::Stopped);
        }
        if shared.bytes.load(Ordering::Relaxed) >= shared.bounds.bytes_max {
            return Err(StoreError::Busy);
        }
        if shared.places.fetch_add(1, Ordering::Relaxed) >= shared.bounds.places_max {
            shared.places.fetch_sub(1, Ordering::Relaxed);
            return Err(StoreError::Busy);
        }
        Ok(Place { shared: Arc::clone(shared), used: false })
    }

    /// A place beyond the bounds, for a caller that waits itself.
    pub(crate) fn place(&self) -> Place<I> {
        self.shared.places.fetch_add(1, Ordering::Relaxed);
        Place { shared: Arc::clone(&self.shared), used: false }
    }
}

impl<I> Group<I> {
    /// Places that are taken.
    pub(crate) fn places(&self) -> usize {
        self.shared.places.load(Ordering::Relaxed)
    }

    /// Why nothing is written any more; `None` while all is well.
    pub(crate) fn trouble(&self) -> Option<String> {
        match self.shared.stopped.load(Ordering::Acquire) {
            true => Some(self.shared.lock().trouble.clone().unwrap_or_else(|| "it has ended".into())),
            false => None,
        }
    }
}

impl<I: Items> Place<I> {
    /// Puts an item into the queue: `put` adds it, under the queue's lock. After an end it is not called.
    pub(crate) fn fill(mut self, told: Option<Told>, put: impl FnOnce(&mut I)) {
        self.used = true;
        let (shared, waits) = (&*self.shared, told.is_some());
        let mut queue = shared.lock();
        if shared.stopped.load(Ordering::Acquire) {
            drop(queue);
            shared.done(1, 0);
            told.into_iter().for_each(|told| told(Err(StoreError::Stopped)));
            return;
        }
        let waiting = &mut queue.waiting;
        let before = waiting.items.bytes();
        put(&mut waiting.items);
        waiting.places += 1;
        waiting.told.extend(told);
        shared.bytes.fetch_add(waiting.items.bytes() - before, Ordering::Relaxed);
        let enough = !waiting.enough && shared.is_enough(waiting);
        waiting.enough |= enough;
        let first = waiting.places == 1;
        let hurry = waits && !queue.urgent;
        queue.urgent |= waits;
        drop(queue);
        if first || enough || hurry {
            shared.wake.notify_one();
        }
    }
}

impl<I> Drop for Place<I> {
    fn drop(&mut self) {
        if !self.used {
            self.shared.done(1, 0);
        }
    }
}

impl<I> Drop for Group<I> {
    fn drop(&mut self) {
        self.shared.lock().closing = true;
        self.shared.wake.notify_one();
        if let Some(thread) =
            self.thread.take().filter(|thread| thread.thread().id() != thread::current().id())
        {
            let _ = thread.join();
        }
    }
}

impl<I> Debug for Group<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("places", &self.shared.places).finish_non_exhaustive()
    }
}

impl<I> Shared<I> {
    fn lock(&self) -> MutexGuard<'_, Queue<I>> {
        self.queue.lock()
    }

    fn done(&self, places: usize, bytes: usize) {
        self.places.fetch_sub(places, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn stop(&self, why: String) {
        let mut queue = self.lock();
        self.stopped.store(true, Ordering::Release);
        queue.trouble.get_or_insert(why);
    }
}

impl<I: Items> Shared<I> {
    fn is_enough(&self, waiting: &Waiting<I>) -> bool {
        let Bounds { places_max, gather_bytes, .. } = self.bounds;
        waiting.places >= places_max / 2 || waiting.items.bytes() >= gather_bytes
    }

    /// Swaps the next group for an empty one; false when the end has come.
    fn next(&self, group: &mut Waiting<I>) -> bool {
        let mut queue = self.lock();
        while queue.waiting.places == 0 && !queue.closing {
            self.wake.wait(&mut queue);
        }
        if !self.bounds.gather.is_zero() {
            let still = |queue: &mut Queue<I>| !queue.urgent && !queue.closing && !queue.waiting.enough;
            self.wake.wait_while_for(&mut queue, still, self.bounds.gather);
        }
        queue.urgent = false;
        std::mem::swap(&mut queue.waiting, group);
        group.places > 0
    }
}

/// Whatever ends the thread, nobody is left to wait for it.
struct End<'a, I: Items>(&'a Shared<I>);

impl<I: Items> Drop for End<'_, I> {
    fn drop(&mut self) {
        self.0.stop("the writing thread has ended".into());
        let left = std::mem::take(&mut self.0.lock().waiting);
        drop(left);
    }
}

fn run<I: Items>(shared: &Shared<I>, mut sink: impl Sink<Items = I>) {
    let _end = End(shared);
    let mut group = Waiting::default();
    while shared.next(&mut group) {
        let mut result = match shared.stopped.load(Ordering::Acquire) {
            true => Err(StoreError::Stopped),
            false => sink.commit(&group.items),
        };
        if let Err(error) = &result {
            shared.stop(error.to_string());
        }
        shared.done(group.places, group.items.bytes());
        (group.places, group.enough) = (0, false);
        group.items.clear();
        for told in group.told.drain(..) {
            // The first is told the cause, all after it that it has stopped.
            let after = if result.is_ok() { Ok(()) } else { Err(StoreError::Stopped) };
            told(std::mem::replace(&mut result, after));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Tells how many bytes each group has.
    struct Tell(mpsc::Sender<usize>);

    impl Items for Vec<u8> {
        fn bytes(&self) -> usize {
            self.len()
        }

        fn clear(&mut self) {
            Vec::clear(self);
        }
    }

    impl Sink for Tell {
        type Items = Vec<u8>;

        fn commit(&mut self, items: &Vec<u8>) -> Result<(), StoreError> {
            self.0.send(items.len()).map_err(|_| StoreError::Stopped)
        }
    }

    /// A group in which everything gathers for an hour, unless it is enough.
    fn group(tell: mpsc::Sender<usize>) -> Group<Vec<u8>> {
        let hour = Duration::from_secs(3600);
        let bounds = Bounds { places_max: 8, bytes_max: 1024, gather: hour, gather_bytes: 100 };
        Group::start("test", Tell(tell), bounds).unwrap()
    }

    #[test]
    fn nothing_gathers_once_it_is_enough() {
        let (tell, told) = mpsc::channel();
        let group = group(tell);
        let next = || told.recv_timeout(Duration::from_secs(10));
        for (count, bytes) in [(4, 1), (2, 50), (1, 100), (4, 1)] {
            for _ in 0..count {
                group.reserve().unwrap().fill(None, |items| items.resize(items.len() + bytes, 0));
            }
            assert_eq!(next(), Ok(count * bytes));
        }
        group.reserve().unwrap().fill(None, |items| items.push(0));
        drop(group);
        assert_eq!(next(), Ok(1));
    }
}
