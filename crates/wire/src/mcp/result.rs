//! Results of requests: the members that the eras differ in, and their edits.

use std::borrow::Cow;

use json::{JsonError, Member, Members, Splice};

use super::body::BodyEdit;
use super::meta;
use super::method::MethodRow;
use crate::rpc::{Id, Message};

/// The type of a result (2026-07-28, `resultType`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResultType<'m> {
    /// The end of the request; also without `resultType`.
    Complete,
    /// The server asks something first.
    InputRequired,
    /// Work goes on as a task (tasks extension).
    Task,
    /// A type of an extension that the gateway does not know.
    Other(Cow<'m, str>),
}

/// The result that ends a listen request (2026-07-28, "Subscriptions").
#[must_use]
pub fn listened(request: &Id) -> Vec<u8> {
    json::object(|result| {
        result.text("resultType", "complete").object("_meta", |keys| {
            keys.raw(meta::SUBSCRIPTION_ID, request.raw());
        });
    })
}

/// The result of one message.
#[derive(Debug, Clone)]
pub struct ResultView<'m> {
    members: Members<'m>,
    meta: Option<Members<'m>>,
}

impl<'m> ResultView<'m> {
    /// Reads it.
    ///
    /// # Errors
    /// [`JsonError`] when the message has no result, it is no object, or it or its `_meta` has a member twice.
    pub(crate) fn read(message: &'m Message) -> Result<Self, JsonError> {
        let span = message.result().and(message.body_span()).ok_or(JsonError::NotAnObject)?;
        let members = json::members(message.frame(), span)?;
        let meta = match members.get("_meta").filter(|member| member.raw != b"null") {
            Some(member) => Some(json::members(message.frame(), member.span)?),
            None => None,
        };
        Ok(Self { members, meta })
    }

    /// The type of the result.
    #[must_use]
    pub(crate) fn result_type(&self) -> ResultType<'m> {
        match self.get("resultType").and_then(|member| json::text(member.raw)) {
            None => ResultType::Complete,
            Some(text) => match &*text {
                "complete" => ResultType::Complete,
                "input_required" => ResultType::InputRequired,
                "task" => ResultType::Task,
                _ => ResultType::Other(text),
            },
        }
    }

    /// Any member, raw.
    #[must_use]
    pub(crate) fn get(&self, key: &str) -> Option<Member<'m>> {
        self.members.get(key)
    }

    /// Edits of this result; none yet.
    #[must_use]
    pub(crate) fn edit(&self) -> ResultEdit<'_, 'm> {
        ResultEdit { view: self, body: BodyEdit::default() }
    }
}

/// Changes to one result, collected and then written into a [`Splice`] at once.
#[derive(Debug, Clone)]
pub struct ResultEdit<'v, 'm> {
    view: &'v ResultView<'m>,
    body: BodyEdit,
}

impl ResultEdit<'_, '_> {
    /// Adds the members of a complete modern result that this one lacks: `resultType`, and for methods with cacheable
    /// results `ttlMs` 0 and `cacheScope` private.
    pub(crate) fn complete(&mut self, method: Option<&MethodRow>) -> &mut Self {
        let mut wanted: Vec<(&str, &[u8])> = vec![("resultType", b"\"complete\"")];
        if method.is_some_and(|method| method.cached) {
            wanted.push(("ttlMs", b"0"));
            wanted.push(("cacheScope", b"\"private\""));
        }
        for (key, raw) in wanted {
            if self.view.get(key).is_none() {
                self.body.set(key, raw);
            }
        }
        self
    }

    /// Removes the members that legacy results do not have: `resultType`, `ttlMs`, `cacheScope` and the modern keys of `_meta`.
    pub(crate) fn plain(&mut self) -> &mut Self {
        for key in ["resultType", "ttlMs", "cacheScope"] {
            self.body.remove(key);
        }
        self.body.remove_meta(&meta::ANSWER_KEYS);
        self
    }

    /// Writes the changes into `splice`, in places of the message's frame.
    pub(crate) fn finish(&self, splice: &mut Splice) {
        // The message has a body, so none is to be added.
        let _ = self.body.finish(Some(&self.view.members), self.view.meta.as_ref(), splice);
    }
}
