//! Fast scanner for one value: full syntax check, places of an object's members or an array's
//! elements.
//!
//! It takes less than JSON allows and never more. Escapes in keys, deep nesting and bad syntax are
//! left to `thorough`, which also gives the reasons.

use serde::de::IgnoredAny;

use crate::span::{FRAME_BYTES_MAX, MemberSpan, Span};

/// Values nested deeper are left to `thorough`, which needs no stack for them.
const DEPTH_MAX: u32 = 32;

/// Strings are scanned in so many words of 8 bytes first: the keys of `_meta` end within these.
const WORDS: usize = 6;

/// As [`WORDS`], where the string is not checked.
const SHORT_WORDS: usize = 3;

/// Gives each member of the object that fills `object` in `frame`, and of the objects that lie in
/// it along `path`: if the member `path[0]` is an object, its members come before itself, one
/// deeper, and so on. True if values are nested deeper than [`DEPTH_MAX`].
///
/// `None` leaves the object to `thorough`; members that were given by then do not count.
pub(crate) fn object(
    frame: &[u8],
    object: Span,
    path: &[&[u8]],
    mut give: impl FnMut(MemberSpan),
) -> Option<bool> {
    let mut cursor = Cursor::over(frame, object)?;
    cursor.members(path, 0, &mut give)?;
    cursor.is_complete(object).then_some(cursor.is_deep)
}

/// Gives the place of each element of the array that fills `array` in `frame`; `None` as with
/// [`object`].
pub(crate) fn array(frame: &[u8], array: Span, mut give: impl FnMut(Span)) -> Option<()> {
    let mut cursor = Cursor::over(frame, array)?;
    cursor.open(b'[')?;
    if cursor.next()? == b']' {
        cursor.at += 1;
    } else {
        loop {
            cursor.next()?;
            let start = cursor.at;
            cursor.value(0)?;
            give(Span {
                start,
                end: cursor.at,
            });
            if cursor.is_last(b']')? {
                break;
            }
        }
    }
    cursor.is_complete(array).then_some(())
}

/// Checks the syntax of the value that fills `value` in `frame`; `None` as with [`object`].
pub(crate) fn value(frame: &[u8], value: Span) -> Option<()> {
    let mut cursor = Cursor::over(frame, value)?;
    cursor.value(0)?;
    cursor.is_complete(value).then_some(())
}

/// The string that `raw` spells, if it is one without escapes.
pub(crate) fn plain(raw: &[u8]) -> Option<&str> {
    let text = raw.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    // The last byte is the quote that ends it.
    let is_plain = end_of_plain(raw.get(1..)?, &mut 0)? == text.len();
    if is_plain {
        std::str::from_utf8(text).ok()
    } else {
        None
    }
}

/// Whether a byte ends a plain stretch of a string.
fn ends(byte: u8) -> bool {
    (byte == b'"') | (byte == b'\\') | (byte < b' ')
}

/// Whether a string of this text needs no escapes. For a constant text the compiler folds the
/// answer.
#[inline]
pub(crate) fn is_plain(text: &[u8]) -> bool {
    let ends = |word: &[u8; 8]| ends_in(u64::from_le_bytes(*word));
    if let Some(last) = text.last_chunk() {
        let (words, _) = text.as_chunks();
        return words.iter().fold(ends(last), |any, word| any | ends(word)) == 0;
    }
    match (text.first_chunk(), text.last_chunk()) {
        (Some([a, b, c, d]), Some([e, f, g, h])) => ends(&[*a, *b, *c, *d, *e, *f, *g, *h]) == 0,
        (_, _) => !text.iter().copied().any(self::ends),
    }
}

