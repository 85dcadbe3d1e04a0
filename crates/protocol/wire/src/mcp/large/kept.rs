//! Kept result: its text in pages, its parts, and the places of a text in it.

use memchr::memchr_iter;
use memchr::memmem::Finder;
use model::Form;

use super::address::{ResultRequest, URI, encoded};

/// Bytes that are shown on each side of a place that a search finds, as far as the lines before and
/// after it.
const AROUND_BYTES: usize = 160;
const JSON_TYPE: &str = "application/json";
const TEXT_TYPE: &str = "text/plain";

/// A result that was too large for its caller.
#[derive(Debug)]
pub struct Kept {
    text: String,
    /// Where each page ends.
    ends: Vec<usize>,
    /// Most bytes of a page in JSON.
    page_bytes: usize,
    /// Whether all of it is one JSON value.
    is_json: bool,
    pub(super) parts: Vec<Part>,
}

/// A part that is no text: an image, audio or other bytes.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) media_type: String,
    pub(super) base64: String,
}

impl Part {
    /// About how many bytes it has.
    pub(super) fn bytes(&self) -> usize {
        self.base64.trim_end_matches('=').len() / 4 * 3
    }
}

impl Kept {
    pub(super) fn new(text: String, parts: Vec<Part>, page_bytes: usize) -> Self {
        let is_json = text.starts_with(['{', '[']) && json::check(text.as_bytes()).is_ok();
        Self {
            ends: page_ends(&text, page_bytes),
            text,
            page_bytes,
            is_json,
            parts,
        }
    }

    /// The bytes that it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.text.len()
            + self
                .parts
                .iter()
                .map(|part| part.base64.len())
                .sum::<usize>()
    }

    /// The number of its pages.
    pub(super) fn pages(&self) -> usize {
        self.ends.len()
    }

    /// The media type of the whole text.
    pub(super) fn media_type(&self) -> &'static str {
        if self.is_json { JSON_TYPE } else { TEXT_TYPE }
    }

    /// A page, from 1 on.
    pub(super) fn page(&self, number: usize) -> Option<&str> {
        let end = *self.ends.get(number.checked_sub(1)?)?;
        let begin = number
            .checked_sub(2)
            .and_then(|before| self.ends.get(before))
            .copied();
        self.text.get(begin.unwrap_or_default()..end)
    }

    /// The page that has this byte.
    fn page_at(&self, at: usize) -> usize {
        self.ends.partition_point(|end| *end <= at) + 1
    }

    /// The answer to `resources/read` of what is asked for, in this form.
    ///
    /// # Errors
    /// Why there is no such thing.
    pub fn read(&self, id: &str, asked: &ResultRequest, form: Form) -> Result<Vec<u8>, String> {
        match asked {
            ResultRequest::Page(number) => self.read_page(id, *number, form),
            ResultRequest::Part(number) => self.read_part(id, *number, form),
            ResultRequest::Search { text, from } => {
                let uri = format!("{URI}{id}?search={}", encoded(text));
                let found = self.found(&uri, text, *from);
                Ok(read_result(form, |contents| {
                    contents.object(|content| {
                        content
                            .text("uri", &uri)
                            .text("mimeType", TEXT_TYPE)
                            .text("text", &found);
                    });
                }))
            }
        }
    }

    fn read_page(&self, id: &str, number: usize, form: Form) -> Result<Vec<u8>, String> {
        let pages = self.pages();
        let page = match self.page(number) {
            Some(page) => page,
            None if pages == 0 => {
                return Err(format!(
                    "the result has no text, only parts: read ?part=1 of {}",
                    self.parts.len()
                ));
            }
            None => {
                return Err(format!(
                    "there is no page {number}: the result has pages 1 to {pages}"
                ));
            }
        };
        // A piece of a JSON value is none.
        let media_type = if pages == 1 {
            self.media_type()
        } else {
            TEXT_TYPE
        };
        let uri = |number: usize| format!("{URI}{id}?page={number}");
        Ok(read_result(form, |contents| {
            contents.object(|content| {
                content
                    .text("uri", &uri(number))
                    .text("mimeType", media_type)
                    .text("text", page);
            });
            if number < pages {
                let next = uri(number + 1);
                contents.object(|content| {
                    let words =
                        format!("[page {number} of {pages}; the next one is the resource {next}]");
                    content
                        .text("uri", &next)
                        .text("mimeType", TEXT_TYPE)
                        .text("text", &words);
                });
            }
        }))
    }

    fn read_part(&self, id: &str, number: usize, form: Form) -> Result<Vec<u8>, String> {
        let part = number.checked_sub(1).and_then(|at| self.parts.get(at));
        let part = part.ok_or_else(|| match self.parts.len() {
            0 => "the result has no parts, only text".to_owned(),
            parts => format!("there is no part {number}: the result has parts 1 to {parts}"),
        })?;
        let uri = format!("{URI}{id}?part={number}");
        Ok(read_result(form, |contents| {
            contents.object(|content| {
                content
                    .text("uri", &uri)
                    .text("mimeType", &part.media_type)
                    .text("blob", &part.base64);
            });
        }))
    }

    /// The places of a text from this byte on, with what is around them. Upper and lower case of
    /// ASCII letters do not differ.
    fn found(&self, uri: &str, wanted: &str, from: usize) -> String {
        let whole = self.text.to_ascii_lowercase();
        let wanted_lower = wanted.to_ascii_lowercase();
        let finder = Finder::new(wanted_lower.as_bytes());
        let from = (from..=whole.len())
            .find(|at| whole.is_char_boundary(*at))
            .unwrap_or(whole.len());
        let (mut at, mut counted, mut line) = (from, 0, 1);
        let (mut out, mut out_bytes, mut places, mut next) = (String::new(), 0, 0_usize, None);
        while let Some(offset) = whole
            .as_bytes()
            .get(at..)
            .and_then(|rest| finder.find(rest))
        {
            let place = at + offset;
            let (begin, end) = self.around(place, wanted.len());
            at = end.max(place + wanted.len());
            places += 1;
            if next.is_some() {
                continue;
            }
            line += lines_in(&self.text, counted, place);
            counted = place;
            let shown = self.text.get(begin..end).unwrap_or_default();
            let entry = format!(
                "\nline {line}, page {}:\n{}\n",
                self.page_at(place),
                shown.trim_end()
            );
            let entry_bytes: usize = entry.chars().map(escaped_len).sum();
            if out_bytes + entry_bytes > self.page_bytes {
                next = Some(place);
                continue;
            }
            out_bytes += entry_bytes;
            out += &entry;
        }
        let word = if places == 1 { "place" } else { "places" };
        let mut text = format!("{places} {word} with `{wanted}`");
        if from > 0 {
            text += &format!(" from byte {from} on");
        }
        text += "\n";
        text += &out;
        if let Some(next) = next {
            text += &format!("\nMore places: read {uri}&from={next}\n");
        }
        text
    }

    /// Text that is shown around a place: at most the line before and the line after it.
    fn around(&self, place: usize, len: usize) -> (usize, usize) {
        let (text, bytes) = (&self.text, self.text.as_bytes());
        let begin = place.saturating_sub(AROUND_BYTES);
        let before = bytes.get(begin..place).unwrap_or_default();
        let begin = memchr::memrchr_iter(b'\n', before)
            .nth(1)
            .map_or(begin, |at| begin + at + 1);
        let end = (place + len).min(bytes.len());
        let last = (end + AROUND_BYTES).min(bytes.len());
        let after = bytes.get(end..last).unwrap_or_default();
        let last = memchr_iter(b'\n', after).nth(1).map_or(last, |at| end + at);
        let begin = (begin..=place)
            .find(|at| text.is_char_boundary(*at))
            .unwrap_or(place);
        let last = (end..=last)
            .rev()
            .find(|at| text.is_char_boundary(*at))
            .unwrap_or(end);
        (begin, last)
    }
}

