//! Newline framing of stdio: bytes in as they come, whole lines out.

use bytes::{Bytes, BytesMut};

/// A line of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A line without its end (`\n` or `\r\n`). Never empty.
    Whole(Bytes),
    /// A line longer than the limit began; the reader drops all of it and goes on with the next
    /// one. Its first bytes, at most [`HEAD_BYTES_MAX`] and no more than the limit: they may tell
    /// which request it answers.
    Overlong(Bytes),
}

/// The most bytes that are kept of a line that is too long.
pub const HEAD_BYTES_MAX: usize = 256;

/// An incremental reader of lines with a limit.
///
/// Read into [`Lines::buffer`] (or `push`), then call [`Lines::next_line`] until it gives `None`.
/// At most the limit and one read are held.
#[derive(Debug)]
pub struct Lines {
    buffer: BytesMut,
    /// Length of the part of the buffer that is known to hold no `\n`.
    seen: usize,
    limit: usize,
    skipping: bool,
}

impl Lines {
    /// A reader for lines of at most `limit` bytes, the line's end not counted.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            seen: 0,
            limit,
            skipping: false,
        }
    }

    /// The buffer to read into: only append.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// Appends bytes that were read.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next complete line. Empty lines are skipped.
    pub fn next_line(&mut self) -> Option<Line> {
        loop {
            let fresh = self.buffer.get(self.seen..).unwrap_or_default();
            let Some(at) = memchr::memchr(b'\n', fresh) else {
                return self.unfinished();
            };
            let mut line = self.buffer.split_to(self.seen + at + 1);
            self.seen = 0;
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            line.truncate(line.len() - 1);
            if line.last() == Some(&b'\r') {
                line.truncate(line.len() - 1);
            }
            if line.len() > self.limit {
                return Some(self.overlong(&line));
            }
            if !line.is_empty() {
                return Some(Line::Whole(line.freeze()));
            }
        }
    }

    /// The rest when the stream ends: a last line without an end, if there is one.
    pub fn finish(&mut self) -> Option<Line> {
        self.push(b"\n");
        self.next_line()
    }

    fn unfinished(&mut self) -> Option<Line> {
        if self.skipping {
            self.buffer.clear();
        }
        self.seen = self.buffer.len();
        // One more byte may be the `\r` of the line's end.
        if self.buffer.len() > self.limit + 1 {
            let begun = std::mem::take(&mut self.buffer);
            self.seen = 0;
            self.skipping = true;
            return Some(self.overlong(&begun));
        }
        None
    }

    /// A line of which this is read, at least one byte more than the limit.
    fn overlong(&self, begun: &[u8]) -> Line {
        let head = begun.get(..HEAD_BYTES_MAX.min(self.limit));
        Line::Overlong(Bytes::copy_from_slice(head.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The text of a line; of one that is too long, its beginning and a mark.
    fn shown(line: &Line) -> String {
        match line {
            Line::Whole(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Line::Overlong(head) => format!("{}!", String::from_utf8_lossy(head)),
        }
    }

    fn lines(limit: usize, chunks: &[&[u8]]) -> Vec<String> {
        let mut reader = Lines::new(limit);
        let mut out = Vec::new();
        for chunk in chunks {
            reader.push(chunk);
            while let Some(line) = reader.next_line() {
                out.push(shown(&line));
            }
        }
        out.extend(reader.finish().as_ref().map(shown));
        out
    }

    #[test]
    fn frames() {
        assert_eq!(lines(9, &[b"a\nb\r\n\n\r\nc"]), ["a", "b", "c"]);
        assert_eq!(
            lines(9, &[b"a", b"b\nc", b"\r", b"\n", b"d\n"]),
            ["ab", "c", "d"]
        );
        assert_eq!(lines(9, &[b""]), [""; 0]);
    }

    #[test]
    fn the_limit_is_exact_and_costs_one_line() {
        assert_eq!(lines(4, &[b"1234\n12345\nab\n"]), ["1234", "1234!", "ab"]);
        assert_eq!(lines(4, &[b"1234", b"\r", b"\n"]), ["1234"]);
        assert_eq!(
            lines(4, &[b"12345", b"6", b"789", b"0\nab\n"]),
            ["1234!", "ab"]
        );
        assert_eq!(lines(4, &[b"123456"]), ["1234!"]);
    }

    #[test]
    fn no_more_than_the_head_of_an_overlong_line_is_kept() {
        let long = "x".repeat(HEAD_BYTES_MAX + 2);
        let head = format!("{}!", &long[..HEAD_BYTES_MAX]);
        let limit = HEAD_BYTES_MAX + 1;
        let ended = format!("{long}\nab\n");
        assert_eq!(lines(limit, &[ended.as_bytes()]), [&head, "ab"]);
        assert_eq!(lines(limit, &[long.as_bytes(), b"yy\nab\n"]), [&head, "ab"]);
    }

    #[test]
    fn an_overlong_line_is_not_kept() {
        let mut reader = Lines::new(10);
        for _ in 0..1000 {
            reader.push(&[b'x'; 1000]);
            let _ = reader.next_line();
        }
        assert!(reader.buffer.capacity() < 10_000);
    }

    proptest! {
        #[test]
        fn chunks_do_not_matter(text in "[ab\r\n]{0,40}", cuts in prop::collection::vec(0..40usize, 0..6), limit in 0..12usize) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            let mut chunks = Vec::new();
            let mut from = 0;
            for cut in cuts {
                chunks.push(&bytes[from..cut]);
                from = cut;
            }
            chunks.push(&bytes[from..]);
            prop_assert_eq!(lines(limit, &chunks), lines(limit, &[bytes]));
        }
    }
}
