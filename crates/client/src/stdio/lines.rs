//! FramedLine framing with a length limit.
//!
//! An overlong line is skipped to its end. Its beginning is kept, unlike in `wire::line`, because it may tell which
//! request it answers.

use bytes::{Bytes, BytesMut};

/// How much of an overlong line is kept.
const HEAD_BYTES: usize = 256;

/// One step of the framing.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FramedLine {
    /// A whole line, without its end.
    Whole(Bytes),
    /// The beginning of a line longer than the limit, which was skipped.
    Overlong(Bytes),
}

#[derive(Debug)]
pub(super) struct LineFramer {
    max: usize,
    /// Bytes of the buffer that hold no line end.
    searched: usize,
    /// The beginning of an overlong line whose rest is being skipped.
    skipping: Option<Bytes>,
}

impl LineFramer {
    pub(super) fn new(max: usize) -> Self {
        Self { max, searched: 0, skipping: None }
    }

    /// Takes the next line out of `buffer`; `None` when more bytes are needed.
    pub(super) fn next(&mut self, buffer: &mut BytesMut) -> Option<FramedLine> {
        let end = buffer.get(self.searched..).and_then(|rest| memchr::memchr(b'\n', rest));
        let Some(end) = end.map(|at| at + self.searched) else {
            self.searched = buffer.len();
            if buffer.len() > self.max || self.skipping.is_some() {
                let head = buffer.split().freeze();
                self.skipping
                    .get_or_insert_with(|| Bytes::copy_from_slice(head.get(..HEAD_BYTES).unwrap_or(&head)));
                self.searched = 0;
            }
            return None;
        };
        self.searched = 0;
        let mut line = buffer.split_to(end + 1);
        line.truncate(end);
        if let Some(head) = self.skipping.take() {
            return Some(FramedLine::Overlong(head));
        }
        if line.len() > self.max {
            return Some(FramedLine::Overlong(Bytes::copy_from_slice(
                line.get(..HEAD_BYTES).unwrap_or(&line),
            )));
        }
        if line.last() == Some(&b'\r') {
            line.truncate(end - 1);
        }
        Some(FramedLine::Whole(line.freeze()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(input: &[u8], max: usize, expect: &[&str]) {
        for step in [1, 3, input.len()] {
            let (mut lines, mut buffer, mut seen) = (LineFramer::new(max), BytesMut::new(), Vec::new());
            for chunk in input.chunks(step) {
                buffer.extend_from_slice(chunk);
                while let Some(line) = lines.next(&mut buffer) {
                    seen.push(match line {
                        FramedLine::Whole(line) => String::from_utf8(line.to_vec()).unwrap(),
                        FramedLine::Overlong(head) => format!("!{}", head.starts_with(b"o")),
                    });
                }
            }
            assert_eq!(seen, expect, "in steps of {step}");
        }
    }

    #[test]
    fn lines_do_not_depend_on_how_they_are_read() {
        check(b"one\ntwo\r\n\nthree", 10, &["one", "two", ""]);
        check(b"12345\n", 5, &["12345"]);
        check(b"overlong line\nnext\n", 5, &["!true", "next"]);
    }
}
