//! Response to a POST with one request: JSON if the answer comes first, else an event stream.

use std::sync::Arc;

use bytes::Bytes;
use gateway::{Call, Dispatch};
use http::{Response, StatusCode};
use wire::mcp::{Era, refusal};

use super::body::Body;
use super::connection::Connection;
use super::events::{Events, OnLeave, event_id};
use super::response;
use crate::slot::{First, Slot};

/// A comment, which shows that the stream is open.
pub(crate) const COMMENT: Bytes = Bytes::from_static(b": \n\n");

/// The form of a response.
pub(crate) struct Sending {
    /// Whether events have ids, so that the client can resume.
    pub(crate) ids: bool,
    /// Whether a stream begins with an event that has an id and no data, so that the client can resume from the start
    /// (2025-11-25).
    pub(crate) prime: bool,
    /// The era, whose errors have statuses.
    pub(crate) era: Era,
}

/// Responds with what comes in a slot. `leaving` is dropped if the client leaves before anything has come, and runs if it
/// leaves a stream before the end.
pub(crate) async fn respond(
    connection: &Connection,
    slot: &Slot,
    leaving: Option<Leaving>,
    sending: Sending,
) -> Response<Body> {
    let (first, took_long) = connection.first(slot).await;
    let on_leave = leaving.and_then(Leaving::into_hook);
    match first {
        First::Answer(frame, error) => response::json(status(error, sending.era), frame),
        First::Nothing => response::empty(StatusCode::ACCEPTED),
        First::Stream(reader) => {
            let id = event_id(reader.stream().id(), 0);
            let mut events = Events::new(reader, sending.ids, on_leave);
            if sending.prime {
                events.open_with(wire::sse::encode(Some(&id), b""));
            }
            if took_long {
                events.open_with(COMMENT);
            }
            response::events(events)
        }
    }
}

/// The status of an answer that comes as JSON. Only the modern era has statuses for errors of requests.
pub(crate) fn status(error: Option<i64>, era: Era) -> StatusCode {
    let error = error.filter(|_| era == Era::Modern);
    let status = error.map_or(200, |code| refusal::status(code, era));
    StatusCode::from_u16(status).unwrap_or(StatusCode::OK)
}

/// Cancels a call when its client leaves.
pub(crate) struct Leaving(Option<(Arc<Dispatch>, Arc<Call>)>);

impl Leaving {
    /// Cancels this call.
    pub(crate) fn new(dispatch: &Arc<Dispatch>, call: Arc<Call>) -> Self {
        Self(Some((Arc::clone(dispatch), call)))
    }

    fn into_hook(mut self) -> Option<OnLeave> {
        let (dispatch, call) = self.0.take()?;
        Some(Box::new(move |over| {
            if !over {
                dispatch.abandon(&call);
            }
        }))
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        if let Some((dispatch, call)) = self.0.take() {
            dispatch.abandon(&call);
        }
    }
}
