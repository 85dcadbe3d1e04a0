//! Decoder of server-sent events (WHATWG HTML, server-sent events: interpreting a stream), with a
//! size limit.

use std::collections::VecDeque;

use bytes::Bytes;

/// One event that was received. The decoder returns events without data too: MCP servers prime a
/// stream with an id that way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Received {
    /// Its id, if it has one of its own.
    pub id: Option<String>,
    /// Its type, if it is not `message`.
    pub event: Option<String>,
    /// The time after which to reconnect, in milliseconds.
    pub retry_ms: Option<u64>,
    /// Its data, several lines joined with LF. Empty if there was none.
    pub data: Bytes,
}

/// An event was longer than the limit. The decoder drops it and goes on with the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a server-sent event is longer than allowed")]
pub struct TooLarge;

/// An incremental reader of events.
#[derive(Debug, Default)]
pub struct Decoder {
    limit: usize,
    line: Vec<u8>,
    data: Option<Vec<u8>>,
    event: Received,
    any: bool,
    /// Bytes of the fields of the event that is being read.
    size: usize,
    dropping: bool,
    after_cr: bool,
    started: bool,
    ready: VecDeque<Result<Received, TooLarge>>,
}

impl Decoder {
    /// A reader for events whose lines have at most `limit` bytes together.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }

    /// Adds bytes that were read. [`Decoder::next_event`] returns the events that are complete.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while let Some(first) = bytes.first() {
            if std::mem::take(&mut self.after_cr) && *first == b'\n' {
                bytes = bytes.get(1..).unwrap_or_default();
                continue;
            }
            let end = memchr::memchr2(b'\r', b'\n', bytes);
            let (part, after) = bytes.split_at(end.unwrap_or(bytes.len()));
            self.extend(part);
            if end.is_some() {
                self.after_cr = after.first() == Some(&b'\r');
                self.end_line();
            }
            bytes = after.get(1..).unwrap_or_default();
        }
    }

    /// The next complete event.
    pub fn next_event(&mut self) -> Option<Result<Received, TooLarge>> {
        self.ready.pop_front()
    }

    fn extend(&mut self, part: &[u8]) {
        if self.size + self.line.len() + part.len() > self.limit && !part.is_empty() {
            if !self.dropping {
                self.ready.push_back(Err(TooLarge));
            }
            self.dropping = true;
        }
        if self.dropping {
            self.data = None;
            if let Some(first) = part.first() {
                // One byte stands for all: it marks the line as not empty.
                self.line = vec![*first];
            }
        } else {
            self.line.extend_from_slice(part);
        }
    }

    fn end_line(&mut self) {
        let mut taken = std::mem::take(&mut self.line);
        let mut line = taken.as_slice();
        if !std::mem::replace(&mut self.started, true) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            self.dispatch();
        } else if !self.dropping && line.first() != Some(&b':') {
            self.size += line.len();
            self.field(line);
        }
        taken.clear();
        self.line = taken;
    }

    fn field(&mut self, line: &[u8]) {
        let (key, value) = match memchr::memchr(b':', line) {
            Some(at) => (line.get(..at), line.get(at + 1..).unwrap_or_default()),
            None => (Some(line), &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match key {
            Some(b"data") => match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => self.data = Some(value.to_vec()),
            },
            Some(b"event") => {
                self.event.event = Some(lossy(value)).filter(|event| !event.is_empty())
            }
            Some(b"id") if !value.contains(&0) => self.event.id = Some(lossy(value)),
            Some(b"retry") if value.iter().all(u8::is_ascii_digit) => {
                self.event.retry_ms = lossy(value).parse().ok()
            }
            Some(_) | None => return,
        }
        self.any = true;
    }

    fn dispatch(&mut self) {
        let data = self.data.take();
        let mut event = std::mem::take(&mut self.event);
        self.size = 0;
        let whole = std::mem::take(&mut self.any);
        if std::mem::take(&mut self.dropping) || !whole {
            return;
        }
        event.data = data.map(Bytes::from).unwrap_or_default();
        self.ready.push_back(Ok(event));
    }
}

fn lossy(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}
