//! Who listens to a participant: a queue of events each, bounded in number and bytes. Must not know what events mean.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use platform::{Mutex, MutexGuard};
use tokio::sync::Notify;

use super::event::Event;

/// Events that wait for one listener. The oldest are dropped for one that lags, and [`Event::Missed`] tells how many.
pub const EVENTS_MAX: usize = 1024;
/// What these events may keep, in bytes; the newest is kept in any case.
pub const EVENTS_BYTES_MAX: usize = 4 << 20;

#[derive(Default)]
struct Held {
    events: VecDeque<(usize, Event)>,
    bytes: usize,
    missed: u64,
    ended: bool,
}

#[derive(Default)]
struct Queue {
    held: Mutex<Held>,
    wake: Notify,
}

impl Queue {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock()
    }

    fn push(&self, event: Event) {
        let mut held = self.held();
        let bytes = event.bytes();
        held.bytes += bytes;
        held.events.push_back((bytes, event));
        while held.events.len() > EVENTS_MAX || (held.bytes > EVENTS_BYTES_MAX && held.events.len() > 1) {
            let Some((bytes, _)) = held.events.pop_front() else { break };
            held.bytes -= bytes;
            held.missed += 1;
        }
        drop(held);
        self.wake.notify_one();
    }

    fn end(&self) {
        self.held().ended = true;
        self.wake.notify_one();
    }
}

/// A stream of events.
pub struct Events(Arc<Queue>);

impl Events {
    /// The next event; `None` when the participant is gone for good and everything was taken. May be given up and called
    /// again: nothing is lost.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            {
                let mut held = self.0.held();
                if held.missed > 0 {
                    return Some(Event::Missed(std::mem::take(&mut held.missed)));
                }
                if let Some((bytes, event)) = held.events.pop_front() {
                    held.bytes -= bytes;
                    return Some(event);
                }
                if held.ended {
                    return None;
                }
            }
            self.0.wake.notified().await;
        }
    }
}

impl std::fmt::Debug for Events {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Events({} waiting)", self.0.held().events.len())
    }
}

/// All who listen.
#[derive(Default)]
pub(super) struct Listeners {
    all: Vec<Weak<Queue>>,
    ended: bool,
}

impl Listeners {
    /// One more.
    pub(super) fn listen(&mut self) -> Events {
        let queue = Arc::new(Queue::default());
        if self.ended {
            queue.end();
        }
        self.all.retain(|one| one.strong_count() > 0);
        self.all.push(Arc::downgrade(&queue));
        Events(queue)
    }

    /// Tells everybody.
    pub(super) fn tell(&self, event: &Event) {
        self.all.iter().filter_map(Weak::upgrade).for_each(|one| one.push(event.clone()));
    }

    /// Nothing more will come.
    pub(super) fn end(&mut self) {
        self.ended = true;
        self.all.iter().filter_map(Weak::upgrade).for_each(|one| one.end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn away(why: String) -> Event {
        Event::Away { why, is_final: false }
    }

    async fn words(events: &mut Events) -> Vec<String> {
        let mut words = Vec::new();
        while let Some(event) = events.next().await {
            words.push(match event {
                Event::Away { why, .. } => why.chars().take(4).collect(),
                Event::Missed(count) => format!("missed {count}"),
                other => panic!("{other:?}"),
            });
        }
        words
    }

    #[tokio::test]
    async fn whoever_lags_loses_the_oldest_and_is_told() {
        let mut listeners = Listeners::default();
        let mut many = listeners.listen();
        for number in 0..EVENTS_MAX + 2 {
            listeners.tell(&away(number.to_string()));
        }
        listeners.end();
        let words = words(&mut many).await;
        assert_eq!(words.len(), EVENTS_MAX + 1);
        assert_eq!((words[0].as_str(), words[1].as_str()), ("missed 2", "2"));
    }

    #[tokio::test]
    async fn large_events_count_by_their_bytes() {
        let mut listeners = Listeners::default();
        let mut large = listeners.listen();
        for size in [EVENTS_BYTES_MAX, 12, EVENTS_BYTES_MAX] {
            listeners.tell(&away("word".repeat(size / 4)));
        }
        listeners.end();
        assert_eq!(words(&mut large).await, ["missed 2", "word"]);
        assert_eq!(words(&mut listeners.listen()).await, Vec::<String>::new());
    }
}
