//! Item of a list: its bytes, and its key among them.

use bytes::Bytes;
use json::{Span, quote};
use model::ListKind;

use crate::mcp::method::ListNames;

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

    /// Appends the item under another key to `out`; all other bytes stay.
    pub(super) fn write_renamed(&self, key: &str, out: &mut Vec<u8>) {
        let (before, after) = (self.raw.get(..self.key_span.start), self.raw.get(self.key_span.end..));
        out.extend_from_slice(before.unwrap_or_default());
        out.extend_from_slice(quote(key).as_bytes());
        out.extend_from_slice(after.unwrap_or_default());
    }

    /// Another member of the item, raw.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Bytes> {
        let members = json::members(&self.raw, Span::all(&self.raw)).ok()?;
        members.get(key).map(|member| self.raw.slice(member.span.start..member.span.end))
    }
}

pub(super) fn read_item(kind: ListKind, raw: Bytes) -> Result<Item, (Option<String>, String)> {
    let members = json::members(&raw, Span::all(&raw)).map_err(|error| (None, error.to_string()))?;
    let key = members
        .get(ListNames::of(kind).key)
        .and_then(|member| Some((json::text(member.raw)?.into_owned(), member.span)));
    let Some((key, key_span)) = key.filter(|(key, _)| !key.is_empty()) else {
        return Err((None, format!("`{}` must be a string that is not empty", ListNames::of(kind).key)));
    };
    if kind == ListKind::Tools
        && !members.get("inputSchema").is_some_and(|schema| json::is_object(schema.raw))
    {
        return Err((Some(key), "`inputSchema` must be an object".to_owned()));
    }
    drop(members);
    Ok(Item { raw, key, key_span })
}
