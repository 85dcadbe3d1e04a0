//! The bus: messages to all who listen, at most once each.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use platform::Mutex;

use crate::log::{FRAME_BYTES_MAX, Ongoing};
use crate::subject::{SubjectName, SubjectPattern};

/// The most messages that wait for a subscriber.
pub const WAITING_MESSAGES_MAX: usize = 65_536;
/// The most bytes of messages that wait for a subscriber.
pub const WAITING_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Messages between nodes. They can be lost, doubled and late; nothing is known of those that were
/// published.
pub trait Bus: Send + Sync {
    /// Hands a message to the bus. It may go to the publisher too.
    fn publish<'a>(
        &'a self,
        subject: &'a SubjectName,
        bytes: Bytes,
    ) -> Ongoing<'a, Result<(), BusError>>;

    /// Listens from now on to all subjects of a pattern.
    fn subscribe<'a>(
        &'a self,
        pattern: &'a SubjectPattern,
    ) -> Ongoing<'a, Result<BusSubscription, BusError>>;
}

/// A bus that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BusError {
    /// The message has more than [`FRAME_BYTES_MAX`] bytes.
    #[error("a message has {0} bytes, more than {FRAME_BYTES_MAX}")]
    TooLarge(usize),
    /// No server is reached.
    #[error("the bus is unavailable: {0}")]
    Unavailable(String),
}

/// A message, as it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BusMessage {
    /// Its subject.
    pub subject: SubjectName,
    /// Its content.
    pub bytes: Bytes,
}

/// A subscriber's next piece of news.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// A message.
    Message(BusMessage),
    /// At this place so many messages were dropped, because too many waited for this subscriber.
    Dropped(u64),
}

/// A subscription; dropping it ends it.
#[derive(Debug)]
pub struct BusSubscription {
    waiting: Arc<Waiting>,
}

impl BusSubscription {
    /// A subscription, and the end at which messages are put in.
    #[must_use]
    pub(crate) fn new() -> (Self, Arc<Waiting>) {
        let waiting = Arc::new(Waiting::default());
        let own = Arc::clone(&waiting);
        (Self { waiting: own }, waiting)
    }

    /// The next message, or the number of those that were dropped before it; `None` when the bus
    /// has ended.
    pub async fn next(&mut self) -> Option<Delivery> {
        std::future::poll_fn(|context| self.waiting.poll(context)).await
    }

    /// Messages dropped so far.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.waiting.state.lock().dropped
    }
}

impl Drop for BusSubscription {
    fn drop(&mut self) {
        let mut state = self.waiting.state.lock();
        state.has_ended = true;
        state.queue.clear();
        if let Some(ended) = state.ended.take() {
            ended.wake();
        }
    }
}

/// Messages that wait for a subscriber.
#[derive(Default)]
pub(crate) struct Waiting {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Delivery>,
    bytes: usize,
    dropped: u64,
    has_ended: bool,
    reader: Option<Waker>,
    ended: Option<Waker>,
}

impl Waiting {
    /// Puts a message in, or counts it as dropped if too many wait.
    pub(crate) fn push(&self, message: BusMessage) {
        let mut state = self.state.lock();
        let is_full = state.queue.len() >= WAITING_MESSAGES_MAX
            || state.bytes + message.bytes.len() > WAITING_BYTES_MAX;
        if is_full {
            state.drop_more(1);
        } else if !state.has_ended {
            state.bytes += message.bytes.len();
            state.queue.push_back(Delivery::Message(message));
        }
        state.wake();
    }

    /// Notes messages that were dropped before they came here.
    pub(crate) fn dropped(&self, number: u64) {
        let mut state = self.state.lock();
        state.drop_more(number);
        state.wake();
    }

    /// Ends the subscription: what waits is still read.
    pub(crate) fn end(&self) {
        let mut state = self.state.lock();
        state.has_ended = true;
        state.wake();
    }

    /// Whether the subscription has ended, on either side.
    #[cfg(any(test, feature = "sim"))]
    pub(crate) fn has_ended(&self) -> bool {
        self.state.lock().has_ended
    }

    /// Returns when the subscription has ended.
    pub(crate) async fn ended(&self) {
        std::future::poll_fn(|context| {
            let mut state = self.state.lock();
            if state.has_ended {
                return Poll::Ready(());
            }
            state.ended = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn poll(&self, context: &Context<'_>) -> Poll<Option<Delivery>> {
        let mut state = self.state.lock();
        if let Some(next) = state.queue.pop_front() {
            if let Delivery::Message(message) = &next {
                state.bytes -= message.bytes.len();
            }
            return Poll::Ready(Some(next));
        }
        if state.has_ended {
            return Poll::Ready(None);
        }
        state.reader = Some(context.waker().clone());
        Poll::Pending
    }
}

impl State {
    fn drop_more(&mut self, number: u64) {
        self.dropped += number;
        match self.queue.back_mut() {
            Some(Delivery::Dropped(before)) => *before += number,
            _ => self.queue.push_back(Delivery::Dropped(number)),
        }
    }

    fn wake(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        write!(
            f,
            "Waiting({}, dropped {})",
            state.queue.len(),
            state.dropped
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(bytes: usize) -> BusMessage {
        BusMessage {
            subject: "a".parse().unwrap(),
            bytes: vec![0; bytes].into(),
        }
    }

    #[tokio::test]
    async fn a_slow_subscriber_learns_where_messages_were_dropped() {
        let (mut subscription, waiting) = BusSubscription::new();
        for _ in 0..WAITING_MESSAGES_MAX + 3 {
            waiting.push(message(1));
        }
        assert_eq!(subscription.dropped(), 3);
        for _ in 0..WAITING_MESSAGES_MAX {
            assert_eq!(
                subscription.next().await,
                Some(Delivery::Message(message(1)))
            );
        }
        waiting.push(message(2));
        assert_eq!(subscription.next().await, Some(Delivery::Dropped(3)));
        assert_eq!(
            subscription.next().await,
            Some(Delivery::Message(message(2)))
        );
        waiting.end();
        assert_eq!(subscription.next().await, None);
    }

    #[tokio::test]
    async fn large_messages_wait_within_a_limit_of_bytes() {
        let (mut subscription, waiting) = BusSubscription::new();
        let fit = WAITING_BYTES_MAX / FRAME_BYTES_MAX;
        for _ in 0..=fit {
            waiting.push(message(FRAME_BYTES_MAX));
        }
        assert_eq!(subscription.dropped(), 1);
        for _ in 0..fit {
            assert!(matches!(
                subscription.next().await,
                Some(Delivery::Message(_))
            ));
        }
        assert_eq!(subscription.next().await, Some(Delivery::Dropped(1)));
        waiting.push(message(FRAME_BYTES_MAX));
        assert!(matches!(
            subscription.next().await,
            Some(Delivery::Message(_))
        ));
    }

    #[tokio::test]
    async fn a_dropped_subscription_ends_its_source() {
        let (subscription, waiting) = BusSubscription::new();
        drop(subscription);
        waiting.ended().await;
        waiting.push(message(1));
        assert!(waiting.has_ended());
    }
}
