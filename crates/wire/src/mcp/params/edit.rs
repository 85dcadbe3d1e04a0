//! Edits of params, as splices over the frame.

use json::{Object, Splice, quote};

use super::read::Params;
use crate::mcp::body::BodyEdit;
use crate::mcp::meta;
use crate::rpc::Id;

/// Changes to the params of one message, collected and then written into a [`Splice`] at once.
#[derive(Debug, Clone)]
pub struct ParamsEdit<'p, 'm> {
    params: &'p Params<'m>,
    /// As it is written, with quotes.
    target: Option<String>,
    body: BodyEdit,
}

impl<'m> Params<'m> {
    /// Edits of these params; none yet.
    #[must_use]
    pub fn edit(&self) -> ParamsEdit<'_, 'm> {
        ParamsEdit { params: self, target: None, body: BodyEdit::default() }
    }
}

impl ParamsEdit<'_, '_> {
    /// Gives the target (name, uri, task id, or what `ref` names) another text. Does nothing without a target.
    pub fn set_target(&mut self, text: &str) -> &mut Self {
        self.target = Some(quote(text));
        self
    }

    /// Sets the progress token, where this kind of message has it.
    pub fn set_progress_token(&mut self, token: &Id) -> &mut Self {
        match self.params.method() {
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
        self.body.set_meta(key, raw);
        self
    }

    /// Takes keys out of `_meta`; a `_meta` that is empty then goes too, if any of them was there.
    pub fn remove_meta(&mut self, keys: &[&str]) -> &mut Self {
        self.body.remove_meta(keys);
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
        self.body.set(key, raw);
        self
    }

    /// Takes any member out of params.
    pub fn remove(&mut self, key: &str) -> &mut Self {
        self.body.remove(key);
        self
    }

    /// Writes the changes into `splice`, in places of the message's frame.
    pub fn finish(&self, splice: &mut Splice) {
        if let (Some(text), Some(span)) = (&self.target, self.params.target_span()) {
            splice.replace(span, text.as_bytes());
        }
        let made = self.body.finish(self.params.members(), self.params.meta(), splice);
        if let (Some(object), Some(method)) = (made, self.params.message().method_span()) {
            let mut added = b",".to_vec();
            Object::write_members(&mut added, |message| {
                message.raw("params", &object);
            });
            // One past the closing quote of the method.
            splice.insert(method.end + 1, &added);
        }
    }
}
