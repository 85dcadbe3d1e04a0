//! Server-sent events: an encoder in which no text can begin another field, and an incremental
//! decoder.

mod decode;

use bytes::Bytes;

pub use decode::{Decoder, Received, TooLarge};

/// One event to write.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Event<'a> {
    /// The id by which a client resumes after it.
    pub id: Option<&'a str>,
    /// The event's type; none means `message`.
    pub event: Option<&'a str>,
    /// The time after which a client may reconnect, in milliseconds.
    pub retry_ms: Option<u64>,
    /// The data. CR, LF and CRLF in it begin a new `data` line, and come back as one LF.
    pub data: &'a [u8],
}

impl Event<'_> {
    /// The event as bytes. Line ends and NUL are removed from `id` and `event`, so that no other
    /// field can begin in them.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::with_capacity(self.data.len() + 64);
        for (key, value) in [("id", self.id), ("event", self.event)] {
            if let Some(value) = value {
                out.extend_from_slice(key.as_bytes());
                out.extend_from_slice(b": ");
                out.extend(
                    value
                        .bytes()
                        .filter(|byte| !matches!(byte, b'\r' | b'\n' | 0)),
                );
                out.push(b'\n');
            }
        }
        if let Some(retry) = self.retry_ms {
            out.extend_from_slice(format!("retry: {retry}\n").as_bytes());
        }
        let mut rest = self.data;
        loop {
            let end = memchr::memchr2(b'\r', b'\n', rest);
            let (line, after) = rest.split_at(end.unwrap_or(rest.len()));
            out.extend_from_slice(b"data: ");
            out.extend_from_slice(line);
            out.push(b'\n');
            if end.is_none() {
                break;
            }
            rest = after
                .strip_prefix(b"\r\n")
                .or_else(|| after.get(1..))
                .unwrap_or_default();
        }
        out.push(b'\n');
        Bytes::from(out)
    }
}

/// A message event: `data` with the id by which a client resumes after it, if it has one. Its type
/// is written, since some clients do not know the standard's default; an event without data, which
/// only gives an id, has none.
#[must_use]
pub fn encode(id: Option<&str>, data: &[u8]) -> Bytes {
    let event = (!data.is_empty()).then_some("message");
    Event {
        id,
        event,
        data,
        ..Event::default()
    }
    .encode()
}

#[cfg(test)]
mod tests;
