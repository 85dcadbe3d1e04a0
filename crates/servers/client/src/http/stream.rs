//! Event streams: reading to the answer, and where to resume.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::timeout;
use wire::sse::{Decoder, Received, TooLarge};

use crate::{error::LinkError, transport::Flow};

/// The wait before a stream is resumed, when the server names none.
const RETRY: Duration = Duration::from_millis(1000);
/// The longest wait that a server may name.
const RETRY_MAX: Duration = Duration::from_secs(60);
/// Time to wait for the end of a stream after its answer.
const DRAIN: Duration = Duration::from_millis(100);

/// The position at which a stream is to be resumed.
#[derive(Debug, Default)]
pub(crate) struct ResumePoint {
    pub(crate) last_id: Option<String>,
    retry_ms: Option<u64>,
}

impl ResumePoint {
    /// Time to wait before resuming.
    pub(crate) fn wait(&self) -> Duration {
        self.retry_ms
            .map_or(RETRY, Duration::from_millis)
            .min(RETRY_MAX)
    }
}

/// The end of reading a stream.
#[derive(Debug)]
pub(crate) enum StreamEnd {
    /// The answer arrived. The rest of the body may be unread.
    Settled(Incoming),
    /// The stream ended or broke.
    Ended,
    /// An event was longer than the limit.
    TooLarge,
}

/// The events of a response.
pub(crate) struct Events {
    body: Incoming,
    decoder: Decoder,
}

impl Events {
    /// Events of at most `max` bytes.
    pub(crate) fn new(body: Incoming, max: usize) -> Self {
        Self {
            body,
            decoder: Decoder::new(max),
        }
    }

    /// Waits for the next event, or for one that is too long.
    ///
    /// # Errors
    /// [`LinkError::Broken`] when the stream ends or breaks.
    pub(crate) async fn next(&mut self) -> Result<Result<Received, TooLarge>, LinkError> {
        loop {
            if let Some(event) = self.decoder.next_event() {
                return Ok(event);
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(chunk) = frame.into_data() {
                        self.decoder.push(&chunk);
                    }
                }
                Some(Err(error)) => return Err(LinkError::Broken(error.to_string())),
                None => return Err(LinkError::Broken("the stream ended".to_owned())),
            }
        }
    }
}

/// Whether an event carries a message.
pub(crate) fn is_message(event: &Received) -> bool {
    event.event.as_deref().is_none_or(|name| name == "message") && !event.data.is_empty()
}

/// Hands the data of each message event to `each`, until `each` returns [`Flow::Settled`] or the
/// stream ends.
pub(crate) async fn read(
    body: Incoming,
    max: usize,
    resume_point: &mut ResumePoint,
    mut each: impl FnMut(Bytes) -> Flow,
) -> StreamEnd {
    let mut events = Events::new(body, max);
    while let Ok(event) = events.next().await {
        let Ok(mut event) = event else {
            return StreamEnd::TooLarge;
        };
        resume_point.retry_ms = event.retry_ms.or(resume_point.retry_ms);
        if let Some(id) = event.id.take() {
            resume_point.last_id = Some(id).filter(|id| !id.is_empty());
        }
        if is_message(&event) && each(event.data) == Flow::Settled {
            return StreamEnd::Settled(events.body);
        }
    }
    StreamEnd::Ended
}

/// Reads the rest of a stream after its answer, normally nothing, so that the connection can be
/// used again.
pub(crate) async fn drain(mut body: Incoming) {
    let rest = async { while let Some(Ok(_)) = body.frame().await {} };
    // The connection is closed when the server goes on sending.
    let _ = timeout(DRAIN, rest).await;
}
