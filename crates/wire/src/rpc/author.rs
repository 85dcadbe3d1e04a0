//! Writing messages of our own, and making a frame fit for one line.
//!
//! It must not know MCP's methods.

use bytes::{Bytes, BytesMut};
use json::quote;

use super::id::Id;

const HEAD: &[u8] = b"{\"jsonrpc\":\"2.0\"";

/// `{"jsonrpc":"2.0","id":..,"result":..}`; `raw` must be valid JSON.
#[must_use]
pub fn result(id: &Id, raw: &[u8]) -> Bytes {
    join(&[HEAD, b",\"id\":", id.raw(), b",\"result\":", raw, b"}"])
}

/// An error answer; without an id if the request's id could not be read. `data` must be valid JSON.
#[must_use]
pub fn error(id: Option<&Id>, code: i64, message: &str, data: Option<&[u8]>) -> Bytes {
    let (id_key, id): (&[u8], &[u8]) = match id {
        Some(id) => (b",\"id\":", id.raw()),
        None => (b"", b""),
    };
    let (data_key, data): (&[u8], &[u8]) = match data {
        Some(data) => (b",\"data\":", data),
        None => (b"", b""),
    };
    let (code, message) = (code.to_string(), quote(message));
    join(&[
        HEAD,
        id_key,
        id,
        b",\"error\":{\"code\":",
        code.as_bytes(),
        b",\"message\":",
        message.as_bytes(),
        data_key,
        data,
        b"}}",
    ])
}

/// A request; `params` must be valid JSON.
#[must_use]
pub fn request(id: &Id, method: &str, params: Option<&[u8]>) -> Bytes {
    let (key, params) = with_params(params);
    join(&[HEAD, b",\"id\":", id.raw(), b",\"method\":", quote(method).as_bytes(), key, params, b"}"])
}

/// A notification; `params` must be valid JSON.
#[must_use]
pub fn notification(method: &str, params: Option<&[u8]>) -> Bytes {
    let (key, params) = with_params(params);
    join(&[HEAD, b",\"method\":", quote(method).as_bytes(), key, params, b"}"])
}

/// The same message on one line: raw CR and LF, which valid JSON has only between tokens, become spaces.
///
/// Without any, it is the same frame, not a copy. Call it on frames that were read as JSON.
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

fn with_params(params: Option<&[u8]>) -> (&'static [u8], &[u8]) {
    match params {
        Some(params) => (b",\"params\":", params),
        None => (b"", b""),
    }
}

fn join(parts: &[&[u8]]) -> Bytes {
    Bytes::from(parts.concat())
}