/// Number of bytes of a string before its next quote, backslash or byte that it may not hold;
/// `None` if there is none. [`HIGH`] bits come into `seen` unless all bytes until there are ASCII.
pub(crate) fn end_of_plain(rest: &[u8], seen: &mut u64) -> Option<usize> {
    // Long texts are passed over in strides, which compile to vector instructions.
    let mut at = 0;
    for stride in rest.as_chunks::<32>().0 {
        let mut any = 0;
        let mut all = 0;
        for word in stride.as_chunks().0 {
            let word = u64::from_le_bytes(*word);
            any |= ends_in(word);
            all |= word;
        }
        if any != 0 {
            break;
        }
        *seen |= all;
        at += 32;
    }
    let (words, tail) = rest.get(at..)?.as_chunks();
    for word in words {
        let word = u64::from_le_bytes(*word);
        *seen |= word;
        let ends = ends_in(word);
        if ends != 0 {
            return Some(at + ends.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    *seen |= tail.iter().fold(0, |any, byte| any | u64::from(*byte));
    Some(at + tail.iter().position(|byte| ends(*byte))?)
}

/// One past the closing quote of the string whose first byte inside is at `from`, or the end of the
/// text. The string is not checked.
#[inline]
pub(crate) fn string_end(text: &[u8], from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    let mut at = from;
    // Most keys and many values end here, before a search with wider registers would have begun.
    for word in rest.as_chunks().0.iter().take(SHORT_WORDS) {
        let word = u64::from_le_bytes(*word);
        let ends = ends_in(word);
        if ends != 0 {
            let bits = ends.trailing_zeros() & !7;
            at += bits as usize / 8;
            if (word >> bits) & 0xff == u64::from(b'"') {
                return at + 1;
            }
            break;
        }
        at += 8;
    }
    any_string_end(text, at)
}

/// As [`string_end`], for any string; no backslash lies directly before `at`.
#[inline(never)]
fn any_string_end(text: &[u8], mut at: usize) -> usize {
    while let Some(rest) = text.get(at..) {
        match memchr::memchr2(b'"', b'\\', rest) {
            Some(found) if rest.get(found) == Some(&b'"') => return at + found + 1,
            Some(found) => at += found + 2,
            None => break,
        }
    }
    text.len()
}

/// The bits that only bytes beyond ASCII have.
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Which of eight bytes end a plain stretch of a string: the high bit of the first such byte is the
/// lowest that is set. Bits above it mean nothing.
fn ends_in(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    // A byte below n sets its high bit in `word - n` and has it not itself; a borrow can only reach
    // bytes above it.
    let less = |word: u64, n: u8| word.wrapping_sub(ONES * u64::from(n));
    // No byte that is searched for has a high bit, so the difference of a byte without one has none
    // either.
    let is = |byte: u8| less(word ^ (ONES * u64::from(byte)), 1);
    (is(b'"') | is(b'\\') | less(word, b' ')) & !word & HIGH
}

/// White space by JSON's grammar.
pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// A place in a text, which only moves forward.
struct Cursor<'a> {
    /// The frame up to the end of the text.
    bytes: &'a [u8],
    at: usize,
    /// Has a [`HIGH`] bit unless all strings that were passed are ASCII.
    seen: u64,
    /// Whether a value that was passed is nested deeper than [`DEPTH_MAX`].
    is_deep: bool,
}

impl<'a> Cursor<'a> {
    fn over(frame: &'a [u8], text: Span) -> Option<Self> {
        let bytes = frame
            .get(..text.end)
            .filter(|bytes| bytes.len() <= FRAME_BYTES_MAX)?;
        Some(Self {
            bytes,
            at: text.start,
            seen: 0,
            is_deep: false,
        })
    }

    /// Whether the cursor is at the end of the text, and the text is UTF-8: outside of strings all
    /// was ASCII.
    fn is_complete(&self, text: Span) -> bool {
        let bytes = text.of(self.bytes);
        let is_ascii = self.seen & HIGH == 0 || bytes.is_ascii();
        self.at == self.bytes.len() && (is_ascii || std::str::from_utf8(bytes).is_ok())
    }

    /// Moves to the next byte that is no white space, and looks at it.
    #[inline]
    fn next(&mut self) -> Option<u8> {
        loop {
            let byte = *self.bytes.get(self.at)?;
            if !is_space(byte) {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    /// Moves over this byte, if it is the next.
    #[inline]
    fn open(&mut self, byte: u8) -> Option<()> {
        (self.next()? == byte).then(|| self.at += 1)
    }

    /// Moves over a comma, or over the byte that closes a list: then it is true.
    #[inline]
    fn is_last(&mut self, close: u8) -> Option<bool> {
        let byte = self.next()?;
        self.at += 1;
        if byte == close {
            Some(true)
        } else {
            (byte == b',').then_some(false)
        }
    }

    /// An object whose members are given.
    fn members(
        &mut self,
        path: &[&[u8]],
        depth: u8,
        give: &mut impl FnMut(MemberSpan),
    ) -> Option<()> {
        self.open(b'{')?;
        if self.next()? == b'}' {
            self.at += 1;
            return Some(());
        }
        loop {
            self.next()?;
            let start = self.at + 1;
            let key_escaped = self.string()?;
            let key = Span {
                start,
                end: self.at - 1,
            };
            self.open(b':')?;
            let first = self.next()?;
            let start = self.at;
            let escaped = match path.split_first() {
                Some((name, rest)) if first == b'{' && key.of(self.bytes) == *name => {
                    self.members(rest, depth + 1, give)?;
                    false
                }
                _ => self.value(0)?,
            };
            let value = Span {
                start,
                end: self.at,
            };
            give(MemberSpan::new(depth, (key, key_escaped), (value, escaped)));
            if self.is_last(b'}')? {
                return Some(());
            }
        }
    }

    /// Moves over a value; true if it is a string with escapes in it.
    #[inline]
    fn value(&mut self, depth: u32) -> Option<bool> {
        match self.next()? {
            b'"' => return self.string(),
            b'{' => self.nested(depth, b'}')?,
            b'[' => self.nested(depth, b']')?,
            b't' => self.literal(b"true")?,
            b'f' => self.literal(b"false")?,
            b'n' => self.literal(b"null")?,
            _ => self.number()?,
        }
        Some(false)
    }

    /// An object or an array, by the byte that closes it.
    fn nested(&mut self, depth: u32, close: u8) -> Option<()> {
        if depth == DEPTH_MAX {
            return self.deep();
        }
        self.at += 1;
        if self.next()? == close {
            self.at += 1;
            return Some(());
        }
        loop {
            if close == b'}' {
                self.next()?;
                self.string()?;
                self.open(b':')?;
            }
            self.value(depth + 1)?;
            if self.is_last(close)? {
                return Some(());
            }
        }
    }
    #[cold]
    fn deep(&mut self) -> Option<()> {
        let rest = self.bytes.get(self.at..)?;
        let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<IgnoredAny>();
        values.next()?.ok()?;
        self.at += values.byte_offset();
        self.seen |= HIGH;
        self.is_deep = true;
        Some(())
    }

    /// Moves over a string; true if there are escapes in it.
    // Inlined at each of its three call sites: most bytes of a frame are in strings.
    #[inline(always)]
    fn string(&mut self) -> Option<bool> {
        let rest = self.bytes.get(self.at..)?.strip_prefix(b"\"")?;
        self.at += 1;
        // Nearly all strings are plain and end in their first words.
        let mut at = self.at;
        for word in rest.as_chunks().0.iter().take(WORDS) {
            let word = u64::from_le_bytes(*word);
            self.seen |= word;
            let ends = ends_in(word);
            if ends != 0 {
                let bits = ends.trailing_zeros() & !7;
                if (word >> bits) & 0xff != u64::from(b'"') {
                    break;
                }
                self.at = at + bits as usize / 8 + 1;
                return Some(false);
            }
            at += 8;
        }
        self.any_string()
    }

    /// As [`Cursor::string`], past the first quote.
    #[inline(never)]
    fn any_string(&mut self) -> Option<bool> {
        let mut escaped = false;
        loop {
            self.at += end_of_plain(self.bytes.get(self.at..)?, &mut self.seen)?;
            let end = *self.bytes.get(self.at)?;
            self.at += 1;
            match end {
                b'"' => return Some(escaped),
                b'\\' => self.escape()?,
                _ => return None,
            }
            escaped = true;
        }
    }

    fn escape(&mut self) -> Option<()> {
        match self.bytes.get(self.at)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 1,
            b'u' => {
                let digits = self.bytes.get(self.at + 1..self.at + 5)?;
                if !digits.iter().all(u8::is_ascii_hexdigit) {
                    return None;
                }
                self.at += 5;
            }
            _ => return None,
        }
        Some(())
    }

    fn literal(&mut self, word: &[u8]) -> Option<()> {
        self.bytes
            .get(self.at..)?
            .starts_with(word)
            .then(|| self.at += word.len())
    }

    fn number(&mut self) -> Option<()> {
        self.skip(b"-");
        let zero = self.bytes.get(self.at) == Some(&b'0');
        let count = self.digits();
        if count == 0 || (zero && count > 1) {
            return None;
        }
        if self.skip(b".") && self.digits() == 0 {
            return None;
        }
        if self.skip(b"eE") {
            self.skip(b"+-");
            if self.digits() == 0 {
                return None;
            }
        }
        Some(())
    }

    fn skip(&mut self, any: &[u8]) -> bool {
        let is_there = self
            .bytes
            .get(self.at)
            .is_some_and(|byte| any.contains(byte));
        self.at += usize::from(is_there);
        is_there
    }

    fn digits(&mut self) -> usize {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected result of [`end_of_plain`], byte by byte.
    fn slowly(rest: &[u8]) -> Option<usize> {
        rest.iter()
            .position(|byte| matches!(byte, b'"' | b'\\' | 0..b' '))
    }

    #[test]
    fn end_of_plain_agrees_with_a_loop_over_bytes() {
        for fill in [b'a', b' ', b'!', b'#', b'[', b']', 0x7f, 0x80, 0xa2, 0xff] {
            for len in 0..75 {
                assert_eq!(end_of_plain(&vec![fill; len], &mut 0), None);
                // In longer texts only the bytes next to those that end a string.
                let edges = [
                    0, 0x1f, b' ', b'!', b'"', b'#', b'[', b'\\', b']', 0x7f, 0x80, 0xff,
                ];
                let bytes = if len < 26 {
                    (0..=u8::MAX).collect()
                } else {
                    edges.to_vec()
                };
                for at in 0..len {
                    for byte in bytes.iter().copied() {
                        let mut text = vec![fill; len];
                        text[at] = byte;
                        assert_eq!(end_of_plain(&text, &mut 0), slowly(&text), "{text:?}");
                        // A later end changes nothing.
                        text[len - 1] = b'"';
                        assert_eq!(end_of_plain(&text, &mut 0), slowly(&text), "{text:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn invalid_utf8_is_not_taken_at_any_place() {
        let takes = |text: &[u8]| object(text, Span::all(text), &[], |_| {}).is_some();
        for len in 1..120 {
            let fill = "x".repeat(len);
            let text = format!("{{\"{fill}\":[\"{fill}\"]}}").into_bytes();
            assert!(takes(&text));
            for at in (2..2 + len).chain(6 + len..6 + 2 * len) {
                let mut text = text.clone();
                assert_eq!(text[at], b'x');
                text[at] = 0xff;
                assert!(!takes(&text), "{at} of {len}");
            }
        }
    }
}
