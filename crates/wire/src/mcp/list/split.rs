//! Split of a page into its items.

use bytes::Bytes;
use json::JsonError;
use model::ListKind;

use super::item::{Item, read_item};
use crate::mcp::method::ListNames;
use crate::rpc::Message;

/// An item that cannot be offered. It affects no other item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadItem {
    /// Its place on the page, from 0.
    pub at: usize,
    /// Its name, URI or template, if that could be read.
    pub key: Option<String>,
    /// What is wrong with it, for the operator.
    pub why: String,
}

/// One page of a list, split into items.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// The items that can be offered, in the server's order.
    pub items: Vec<Item>,
    /// The others.
    pub bad: Vec<BadItem>,
    /// The cursor of the next page, if there is one. An empty string is a cursor.
    pub next_cursor: Option<String>,
    /// The time for which the page may be reused, in milliseconds; modern only. Negative counts as 0.
    pub ttl_ms: Option<u64>,
    /// Whether the page may be shared between callers (`public`); absent and unknown scopes are private.
    pub public: bool,
    /// All other members of the result, raw, in order; `resultType` is not among them.
    pub extras: Vec<(String, Bytes)>,
}

/// Splits the result of a list method.
///
/// # Errors
/// [`JsonError`] when the message has no result that is an object with the list's array in it. A bad item is no error.
pub fn split(kind: ListKind, message: &Message) -> Result<Page, JsonError> {
    let frame = message.frame();
    let span = message.result().and(message.body_span()).ok_or(JsonError::NotAnObject)?;
    let members = json::members(frame, span)?;
    let list = members.get(ListNames::of(kind).items).ok_or(JsonError::NotAnArray)?;
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
            key if key == ListNames::of(kind).items => {}
            key => page.extras.push((key.to_owned(), frame.slice(member.span.start..member.span.end))),
        }
    }
    Ok(page)
}
