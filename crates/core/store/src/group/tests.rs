//! Tests of the group commit queue: when a batch is written, and files that cannot be opened.

use super::*;

impl<I: Items> GroupCommit<I> {
    /// Adds an item, and blocks until it is durable.
    fn fill_and_wait(&self, put: impl FnOnce(&mut I)) -> Result<(), StoreError> {
        let (sender, result) = mpsc::sync_channel(1);
        self.reserve_beyond_limits()
            .fill(Some(Box::new(move |result| _ = sender.send(result))), put);
        result.recv().unwrap()
    }
}

/// Sink that sends the size of each group, in bytes.
struct SizeSender(mpsc::Sender<usize>);

impl Items for Vec<u8> {
    fn bytes(&self) -> usize {
        self.len()
    }

    fn clear(&mut self) {
        Vec::clear(self);
    }
}

impl Sink for SizeSender {
    type Items = Vec<u8>;

    const RETRIES: bool = false;

    fn commit(&mut self, items: &Vec<u8>) -> Result<(), StoreError> {
        self.0.send(items.len()).map_err(|_| StoreError::Stopped)
    }
}

/// A queue that gathers items for an hour unless they reach a limit.
fn group(sizes: mpsc::Sender<usize>) -> GroupCommit<Vec<u8>> {
    let hour = Duration::from_secs(3600);
    let limits = QueueLimits {
        permits_max: 8,
        bytes_max: 1024,
        gather: hour,
        gather_bytes: 100,
    };
    GroupCommit::start("test", SizeSender(sizes), limits).unwrap()
}

/// Sink that cannot open its file while `fails` is set.
struct Unopened<const RETRIES: bool> {
    fails: Arc<AtomicBool>,
    sizes: SizeSender,
}

impl<const RETRIES: bool> Sink for Unopened<RETRIES> {
    type Items = Vec<u8>;

    const RETRIES: bool = RETRIES;

    fn commit(&mut self, items: &Vec<u8>) -> Result<(), StoreError> {
        if self.fails.load(Ordering::SeqCst) {
            let cause = std::io::Error::other("too many open files");
            return Err(StoreError::Unopened {
                path: "segment".into(),
                cause,
            });
        }
        self.sizes.commit(items)
    }
}

/// A queue whose file cannot be opened as long as the flag is set, and the sizes of what it writes.
fn unopened<const RETRIES: bool>() -> (GroupCommit<Vec<u8>>, Arc<AtomicBool>, mpsc::Receiver<usize>)
{
    let fails = Arc::new(AtomicBool::new(true));
    let (sender, sizes) = mpsc::channel();
    let limits = QueueLimits {
        permits_max: 8,
        bytes_max: 1024,
        gather: Duration::ZERO,
        gather_bytes: 100,
    };
    let sink = Unopened::<RETRIES> {
        fails: Arc::clone(&fails),
        sizes: SizeSender(sender),
    };
    (
        GroupCommit::start("test", sink, limits).unwrap(),
        fails,
        sizes,
    )
}

fn wait_while(condition: impl Fn() -> bool) {
    while condition() {
        thread::yield_now();
    }
}

#[test]
fn a_file_that_cannot_be_opened_pauses_the_queue_and_loses_nothing() {
    let (group, fails, sizes) = unopened::<true>();
    group.reserve().unwrap().fill(None, |items| items.push(1));
    wait_while(|| group.reserve().is_ok());
    assert!(matches!(group.reserve(), Err(StoreError::Paused)));
    assert!(group.failure().unwrap().contains("too many open files"));
    fails.store(false, Ordering::SeqCst);
    assert_eq!(
        sizes.recv_timeout(Duration::from_secs(10)),
        Ok(1),
        "it was tried again"
    );
    wait_while(|| group.failure().is_some());
    group.fill_and_wait(|items| items.push(2)).unwrap();
    assert_eq!(sizes.recv_timeout(Duration::from_secs(10)), Ok(1));
}

#[test]
fn items_whose_file_cannot_be_opened_fail_alone_if_they_are_not_written_later() {
    let (group, fails, sizes) = unopened::<false>();
    let first = group.fill_and_wait(|items| items.push(1));
    assert!(matches!(first, Err(StoreError::Unopened { .. })));
    fails.store(false, Ordering::SeqCst);
    group.fill_and_wait(|items| items.extend([2, 2])).unwrap();
    assert_eq!(sizes.recv_timeout(Duration::from_secs(10)), Ok(2));
}

#[test]
fn a_queue_that_waits_for_a_file_can_be_closed() {
    let (group, _fails, sizes) = unopened::<true>();
    group.reserve().unwrap().fill(None, |items| items.push(1));
    wait_while(|| group.reserve().is_ok());
    assert!(matches!(group.flush(), Err(StoreError::Paused)));
    drop(group);
    assert!(sizes.recv().is_err(), "nothing was written");
}

#[test]
fn a_full_batch_is_written_at_once() {
    let (sender, sizes) = mpsc::channel();
    let group = group(sender);
    let next = || sizes.recv_timeout(Duration::from_secs(10));
    for (count, bytes) in [(4, 1), (2, 50), (1, 100), (4, 1)] {
        for _ in 0..count {
            group
                .reserve()
                .unwrap()
                .fill(None, |items| items.resize(items.len() + bytes, 0));
        }
        assert_eq!(next(), Ok(count * bytes));
    }
    group.reserve().unwrap().fill(None, |items| items.push(0));
    drop(group);
    assert_eq!(next(), Ok(1));
}
