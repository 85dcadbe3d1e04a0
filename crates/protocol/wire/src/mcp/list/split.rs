//! Split of a page into its items: the bytes of each, and its key among them.

use bytes::Bytes;
use json::{JsonError, Span, quote};
use model::ListKind;

use crate::mcp::method::ListNames;
use crate::rpc::Message;

/// One item of a list, as its server wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The item.
    pub raw: Bytes,
    /// Its name, URI or template, unescaped.
    pub key: String,
    /// The place of the key's value in `raw`, quotes included.
    pub key_span: Span,
}

impl Item {
    /// Reads one item.
    ///
    /// # Errors
    /// What is wrong with the item.
    pub fn read(kind: ListKind, raw: Bytes) -> Result<Self, String> {
        read_item(kind, raw).map_err(|(_, why)| why)
    }

    /// The item under this key; all other bytes stay.
    #[must_use]
    pub fn spelled(&self, key: &str) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.raw.len() + key.len());
        if key == self.key {
            out.extend_from_slice(&self.raw);
        } else {
            self.write_renamed(key, &mut out);
        }
        out
    }

    /// Appends the item under another key to `out`; all other bytes stay.
    pub(super) fn write_renamed(&self, key: &str, out: &mut Vec<u8>) {
        let (before, after) = (
            self.raw.get(..self.key_span.start),
            self.raw.get(self.key_span.end..),
        );
        out.extend_from_slice(before.unwrap_or_default());
        out.extend_from_slice(quote(key).as_bytes());
        out.extend_from_slice(after.unwrap_or_default());
    }

    /// Another member of the item, raw.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Bytes> {
        let members = json::members(&self.raw, Span::all(&self.raw)).ok()?;
        members
            .get(key)
            .map(|member| self.raw.slice(member.span.start..member.span.end))
    }
}

/// An item that cannot be offered. It affects no other item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadItem {
    /// Its place on the page, from 0.
    pub at: usize,
    /// Its name, URI or template, if that could be read.
    pub key: Option<String>,
    /// Fault of the entry, for the operator.
    pub why: String,
}

/// One page of a list, split into items.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListPage {
    /// The items that can be offered, in the server's order.
    pub items: Vec<Item>,
    /// The others.
    pub bad: Vec<BadItem>,
    /// The cursor of the next page, if there is one. An empty string is a cursor.
    pub next_cursor: Option<String>,
    /// The time for which the page may be reused, in milliseconds; modern only. Negative counts as
    /// 0.
    pub ttl_ms: Option<u64>,
    /// Whether the page may be shared between callers (`public`); absent and unknown scopes are
    /// private.
    pub public: bool,
    /// All other members of the result, raw, in order; `resultType` is not among them.
    pub extras: Vec<(String, Bytes)>,
}

/// Splits the result of a list method.
///
/// # Errors
/// [`JsonError`] when the message has no result that is an object with the list's array in it. A
/// bad item is no error.
pub fn split(kind: ListKind, message: &Message) -> Result<ListPage, JsonError> {
    let frame = message.frame();
    let span = message
        .result()
        .and(message.body_span())
        .ok_or(JsonError::NotAnObject)?;
    let members = json::members(frame, span)?;
    let list = members
        .get(ListNames::of(kind).items)
        .ok_or(JsonError::NotAnArray)?;
    let mut page = ListPage::default();
    for (at, span) in json::elements(frame, list.span)?.into_iter().enumerate() {
        match read_item(kind, frame.slice(span.start..span.end)) {
            Ok(item) => page.items.push(item),
            Err((key, why)) => page.bad.push(BadItem { at, key, why }),
        }
    }
    for (key, member) in members.iter() {
        match key {
            "nextCursor" => {
                page.next_cursor = json::text(member.raw).map(std::borrow::Cow::into_owned)
            }
            "ttlMs" => {
                page.ttl_ms = json::integer(member.raw).map(|ttl| u64::try_from(ttl).unwrap_or(0))
            }
            "cacheScope" => page.public = json::text(member.raw).as_deref() == Some("public"),
            "resultType" => {}
            key if key == ListNames::of(kind).items => {}
            key => page.extras.push((
                key.to_owned(),
                frame.slice(member.span.start..member.span.end),
            )),
        }
    }
    Ok(page)
}

fn read_item(kind: ListKind, raw: Bytes) -> Result<Item, (Option<String>, String)> {
    let members =
        json::members(&raw, Span::all(&raw)).map_err(|error| (None, error.to_string()))?;
    let key = members
        .get(ListNames::of(kind).key)
        .and_then(|member| Some((json::text(member.raw)?.into_owned(), member.span)));
    let Some((key, key_span)) = key.filter(|(key, _)| !key.is_empty()) else {
        return Err((
            None,
            format!(
                "`{}` must be a string that is not empty",
                ListNames::of(kind).key
            ),
        ));
    };
    if kind == ListKind::Tools
        && !members
            .get("inputSchema")
            .is_some_and(|schema| json::is_object(schema.raw))
    {
        return Err((Some(key), "`inputSchema` must be an object".to_owned()));
    }
    if kind == ListKind::Skills
        && !members
            .get("frontmatter")
            .is_some_and(|frontmatter| json::is_object(frontmatter.raw))
    {
        return Err((Some(key), "`frontmatter` must be an object".to_owned()));
    }
    drop(members);
    Ok(Item { raw, key, key_span })
}
