//! Results of tools that are too large for their callers: what is kept of them as a resource, and
//! what the caller gets in their place.
//!
//! Of a result that is cut, the texts are kept as one text with pages, and images, audio and other
//! bytes as parts. The caller gets the first page, words that say how to read on, and a link.
//! `structuredContent` is a part of the kept text: cut it would break the schema that its tool
//! promises, so callers whose results are cut are promised none ([`unpromised`]).

mod address;
mod kept;

use json::{Object, Span};

pub use address::{ResultRequest, SEARCH_BYTES_MAX, URI, id_of, uri_of};
pub use kept::Kept;
use kept::Part;

/// The smallest limit of a result, in bytes: below it there is no room for a page beside the words
/// about it.
pub const LIMIT_BYTES_MIN: usize = 8 << 10;
/// Most bytes of the words about a result and its link.
const WORDS_BYTES: usize = 1_200;
/// Parts that have words and a link of their own. Of the others the caller gets the number.
const LINKED_PARTS_MAX: usize = 4;
/// Most bytes of the words and the link of one part.
const PART_WORDS_BYTES: usize = 600;
/// The longest media type of a part that is passed on, in bytes.
const MEDIA_TYPE_BYTES_MAX: usize = 100;
/// The media type of what has none, or a longer one.
const UNKNOWN_TYPE: &str = "application/octet-stream";
/// Members of a result that stay, however long the others are.
const SHORT_MEMBERS: [&str; 2] = ["isError", "resultType"];

/// A result that was cut.
#[derive(Debug)]
pub struct Cut {
    /// The result for the caller.
    pub result: Vec<u8>,
    /// The whole.
    pub kept: Kept,
}

/// A caller, as far as that matters for what it gets in place of a result.
#[derive(Debug, Clone, Copy)]
pub struct ResultReceiver<'r> {
    /// Bytes of JSON that its results may have: at least [`LIMIT_BYTES_MIN`].
    pub limit: usize,
    /// The id under which the whole is kept.
    pub id: &'r str,
    /// Whether its revision knows links to resources (since 2025-06-18).
    pub links: bool,
}

/// Cuts a result of a tool that is longer than its caller's limit. `None` if it is no result with
/// content: a question or a task.
#[must_use]
pub fn cut(result: &[u8], receiver: ResultReceiver<'_>) -> Option<Cut> {
    let members = json::members(result, Span::all(result)).ok()?;
    let (content, structured) = (members.get("content"), members.get("structuredContent"));
    if content.is_none() && structured.is_none() {
        return None;
    }
    let small = receiver.limit / 8;
    let mut taken = Taken {
        texts: Vec::new(),
        parts: Vec::new(),
        staying: Vec::new(),
        room: small,
    };
    if let Some(content) = &content {
        for block in json::elements(result, content.span).ok()? {
            taken.take(block.of(result));
        }
    }
    if let Some(structured) = &structured {
        taken.add_structured(structured.raw);
    }
    let is_other = |key: &str| !["content", "structuredContent"].contains(&key);
    let others: Vec<_> = members.iter().filter(|(key, _)| is_other(key)).collect();
    let long = others
        .iter()
        .map(|(key, member)| key.len() + member.raw.len() + 4)
        .sum::<usize>()
        > small;
    let stays = |key: &str| !long || SHORT_MEMBERS.contains(&key);
    if long {
        let dropped = json::object(|object| {
            let dropped = others.iter().filter(|(key, _)| !stays(key));
            dropped.for_each(|(key, member)| _ = object.raw(key, member.raw));
        });
        taken
            .texts
            .push(String::from_utf8_lossy(&dropped).into_owned());
    }
    let parts = taken.parts.len().min(LINKED_PARTS_MAX) * PART_WORDS_BYTES;
    let page = receiver
        .limit
        .saturating_sub(2 * small + WORDS_BYTES + parts);
    let kept = Kept::new(taken.texts.join("\n"), taken.parts, page);
    let result = json::object(|object| {
        write_content(object, &kept, &taken.staying, receiver, result.len());
        for (key, member) in others.iter().filter(|(key, _)| stays(key)) {
            object.raw(key, member.raw);
        }
    });
    Some(Cut { result, kept })
}

/// The result of `tasks/get` of a modern task with another result of its call in it; `None` if it
/// has none.
#[must_use]
pub fn in_task<T>(
    task: &[u8],
    cut: impl FnOnce(&[u8]) -> Option<(Vec<u8>, T)>,
) -> Option<(Vec<u8>, T)> {
    let (result, more) = cut(json::at(task, &["result"])?)?;
    Some((json::edited(task, &[("result", Some(&result))]).ok()?, more))
}

/// A tool of a list without the schema of its structured results; `None` if it has none.
#[must_use]
pub fn unpromised(tool: &[u8]) -> Option<Vec<u8>> {
    json::at(tool, &["outputSchema"])?;
    json::edited(tool, &[("outputSchema", None)]).ok()
}

