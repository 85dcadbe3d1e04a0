//! A live stream of server-sent events, and when a comment keeps a quiet one alive. Must not know what the messages mean.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use crate::caller::Open;
use crate::stream::{Item, Reader};

/// A live stream of server-sent events.
pub struct Events {
    reader: Reader,
    ready: Vec<Bytes>,
    /// Event ids are given only where the client can come back for more.
    ids: bool,
    keep_alive: Interval,
    watch: Option<Arc<dyn Open>>,
    over: bool,
}

impl Events {
    /// A stream of what `reader` reads. `watch` is cancelled when the client leaves before the end.
    pub fn new(reader: Reader, ids: bool, watch: Option<Arc<dyn Open>>) -> Self {
        // A comment on a quiet stream, so that nobody between us and the client ends it.
        let period = reader.stream().bounds().keep_alive;
        let mut keep_alive = interval_at(Instant::now() + period, period);
        keep_alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { reader, ready: Vec::new(), ids, keep_alive, watch, over: false }
    }

    /// Sends these bytes first, as they are.
    pub fn open_with(&mut self, bytes: Bytes) {
        self.ready.push(bytes);
    }

    /// Sends this message first.
    pub fn begin_with(&mut self, item: &Item) {
        let event = self.spell(item);
        self.over = item.last;
        self.ready.push(event);
    }

    fn spell(&self, item: &Item) -> Bytes {
        let id = self.ids.then(|| event_id(self.reader.stream().id(), item.number));
        wire::sse::Event { id: id.as_deref(), data: &item.frame, ..wire::sse::Event::default() }.encode()
    }

    /// The next bytes to send, never none; `None` at the end.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if !self.ready.is_empty() {
            return Poll::Ready(Some(self.ready.remove(0)));
        }
        if self.over {
            return Poll::Ready(None);
        }
        match self.reader.poll_next(cx) {
            Poll::Ready(Some(item)) => {
                self.over = item.last;
                self.keep_alive.reset();
                Poll::Ready(Some(self.spell(&item)))
            }
            Poll::Ready(None) => {
                self.over = true;
                Poll::Ready(None)
            }
            Poll::Pending => match self.keep_alive.poll_tick(cx) {
                Poll::Ready(_) => Poll::Ready(Some(Bytes::from_static(b": \n\n"))),
                Poll::Pending => Poll::Pending,
            },
        }
    }

    /// Whether everything was said.
    pub fn is_over(&self) -> bool {
        self.over && self.ready.is_empty()
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        if let (false, Some(watch)) = (self.over, &self.watch) {
            watch.cancel();
        }
    }
}

/// The event id of a message: `<stream>-<number>`, unique within its session.
pub fn event_id(stream: u64, number: u64) -> String {
    format!("{stream}-{number}")
}

/// Reads an event id back.
pub fn parse_event_id(id: &str) -> Option<(u64, u64)> {
    let (stream, number) = id.split_once('-')?;
    Some((stream.parse().ok()?, number.parse().ok()?))
}
