//! Pages of lists (tools, prompts, resources, templates): split into items, and rendered.
//!
//! Items stay raw; only their key (name, URI, template) may be replaced.

use bytes::Bytes;
use json::{JsonError, Span, Splice, quote};

use super::method::ListKind;
use crate::rpc::Message;

/// One item of a list, as its server wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The item.
    pub raw: Bytes,
    /// Its name, URI or template, unescaped.
    pub key: String,
    /// Where the key's value lies in `raw`, quotes included.
    pub key_span: Span,
}

/// An item that cannot be offered. It costs only itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadItem {
    /// Its place on the page, from 0.
    pub at: usize,
    /// Its name, URI or template, if that could be read.
    pub key: Option<String>,
    /// What is wrong with it; for people.
    pub why: String,
}

/// One page of a list, taken apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// The items that can be offered, in the server's order.
    pub items: Vec<Item>,
    /// The others.
    pub bad: Vec<BadItem>,
    /// Where the next page begins, if there is one. An empty string is a cursor.
    pub next_cursor: Option<String>,
    /// How long the page may be reused, in milliseconds; modern only. Negative counts as 0.
    pub ttl_ms: Option<u64>,
    /// Whether the page may be shared between callers (`public`); absent and unknown scopes are private.
    pub public: bool,
    /// All other members of the result, raw, in order; `resultType` is not among them.
    pub extras: Vec<(String, Bytes)>,
}

/// What a page says about its use, by era.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hints {
    /// Nothing.
    Legacy,
    /// `resultType`, `ttlMs` and `cacheScope` (2026-07-28, caching).
    Modern {
        /// For how many milliseconds the page may be reused.
        ttl_ms: u64,
        /// Whether it may be shared between callers.
        public: bool,
    },
}

/// Takes the result of a list method apart.
///
/// # Errors
/// [`JsonError`] when the message has no result that is an object with the list's array in it. A bad item is no error.
pub fn split(kind: ListKind, message: &Message) -> Result<Page, JsonError> {
    let frame = message.frame();
    let span = message.result().and(message.body_span()).ok_or(JsonError::NotAnObject)?;
    let members = json::members(frame, span)?;
    let list = members.get(kind.items()).ok_or(JsonError::NotAnArray)?;
    let mut page = Page::default();
    for (at, span) in json::elements(frame, list.span)?.into_iter().enumerate() {
        match read_item(kind, frame.slice(span.start..span.end)) {
            Ok(item) => page.items.push(item),
            Err((key, why)) => page.bad.push(BadItem { at, key, why }),
        }
    }
    for (key, member) in members.iter() {
        match key {
            "nextCursor" => page.next_cursor = json::text(member.raw).map(std::borrow::Cow::into_owned),
            "ttlMs" => page.ttl_ms = json::integer(member.raw).map(|ttl| u64::try_from(ttl).unwrap_or(0)),
            "cacheScope" => page.public = json::text(member.raw).as_deref() == Some("public"),
            "resultType" => {}
            key if key == kind.items() => {}
            key => page.extras.push((key.to_owned(), frame.slice(member.span.start..member.span.end))),
        }
    }
    Ok(page)
}

/// Makes the result of a list method: the items in this order, each with another key if one is given, then the cursor,
/// the extras, and what the era wants. The extras must not repeat these.
#[must_use]
pub fn render<'i>(
    kind: ListKind,
    items: impl IntoIterator<Item = (&'i Item, Option<&'i str>)>,
    next_cursor: Option<&str>,
    extras: &[(String, Bytes)],
    hints: Hints,
) -> Vec<u8> {
    json::object(|page| {
        page.array(kind.items(), |array| {
            for (item, key) in items {
                match key {
                    Some(key) if key != item.key => array.raw(&item.renamed(key)),
                    Some(_) | None => array.raw(&item.raw),
                };
            }
        });
        page.optional_text("nextCursor", next_cursor);
        for (key, raw) in extras {
            page.raw(key, raw);
        }
        if let Hints::Modern { ttl_ms, public } = hints {
            page.text("resultType", "complete").number("ttlMs", ttl_ms);
            page.text("cacheScope", if public { "public" } else { "private" });
        }
    })
}

impl Item {
    /// Reads one item.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(kind: ListKind, raw: Bytes) -> Result<Self, String> {
        read_item(kind, raw).map_err(|(_, why)| why)
    }

    /// The item under another key; all other bytes stay.
    #[must_use]
    pub fn renamed(&self, key: &str) -> Bytes {
        let mut splice = Splice::new();
        splice.replace(self.key_span, quote(key).as_bytes());
        splice.apply(&self.raw)
    }

    /// Another member of the item, raw.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Bytes> {
        let members = json::members(&self.raw, Span::all(&self.raw)).ok()?;
        members.get(key).map(|member| self.raw.slice(member.span.start..member.span.end))
    }
}

fn read_item(kind: ListKind, raw: Bytes) -> Result<Item, (Option<String>, String)> {
    let members = json::members(&raw, Span::all(&raw)).map_err(|error| (None, error.to_string()))?;
    let key =
        members.get(kind.key()).and_then(|member| Some((json::text(member.raw)?.into_owned(), member.span)));
    let Some((key, key_span)) = key.filter(|(key, _)| !key.is_empty()) else {
        return Err((None, format!("`{}` must be a string that is not empty", kind.key())));
    };
    if kind == ListKind::Tools
        && !members.get("inputSchema").is_some_and(|schema| json::is_object(schema.raw))
    {
        return Err((Some(key), "`inputSchema` must be an object".to_owned()));
    }
    drop(members);
    Ok(Item { raw, key, key_span })
}

#[cfg(test)]
mod tests;
