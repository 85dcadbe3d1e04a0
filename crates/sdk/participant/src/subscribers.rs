//! Event queues of a participant, one per subscriber, bounded in number and bytes.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use platform::Mutex;
use tokio::sync::Notify;

use crate::event::Event;

/// Events that wait for one subscriber. Beyond this the oldest are dropped, and [`Event::Lagged`]
/// has their number.
pub const EVENTS_MAX: usize = 1024;
/// Bytes of these events together, roughly. The newest is kept in any case.
pub const EVENTS_BYTES_MAX: usize = 4 << 20;

#[derive(Default)]
struct Buffer {
    events: VecDeque<(usize, Event)>,
    bytes: usize,
    dropped: u64,
    ended: bool,
}

#[derive(Default)]
struct EventQueue {
    buffer: Mutex<Buffer>,
    wake: Notify,
}

impl EventQueue {
    fn push(&self, event: Event) {
        let mut buffer = self.buffer.lock();
        let bytes = event.bytes();
        buffer.bytes += bytes;
        buffer.events.push_back((bytes, event));
        while buffer.events.len() > EVENTS_MAX
            || (buffer.bytes > EVENTS_BYTES_MAX && buffer.events.len() > 1)
        {
            let Some((bytes, _)) = buffer.events.pop_front() else {
                break;
            };
            buffer.bytes -= bytes;
            buffer.dropped += 1;
        }
        drop(buffer);
        self.wake.notify_one();
    }

    fn end(&self) {
        self.buffer.lock().ended = true;
        self.wake.notify_one();
    }
}

/// Receives the events of a participant.
pub struct Events(Arc<EventQueue>);

impl Events {
    /// Waits for the next event; `None` after the last one, once the participant has ended.
    /// Dropping the future loses no event.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            {
                let mut buffer = self.0.buffer.lock();
                if buffer.dropped > 0 {
                    return Some(Event::Lagged(std::mem::take(&mut buffer.dropped)));
                }
                if let Some((bytes, event)) = buffer.events.pop_front() {
                    buffer.bytes -= bytes;
                    return Some(event);
                }
                if buffer.ended {
                    return None;
                }
            }
            self.0.wake.notified().await;
        }
    }
}

impl std::fmt::Debug for Events {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Events({} waiting)", self.0.buffer.lock().events.len())
    }
}

/// All subscribers.
#[derive(Default)]
pub(crate) struct Subscribers {
    all: Vec<Weak<EventQueue>>,
    ended: bool,
}

impl Subscribers {
    /// Adds a subscriber.
    pub(crate) fn subscribe(&mut self) -> Events {
        let queue = Arc::new(EventQueue::default());
        if self.ended {
            queue.end();
        }
        self.all.retain(|one| one.strong_count() > 0);
        self.all.push(Arc::downgrade(&queue));
        Events(queue)
    }

    /// Sends an event to every subscriber.
    pub(crate) fn send(&self, event: &Event) {
        self.all
            .iter()
            .filter_map(Weak::upgrade)
            .for_each(|one| one.push(event.clone()));
    }

    /// Ends every subscription after the events that it has.
    pub(crate) fn end(&mut self) {
        self.ended = true;
        self.all
            .iter()
            .filter_map(Weak::upgrade)
            .for_each(|one| one.end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disconnected(why: String) -> Event {
        Event::Disconnected {
            why,
            is_final: false,
        }
    }

    async fn words(events: &mut Events) -> Vec<String> {
        let mut words = Vec::new();
        while let Some(event) = events.next().await {
            words.push(match event {
                Event::Disconnected { why, .. } => why.chars().take(4).collect(),
                Event::Lagged(count) => format!("lagged {count}"),
                other => panic!("{other:?}"),
            });
        }
        words
    }

    #[tokio::test]
    async fn a_subscriber_that_lags_loses_the_oldest_events_and_learns_how_many() {
        let mut subscribers = Subscribers::default();
        let mut many = subscribers.subscribe();
        for number in 0..EVENTS_MAX + 2 {
            subscribers.send(&disconnected(number.to_string()));
        }
        subscribers.end();
        let words = words(&mut many).await;
        assert_eq!(words.len(), EVENTS_MAX + 1);
        assert_eq!((words[0].as_str(), words[1].as_str()), ("lagged 2", "2"));
    }

    #[tokio::test]
    async fn large_events_are_bounded_by_their_bytes() {
        let mut subscribers = Subscribers::default();
        let mut large = subscribers.subscribe();
        for size in [EVENTS_BYTES_MAX, 12, EVENTS_BYTES_MAX] {
            subscribers.send(&disconnected("word".repeat(size / 4)));
        }
        subscribers.end();
        assert_eq!(words(&mut large).await, ["lagged 2", "word"]);
        assert_eq!(
            words(&mut subscribers.subscribe()).await,
            Vec::<String>::new()
        );
    }
}
