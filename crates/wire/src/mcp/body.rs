//! Changes to an object that has a `_meta` in it: params and results alike.
//!
//! It must not know which of the two it changes, nor why.

use crate::json::{Change, Members, Span, Splice, edit_object, leaves_nothing, object_of};

/// Changes to the members of a body and to those of its `_meta`. Later changes of a key win.
#[derive(Debug, Clone, Default)]
pub(super) struct BodyEdit {
    changes: Vec<Kept>,
    /// The text of all keys and values, one after the other.
    keys: String,
    raws: Vec<u8>,
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
        if self.changes.is_empty() {
            self.keys.reserve(128);
            self.raws.reserve(128);
        }
        let start = self.keys.len();
        self.keys.push_str(key);
        let key = Span { start, end: self.keys.len() };
        let raw = raw.map(|raw| {
            let start = self.raws.len();
            self.raws.extend_from_slice(raw);
            Span { start, end: self.raws.len() }
        });
        self.changes.push(Kept { in_meta, key, raw });
    }

    fn changes_of(&self, in_meta: bool) -> Vec<Change<'_>> {
        let wanted = self.changes.iter().filter(|kept| kept.in_meta == in_meta);
        let key = |span: Span| self.keys.get(span.start..span.end).unwrap_or_default();
        wanted.map(|kept| (key(kept.key), kept.raw.map(|raw| raw.of(&self.raws)))).collect()
    }
}
