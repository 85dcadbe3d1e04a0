//! Relay codec: JSON-RPC messages of MCP to the neutral nouns of `model` and back, decoded once and
//! encoded once.
//!
//! Between equal forms an encoder copies the bytes and replaces only the marked parts: id, target,
//! progress token. Between forms it converts the payload first.

mod answer;
mod notice;
mod outgoing;
mod request;

use bytes::Bytes;
use json::Span;
use model::{Coding, Form, Marks, Payload, Range};

use crate::mcp::params::Params;
use crate::rpc::Message;

pub use answer::{Encoded, decode_answer, encode_answer};
pub use notice::{decode_notice, encode_notice, log_level, updated_uri, with_progress_token};
pub use outgoing::Outgoing;
pub(crate) use request::whole;
pub use request::{
    decode_request, encode_question, encode_request, legacy_params, method, param_text,
    replace_arguments, set_arguments, with_arguments, with_tool,
};

/// A message as a payload, with its marks. `params` are those of a request or notification.
fn payload(message: &Message, params: Option<&Params<'_>>, form: Form) -> Payload {
    let marks = Marks {
        id: range(message.id_span()),
        target: range(params.and_then(Params::target_span)),
        progress: range(params.and_then(Params::progress_span)),
        body: range(message.body_span()),
    };
    Payload {
        form,
        coding: Coding::Json,
        bytes: message.frame().clone(),
        marks,
    }
}

/// A payload whose bytes were edited, with its marks.
pub(crate) fn read_again(bytes: Bytes, form: Form) -> Payload {
    match Message::read(bytes.clone()) {
        Ok(message) => payload(&message, Params::read(&message).ok().as_ref(), form),
        Err(_) => Payload {
            form,
            coding: Coding::Json,
            bytes,
            marks: Marks::default(),
        },
    }
}

fn range(span: Option<Span>) -> Range {
    span.and_then(|span| Range::new(span.start, span.end))
        .unwrap_or_default()
}

fn span(range: Range) -> Span {
    Span {
        start: range.start as usize,
        end: range.end as usize,
    }
}
