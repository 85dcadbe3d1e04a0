//! Writer of JSON-RPC messages, and frames on one line.

use bytes::{Bytes, BytesMut};
use json::Object;

use super::id::Id;

/// Room for a message's own members beside its body, in bytes.
const HEAD_BYTES: usize = 96;

/// `{"jsonrpc":"2.0","id":..,"result":..}`; `raw` must be valid JSON.
#[must_use]
pub fn result(id: &Id, raw: &[u8]) -> Bytes {
    // Exact, so that the bytes need no second allocation.
    let around = br#"{"jsonrpc":"2.0","id":,"result":}"#.len();
    write(around + id.raw().len() + raw.len(), |message| {
        message.raw("id", id.raw()).raw("result", raw);
    })
}

/// An error answer; without an id if the request's id could not be read. `data` must be valid JSON.
#[must_use]
pub fn error(id: Option<&Id>, code: i64, message: &str, data: Option<&[u8]>) -> Bytes {
    write(
        HEAD_BYTES + message.len() + data.unwrap_or_default().len(),
        |answer| {
            if let Some(id) = id {
                answer.raw("id", id.raw());
            }
            answer.object("error", |error| {
                error.number("code", code).text("message", message);
                if let Some(data) = data {
                    error.raw("data", data);
                }
            });
        },
    )
}

/// An error answer with this error object, which must be valid JSON.
#[must_use]
pub fn error_object(id: &Id, error: &[u8]) -> Bytes {
    write(HEAD_BYTES + error.len(), |message| {
        message.raw("id", id.raw()).raw("error", error);
    })
}

/// A request; `params` must be valid JSON.
#[must_use]
pub fn request(id: &Id, method: &str, params: Option<&[u8]>) -> Bytes {
    call(Some(id), method, params)
}

/// A notification; `params` must be valid JSON.
#[must_use]
pub fn notification(method: &str, params: Option<&[u8]>) -> Bytes {
    call(None, method, params)
}

fn call(id: Option<&Id>, method: &str, params: Option<&[u8]>) -> Bytes {
    write(
        HEAD_BYTES + method.len() + params.unwrap_or_default().len(),
        |message| {
            if let Some(id) = id {
                message.raw("id", id.raw());
            }
            message.text("method", method);
            if let Some(params) = params {
                message.raw("params", params);
            }
        },
    )
}

fn write(room: usize, members: impl FnOnce(&mut Object<'_>)) -> Bytes {
    let mut out = Vec::with_capacity(room);
    Object::write(&mut out, |message| {
        message.text("jsonrpc", "2.0");
        members(message);
    });
    Bytes::from(out)
}

/// The message on one line: raw CR and LF, which valid JSON has only between tokens, become spaces.
///
/// A frame without any is returned as it is, not copied. Call it on frames that were read as JSON.
#[must_use]
pub fn one_line(frame: Bytes) -> Bytes {
    if memchr::memchr2(b'\n', b'\r', &frame).is_none() {
        return frame;
    }
    let mut out = BytesMut::from(&*frame);
    for byte in out.as_mut() {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    out.freeze()
}
