//! Live stream of server-sent events, with comments that keep a silent one alive.

use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use platform::Share;
use wire::rpc;

use crate::keep_alive::KeepAlive;
use crate::stream::{Reader, StreamItem};
use crate::unread::until_written;

/// A comment, which shows that the stream is open.
pub(crate) const COMMENT: Bytes = Bytes::from_static(b": \n\n");

/// Runs when a stream is dropped, with whether its last message was queued.
pub(crate) type OnLeave = Box<dyn FnOnce(bool) + Send>;

/// A live stream of server-sent events.
pub(crate) struct Events {
    reader: Reader,
    /// Bytes that are sent first, as they are. Empty it holds no memory.
    lead: Bytes,
    /// Event ids are written only if the client can resume the stream.
    ids: bool,
    on_leave: Option<OnLeave>,
    over: bool,
}

impl Events {
    /// A stream of what `reader` reads.
    pub(crate) fn new(
        reader: Reader,
        ids: bool,
        on_leave: Option<OnLeave>,
        keep_alive: &Arc<KeepAlive>,
    ) -> Self {
        keep_alive.watch(&reader.stream);
        Self {
            reader,
            lead: Bytes::new(),
            ids,
            on_leave,
            over: false,
        }
    }

    /// Sends these bytes first, as they are, after what is to be sent first already.
    pub(crate) fn open_with(&mut self, bytes: Bytes) {
        self.lead = if self.lead.is_empty() {
            bytes
        } else {
            [mem::take(&mut self.lead), bytes].concat().into()
        };
    }

    fn encode(&self, item: &StreamItem) -> Bytes {
        let id = self
            .ids
            .then(|| event_id(self.reader.stream.id, item.number));
        // On one line, for clients that read one.
        wire::sse::encode(id.as_deref(), &rpc::one_line(item.frame.clone()))
    }

    /// The next bytes to send, at least one; `None` at the end.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if !self.lead.is_empty() {
            return Poll::Ready(Some(mem::take(&mut self.lead)));
        }
        if self.over {
            return Poll::Ready(None);
        }
        match self.reader.poll_next(cx) {
            Poll::Ready(Some(item)) => {
                self.over = item.last;
                let event = until_written(self.encode(&item), self.account());
                Poll::Ready(Some(event))
            }
            Poll::Ready(None) => {
                self.over = true;
                Poll::Ready(None)
            }
            Poll::Pending if self.reader.take_comment() => Poll::Ready(Some(COMMENT)),
            Poll::Pending => Poll::Pending,
        }
    }

    /// The account of what waits to be written.
    pub(crate) fn account(&self) -> &Arc<Share> {
        &self.reader.stream.bounds.held
    }

    /// Whether everything was sent.
    pub(crate) fn is_over(&self) -> bool {
        self.over && self.lead.is_empty()
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        if let Some(on_leave) = self.on_leave.take() {
            // An answer that the client did not read is an answer.
            on_leave(self.over || self.reader.stream.has_ended());
        }
    }
}

/// The event id of a message: `<stream>-<number>`, unique within its session.
pub(crate) fn event_id(stream: u64, number: u64) -> String {
    format!("{stream}-{number}")
}

/// The stream and the number of an event id.
pub(crate) fn parse_event_id(id: &str) -> Option<(u64, u64)> {
    let (stream, number) = id.split_once('-')?;
    Some((stream.parse().ok()?, number.parse().ok()?))
}
