//! The bodies that the HTTP door sends: one piece, a live event stream, or what the pages' router made.
//!
//! Owns when a comment keeps a quiet stream alive. Must not know what the messages mean.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use crate::caller::Open;
use crate::stream::{Item, Reader};

/// A response body.
pub enum Body {
    /// One piece, or nothing.
    Full(Option<Bytes>),
    /// Server-sent events.
    Events(Box<Events>),
    /// A page of the API router.
    Page(axum::body::Body),
}

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

impl Body {
    /// A body of one piece.
    pub fn full(bytes: impl Into<Bytes>) -> Self {
        Self::Full(Some(bytes.into()))
    }

    /// No body.
    pub fn empty() -> Self {
        Self::Full(None)
    }
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

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
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

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Full(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Events(events) => events.poll(cx).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes)))),
            Self::Page(page) => Pin::new(page).poll_frame(cx).map(|frame| match frame {
                Some(Ok(frame)) => Some(Ok(frame)),
                // A page that fails half way can only be ended.
                Some(Err(_)) | None => None,
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Full(bytes) => bytes.is_none(),
            Self::Events(events) => events.over && events.ready.is_empty(),
            Self::Page(page) => page.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Full(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64)),
            Self::Events(_) => SizeHint::default(),
            Self::Page(page) => page.size_hint(),
        }
    }
}