/// Part that was taken out of a result.
struct Taken<'r> {
    texts: Vec<String>,
    parts: Vec<Part>,
    /// Blocks that stay in the result.
    staying: Vec<&'r [u8]>,
    /// Bytes that further blocks may have to stay.
    room: usize,
}

impl<'r> Taken<'r> {
    /// Takes one block of the content.
    fn take(&mut self, block: &'r [u8]) {
        let text = |path: &[&str]| json::at(block, path).and_then(json::text);
        let kind = text(&["type"]).unwrap_or_default();
        if kind == "text"
            && let Some(words) = text(&["text"])
        {
            return self.texts.push(words.into_owned());
        }
        if block.len() <= self.room {
            self.room -= block.len();
            return self.staying.push(block);
        }
        if kind == "resource"
            && let Some(words) = text(&["resource", "text"])
        {
            let uri = text(&["resource", "uri"]).unwrap_or_default();
            return self.texts.push(format!("{uri}\n{words}"));
        }
        let (data, media_type) = match &*kind {
            "image" | "audio" => (text(&["data"]), text(&["mimeType"])),
            "resource" => (text(&["resource", "blob"]), text(&["resource", "mimeType"])),
            _ => (None, None),
        };
        match data {
            Some(base64) => {
                let media_type = media_type
                    .filter(|one| is_plain(one))
                    .unwrap_or(UNKNOWN_TYPE.into());
                let media_type = media_type.into_owned();
                self.parts.push(Part {
                    media_type,
                    base64: base64.into_owned(),
                });
            }
            None => self.texts.push(String::from_utf8_lossy(block).into_owned()),
        }
    }

    /// Adds the structured content, unless a text says the same, as servers are asked to write it
    /// (2025-06-18, "Structured Content").
    fn add_structured(&mut self, structured: &[u8]) {
        let same = json::canonical(structured).ok();
        let says_it =
            |text: &String| same.is_some() && json::canonical(text.trim().as_bytes()).ok() == same;
        if !self.texts.iter().any(says_it) {
            self.texts
                .push(String::from_utf8_lossy(structured).into_owned());
        }
    }
}

/// Whether a media type is passed on as it is.
fn is_plain(media_type: &str) -> bool {
    let plain = |byte: u8| (b' '..=b'~').contains(&byte) && !b"\"\\".contains(&byte);
    media_type.len() <= MEDIA_TYPE_BYTES_MAX && media_type.bytes().all(plain)
}

fn write_content(
    result: &mut Object<'_>,
    kept: &Kept,
    staying: &[&[u8]],
    ResultReceiver { limit, id, links }: ResultReceiver<'_>,
    bytes: usize,
) {
    let uri = format!("{URI}{id}");
    let shown = kept
        .parts
        .iter()
        .take(LINKED_PARTS_MAX)
        .enumerate()
        .map(|(at, part)| (at + 1, part));
    let shown: Vec<_> = shown.collect();
    result.array("content", |content| {
        let mut text = |text: &str| {
            content.object(|block| _ = block.text("type", "text").text("text", text));
        };
        if let Some(first) = kept.page(1) {
            text(first);
        }
        text(&words(kept, &shown, &uri, limit, bytes));
        staying.iter().for_each(|block| _ = content.raw(block));
        if !links {
            return;
        }
        let mut link = |uri: &str, name: &str, description: &str, media_type: &str| {
            content.object(|block| {
                block
                    .text("type", "resource_link")
                    .text("uri", uri)
                    .text("name", name);
                block
                    .text("description", description)
                    .text("mimeType", media_type);
            });
        };
        if kept.pages() > 1 {
            let description = format!("the whole result: {bytes} bytes, {} pages", kept.pages());
            link(&uri, "result", &description, kept.media_type());
        }
        for (number, part) in &shown {
            let description = format!("{} bytes of the result", part.bytes());
            link(
                &format!("{uri}?part={number}"),
                "part of a result",
                &description,
                &part.media_type,
            );
        }
    });
}

/// The words about a result that was cut.
fn words(kept: &Kept, shown: &[(usize, &Part)], uri: &str, limit: usize, bytes: usize) -> String {
    let mut lines = vec![format!(
        "[Portmoot: this result has {bytes} bytes, and you get at most {limit} at once. The whole is kept for you for an hour."
    )];
    if kept.pages() > 1 {
        lines.push(format!(
            "Above is page 1 of {}. To go on, read the resource {uri}?page=2. To find a text in it, read {uri}?search=TEXT.",
            kept.pages()
        ));
    }
    for (number, part) in shown {
        let (media_type, bytes) = (&part.media_type, part.bytes());
        lines.push(format!(
            "Not shown: {media_type}, {bytes} bytes, resource {uri}?part={number}."
        ));
    }
    if kept.parts.len() > shown.len() {
        lines.push(format!(
            "There are {} such parts, up to {uri}?part={0}.",
            kept.parts.len()
        ));
    }
    lines.join("\n") + "]"
}

#[cfg(test)]
mod tests;
