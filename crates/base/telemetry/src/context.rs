//! Trace context of W3C, as strangers send it: read strictly, or not at all.

use std::fmt;

/// The length of a `traceparent` of version 00.
const TRACEPARENT_CHARS: usize = 55;
/// The flag that a trace is recorded.
const SAMPLED: u8 = 1;

/// The id of a trace, which is not 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId(u128);

/// The id of a span, which is not 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(u64);

/// A span, as its children name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceContext {
    /// Its trace.
    pub trace: TraceId,
    /// The span.
    pub span: SpanId,
    /// Whether it is recorded.
    pub is_sampled: bool,
}

/// A `traceparent` of version 00 (Trace Context, section 3.2).
// Whether it is UTF-8 is asked a word at a time.
#[repr(align(8))]
#[derive(Debug, Clone, Copy)]
pub struct Traceparent([u8; TRACEPARENT_CHARS]);

impl TraceId {
    /// An id; 1 in place of 0, which is none.
    #[must_use]
    pub fn new(id: u128) -> Self {
        Self(id.max(1))
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }
}

impl SpanId {
    /// An id; 1 in place of 0, which is none.
    #[must_use]
    pub fn new(id: u64) -> Self {
        Self(id.max(1))
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }
}

impl TraceContext {
    /// Parses a `traceparent`: version 00, 55 characters, lower-case hexadecimal, ids that are not
    /// 0. `None` of anything else.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        if text.len() != TRACEPARENT_CHARS {
            return None;
        }
        let mut parts = text.split(|byte| *byte == b'-');
        let [version, trace, span, flags] =
            [parts.next()?, parts.next()?, parts.next()?, parts.next()?];
        if version != b"00" || parts.next().is_some() {
            return None;
        }
        let trace = hexadecimal(trace, 32).filter(|id| *id != 0)?;
        let span = hexadecimal(span, 16).filter(|id| *id != 0)?;
        let flags = hexadecimal(flags, 2)?;
        Some(Self {
            trace: TraceId(trace),
            span: SpanId(u64::try_from(span).ok()?),
            is_sampled: u8::try_from(flags).ok()? & SAMPLED != 0,
        })
    }

    /// It as its children name it.
    #[must_use]
    pub fn traceparent(self) -> Traceparent {
        let mut text = *b"00-................................-................-00";
        let mut digits = const_hex::Buffer::<16>::new();
        text[3..35].copy_from_slice(digits.format(&self.trace.bytes()).as_bytes());
        let mut digits = const_hex::Buffer::<8>::new();
        text[36..52].copy_from_slice(digits.format(&self.span.bytes()).as_bytes());
        text[54] = b'0' + u8::from(self.is_sampled);
        Traceparent(text)
    }
}

impl Traceparent {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.traceparent().as_str())
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The number of so many digits, which are lower-case hexadecimal.
fn hexadecimal(text: &[u8], digits: usize) -> Option<u128> {
    if text.len() != digits {
        return None;
    }
    text.iter().try_fold(0, |number: u128, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u128::from(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_traceparent_is_read_and_printed_again() {
        let context = TraceContext::parse(PARENT.as_bytes()).unwrap();
        assert!(context.is_sampled);
        assert_eq!(context.to_string(), PARENT);
        let unsampled = PARENT.replace("-01", "-00");
        let context = TraceContext::parse(unsampled.as_bytes()).unwrap();
        assert_eq!(context.to_string(), unsampled);
        // Other flags are not passed on.
        let more = TraceContext::parse(PARENT.replace("-01", "-ff").as_bytes()).unwrap();
        assert_eq!(more.to_string(), PARENT);
    }

    #[test]
    fn any_other_text_is_no_traceparent() {
        let cases = [
            "",
            &PARENT[1..],
            &PARENT.to_uppercase(),
            &PARENT.replace("00-0a", "01-0a"),
            &PARENT.replace("00-0a", "ff-0a"),
            &PARENT.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            &PARENT.replace("b7ad6b7169203331", &"0".repeat(16)),
            &PARENT.replace("-b7", "_b7"),
            &PARENT.replace("0af", "0-f"),
            &PARENT.replace("-01", "-0g"),
            &PARENT.replace("00-0a", " 0-0a"),
            &format!("{PARENT}-00"),
            &format!("{PARENT}\n"),
            &PARENT.replace("31-01", "é-01"),
        ];
        for text in cases {
            assert_eq!(TraceContext::parse(text.as_bytes()), None, "{text}");
        }
    }
}
