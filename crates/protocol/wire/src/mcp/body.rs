//! Edits of a body and its `_meta`, as splices over the frame: params and results alike.

use json::{
    MemberChange, Members, Object, Span, Splice, edit_object, leaves_nothing, object_of, quote,
};
use smallvec::SmallVec;

use super::meta;
use super::params::{BareParams, Params};
use crate::rpc::Id;

/// Changes to the params or the result of one message, collected and then written into a [`Splice`]
/// at once. Later changes of a key win.
#[derive(Debug, Clone)]
pub struct BodyEdit<'b, 'm> {
    body: Option<&'b Members<'m>>,
    meta: Option<&'b Members<'m>>,
    /// The place of the target, if the body names one.
    target_at: Option<Span>,
    /// Where params are inserted into a message that has none.
    insert_at: Option<usize>,
    /// Whether the progress token is a member of the body itself, not of its `_meta`.
    has_own_token: bool,
    /// As JSON text, with quotes.
    target: Option<String>,
    // Most edits are a few short changes: these need no allocation of their own.
    changes: SmallVec<[Kept; 6]>,
    /// The text of all keys and values, concatenated.
    text: SmallVec<[u8; 256]>,
}

/// One change; `raw` is none if the member is removed.
#[derive(Debug, Clone)]
struct Kept {
    in_meta: bool,
    key: Span,
    raw: Option<Span>,
}

impl<'m> Params<'m> {
    /// Edits of these params; none yet.
    #[must_use]
    pub fn edit(&self) -> BodyEdit<'_, 'm> {
        BodyEdit {
            target_at: self.target_span(),
            // One past the closing quote of the method.
            insert_at: self.message().method_span().map(|method| method.end + 1),
            has_own_token: self.method() == "notifications/progress",
            ..BodyEdit::of(self.members.as_ref(), self.meta.as_ref())
        }
    }
}

impl<'m> BareParams<'m> {
    /// Edits of these params; none yet.
    pub(crate) fn edit(&self) -> BodyEdit<'_, 'm> {
        BodyEdit {
            target_at: self.target.as_ref().map(|target| target.span),
            ..BodyEdit::of(Some(&self.members), self.meta.as_ref())
        }
    }
}

impl<'b, 'm> BodyEdit<'b, 'm> {
    /// Edits of a body with these members; none yet.
    pub(super) fn of(body: Option<&'b Members<'m>>, meta: Option<&'b Members<'m>>) -> Self {
        let (changes, text) = (SmallVec::new(), SmallVec::new());
        Self {
            body,
            meta,
            target_at: None,
            insert_at: None,
            has_own_token: false,
            target: None,
            changes,
            text,
        }
    }

    /// Gives the target (name, uri, task id, or what `ref` names) another text. Without a target it
    /// has no effect.
    pub fn set_target(&mut self, text: &str) -> &mut Self {
        self.target = Some(quote(text));
        self
    }

    /// Sets the progress token, where this kind of message has it.
    pub fn set_progress_token(&mut self, token: &Id) -> &mut Self {
        self.keep(!self.has_own_token, meta::PROGRESS_TOKEN, Some(token.raw()))
    }

    /// Sets a key of `_meta` to valid JSON; makes `_meta` and params if there are none.
    pub fn set_meta(&mut self, key: &str, raw: &[u8]) -> &mut Self {
        self.keep(true, key, Some(raw))
    }

    /// Removes keys from `_meta`, and with the last of them `_meta` itself.
    pub fn remove_meta(&mut self, keys: &[&str]) -> &mut Self {
        for key in keys {
            self.keep(true, key, None);
        }
        self
    }

    /// Sets any member to valid JSON. Not for `_meta` and not for the target.
    pub fn set(&mut self, key: &str, raw: &[u8]) -> &mut Self {
        self.keep(false, key, Some(raw))
    }

    /// Removes any member.
    pub fn remove(&mut self, key: &str) -> &mut Self {
        self.keep(false, key, None)
    }

    /// Writes the changes into `splice`, in places of the message's frame.
    pub fn finish(&self, splice: &mut Splice) {
        if let (Some(text), Some(span)) = (&self.target, self.target_at) {
            splice.replace(span, text.as_bytes());
        }
        let of_meta = self.changes_of(true);
        let made = if self.meta.is_none() {
            object_of(&of_meta)
        } else {
            None
        };
        let mut changes = self.changes_of(false);
        if let Some(made) = &made {
            changes.push(("_meta", Some(made)));
        }
        if let Some(meta) = self.meta {
            let touched = of_meta
                .iter()
                .any(|(key, raw)| raw.is_some() || meta.get(key).is_some());
            if touched && leaves_nothing(meta, &of_meta) {
                changes.push(("_meta", None));
            } else if touched {
                edit_object(meta, &of_meta, splice);
            }
        }
        if let Some(body) = self.body {
            return edit_object(body, &changes, splice);
        }
        if let (Some(object), Some(at)) = (object_of(&changes), self.insert_at) {
            let mut added = b",".to_vec();
            Object::write_members(&mut added, |message| {
                message.raw("params", &object);
            });
            splice.insert(at, &added);
        }
    }

    fn keep(&mut self, in_meta: bool, key: &str, raw: Option<&[u8]>) -> &mut Self {
        let mut keep = |part: &[u8]| {
            let start = self.text.len();
            self.text.extend_from_slice(part);
            Span {
                start,
                end: self.text.len(),
            }
        };
        let (key, raw) = (keep(key.as_bytes()), raw.map(keep));
        self.changes.push(Kept { in_meta, key, raw });
        self
    }

    fn changes_of(&self, in_meta: bool) -> SmallVec<[MemberChange<'_>; 4]> {
        let wanted = self.changes.iter().filter(|kept| kept.in_meta == in_meta);
        let key = |span: Span| std::str::from_utf8(span.of(&self.text)).unwrap_or_default();
        wanted
            .map(|kept| (key(kept.key), kept.raw.map(|raw| raw.of(&self.text))))
            .collect()
    }
}
