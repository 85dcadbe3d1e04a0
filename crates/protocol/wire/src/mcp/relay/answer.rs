//! Answers: decoded from servers and clients, converted or encoded for the side that sent the
//! request.

use std::borrow::Cow;

use bytes::Bytes;
use json::{Span, Splice};
use model::{Answer, Coding, Form, Outcome, Payload};

use super::{payload, span};
use crate::mcp::translate::{self, OfOneEra};
use crate::mcp::uris;
use crate::rpc::{self, ErrorObject, Id, Message, MessageKind, code};

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

/// The body of an answer for a caller that reads `form`, without an envelope: an error if that form
/// has no such result. `public_uri` returns a URI's public spelling if it differs.
#[must_use]
pub fn convert_answer(
    answer: &Answer,
    method: &str,
    form: Form,
    public_uri: &dyn Fn(&str) -> Option<String>,
) -> Answer {
    let reader = Reader {
        method,
        form,
        public_uri,
    };
    reader.read(answer).into_owned()
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
    let payload = &answer.payload;
    let is_message = payload.is_message() && payload.coding == Coding::Json;
    let reader = Reader {
        method,
        form,
        public_uri,
    };
    if payload.is_fitted || !is_message {
        return around(&reader.read(answer), id);
    }
    let mut splice = Splice::new();
    let fitted = reader.fit(
        answer,
        &payload.bytes,
        span(payload.marks.body),
        &mut splice,
    );
    let Ok(error) = fitted else {
        return around(&without_form(form), id);
    };
    put_id(payload, id, &mut splice);
    Encoded {
        frame: splice.apply(&payload.bytes),
        error,
    }
}

/// The reader of an answer, and the method that it called.
struct Reader<'r> {
    method: &'r str,
    form: Form,
    public_uri: &'r dyn Fn(&str) -> Option<String>,
}

impl Reader<'_> {
    /// The body of an answer for the reader: the same answer, if it is a body that stays as it is.
    fn read<'a>(&self, answer: &'a Answer) -> Cow<'a, Answer> {
        let payload = &answer.payload;
        if payload.is_fitted {
            return Cow::Borrowed(answer);
        }
        if payload.coding != Coding::Json {
            return Cow::Owned(unreadable(self.form));
        }
        let body = payload.body_bytes();
        let mut splice = Splice::new();
        if let Err(OfOneEra) = self.fit(answer, body, Span::all(body), &mut splice) {
            return Cow::Owned(without_form(self.form));
        }
        if splice.is_empty() && payload.form == self.form && !payload.is_message() {
            return Cow::Borrowed(answer);
        }
        Cow::Owned(Answer {
            outcome: answer.outcome,
            payload: Payload::body(self.form, splice.apply(&payload.to_body())),
        })
    }

    /// Writes the edits that fit the body at this place to the reader. Returns the code that an
    /// error has then.
    fn fit(
        &self,
        answer: &Answer,
        frame: &[u8],
        body: Span,
        splice: &mut Splice,
    ) -> Result<Option<i64>, OfOneEra> {
        let is_converted = answer.payload.form != self.form;
        if answer.outcome == Outcome::Ok {
            if is_converted {
                translate::result((frame, body), self.method, self.form, splice)?;
            }
            // A URI that an object names twice cannot be mapped: the answer stays as it came.
            let _ = uris::map_uris((frame, body), self.method, self.public_uri, splice);
            return Ok(None);
        }
        let Some(error) = ErrorObject::at(frame, body) else {
            return Ok(Some(code::INTERNAL_ERROR));
        };
        if !is_converted {
            return Ok(Some(error.code));
        }
        let code = translate::error_code(&error, self.method, self.form);
        if code != error.code {
            splice.replace(error.code_span, code.to_string().as_bytes());
        }
        Ok(Some(code))
    }
}

/// A body with an envelope around it.
fn around(answer: &Answer, id: &Id) -> Encoded {
    let body = answer.payload.body_bytes();
    if answer.outcome == Outcome::Ok {
        return Encoded {
            frame: rpc::result(id, body),
            error: None,
        };
    }
    let code = ErrorObject::read(body).map_or(code::INTERNAL_ERROR, |error| error.code);
    Encoded {
        frame: rpc::error_object(id, body),
        error: Some(code),
    }
}

/// Gives a message this id. Only an error may have none: its server could not read the request's.
fn put_id(payload: &Payload, id: &Id, splice: &mut Splice) {
    if !payload.marks.id.is_empty() {
        splice.replace(span(payload.marks.id), id.raw());
    } else if let Ok(members) = json::members(&payload.bytes, Span::all(&payload.bytes)) {
        json::edit_object(&members, &[("id", Some(id.raw()))], splice);
    }
}

fn without_form(form: Form) -> Answer {
    fault(
        form,
        "the server's result has no form in this protocol revision",
    )
}

/// Callers ask for JSON of what is protobuf before (`JsonView`); still, this caller must get an
/// answer.
fn unreadable(form: Form) -> Answer {
    fault(form, "the answer cannot be read")
}

/// An error instead of an answer.
fn fault(form: Form, why: &str) -> Answer {
    let error = json::object(|error| {
        error
            .number("code", code::INTERNAL_ERROR)
            .text("message", why);
    });
    Answer {
        outcome: Outcome::Error,
        payload: Payload::body(form, error),
    }
}
