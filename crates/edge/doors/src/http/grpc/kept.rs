//! Bodies of responses that are on their participant's account.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use platform::Taken;
use tonic::Status;

use crate::unread::with_place;

/// A body whose bytes are on an account until it is written.
pub(super) struct CountedBody {
    /// The body.
    pub(super) body: tonic::body::Body,
    /// Its place on the account; a short one has none.
    pub(super) taken: Option<Arc<Taken>>,
}

impl http_body::Body for CountedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(None) = frame {
            self.taken = None;
        }
        // What the connection has not written is not dropped with the body.
        frame.map_ok(|frame| {
            frame.map_data(|data| match &self.taken {
                Some(taken) => with_place(data, Arc::clone(taken)),
                None => data,
            })
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
