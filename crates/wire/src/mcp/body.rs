//! Changes to an object that has a `_meta` in it: params and results alike.
//!
//! It must not know which of the two it changes, nor why.

use json::{MemberChange, Members, Span, Splice, edit_object, leaves_nothing, object_of};
use smallvec::SmallVec;

/// Changes to the members of a body and to those of its `_meta`. Later changes of a key win.
#[derive(Debug, Clone, Default)]
pub(super) struct BodyEdit {
    // Most edits are a few short changes: these need no allocation of their own.
    changes: SmallVec<[Kept; 2]>,
    /// The text of all keys and values, one after the other.
    text: SmallVec<[u8; 64]>,
}

/// One change; `raw` is none if the member goes.
#[derive(Debug, Clone)]
struct Kept {
    in_meta: bool,
    key: Span,
    raw: Option<Span>,
}

impl BodyEdit {
    pub(super) fn set(&mut self, key: &str, raw: &[u8]) {
        self.keep(false, key, Some(raw));
    }

    pub(super) fn remove(&mut self, key: &str) {
        self.keep(false, key, None);
    }

    pub(super) fn set_meta(&mut self, key: &str, raw: &[u8]) {
        self.keep(true, key, Some(raw));
    }

    pub(super) fn remove_meta(&mut self, keys: &[&str]) {
        for key in keys {
            self.keep(true, key, None);
        }
    }

    /// Writes the changes into `splice`. Where there is no body yet, gives the one to make, if any.
    pub(super) fn finish(
        &self,
        body: Option<&Members<'_>>,
        meta: Option<&Members<'_>>,
        splice: &mut Splice,
    ) -> Option<Vec<u8>> {
        let of_meta = self.changes_of(true);
        let made = if meta.is_none() { object_of(&of_meta) } else { None };
        let mut changes = self.changes_of(false);
        if let Some(made) = &made {
            changes.push(("_meta", Some(made)));
        }
        if let Some(meta) = meta {
            let touched = of_meta.iter().any(|(key, raw)| raw.is_some() || meta.get(key).is_some());
            if touched && leaves_nothing(meta, &of_meta) {
                changes.push(("_meta", None));
            } else if touched {
                edit_object(meta, &of_meta, splice);
            }
        }
        let Some(body) = body else {
            return object_of(&changes);
        };
        edit_object(body, &changes, splice);
        None
    }

    fn keep(&mut self, in_meta: bool, key: &str, raw: Option<&[u8]>) {
        let mut keep = |part: &[u8]| {
            let start = self.text.len();
            self.text.extend_from_slice(part);
            Span { start, end: self.text.len() }
        };
        let (key, raw) = (keep(key.as_bytes()), raw.map(keep));
        self.changes.push(Kept { in_meta, key, raw });
    }

    fn changes_of(&self, in_meta: bool) -> SmallVec<[MemberChange<'_>; 4]> {
        let wanted = self.changes.iter().filter(|kept| kept.in_meta == in_meta);
        let key = |span: Span| std::str::from_utf8(span.of(&self.text)).unwrap_or_default();
        wanted.map(|kept| (key(kept.key), kept.raw.map(|raw| raw.of(&self.text)))).collect()
    }
}
