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
    /// As JSON text, with quotes.
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
    /// Gives the target (name, uri, task id, or what `ref` names) another text. Without a target it has no effect.
    pub(crate) fn set_target(&mut self, text: &str) -> &mut Self {
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

    /// Sets a key of `_meta` to valid JSON; makes `_meta` and params if there are none.
    pub fn set_meta(&mut self, key: &str, raw: &[u8]) -> &mut Self {
        self.body.set_meta(key, raw);
        self
    }

    /// Removes keys from `_meta`, and with the last of them `_meta` itself.
    pub(crate) fn remove_meta(&mut self, keys: &[&str]) -> &mut Self {
        self.body.remove_meta(keys);
        self
    }

    /// Sets any member of params to valid JSON. Not for `_meta` and not for the target.
    pub(crate) fn set(&mut self, key: &str, raw: &[u8]) -> &mut Self {
        self.body.set(key, raw);
        self
    }

    /// Removes any member of params.
    pub(crate) fn remove(&mut self, key: &str) -> &mut Self {
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
