//! Page of a list: a slice of the rendered list, with the cursor of the next page.

use std::sync::Arc;

use auth::{Purpose, Sealer};
use model::{Form, ListKind, ParticipantId, Refusal, RefusalCode};
use platform::{random, unix_ms};
use topic::ListSnapshot;
use topic::section::ToolsList;
use wire::mcp::{ListNames, gateways, list::Hints};

use crate::cache::{LIST_BYTES_MAX, ListInputs, PageCache};
use crate::merged::{Manifests, MergedList, Reader, Rendered};

/// Items on one page of a merged list.
pub const PAGE_ITEMS_MAX: usize = 1000;
/// For how long a cursor is valid, in milliseconds: an hour.
pub const CURSOR_MS: u64 = 3_600_000;
const CURSOR: Purpose = Purpose {
    name: "cursor",
    valid_ms: CURSOR_MS,
};

/// A request for a page.
pub struct PageRequest<'a> {
    /// The caller.
    pub participant: &'a ParticipantId,
    /// The list.
    pub list: ListKind,
    /// The form of the request, and of the page.
    pub form: Form,
    /// Reading of the list by the caller's client.
    pub reader: Reader,
    /// Part of the list that the topic shows.
    pub only: ToolsList,
    /// The cursor of the page; `None` is the first page.
    pub cursor: Option<String>,
    /// The ids of the gateways that the list came through, for a caller that is a gateway.
    pub gateways: Option<Vec<String>>,
}

/// A page of a list.
pub struct MergedPage {
    /// The result's body.
    pub body: Vec<u8>,
    /// Bytes of definitions of tools, as models read them, that a topic with `tools_list = "search"`
    /// leaves out of the list; counted with its first page.
    pub left_out_bytes: usize,
}

impl PageRequest<'_> {
    /// The page.
    ///
    /// # Errors
    /// The refusal of a cursor that is not this participant's, or not of this list, or too old.
    pub fn page(
        &self,
        sealer: &Sealer,
        pages: &PageCache,
        snapshot: ListSnapshot,
        manifests: &Manifests,
    ) -> Result<MergedPage, Refusal> {
        let start = match &self.cursor {
            Some(cursor) => self
                .start(sealer, unix_ms(), cursor)
                .ok_or_else(bad_cursor)?,
            None => 0,
        };
        let end = start.saturating_add(PAGE_ITEMS_MAX);
        let source = ListInputs::new(self.list, self.only, self.reader, snapshot, manifests);
        if let Some(rendered) = pages.get(&source) {
            let next = self.cursor_behind(sealer, end, rendered.items.len());
            return Ok(self.cut(&rendered, start, next));
        }
        let merged =
            MergedList::new(&source.snapshot, self.list, manifests, self.reader).shown(self.only);
        if merged.bytes() > LIST_BYTES_MAX {
            // A list that cannot be kept is not rendered in full.
            let next = self.cursor_behind(sealer, end, merged.len());
            return Ok(self.cut(&merged.render(start..end), 0, next));
        }
        let rendered = Arc::new(merged.render(0..merged.len()));
        drop(merged);
        pages.keep(source, &rendered);
        let next = self.cursor_behind(sealer, end, rendered.items.len());
        Ok(self.cut(&rendered, start, next))
    }

    /// The cursor of the page after the one that ends at `end`; `None` if that one is the last of
    /// a list of so many items.
    fn cursor_behind(&self, sealer: &Sealer, end: usize, items: usize) -> Option<String> {
        if items > end {
            Some(self.cursor_at(sealer, unix_ms(), end))
        } else {
            None
        }
    }

    /// The cursor of the page that begins at this item: sealed for the participant, and for the
    /// list.
    pub(crate) fn cursor_at(&self, sealer: &Sealer, now_ms: u64, start: usize) -> String {
        CURSOR.seal(
            sealer,
            self.participant,
            now_ms,
            random(),
            &format!("{}:{start}", ListNames::of(self.list).method),
        )
    }

    /// Place where the page of a cursor begins; `None` if the cursor is another participant's,
    /// another list's, or too old.
    pub(crate) fn start(&self, sealer: &Sealer, now_ms: u64, cursor: &str) -> Option<usize> {
        let state = CURSOR.open(sealer, self.participant, now_ms, cursor)?;
        let (method, start) = state.rsplit_once(':')?;
        if method == ListNames::of(self.list).method {
            start.parse().ok()
        } else {
            None
        }
    }

    /// The page that begins at this item of a rendered list.
    fn cut(&self, rendered: &Rendered, start: usize, next: Option<String>) -> MergedPage {
        let hints = match self.form {
            Form::Legacy => Hints::Legacy,
            Form::Modern => Hints::Modern {
                ttl_ms: 0,
                public: false,
            },
        };
        let places = start..start.saturating_add(PAGE_ITEMS_MAX);
        let mut extras = std::borrow::Cow::Borrowed(&rendered.extras);
        if let Some(named) = &self.gateways {
            let extras = extras.to_mut();
            let at = extras.iter().position(|(key, _)| key == "_meta");
            let meta = at.map(|at| extras.swap_remove(at).1);
            extras.push((
                "_meta".to_owned(),
                gateways::added(meta.as_deref(), named).into(),
            ));
        }
        let items = &rendered.items;
        let is_first = self.cursor.is_none();
        MergedPage {
            body: items.page(self.list, places, next.as_deref(), &extras, hints),
            left_out_bytes: if is_first { rendered.left_out_bytes } else { 0 },
        }
    }
}

/// The refusal of a cursor that does not open.
pub fn bad_cursor() -> Refusal {
    Refusal::new(RefusalCode::Malformed, "this cursor is not known here")
        .hint("list again from the beginning")
}
