//! Results of tools that the gateway itself writes.

use json::{Object, Span};
use model::{Answer, Coding, Form, Outcome, Payload};

/// The result of a tool in words.
#[must_use]
pub fn words(text: &str, is_error: bool, form: Form) -> Vec<u8> {
    tool_result(text, is_error, form, |_| {})
}

/// The result of a tool as a text, with more members.
pub fn tool_result(
    text: &str,
    is_error: bool,
    form: Form,
    more: impl FnOnce(&mut Object<'_>),
) -> Vec<u8> {
    json::object(|result| {
        result.array("content", |content| {
            content.object(|block| {
                block.text("type", "text").text("text", text);
            });
        });
        end(result, is_error, form);
        more(result);
    })
}

/// A server's result with one more key in `_meta`, in its form. An error, and what is written in
/// protobuf, stays as it is.
#[must_use]
pub fn with_meta(answer: &Answer, key: &str, raw: &[u8]) -> Answer {
    if answer.outcome != Outcome::Ok || answer.payload.coding != Coding::Json {
        return answer.clone();
    }
    let body = answer.payload.body_bytes();
    let body = if body.is_empty() { b"{}" } else { body };
    match set_within(body, "_meta", key, raw) {
        Ok(body) => Answer {
            outcome: Outcome::Ok,
            payload: Payload {
                is_fitted: answer.payload.is_fitted,
                ..Payload::relayed(answer.payload.form, body)
            },
        },
        Err(_) => answer.clone(),
    }
}

/// Sets one member of the object under `outer`, and adds that object if it is missing.
///
/// # Errors
/// [`json::JsonError`] when `body` or that member is no object or has a member twice.
pub(super) fn set_within(
    body: &[u8],
    outer: &str,
    key: &str,
    raw: &[u8],
) -> Result<Vec<u8>, json::JsonError> {
    let members = json::members(body, Span::all(body))?;
    let inner = match members.get(outer).filter(|there| there.raw != b"null") {
        Some(there) => json::edited(there.raw, &[(key, Some(raw))])?,
        None => json::object(|inner| {
            inner.raw(key, raw);
        }),
    };
    json::edited(body, &[(outer, Some(&inner))])
}

/// Writes the members that every result has.
pub(super) fn end(result: &mut Object<'_>, is_error: bool, form: Form) {
    result.bool("isError", is_error);
    match form {
        Form::Legacy => {}
        Form::Modern => {
            result.text("resultType", "complete");
        }
    }
}
