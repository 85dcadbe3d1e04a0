//! Answers: decoded from servers and clients, encoded for the side that sent the request.

use bytes::Bytes;
use json::{Span, Splice};
use model::{Answer, Form, Outcome, Payload};

use super::{payload, span};
use crate::mcp::{translate, uris};
use crate::rpc::{self, Id, Message, MessageKind};

/// An answer as its server wrote it.
#[must_use]
pub fn decode_answer(message: &Message, form: Form) -> Answer {
    let outcome = if message.shape() == MessageKind::Result {
        Outcome::Ok
    } else {
        Outcome::Error
    };
    Answer {
        outcome,
        payload: payload(message, None, form),
    }
}

/// An answer for a caller, and its code if it is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded {
    /// The JSON-RPC message.
    pub frame: Bytes,
    /// The JSON-RPC code of an error.
    pub error: Option<i64>,
}

/// Encodes an answer for a caller that reads `form` and gave its request this id: an error if that
/// form has no such result.
/// `public_uri` returns a URI's public spelling if it differs.
pub fn encode_answer(
    answer: &Answer,
    method: &str,
    form: Form,
    id: &Id,
    public_uri: &dyn Fn(&str) -> Option<String>,
) -> Encoded {
    let Payload { bytes, marks, .. } = &answer.payload;
    if !answer.payload.is_message() {
        let frame = match answer.outcome {
            Outcome::Ok => rpc::result(id, bytes),
            Outcome::Error | Outcome::Refused | Outcome::Cancelled => rpc::error_object(id, bytes),
        };
        return Encoded {
            error: code_of(answer, &frame),
            frame,
        };
    }
    let (from, mut splice) = (answer.payload.form, Splice::new());
    // A result has an id.
    if answer.outcome == Outcome::Ok && !marks.id.is_empty() {
        let body = (&**bytes, span(marks.body));
        if from != form && translate::result(body, method, form, &mut splice).is_err() {
            return fault(
                "the server's result has no form in this protocol revision",
                id,
            );
        }
        // A URI that an object names twice cannot be mapped: the answer stays as it came.
        let _ = uris::map_uris(body, method, public_uri, &mut splice);
        splice.replace(span(marks.id), id.raw());
        return Encoded {
            frame: splice.apply(bytes),
            error: None,
        };
    }
    let Ok(message) = Message::read(bytes.clone()) else {
        // The decoder has read it before, so this cannot happen; still, the caller must get an
        // answer.
        return fault("the answer cannot be read", id);
    };
    if from != form {
        translate::error(&message, method, form, &mut splice);
    }
    let frame = with_id(&message, id, splice);
    Encoded {
        error: code_of(answer, &frame),
        frame,
    }
}

/// An error instead of an answer.
fn fault(why: &str, id: &Id) -> Encoded {
    let code = rpc::code::INTERNAL_ERROR;
    Encoded {
        frame: rpc::error(Some(id), code, why, None),
        error: Some(code),
    }
}

/// The message under this id; one without an id gets it.
fn with_id(message: &Message, id: &Id, mut splice: Splice) -> Bytes {
    if message.id_span().is_some() {
        message.set_id(&mut splice, id);
    } else if let Ok(members) = json::members(message.frame(), Span::all(message.frame())) {
        json::edit_object(&members, &[("id", Some(id.raw()))], &mut splice);
    }
    message.edited(&splice)
}

fn code_of(answer: &Answer, frame: &Bytes) -> Option<i64> {
    if answer.outcome == Outcome::Ok {
        return None;
    }
    let message = Message::read(frame.clone()).ok()?;
    Some(
        message
            .error_object()
            .map_or(rpc::code::INTERNAL_ERROR, |error| error.code),
    )
}
