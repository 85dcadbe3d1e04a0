//! Changes to an object that has a `_meta` in it: params and results alike.
//!
//! It must not know which of the two it changes, nor why.

use crate::json::{Members, ObjectEdit, Splice, write_member};

/// A key with its new value, or none if it goes.
type Change = (String, Option<Vec<u8>>);

/// Changes to the members of a body and to those of its `_meta`. Later changes of a key win.
#[derive(Debug, Clone, Default)]
pub(super) struct BodyEdit {
    members: Vec<Change>,
    meta: Vec<Change>,
}

impl BodyEdit {
    pub(super) fn set(&mut self, key: &str, raw: &[u8]) {
        self.members.push((key.to_owned(), Some(raw.to_vec())));
    }

    pub(super) fn remove(&mut self, key: &str) {
        self.members.push((key.to_owned(), None));
    }

    pub(super) fn set_meta(&mut self, key: &str, raw: &[u8]) {
        self.meta.push((key.to_owned(), Some(raw.to_vec())));
    }

    pub(super) fn remove_meta(&mut self, keys: &[&str]) {
        self.meta.extend(keys.iter().map(|key| ((*key).to_owned(), None)));
    }

    /// Writes the changes into `splice`. Where there is no body yet, gives the one to make, if any.
    pub(super) fn finish(
        &self,
        body: Option<&Members<'_>>,
        meta: Option<&Members<'_>>,
        splice: &mut Splice,
    ) -> Option<Vec<u8>> {
        let mut members = self.members.clone();
        self.finish_meta(meta, &mut members, splice);
        let Some(body) = body else {
            return object_of(&members);
        };
        let mut edit = ObjectEdit::new(body);
        change(&mut edit, &members);
        edit.finish(splice);
        None
    }

    /// Edits `_meta` where it lies, or has it set or removed as a whole.
    fn finish_meta(&self, meta: Option<&Members<'_>>, members: &mut Vec<Change>, splice: &mut Splice) {
        let Some(meta) = meta else {
            if let Some(object) = object_of(&self.meta) {
                members.push(("_meta".to_owned(), Some(object)));
            }
            return;
        };
        if !self.meta.iter().any(|(key, raw)| raw.is_some() || meta.get(key).is_some()) {
            return;
        }
        let mut edit = ObjectEdit::new(meta);
        change(&mut edit, &self.meta);
        if edit.leaves_nothing() {
            members.push(("_meta".to_owned(), None));
        } else {
            edit.finish(splice);
        }
    }
}

fn change(edit: &mut ObjectEdit<'_, '_>, changes: &[Change]) {
    for (key, raw) in changes {
        match raw {
            Some(raw) => edit.set(key, raw),
            None => edit.remove(key),
        };
    }
}

/// An object of what is set in the end; `None` if nothing is.
fn object_of(changes: &[Change]) -> Option<Vec<u8>> {
    let mut out = b"{".to_vec();
    for (at, (key, raw)) in changes.iter().enumerate() {
        let later = changes.iter().skip(at + 1).any(|(other, _)| other == key);
        if let (Some(raw), false) = (raw, later) {
            if out.len() > 1 {
                out.push(b',');
            }
            write_member(&mut out, key, raw);
        }
    }
    out.push(b'}');
    (out.len() > 2).then_some(out)
}