/// The result of `resources/read` with these contents, in this form.
fn read_result(form: Form, contents: impl FnOnce(&mut json::Array<'_>)) -> Vec<u8> {
    json::object(|result| {
        result.array("contents", contents);
        match form {
            Form::Legacy => {}
            Form::Modern => {
                result
                    .text("cacheScope", "private")
                    .text("resultType", "complete")
                    .number("ttlMs", 0);
            }
        }
    })
}

/// The line breaks between two bytes of a text.
fn lines_in(text: &str, from: usize, to: usize) -> usize {
    memchr_iter(b'\n', text.as_bytes().get(from..to).unwrap_or_default()).count()
}

/// Where the pages of a text end that take at most so many bytes in JSON: at the end of a line, if
/// one ends in the second half of the page.
fn page_ends(text: &str, page_bytes: usize) -> Vec<usize> {
    let (mut ends, mut begin, mut length, mut line) = (Vec::new(), 0, 0, 0);
    for (at, c) in text.char_indices() {
        let more = escaped_len(c);
        if length + more > page_bytes && at > begin {
            let end = if line > begin + (at - begin) / 2 {
                line
            } else {
                at
            };
            ends.push(end);
            length = text
                .get(end..at)
                .unwrap_or_default()
                .chars()
                .map(escaped_len)
                .sum();
            begin = end;
        }
        length += more;
        if c == '\n' {
            line = at + 1;
        }
    }
    if begin < text.len() {
        ends.push(text.len());
    }
    ends
}

/// The bytes of a character in a JSON string.
fn escaped_len(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' => 2,
        '\0'..='\u{1f}' => 6,
        _ => c.len_utf8(),
    }
}
