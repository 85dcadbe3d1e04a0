//! Characters of a string with their spelling: plain, escaped, or half a surrogate pair.

/// One character of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece<'a> {
    /// As it was spelled.
    pub(crate) raw: &'a str,
    /// The character, or the code unit of half a surrogate pair.
    pub(crate) read: Result<char, u32>,
}

/// The characters of the text between a string's quotes. An escape that JSON does not have is read as plain characters.
#[derive(Debug, Clone)]
pub(crate) struct Pieces<'a>(pub(crate) &'a str);

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        let first = self.0.chars().next()?;
        let escape = if first == '\\' { escape(self.0) } else { None };
        let (len, read) = escape.unwrap_or((first.len_utf8(), Ok(first)));
        let (raw, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(Piece { raw, read })
    }
}

/// Reads the escape that the text begins with: its length in bytes, and the character. A surrogate pair is one escape.
fn escape(text: &str) -> Option<(usize, Result<char, u32>)> {
    let c = match text.as_bytes().get(1)? {
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return unicode(text),
        _ => return None,
    };
    Some((2, Ok(c)))
}

fn unicode(text: &str) -> Option<(usize, Result<char, u32>)> {
    let unit = code_unit(text)?;
    if let Some(c) = char::from_u32(unit) {
        return Some((6, Ok(c)));
    }
    let low = text.get(6..).and_then(code_unit).filter(|low| (0xDC00..0xE000).contains(low));
    match low.filter(|_| unit < 0xDC00) {
        Some(low) => {
            let c = char::from_u32(0x1_0000 + ((unit - 0xD800) << 10) + (low - 0xDC00))?;
            Some((12, Ok(c)))
        }
        None => Some((6, Err(unit))),
    }
}

/// The code unit of `\u` and four hexadecimal digits.
fn code_unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        u32::from_str_radix(digits, 16).ok()
    } else {
        None
    }
}
