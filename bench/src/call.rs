//! The requests that are sent: one `tools/call` with places for its id and a marker, and what comes
//! before it.

use memchr::memmem;

/// Digits of an id, and of a marker: their width never changes, so that a request is made once and
/// edited in place.
pub(crate) const DIGITS: usize = 10;
/// What a marker begins with.
pub(crate) const MARK: &str = "mark-";
/// Arguments of a plain call.
pub const ARGUMENTS: &str = r#"{"text":"MARK"}"#;

/// How the client speaks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// 2025-11-25 with a session.
    Legacy,
    /// 2026-07-28, stateless.
    Modern,
}

impl Era {
    /// Reads the flag's word.
    pub fn read(word: &str) -> Self {
        if word == "modern" {
            Self::Modern
        } else {
            Self::Legacy
        }
    }

    /// The revision.
    pub fn version(self) -> &'static str {
        if self == Self::Modern {
            "2026-07-28"
        } else {
            "2025-11-25"
        }
    }
}

/// One request as it lies on the wire, with or without an HTTP head.
pub struct Call {
    bytes: Vec<u8>,
    id_at: usize,
    mark_at: usize,
}

const META: &str = r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#;

/// The body of a call of `tool`, at least `size` bytes long. `arguments` is JSON with `MARK` where
/// the marker and padding belong.
pub fn body(era: Era, tool: &str, arguments: &str, size: usize) -> String {
    let meta = if era == Era::Modern { META } else { "" };
    let make = |pad: usize| {
        let (id, mark, pad) = ("1".repeat(DIGITS), "0".repeat(DIGITS), "x".repeat(pad));
        let arguments = arguments.replace("MARK", &format!("{MARK}{mark}{pad}"));
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}{meta}}}}}"#
        )
    };
    make(size.saturating_sub(make(0).len()))
}

/// A POST with this body.
pub fn post(era: Era, host: &str, path: &str, extra: &str, body: &str) -> String {
    let version = era.version();
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMCP-Protocol-Version: {version}\r\n{extra}Content-Length: {length}\r\n\r\n{body}"
    )
}

/// The first request of a legacy session.
pub const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
/// What follows its answer.
pub const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A request for a page of the list of tools.
pub fn list(cursor: &str) -> String {
    let params = if cursor.is_empty() {
        String::new()
    } else {
        format!(r#""cursor":"{cursor}""#)
    };
    format!(r#"{{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{{{params}}}}}"#)
}

/// Where the next page begins, if there is one.
pub fn next_cursor(body: &[u8]) -> Option<String> {
    const KEY: &[u8] = b"\"nextCursor\":\"";
    let rest = body.get(memmem::rfind(body, KEY)? + KEY.len()..)?;
    let end = memchr::memchr(b'"', rest)?;
    String::from_utf8(rest[..end].to_vec()).ok()
}

impl Call {
    /// A call that can be sent again and again.
    ///
    /// # Panics
    /// When the text holds no id or marker.
    pub fn new(text: String) -> Self {
        let bytes = text.into_bytes();
        let id_at = memmem::find(&bytes, b"\"id\":").expect("an id") + 5;
        let mark_at = memmem::find(&bytes, MARK.as_bytes()).expect("a marker") + MARK.len();
        Self {
            bytes,
            id_at,
            mark_at,
        }
    }

    /// The bytes of call number `n`; numbers begin at 10^9.
    pub fn number(&mut self, n: u64) -> &[u8] {
        put(&mut self.bytes[self.id_at..self.id_at + DIGITS], n);
        put(
            &mut self.bytes[self.mark_at..self.mark_at + DIGITS],
            mark(n),
        );
        &self.bytes
    }
}

pub(crate) fn mark(n: u64) -> u64 {
    n.wrapping_mul(2_654_435_761) % 10_000_000_000
}

pub(crate) fn put(place: &mut [u8], mut n: u64) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + (n % 10) as u8;
        n /= 10;
    }
}

/// Whether this is the answer to call `n`: a result with its id, and its marker or the text that
/// all answers have.
pub fn is_answer(body: &[u8], n: u64, text: Option<&str>) -> bool {
    let mut id = *b"\"id\":0000000000";
    put(&mut id[5..], n);
    let mut marker = *b"mark-0000000000";
    put(&mut marker[5..], mark(n));
    let has = |needle: &[u8]| memmem::find(body, needle).is_some();
    has(&id) && has(text.map_or(&marker[..], str::as_bytes)) && has(b"\"result\"")
}

/// The number in an answer on a pipe.
pub fn answered(line: &[u8]) -> Option<u64> {
    let at = memmem::find(line, b"\"id\":")? + 5;
    std::str::from_utf8(line.get(at..at + DIGITS)?)
        .ok()?
        .parse()
        .ok()
}
