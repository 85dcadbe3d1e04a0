//! Address of a kept result: `portmoot://results/ID`, with `?page=2`, `?part=1` or `?search=TEXT`.

use std::borrow::Cow;

/// The beginning of the URIs of kept results.
pub const URI: &str = "portmoot://results/";
/// The longest text that is searched for, in bytes.
pub const SEARCH_BYTES_MAX: usize = 256;

/// Request of a URI about a kept result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResultRequest {
    /// A page of its text, from 1 on.
    Page(usize),
    /// A part that is no text, from 1 on.
    Part(usize),
    /// The places of a text, from this byte on.
    Search {
        /// The text.
        text: String,
        /// Where the search begins.
        from: usize,
    },
}

/// The id in the URI of a kept result.
#[must_use]
pub fn id_of(uri: &str) -> Option<&str> {
    let rest = uri.strip_prefix(URI)?;
    Some(rest.split_once('?').map_or(rest, |(id, _)| id))
}

/// The URI of a kept result with this query.
#[must_use]
pub fn uri_of<'q>(id: &str, query: impl Iterator<Item = (&'q str, &'q str)>) -> String {
    let mut uri = format!("{URI}{id}");
    for (at, (key, value)) in query.enumerate() {
        uri.push(if at == 0 { '?' } else { '&' });
        uri += &format!("{}={}", encoded(key), encoded(value));
    }
    uri
}

impl ResultRequest {
    /// Reads what a URI asks for.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn of(uri: &str) -> Result<Self, String> {
        let query = uri.split_once('?').map_or("", |(_, query)| query);
        let (mut page, mut part, mut search, mut from) = (None, None, None, 0);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let number = || {
                value
                    .parse::<usize>()
                    .map_err(|_| format!("`{key}` must be a number, not `{value}`"))
            };
            match key {
                "page" => page = Some(number()?),
                "part" => part = Some(number()?),
                "from" => from = number()?,
                "search" => search = Some(decoded(value)?),
                _ => {
                    return Err(format!(
                        "`{key}` is unknown: there are `page`, `part`, `search` and `from`, and a `&` in a search is written %26"
                    ));
                }
            }
        }
        match (search, part, page) {
            (Some(text), None, None) if text.is_empty() => Err("`search` has no text".to_owned()),
            (Some(text), None, None) if text.len() > SEARCH_BYTES_MAX => Err(format!(
                "the text of `search` is longer than {SEARCH_BYTES_MAX} bytes"
            )),
            (Some(text), None, None) => Ok(Self::Search {
                text: text.into_owned(),
                from,
            }),
            (None, Some(part), None) => Ok(Self::Part(part)),
            (None, None, page) => Ok(Self::Page(page.unwrap_or(1))),
            _ => Err("one of `page`, `part` and `search` can be read at a time".to_owned()),
        }
    }
}

/// A text without percent-encoding. A `%` that begins none stays: models write texts as they are.
fn decoded(text: &str) -> Result<Cow<'_, str>, String> {
    if !text.contains('%') {
        return Ok(text.into());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        let digit = |at: usize| more.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        match (first, digit(0).zip(digit(1))) {
            (b'%', Some((high, low))) => {
                bytes.extend(u8::try_from(high * 16 + low));
                rest = more.get(2..).unwrap_or_default();
            }
            _ => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    String::from_utf8(bytes)
        .map(Cow::Owned)
        .map_err(|_| "the text of `search` is no UTF-8".to_owned())
}

/// A text as the value of a query.
pub(super) fn encoded(text: &str) -> String {
    let mut value = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            value.push(char::from(byte));
        } else {
            value += &format!("%{byte:02X}");
        }
    }
    value
}
