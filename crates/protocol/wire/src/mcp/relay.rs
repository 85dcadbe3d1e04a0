//! Relay codec: JSON-RPC messages of MCP to the neutral nouns of `model` and back, decoded once and
//! encoded once.
//!
//! Between equal forms an encoder copies the bytes and replaces only the marked parts: id, target,
//! progress token. Between forms it converts the payload first. A reader that needs a body without
//! an envelope converts the body: nothing is encoded to be read again.

mod answer;
mod notice;
mod outgoing;
mod request;

use bytes::Bytes;
use json::{Span, Splice};
use model::{Coding, Form, Marks, Payload, Range};

use crate::mcp::params::Params;
use crate::rpc::Message;

pub use answer::{Encoded, convert_answer, decode_answer, encode_answer};
pub use notice::{decode_notice, encode_notice, log_level, updated_uri, with_progress_token};
pub use outgoing::{OutgoingChanges, OutgoingTrace};
pub(crate) use request::edit_params;
pub use request::{
    EncodedRequest, decode_request, encode_question, encode_request, legacy_params, method,
    param_text, replace_arguments, request_of, set_arguments, with_arguments, with_tool,
    without_meta,
};

/// A message as a payload, with its marks. `params` are those of a request or notification.
fn payload(message: &Message, params: Option<&Params<'_>>, form: Form) -> Payload {
    let marks = Marks {
        id: range(message.id_span()),
        target: range(params.and_then(Params::target_span)),
        progress: range(params.and_then(Params::progress_span)),
        meta: range(params.and_then(Params::meta_span)),
        body: range(message.body_span()),
    };
    Payload {
        form,
        coding: Coding::Json,
        is_fitted: false,
        bytes: message.frame().clone(),
        marks,
    }
}

/// A payload that was edited in its body alone, which keeps its place in a message.
pub(crate) fn edited(payload: &Payload, splice: &Splice) -> Payload {
    let bytes = splice.apply(&payload.bytes);
    if payload.is_message() {
        read_again(bytes, payload.form)
    } else {
        Payload {
            is_fitted: payload.is_fitted,
            ..Payload::relayed(payload.form, bytes)
        }
    }
}

/// A message whose bytes were edited, with its marks.
pub(crate) fn read_again(bytes: Bytes, form: Form) -> Payload {
    match Message::read(bytes.clone()) {
        Ok(message) => payload(&message, Params::read(&message).ok().as_ref(), form),
        Err(_) => Payload {
            form,
            coding: Coding::Json,
            is_fitted: false,
            bytes,
            marks: Marks::default(),
        },
    }
}

fn range(span: Option<Span>) -> Range {
    span.and_then(|span| Range::new(span.start, span.end))
        .unwrap_or_default()
}

pub(crate) fn span(range: Range) -> Span {
    Span {
        start: range.start as usize,
        end: range.end as usize,
    }
}

#[cfg(test)]
mod tests;
