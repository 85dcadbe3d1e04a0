//! Edits of params as splices over the frame.
//!
//! It must not know why something is changed.

use super::read::Params;
use crate::json::{ObjectEdit, Splice, quote, write_member};
use crate::mcp::meta;
use crate::rpc::Id;

/// Changes to the params of one message, collected and then written into a [`Splice`] at once.
#[derive(Debug, Clone)]
pub struct ParamsEdit<'p, 'm> {
    params: &'p Params<'m>,
    target: Option<String>,
    members: Vec<Change>,
    meta: Vec<Change>,
}

/// A key with its new value, or none if it goes.
type Change = (String, Option<Vec<u8>>);

impl<'m> Params<'m> {
    /// Edits of these params; none yet.
    #[must_use]
    pub fn edit(&self) -> ParamsEdit<'_, 'm> {
        ParamsEdit { params: self, target: None, members: Vec::new(), meta: Vec::new() }
    }
}

impl ParamsEdit<'_, '_> {
    /// Gives the target (name, uri, task id, or what `ref` names) another text. Does nothing without a target.
    pub fn set_target(&mut self, text: &str) -> &mut Self {
        self.target = Some(text.to_owned());
        self
    }

    /// Sets the progress token, where this kind of message has it.
    pub fn set_progress_token(&mut self, token: &Id) -> &mut Self {
        match self.params.message().method() {
            "notifications/progress" => self.set(meta::PROGRESS_TOKEN, token.raw()),
            _ => self.set_meta(meta::PROGRESS_TOKEN, token.raw()),
        }
    }

    /// Takes the progress token out of a request.
    pub fn remove_progress_token(&mut self) -> &mut Self {
        self.remove_meta(&[meta::PROGRESS_TOKEN])
    }

    /// Sets a key of `_meta` to valid JSON; makes `_meta` and params if there are none.
    pub fn set_meta(&mut self, key: &str, raw: &[u8]) -> &mut Self {
        self.meta.push((key.to_owned(), Some(raw.to_vec())));
        self
    }

    /// Takes keys out of `_meta`; a `_meta` that is empty then goes too, if any of them was there.
    pub fn remove_meta(&mut self, keys: &[&str]) -> &mut Self {
        self.meta.extend(keys.iter().map(|key| ((*key).to_owned(), None)));
        self
    }

    /// Sets `cursor`.
    pub fn set_cursor(&mut self, cursor: &str) -> &mut Self {
        self.set("cursor", quote(cursor).as_bytes())
    }

    /// Takes `cursor` out.
    pub fn remove_cursor(&mut self) -> &mut Self {
        self.remove("cursor")
    }

    /// Sets `requestId` of a cancellation.
    pub fn set_request_id(&mut self, id: &Id) -> &mut Self {
        self.set("requestId", id.raw())
    }

    /// Sets any member of params to valid JSON. Not for `_meta` and not for the target.
    pub fn set(&mut self, key: &str, raw: &[u8]) -> &mut Self {
        self.members.push((key.to_owned(), Some(raw.to_vec())));
        self
    }

    /// Takes any member out of params.
    pub fn remove(&mut self, key: &str) -> &mut Self {
        self.members.push((key.to_owned(), None));
        self
    }

    /// Writes the changes into `splice`, in places of the message's frame.
    pub fn finish(&self, splice: &mut Splice) {
        if let (Some(text), Some(span)) = (&self.target, self.params.target_span()) {
            splice.replace(span, quote(text).as_bytes());
        }
        let mut members = self.members.clone();
        self.finish_meta(&mut members, splice);
        let Some(present) = self.params.members() else {
            self.make_params(&members, splice);
            return;
        };
        let mut edit = ObjectEdit::new(present);
        change(&mut edit, &members);
        edit.finish(splice);
    }

    /// Edits `_meta` where it lies, or has it set or removed as a whole.
    fn finish_meta(&self, members: &mut Vec<Change>, splice: &mut Splice) {
        let Some(present) = self.params.meta() else {
            if let Some(object) = object_of(&self.meta) {
                members.push(("_meta".to_owned(), Some(object)));
            }
            return;
        };
        let touched = self.meta.iter().any(|(key, raw)| raw.is_some() || present.get(key).is_some());
        if !touched {
            return;
        }
        let mut edit = ObjectEdit::new(present);
        change(&mut edit, &self.meta);
        if edit.leaves_nothing() {
            members.push(("_meta".to_owned(), None));
        } else {
            edit.finish(splice);
        }
    }

    fn make_params(&self, members: &[Change], splice: &mut Splice) {
        let (Some(object), Some(method)) = (object_of(members), self.params.message().method_span()) else {
            return;
        };
        let mut added = b",".to_vec();
        write_member(&mut added, "params", &object);
        // One past the closing quote of the method.
        splice.insert(method.end + 1, &added);
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

/// An object of what is set; `None` if nothing is.
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
