//! Response to a POST with one request: JSON if the answer comes first, else an event stream.

use std::sync::Arc;

use gateway::{Call, Dispatch};
use http::{Response, StatusCode};
use wire::mcp::{Era, refusal};

use super::body::Body;
use super::connection::Connection;
use super::events::{COMMENT, Events, OnLeave, event_id};
use super::response;
use crate::slot::{FirstReply, Slot};

/// The form of a response.
pub(crate) struct Sending {
    /// Whether events have ids, so that the client can resume.
    pub(crate) ids: bool,
    /// Whether a stream begins with an event that has an id and no data, so that the client can
    /// resume from the start (2025-11-25).
    pub(crate) prime: bool,
    /// The era, whose errors have statuses.
    pub(crate) era: Era,
}

/// Responds with what comes in a slot. `call` is cancelled if the client leaves before the answer.
pub(crate) async fn respond(
    connection: &Connection,
    slot: &Slot,
    call: Option<(Arc<Dispatch>, Arc<Call>)>,
    sending: Sending,
) -> Response<Body> {
    let mut leaving = Leaving { slot, call };
    let (first, took_long) = connection.first(slot).await;
    // From here on the stream cancels the call, if there is one.
    let call = leaving.call.take();
    match first {
        FirstReply::Answer(frame, error) => response::json(status(error, sending.era), frame),
        FirstReply::Nothing => response::empty(StatusCode::ACCEPTED),
        FirstReply::Stream(reader) => {
            let id = event_id(reader.stream.id, 0);
            let on_leave = call.map(cancel_unanswered);
            let keep_alive = &connection.links.keep_alive;
            let mut events = Events::new(reader, sending.ids, on_leave, keep_alive);
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

/// The status of an answer that comes as JSON. Only the modern era has statuses for errors of
/// requests.
fn status(error: Option<i64>, era: Era) -> StatusCode {
    let error = error.filter(|_| era == Era::Modern);
    let status = error.map_or(200, |code| refusal::status(code, era));
    StatusCode::from_u16(status).unwrap_or(StatusCode::OK)
}

fn cancel_unanswered((dispatch, call): (Arc<Dispatch>, Arc<Call>)) -> OnLeave {
    Box::new(move |answered| {
        if !answered {
            dispatch.abandon(&call);
        }
    })
}

/// Cancels a call if its client leaves before anything has come. A call that was answered is left
/// alone: answered for now, it may run later.
struct Leaving<'s> {
    slot: &'s Slot,
    call: Option<(Arc<Dispatch>, Arc<Call>)>,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if let Some((dispatch, call)) = self.call.take().filter(|_| !self.slot.is_answered()) {
            dispatch.abandon(&call);
        }
    }
}
