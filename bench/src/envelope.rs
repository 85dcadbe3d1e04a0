//! The envelopes that are said in a room: one text with a number in it, and how that number is
//! found again.

use memchr::memmem;

/// Digits of a number.
const DIGITS: usize = 10;
/// What stands before the number in every id.
const MARK: &[u8] = b"\"bench-";

/// The envelopes of one participant.
pub struct Envelopes {
    text: Vec<u8>,
    at: usize,
}

impl Envelopes {
    /// `size` bytes long each, said by `from`.
    ///
    /// # Panics
    /// Never: the text has a mark.
    pub fn new(from: &str, kind: &str, size: usize) -> Self {
        let make = |pad: usize| {
            let (number, pad) = ("0".repeat(DIGITS), "x".repeat(pad));
            format!(
                r#"{{"protocol":"mcpx/v0.1","id":"bench-{number}","ts":"2026-11-22T04:00:00.000Z","from":"{from}","to":[],"kind":"{kind}","payload":{{"text":"{pad}"}}}}"#
            )
        };
        let text = make(size.saturating_sub(make(0).len())).into_bytes();
        let at = memmem::find(&text, MARK).expect("a mark") + MARK.len();
        Self { text, at }
    }

    /// Number `number`.
    pub fn number(&mut self, number: u64) -> &[u8] {
        let mut left = number;
        for digit in self.text[self.at..self.at + DIGITS].iter_mut().rev() {
            *digit = b'0' + (left % 10) as u8;
            left /= 10;
        }
        &self.text
    }

    /// The number at the place where these have theirs.
    pub fn peek(&self, message: &[u8]) -> Option<u64> {
        let marked = message.get(self.at - MARK.len()..self.at)? == MARK;
        marked
            .then(|| digits(message.get(self.at..self.at + DIGITS)?))
            .flatten()
    }

    /// Whether this message is one of these, byte for byte but for the number.
    pub fn is(&self, message: &[u8]) -> bool {
        let (at, end) = (self.at, self.at + DIGITS);
        message.len() == self.text.len()
            && message[..at] == self.text[..at]
            && message[end..] == self.text[end..]
    }
}

/// The number that an error is about.
pub fn refused(message: &[u8]) -> Option<u64> {
    const ABOUT: &[u8] = b"\"correlation_id\":\"bench-";
    let at = memmem::find(message, ABOUT)? + ABOUT.len();
    digits(message.get(at..at + DIGITS)?)
}

fn digits(text: &[u8]) -> Option<u64> {
    text.iter().try_fold(0, |sum: u64, digit| {
        digit
            .is_ascii_digit()
            .then(|| sum * 10 + u64::from(digit - b'0'))
    })
}
