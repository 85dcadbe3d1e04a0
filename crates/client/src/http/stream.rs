//! Event streams: reading to the answer, and where to resume.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::timeout;
use wire::sse::Decoder;

use crate::inbox::Flow;

/// The wait before a stream is resumed, when the server names none.
const RETRY: Duration = Duration::from_millis(1000);
/// The longest wait that a server may name.
const RETRY_MAX: Duration = Duration::from_secs(60);
/// How long to wait for the end of a stream after its answer.
const DRAIN: Duration = Duration::from_millis(100);

/// Where a stream is to be resumed.
#[derive(Debug, Default)]
pub(crate) struct ResumePoint {
    pub(crate) last_id: Option<String>,
    retry_ms: Option<u64>,
}

impl ResumePoint {
    /// How long to wait before resuming.
    pub(crate) fn wait(&self) -> Duration {
        self.retry_ms.map_or(RETRY, Duration::from_millis).min(RETRY_MAX)
    }
}

/// How reading a stream ended.
#[derive(Debug)]
pub(crate) enum StreamEnd {
    /// The answer arrived. The rest of the body may be unread.
    Settled(Incoming),
    /// The stream ended or broke.
    Ended,
    /// An event was longer than the limit.
    TooLarge,
}

/// Hands the data of each message event to `each`, until `each` returns [`Flow::Settled`] or the stream ends.
pub(crate) async fn read(
    mut body: Incoming,
    max: usize,
    resume_point: &mut ResumePoint,
    mut each: impl FnMut(Bytes) -> Flow,
) -> StreamEnd {
    let mut events = Decoder::new(max);
    while let Some(Ok(frame)) = body.frame().await {
        let Ok(chunk) = frame.into_data() else { continue };
        events.push(&chunk);
        while let Some(event) = events.next_event() {
            let Ok(event) = event else { return StreamEnd::TooLarge };
            resume_point.retry_ms = event.retry_ms.or(resume_point.retry_ms);
            if let Some(id) = event.id {
                resume_point.last_id = Some(id).filter(|id| !id.is_empty());
            }
            let message = event.event.as_deref().is_none_or(|name| name == "message");
            if message && !event.data.is_empty() && each(event.data) == Flow::Settled {
                return StreamEnd::Settled(body);
            }
        }
    }
    StreamEnd::Ended
}

/// Reads the rest of a stream after its answer, normally nothing, so that the connection can be used again.
pub(crate) async fn drain(mut body: Incoming) {
    let rest = async { while let Some(Ok(_)) = body.frame().await {} };
    // The connection is closed when the server goes on sending.
    let _ = timeout(DRAIN, rest).await;
}
