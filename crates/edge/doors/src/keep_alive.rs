//! Keep-alive of silent event streams, so that no proxy ends them. One task looks at all streams in
//! turn: no stream has a timer.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use control::Registry;
use platform::{Mutex, millis};
use tokio::time::{Instant, sleep_until};

use crate::stream::Stream;

/// Shortest time between two looks at a stream.
const LOOK_MIN: Duration = Duration::from_millis(5);

/// The number of streams from which on those that are gone are forgotten.
const TIDY_MIN: usize = 64;

/// The event streams that clients read.
pub(crate) struct KeepAlive {
    registry: Arc<Registry>,
    began: Instant,
    turns: Mutex<Turns>,
}

#[derive(Default)]
struct Turns {
    /// Each stream with the time of the next look since the beginning, in milliseconds, the next
    /// one first. The task runs while there are any.
    queue: VecDeque<(u64, Weak<Stream>)>,
    /// The number of streams at which those that are gone are forgotten: twice as many as remained
    /// the last time.
    tidy_at: usize,
}

impl KeepAlive {
    /// No streams.
    pub(crate) fn new(registry: &Arc<Registry>) -> Arc<Self> {
        let registry = Arc::clone(registry);
        let began = Instant::now();
        Arc::new(Self {
            registry,
            began,
            turns: Mutex::default(),
        })
    }

    /// Keeps a stream alive for as long as it has a reader. Must be called inside a runtime.
    pub(crate) fn watch(self: &Arc<Self>, stream: &Arc<Stream>) {
        if stream.begin_watch() {
            let Turns { queue, tidy_at } = &mut *self.turns.lock();
            if queue.is_empty() {
                tokio::spawn(Arc::clone(self).run());
            }
            if queue.len() >= TIDY_MIN.max(*tidy_at) {
                queue.retain(|(_, stream)| stream.strong_count() > 0);
                *tidy_at = queue.len() * 2;
            }
            queue.push_back((self.next_look(), Arc::downgrade(stream)));
        }
    }

    async fn run(self: Arc<Self>) {
        while let Some(due_ms) = self.look() {
            sleep_until(self.began + Duration::from_millis(due_ms)).await;
        }
    }

    /// Looks at the first stream if it is time; returns the time of the next look.
    fn look(&self) -> Option<u64> {
        let Turns { queue, .. } = &mut *self.turns.lock();
        let (due_ms, stream) = queue.front()?;
        if *due_ms <= millis(self.began.elapsed()) {
            let watched = stream.upgrade().filter(|stream| stream.watch());
            queue.pop_front();
            queue.extend(watched.map(|stream| (self.next_look(), Arc::downgrade(&stream))));
        }
        queue.front().map(|(due_ms, _)| *due_ms)
    }

    /// A comment follows two looks without a message between them: within the interval.
    fn next_look(&self) -> u64 {
        let half = (self.registry.limits().topics.keep_alive / 2).max(LOOK_MIN);
        millis(self.began.elapsed().saturating_add(half))
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Poll;

    use bytes::Bytes;
    use config::GatewayLimits;
    use topic::section::TopicLimits;

    use super::*;
    use crate::fixture::{registry, user};
    use crate::stream::{Lifetime, Reader};

    const INTERVAL: Duration = Duration::from_secs(10);

    fn stage() -> (Arc<KeepAlive>, Arc<Stream>) {
        let topics = TopicLimits {
            keep_alive: INTERVAL,
            ..TopicLimits::default()
        };
        let registry = registry(GatewayLimits {
            topics,
            ..GatewayLimits::default()
        });
        let bounds = registry.bounds(&user(&registry).id);
        (
            KeepAlive::new(&registry),
            Stream::new(0, Lifetime::Resumable, 0, &bounds),
        )
    }

    async fn comment(reader: &mut Reader) {
        poll_fn(|cx| match reader.poll_next(cx) {
            Poll::Pending if reader.take_comment() => Poll::Ready(()),
            Poll::Pending => Poll::Pending,
            Poll::Ready(item) => panic!("{item:?}"),
        })
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_stream_gets_a_comment_within_each_interval() {
        let (keep_alive, stream) = stage();
        let mut reader = stream.read(None).unwrap();
        keep_alive.watch(&stream);
        for _ in 0..3 {
            let since = Instant::now();
            comment(&mut reader).await;
            assert!(
                since.elapsed().abs_diff(INTERVAL) < LOOK_MIN,
                "{:?}",
                since.elapsed()
            );
        }
        tokio::time::sleep(INTERVAL * 7 / 10).await;
        stream.send(Bytes::from_static(b"{}"), None).unwrap();
        assert!(reader.try_next().is_some());
        let since = Instant::now();
        comment(&mut reader).await;
        assert!(
            since.elapsed() > INTERVAL / 2 && since.elapsed() < INTERVAL,
            "{:?}",
            since.elapsed()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_is_watched_once_and_while_it_has_a_reader() {
        let (keep_alive, stream) = stage();
        let mut reader = stream.read(None).unwrap();
        for _ in 0..3 {
            reader = stream.read(None).unwrap();
            keep_alive.watch(&stream);
        }
        assert_eq!(keep_alive.turns.lock().queue.len(), 1);
        comment(&mut reader).await;
        drop(reader);
        tokio::time::sleep(INTERVAL).await;
        assert_eq!(
            (
                keep_alive.turns.lock().queue.len(),
                Arc::strong_count(&keep_alive)
            ),
            (0, 1)
        );
        let mut reader = stream.read(None).unwrap();
        keep_alive.watch(&stream);
        comment(&mut reader).await;
    }

    #[tokio::test(start_paused = true)]
    async fn streams_that_are_gone_are_forgotten() {
        let (keep_alive, stream) = stage();
        for _ in 0..10 * TIDY_MIN {
            keep_alive.watch(&Stream::new(1, Lifetime::Reader, 1, &stream.bounds));
        }
        assert!(keep_alive.turns.lock().queue.len() <= TIDY_MIN);
    }
}
