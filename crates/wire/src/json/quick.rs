//! The quick way through an object or an array, for the frames that nearly always come.
//!
//! It takes less than JSON allows and never more; all that it does not take is left to the thorough way, which also
//! knows what to say about bad syntax. It must not know what any member means.

use super::splice::Span;

/// Values nested deeper are left to the thorough way, which needs no stack for them.
const DEPTH_MAX: u32 = 32;

/// Gives each member of the object that fills `object` in `frame`: its key, the place of its value, the place of both.
/// `None` where it is not sure of the object, as with escapes in a key; what was given by then does not count.
pub(super) fn scan<'a>(
    frame: &'a [u8],
    object: Span,
    mut give: impl FnMut(&'a str, Span, Span),
) -> Option<()> {
    let text = std::str::from_utf8(frame.get(object.start..object.end)?).ok()?;
    let mut cursor = Cursor { bytes: text.as_bytes(), at: 0 };
    cursor.open(b'{')?;
    if cursor.next()? == b'}' {
        cursor.at += 1;
    } else {
        loop {
            cursor.next()?;
            let whole = cursor.at;
            if cursor.string()? {
                return None;
            }
            let key = text.get(whole + 1..cursor.at - 1)?;
            cursor.open(b':')?;
            cursor.next()?;
            let start = object.start + cursor.at;
            cursor.value(0)?;
            let end = object.start + cursor.at;
            give(key, Span { start, end }, Span { start: object.start + whole, end });
            if cursor.is_last(b'}')? {
                break;
            }
        }
    }
    (cursor.at == cursor.bytes.len()).then_some(())
}

/// Gives the place of each element of the array that fills `array` in `frame`; `None` as with [`scan`].
pub(super) fn list(frame: &[u8], array: Span, mut give: impl FnMut(Span)) -> Option<()> {
    let bytes = frame.get(array.start..array.end)?;
    std::str::from_utf8(bytes).ok()?;
    let mut cursor = Cursor { bytes, at: 0 };
    cursor.open(b'[')?;
    if cursor.next()? == b']' {
        cursor.at += 1;
    } else {
        loop {
            cursor.next()?;
            let start = array.start + cursor.at;
            cursor.value(0)?;
            give(Span { start, end: array.start + cursor.at });
            if cursor.is_last(b']')? {
                break;
            }
        }
    }
    (cursor.at == bytes.len()).then_some(())
}

/// The string that `raw` spells, if it is one without escapes.
pub(super) fn plain(raw: &[u8]) -> Option<&str> {
    let text = raw.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    // The last byte is the quote that ends it.
    let is_plain = end_of_plain(raw.get(1..)?)? == text.len();
    if is_plain { std::str::from_utf8(text).ok() } else { None }
}

/// Whether a byte ends a plain stretch of a string.
fn ends(byte: u8) -> bool {
    (byte == b'"') | (byte == b'\\') | (byte < b' ')
}

/// How many bytes of a string lie before its next quote or backslash; `None` if it has no end or holds what it may not.
fn end_of_plain(rest: &[u8]) -> Option<usize> {
    let mut at = 0;
    // Long texts are passed over in strides, which compile to a few vector instructions each.
    while let Some(stride) = rest.get(at..at + 32).and_then(<[u8]>::first_chunk::<32>) {
        if stride.iter().fold(false, |any, byte| any | ends(*byte)) {
            break;
        }
        at += 32;
    }
    let (words, tail) = rest.get(at..)?.as_chunks::<8>();
    for word in words {
        let ends = ends_in(u64::from_le_bytes(*word));
        if ends != 0 {
            at += ends.trailing_zeros() as usize / 8;
            return (*rest.get(at)? >= b' ').then_some(at);
        }
        at += 8;
    }
    at += tail.iter().position(|byte| ends(*byte))?;
    (*rest.get(at)? >= b' ').then_some(at)
}

/// Which of eight bytes end a plain stretch of a string: the high bit of the first such byte is the lowest that is set.
/// Bits above it mean nothing.
fn ends_in(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    // A byte below n sets its high bit in `word - n` and has it not itself; a borrow can only reach bytes above it.
    let below = |word: u64, n: u8| word.wrapping_sub(ONES * u64::from(n)) & !word;
    let is = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    (is(b'"') | is(b'\\') | below(word, b' ')) & HIGH
}

/// White space by JSON's grammar.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// A place in a text, which only moves on.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    /// Moves to the next byte that is no white space, and looks at it.
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
    fn open(&mut self, byte: u8) -> Option<()> {
        (self.next()? == byte).then(|| self.at += 1)
    }

    /// Moves over a comma, or over the byte that closes a list: then it is true.
    fn is_last(&mut self, close: u8) -> Option<bool> {
        let byte = self.next()?;
        self.at += 1;
        if byte == close { Some(true) } else { (byte == b',').then_some(false) }
    }

    fn value(&mut self, depth: u32) -> Option<()> {
        match self.next()? {
            b'"' => self.string().map(drop),
            b'{' => self.nested(depth, b'}'),
            b'[' => self.nested(depth, b']'),
            b't' => self.literal(b"true"),
            b'f' => self.literal(b"false"),
            b'n' => self.literal(b"null"),
            _ => self.number(),
        }
    }

    /// An object or an array, by the byte that closes it.
    fn nested(&mut self, depth: u32, close: u8) -> Option<()> {
        self.at += 1;
        if depth == DEPTH_MAX {
            return None;
        }
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

    /// Moves over a string; true if there are escapes in it.
    fn string(&mut self) -> Option<bool> {
        if *self.bytes.get(self.at)? != b'"' {
            return None;
        }
        self.at += 1;
        let mut escaped = false;
        loop {
            let rest = self.bytes.get(self.at..)?;
            let plain = end_of_plain(rest)?;
            self.at += plain + 1;
            if rest.get(plain) == Some(&b'"') {
                return Some(escaped);
            }
            escaped = true;
            self.escape()?;
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
        self.bytes.get(self.at..)?.starts_with(word).then(|| self.at += word.len())
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
        let is_there = self.bytes.get(self.at).is_some_and(|byte| any.contains(byte));
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

    /// What [`end_of_plain`] must say, byte by byte.
    fn slowly(rest: &[u8]) -> Option<usize> {
        let at = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..b' '))?;
        (rest[at] >= b' ').then_some(at)
    }

    #[test]
    fn strings_end_where_they_end() {
        for fill in [b'a', b' ', b'!', b'#', b'[', b']', 0x7f, 0x80, 0xa2, 0xff] {
            for len in 0..75 {
                assert_eq!(end_of_plain(&vec![fill; len]), None);
                // Of longer texts only what lies at an edge of what is looked for.
                let edges = [0, 0x1f, b' ', b'!', b'"', b'#', b'[', b'\\', b']', 0x7f, 0x80, 0xff];
                let bytes = if len < 26 { (0..=u8::MAX).collect() } else { edges.to_vec() };
                for at in 0..len {
                    for byte in bytes.iter().copied() {
                        let mut text = vec![fill; len];
                        text[at] = byte;
                        assert_eq!(end_of_plain(&text), slowly(&text), "{text:?}");
                        // A later end changes nothing.
                        text[len - 1] = b'"';
                        assert_eq!(end_of_plain(&text), slowly(&text), "{text:?}");
                    }
                }
            }
        }
    }
}
