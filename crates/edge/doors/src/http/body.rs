//! Response bodies: one piece, a live event stream, or a page of the API router.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use platform::Share;

use super::events::Events;
use super::handover::Handover;
use crate::unread::until_written;

/// A response body.
pub(crate) enum Body {
    /// One piece, or nothing. A long one is on an account until it is written.
    Full(Option<Bytes>),
    /// Server-sent events.
    Events(Box<Events>),
    /// Events that leave HTTP as soon as none is ready. The client must know that the connection
    /// ends with them.
    Held(Box<Events>, Arc<Handover>),
    /// Events that have left.
    Elsewhere,
    /// A page of the API router that comes in parts, each of which is on this account until it is
    /// written.
    Page(axum::body::Body, Option<Arc<Share>>),
}

impl Body {
    /// A body of one piece.
    pub(crate) fn full(bytes: impl Into<Bytes>) -> Self {
        Self::Full(Some(bytes.into()))
    }

    /// This body; if it is events, they leave HTTP as soon as none is ready.
    pub(crate) fn held(self, handover: &Arc<Handover>) -> Self {
        if let Self::Events(events) = self {
            Self::Held(events, Arc::clone(handover))
        } else {
            self
        }
    }

    /// No body.
    pub(crate) fn empty() -> Self {
        Self::Full(None)
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let body = self.get_mut();
        match body {
            Self::Full(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Events(events) => events
                .poll(cx)
                .map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes)))),
            Self::Held(events, _) => {
                let bytes = events.poll(cx);
                if bytes.is_pending()
                    && let Self::Held(events, handover) = std::mem::replace(body, Self::Elsewhere)
                {
                    handover.leave(events);
                }
                bytes.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
            }
            Self::Elsewhere => Poll::Pending,
            Self::Page(page, account) => Pin::new(page).poll_frame(cx).map(|frame| match frame {
                Some(Ok(frame)) => Some(Ok(frame.map_data(|data| match account {
                    Some(account) => until_written(data, account),
                    None => data,
                }))),
                // A page that fails half way can only be ended.
                Some(Err(_)) | None => None,
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Full(bytes) => bytes.is_none(),
            Self::Events(events) | Self::Held(events, _) => events.is_over(),
            Self::Elsewhere => false,
            Self::Page(page, _) => page.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Full(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64)),
            Self::Events(_) | Self::Held(..) | Self::Elsewhere => SizeHint::default(),
            Self::Page(page, _) => page.size_hint(),
        }
    }
}
