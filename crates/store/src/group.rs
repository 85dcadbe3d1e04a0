//! Group commit: one thread writes for all, and whatever comes while it syncs is its next group. Bounded by places that
//! are reserved before. Must not know what is written.

use std::fmt::{self, Debug};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::error::StoreError;

/// Who is told once an item is durable, or cannot be. Runs on the writing thread: it must be short and must not wait.
pub(crate) type Told = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// What makes a group of items durable.
pub(crate) trait Sink: Send + 'static {
    type Item: Send;

    /// Writes and syncs them all. After an error it is not called again.
    fn commit(&mut self, items: &[Waiting<Self::Item>]) -> Result<(), StoreError>;
}

/// How much may wait, and how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Items, reserved places included.
    pub(crate) places_max: usize,
    /// Bytes of items. One more item is taken while they are below this.
    pub(crate) bytes_max: usize,
    /// How long items for which nobody waits may gather before they are written; no longer once half the places are taken.
    pub(crate) gather: Duration,
}

/// An item in the queue.
pub(crate) struct Waiting<I> {
    pub(crate) item: I,
    bytes: usize,
    told: Option<Told>,
}

/// The queue and its thread. The thread ends, with all that waits written, when this is dropped.
pub(crate) struct Group<I: Send + 'static> {
    shared: Arc<Shared<I>>,
    thread: Option<JoinHandle<()>>,
}

struct Shared<I> {
    queue: Mutex<Queue<I>>,
    wake: Condvar,
    bounds: Bounds,
    /// Places reserved or in the queue or being written.
    places: AtomicUsize,
    bytes: AtomicUsize,
    stopped: AtomicBool,
}

struct Queue<I> {
    waiting: Vec<Waiting<I>>,
    /// Somebody waits for an item, or the end has come: no gathering.
    urgent: bool,
    closing: bool,
    /// Why nothing is written any more.
    trouble: Option<String>,
}

/// A place in the queue, kept free for one item. Given back when dropped.
pub(crate) struct Place<I: Send + 'static> {
    shared: Arc<Shared<I>>,
    used: bool,
}

impl<I: Send + 'static> Group<I> {
    /// Starts the thread.
    pub(crate) fn start(name: &str, sink: impl Sink<Item = I>, bounds: Bounds) -> std::io::Result<Group<I>> {
        let queue = Queue { waiting: Vec::new(), urgent: false, closing: false, trouble: None };
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

    /// Keeps a place free.
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

    /// Why nothing is written any more; `None` while all is well.
    pub(crate) fn trouble(&self) -> Option<String> {
        match self.shared.stopped.load(Ordering::Acquire) {
            true => Some(self.shared.lock().trouble.clone().unwrap_or_else(|| "it has ended".into())),
            false => None,
        }
    }
}

impl<I: Send + 'static> Place<I> {
    /// Puts an item into the queue.
    pub(crate) fn fill(mut self, item: I, bytes: usize, told: Option<Told>) {
        self.used = true;
        let shared = &self.shared;
        shared.bytes.fetch_add(bytes, Ordering::Relaxed);
        let mut queue = shared.lock();
        if shared.stopped.load(Ordering::Acquire) {
            drop(queue);
            shared.done(1, bytes);
            told.into_iter().for_each(|told| told(Err(StoreError::Stopped)));
            return;
        }
        let hurry = told.is_some() && !queue.urgent;
        let wake = hurry || queue.waiting.is_empty() || queue.waiting.len() + 1 == shared.half();
        queue.urgent |= told.is_some();
        queue.waiting.push(Waiting { item, bytes, told });
        drop(queue);
        if wake {
            shared.wake.notify_one();
        }
    }
}

impl<I: Send + 'static> Drop for Place<I> {
    fn drop(&mut self) {
        if !self.used {
            self.shared.done(1, 0);
        }
    }
}

impl<I: Send + 'static> Drop for Group<I> {
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

impl<I: Send + 'static> Debug for Group<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("places", &self.shared.places).finish_non_exhaustive()
    }
}

impl<I> Shared<I> {
    fn lock(&self) -> MutexGuard<'_, Queue<I>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// So many items are written without gathering more.
    fn half(&self) -> usize {
        self.bounds.places_max / 2
    }

    fn done(&self, places: usize, bytes: usize) {
        self.places.fetch_sub(places, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// The next group; nothing when the end has come.
    fn next(&self) -> Vec<Waiting<I>> {
        let mut queue = self.lock();
        while queue.waiting.is_empty() && !queue.closing {
            queue = self.wake.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        if !queue.urgent && !queue.closing && !self.bounds.gather.is_zero() {
            let half = self.half();
            let still = |queue: &mut Queue<I>| !queue.urgent && !queue.closing && queue.waiting.len() < half;
            let waited = self.wake.wait_timeout_while(queue, self.bounds.gather, still);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        queue.urgent = false;
        std::mem::take(&mut queue.waiting)
    }

    fn stop(&self, why: String) {
        let mut queue = self.lock();
        self.stopped.store(true, Ordering::Release);
        queue.trouble.get_or_insert(why);
    }
}

/// Whatever ends the thread, nobody is left to wait for it.
struct End<'a, I>(&'a Shared<I>);

impl<I> Drop for End<'_, I> {
    fn drop(&mut self) {
        self.0.stop("the writing thread has ended".into());
        let left = std::mem::take(&mut self.0.lock().waiting);
        drop(left);
    }
}

fn run<I>(shared: &Shared<I>, mut sink: impl Sink<Item = I>) {
    let _end = End(shared);
    loop {
        let group = shared.next();
        if group.is_empty() {
            return;
        }
        let mut result = match shared.stopped.load(Ordering::Acquire) {
            true => Err(StoreError::Stopped),
            false => sink.commit(&group),
        };
        if let Err(error) = &result {
            shared.stop(error.to_string());
        }
        let bytes = group.iter().map(|waiting| waiting.bytes).sum();
        shared.done(group.len(), bytes);
        for told in group.into_iter().filter_map(|waiting| waiting.told) {
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

    /// Tells how many items each group has.
    struct Tell(mpsc::Sender<usize>);

    impl Sink for Tell {
        type Item = u8;

        fn commit(&mut self, items: &[Waiting<u8>]) -> Result<(), StoreError> {
            self.0.send(items.len()).map_err(|_| StoreError::Stopped)
        }
    }

    #[test]
    fn nothing_gathers_once_half_of_what_may_wait_does() {
        let (tell, told) = mpsc::channel();
        let hour = Duration::from_secs(3600);
        let bounds = Bounds { places_max: 8, bytes_max: 1024, gather: hour };
        let group = Group::start("half", Tell(tell), bounds).unwrap();
        for _ in 0..4 {
            group.reserve().unwrap().fill(0, 1, None);
        }
        assert_eq!(told.recv_timeout(Duration::from_secs(10)), Ok(4));
        drop(group);
    }
}
