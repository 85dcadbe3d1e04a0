//! Rendering of pages: from items, or from a list that was rendered before.

use std::ops::Range;

use bytes::Bytes;
use json::Object;
use model::ListKind;

use super::split::Item;
use crate::mcp::method::ListNames;

/// Room for the members of a page beside its items, in bytes.
const ENDS_BYTES: usize = 512;

/// The caching hints of a page, by era.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hints {
    /// None: legacy.
    Legacy,
    /// `resultType`, `ttlMs` and `cacheScope` (2026-07-28, caching).
    Modern {
        /// The time for which the page may be reused, in milliseconds.
        ttl_ms: u64,
        /// Whether it may be shared between callers.
        public: bool,
    },
}

/// A list rendered once: pages are slices of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RenderedList {
    /// The items with commas between them.
    bytes: Vec<u8>,
    /// The end of each item.
    ends: Vec<usize>,
}

impl RenderedList {
    /// An empty list with room for this number of items and bytes.
    #[must_use]
    pub fn with_capacity(items: usize, bytes: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(bytes.saturating_add(items)),
            ends: Vec::with_capacity(items),
        }
    }

    /// Adds an item, under another key if one is given.
    pub fn push(&mut self, item: &Item, key: Option<&str>) {
        if !self.ends.is_empty() {
            self.bytes.push(b',');
        }
        match key {
            Some(key) if key != item.key => item.write_renamed(key, &mut self.bytes),
            Some(_) | None => self.bytes.extend_from_slice(&item.raw),
        }
        self.ends.push(self.bytes.len());
    }

    /// The number of items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no item.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The memory that it takes, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.bytes
            .capacity()
            .saturating_add(self.ends.capacity().saturating_mul(size_of::<usize>()))
    }

    /// The result of a list method with the items at these places, as far as they exist; the rest
    /// as [`render`] writes it.
    #[must_use]
    pub fn page(
        &self,
        kind: ListKind,
        places: Range<usize>,
        next_cursor: Option<&str>,
        extras: &[(String, Bytes)],
        hints: Hints,
    ) -> Vec<u8> {
        let items = self.slice(places);
        let mut out = Vec::with_capacity(items.len() + ENDS_BYTES);
        Object::write(&mut out, |page| {
            page.array(ListNames::of(kind).items, |array| {
                if !items.is_empty() {
                    array.raw(items);
                }
            });
            write_rest(page, next_cursor, extras, hints);
        });
        out
    }

    fn slice(&self, places: Range<usize>) -> &[u8] {
        let end_of = |at: usize| self.ends.get(at).copied();
        let start = match places.start.checked_sub(1) {
            None => Some(0),
            // A comma follows the previous item.
            Some(before) => end_of(before).map(|end| end.saturating_add(1)),
        };
        let last = places.end.min(self.ends.len()).checked_sub(1);
        let range = start
            .zip(last.and_then(end_of))
            .map(|(start, end)| start..end);
        range
            .and_then(|range| self.bytes.get(range))
            .unwrap_or_default()
    }
}

/// Makes the result of a list method: the items in this order, each with another key if one is
/// given, then the cursor, the extras, and the hints. The extras must not repeat these.
#[must_use]
pub fn render<'i>(
    kind: ListKind,
    items: impl IntoIterator<Item = (&'i Item, Option<&'i str>)>,
    next_cursor: Option<&str>,
    extras: &[(String, Bytes)],
    hints: Hints,
) -> Vec<u8> {
    let mut list = RenderedList::default();
    items
        .into_iter()
        .for_each(|(item, key)| list.push(item, key));
    list.page(kind, 0..list.len(), next_cursor, extras, hints)
}

/// Everything on a page but the items.
fn write_rest(
    page: &mut Object<'_>,
    next_cursor: Option<&str>,
    extras: &[(String, Bytes)],
    hints: Hints,
) {
    page.optional_text("nextCursor", next_cursor);
    for (key, raw) in extras {
        page.raw(key, raw);
    }
    if let Hints::Modern { ttl_ms, public } = hints {
        page.text("resultType", "complete").number("ttlMs", ttl_ms);
        page.text("cacheScope", if public { "public" } else { "private" });
    }
}
