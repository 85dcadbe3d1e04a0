//! Server-sent events out of a body (WHATWG HTML 9.2.6), with a bound.
//!
//! Knows fields and line ends; not what the data means.

use bytes::{Bytes, BytesMut};

/// One event; `data` is empty for a priming event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) name: Bytes,
    pub(crate) data: Bytes,
}

/// An event longer than the limit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

#[derive(Debug)]
pub(crate) struct Events {
    max: usize,
    buffer: BytesMut,
    searched: usize,
    name: Bytes,
    data: Option<Data>,
    begun: bool,
    after_cr: bool,
    /// The last `id` field that was dispatched.
    pub(crate) last_id: Option<String>,
    /// The last `retry` field, in milliseconds.
    pub(crate) retry_ms: Option<u64>,
}

/// Data of one line stays the slice that arrived; more lines are joined.
#[derive(Debug)]
enum Data {
    One(Bytes),
    More(BytesMut),
}

impl Events {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            max,
            buffer: BytesMut::new(),
            searched: 0,
            name: Bytes::new(),
            data: None,
            begun: false,
            after_cr: false,
            last_id: None,
            retry_ms: None,
        }
    }

    pub(crate) fn push(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// The next whole event; `None` when more bytes are needed.
    pub(crate) fn next(&mut self) -> Result<Option<Event>, TooLong> {
        while let Some(line) = self.line() {
            if line.is_empty() {
                let name = std::mem::take(&mut self.name);
                let begun = std::mem::take(&mut self.begun);
                let data = match self.data.take() {
                    Some(Data::One(data)) => data,
                    Some(Data::More(data)) => data.freeze(),
                    None => Bytes::new(),
                };
                if begun {
                    return Ok(Some(Event { name, data }));
                }
            } else {
                self.field(&line);
                if self.data_len() > self.max {
                    return Err(TooLong);
                }
            }
        }
        if self.buffer.len() + self.data_len() > self.max.saturating_add(64) {
            Err(TooLong)
        } else {
            Ok(None)
        }
    }

    fn data_len(&self) -> usize {
        match &self.data {
            Some(Data::One(data)) => data.len(),
            Some(Data::More(data)) => data.len(),
            None => 0,
        }
    }

    /// Cuts one line off the buffer; CR, LF and CRLF end a line.
    fn line(&mut self) -> Option<Bytes> {
        if self.after_cr && !self.buffer.is_empty() {
            self.after_cr = false;
            if self.buffer.first() == Some(&b'\n') {
                let _ = self.buffer.split_to(1);
                self.searched = 0;
            }
        }
        let rest = self.buffer.get(self.searched..).unwrap_or_default();
        let Some(at) = memchr::memchr2(b'\n', b'\r', rest).map(|at| at + self.searched) else {
            self.searched = self.buffer.len();
            return None;
        };
        self.searched = 0;
        let mut line = self.buffer.split_to(at + 1);
        self.after_cr = line.last() == Some(&b'\r');
        line.truncate(at);
        Some(line.freeze())
    }

    fn field(&mut self, line: &Bytes) {
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let mut from = (colon + 1).min(line.len());
        if line.get(from) == Some(&b' ') {
            from += 1;
        }
        let value = line.slice(from..);
        match line.get(..colon).unwrap_or_default() {
            b"data" => {
                self.begun = true;
                self.data = Some(match self.data.take() {
                    None => Data::One(value),
                    Some(Data::One(first)) => {
                        let mut all = BytesMut::from(first);
                        all.extend_from_slice(b"\n");
                        all.extend_from_slice(&value);
                        Data::More(all)
                    }
                    Some(Data::More(mut all)) => {
                        all.extend_from_slice(b"\n");
                        all.extend_from_slice(&value);
                        Data::More(all)
                    }
                });
            }
            b"event" => self.name = value,
            b"id" => {
                self.begun = true;
                if let Ok(id) = std::str::from_utf8(&value)
                    && !id.contains('\0')
                {
                    self.last_id = Some(id.to_owned());
                }
            }
            b"retry" => {
                if let Some(ms) = std::str::from_utf8(&value).ok().and_then(|ms| ms.parse().ok()) {
                    self.retry_ms = Some(ms);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(input: &str, expect: &[(&str, &str)], last_id: Option<&str>) {
        for step in [1, 2, 3, input.len()] {
            let mut events = Events::new(1000);
            let mut seen = Vec::new();
            for chunk in input.as_bytes().chunks(step) {
                events.push(chunk);
                while let Some(event) = events.next().unwrap() {
                    let text = |bytes: Bytes| String::from_utf8(bytes.to_vec()).unwrap();
                    seen.push((text(event.name), text(event.data)));
                }
            }
            let seen: Vec<_> = seen.iter().map(|(name, data)| (name.as_str(), data.as_str())).collect();
            assert_eq!(seen, expect, "in steps of {step}");
            assert_eq!(events.last_id.as_deref(), last_id);
        }
    }

    #[test]
    fn events_are_read_whatever_the_pieces() {
        check("data: {}\n\n", &[("", "{}")], None);
        check(": ping\n\nevent: message\ndata:1\ndata: 2\n\n", &[("message", "1\n2")], None);
        check("id: 7\r\ndata:\r\n\r\ndata: x\r\rdata: cut", &[("", ""), ("", "x")], Some("7"));
        check("id: 7\n\nid\ndata: y\n\n", &[("", ""), ("", "y")], Some(""));
        check("retry: 30\nnonsense\n\n", &[], None);
    }

    #[test]
    fn an_event_beyond_the_limit_is_an_error() {
        let mut events = Events::new(100);
        events.push(&[b'd'; 300]);
        assert_eq!(events.next(), Err(TooLong));
        let mut events = Events::new(100);
        for _ in 0..30 {
            events.push(b"data: 12345\n");
        }
        assert_eq!(events.next(), Err(TooLong));
    }
}
