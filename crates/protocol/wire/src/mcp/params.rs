//! Params of a request or notification: the members that route it, read in place.
//!
//! All other members stay as they were written.

use std::borrow::Cow;

use json::{JsonError, Member, Members, Span};
use model::LogLevel;

use crate::mcp::meta;
use crate::mcp::method::{MethodRow, TargetKind, lookup};
use crate::rpc::{Id, Malformed, Message};
use crate::twin::twin_of;

/// A target among the params, with its place in the frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Field<'m> {
    /// Never `Ref`, but what the `ref` names.
    pub(crate) kind: TargetKind,
    text: Cow<'m, str>,
    pub(crate) span: Span,
}

/// The params of one message.
///
/// The reader rejects duplicates in `params`, in `_meta` and in `ref`, after unescaping (RFC 8259,
/// section 4).
#[derive(Debug, Clone)]
pub struct Params<'m> {
    message: &'m Message,
    method: &'m str,
    known: Option<&'static MethodRow>,
    /// The members of params, if there are params.
    pub(crate) members: Option<Members<'m>>,
    /// The members of `_meta`, if there is one.
    pub(crate) meta: Option<Members<'m>>,
    target: Option<Field<'m>>,
}

impl<'m> Params<'m> {
    /// Reads them.
    ///
    /// # Errors
    /// [`Malformed`] with the message's id: -32600 when a member occurs twice, -32602 when params
    /// or `_meta` is not an object, when the target that the method needs is missing or is no
    /// string, or when the progress token is neither string nor integer.
    pub fn read(message: &'m Message) -> Result<Self, Malformed> {
        let id = || message.id().cloned();
        let method = message.method();
        let known = lookup(method);
        let mut params = Self {
            message,
            method,
            known,
            members: None,
            meta: None,
            target: None,
        };
        if let Some(span) = message.params().and(message.body_span()) {
            let members = message
                .params_members(span)
                .map_err(|error| no_object("params", &error, id()))?;
            refuse_twins(&members, &READ, message.id())?;
            if let Some(member) = members.get("_meta").filter(|member| member.raw != b"null") {
                let meta = message.meta_members(member.span);
                params.meta = Some(meta.map_err(|error| no_object("_meta", &error, id()))?);
            }
            params.members = Some(members);
        }
        // A method that the request's era does not have is refused as such, even if its params are
        // wrong too.
        let has = known.filter(|method| method.modern || !params.is_modern());
        params.target = params.find_target(has.map_or(TargetKind::None, |method| method.target))?;
        if params.meta_raw(meta::PROGRESS_TOKEN).is_some() && params.progress_token().is_none() {
            return Err(Malformed::params(
                "`progressToken` must be a string or an integer",
                id(),
            ));
        }
        Ok(params)
    }

    /// The message that they belong to.
    #[must_use]
    pub fn message(&self) -> &'m Message {
        self.message
    }

    /// The message's method, unescaped; empty for answers.
    #[must_use]
    pub fn method(&self) -> &'m str {
        self.method
    }

    /// The method's row in the method table.
    #[must_use]
    pub fn known(&self) -> Option<&'static MethodRow> {
        self.known
    }

    /// The target of the request, by its method's rule; `None` for methods without a target.
    #[must_use]
    pub fn target(&self) -> Option<&str> {
        self.target.as_ref().map(|field| &*field.text)
    }

    /// The kind of the target: never `Ref`, but what the `ref` names.
    pub(crate) fn target_kind(&self) -> TargetKind {
        self.target
            .as_ref()
            .map_or(TargetKind::None, |field| field.kind)
    }

    /// Any member of params, raw.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Member<'m>> {
        self.members.as_ref()?.get(key)
    }

    /// A member of params that is a string.
    #[must_use]
    pub(crate) fn text(&self, key: &str) -> Option<Cow<'m, str>> {
        self.get(key)?.text()
    }

    /// `params.requestId` of `notifications/cancelled`.
    #[must_use]
    pub fn request_id(&self) -> Option<Id> {
        Id::read(self.get("requestId")?.raw)
    }

    /// The progress token: of a request in `_meta`, of `notifications/progress` in params.
    #[must_use]
    pub fn progress_token(&self) -> Option<Id> {
        let raw = self.progress_member()?.raw;
        // Servers that write every number as a float do so here too.
        if self.method == "notifications/progress" {
            Id::read_answered(raw)
        } else {
            Id::read(raw)
        }
    }

    /// `params.protocolVersion` of `initialize`, else the modern key of `_meta`.
    #[must_use]
    pub fn protocol_version(&self) -> Option<Cow<'m, str>> {
        match self.method {
            "initialize" => self.text("protocolVersion"),
            _ => self.meta_text(meta::PROTOCOL_VERSION),
        }
    }

    /// The client's capabilities, raw: of `initialize` in params, else the modern key of `_meta`.
    #[must_use]
    pub fn client_capabilities(&self) -> Option<&'m [u8]> {
        self.initial("capabilities", meta::CLIENT_CAPABILITIES)
    }

    /// The client's name and version, raw: of `initialize` in params, else the modern key of
    /// `_meta`.
    #[must_use]
    pub fn client_info(&self) -> Option<&'m [u8]> {
        self.initial("clientInfo", meta::CLIENT_INFO)
    }

    /// The lowest level of the log messages that a modern request wants; `None` if it names none,
    /// or none that there is.
    #[must_use]
    pub fn log_level(&self) -> Option<LogLevel> {
        self.meta_text(meta::LOG_LEVEL)?.parse().ok()
    }

    /// Whether the request has a key of the modern era.
    #[must_use]
    pub fn is_modern(&self) -> bool {
        self.meta_raw(meta::PROTOCOL_VERSION).is_some()
    }

    /// Whether the request is a retry with answers to questions.
    #[must_use]
    pub fn request_state(&self) -> Option<&'m [u8]> {
        self.get("requestState").map(|member| member.raw)
    }

    /// A value of `_meta`, raw.
    #[must_use]
    pub fn meta_raw(&self, key: &str) -> Option<&'m [u8]> {
        Some(self.meta.as_ref()?.get(key)?.raw)
    }

    /// A value of `_meta` that is a string.
    #[must_use]
    pub(crate) fn meta_text(&self, key: &str) -> Option<Cow<'m, str>> {
        self.meta.as_ref()?.get(key)?.text()
    }

    fn initial(&self, of_initialize: &str, of_meta: &str) -> Option<&'m [u8]> {
        match self.method {
            "initialize" => self.get(of_initialize).map(|member| member.raw),
            _ => self.meta_raw(of_meta),
        }
    }

    fn progress_member(&self) -> Option<Member<'m>> {
        match self.method {
            "notifications/progress" => self.get(meta::PROGRESS_TOKEN),
            _ => self.meta.as_ref()?.get(meta::PROGRESS_TOKEN),
        }
    }

    /// The place of the progress token of a request.
    pub(crate) fn progress_span(&self) -> Option<Span> {
        self.progress_member().map(|member| member.span)
    }

    /// The place of `_meta`.
    pub(crate) fn meta_span(&self) -> Option<Span> {
        self.meta.as_ref().map(Members::object)
    }

    /// The place of the target, quotes included.
    pub(crate) fn target_span(&self) -> Option<Span> {
        self.target.as_ref().map(|field| field.span)
    }

    fn find_target(&self, kind: TargetKind) -> Result<Option<Field<'m>>, Malformed> {
        Targets {
            frame: self.message.frame(),
            members: self.members.as_ref(),
            id: self.message.id(),
        }
        .find(kind)
    }
}

/// The params of a request that has no message around it: what an edit of them needs.
pub(crate) struct BareParams<'m> {
    pub(crate) members: Members<'m>,
    pub(crate) meta: Option<Members<'m>>,
    pub(crate) target: Option<Field<'m>>,
}

impl<'m> BareParams<'m> {
    /// Reads the params of a request of this method.
    ///
    /// # Errors
    /// As [`Params::read`], but for the progress token.
    pub(crate) fn read(method: &str, params: &'m [u8]) -> Result<Self, Malformed> {
        let members = json::members(params, Span::all(params))
            .map_err(|error| no_object("params", &error, None))?;
        refuse_twins(&members, &READ, None)?;
        let meta = members.get("_meta").filter(|meta| meta.raw != b"null");
        let meta = meta
            .map(|meta| json::members(params, meta.span))
            .transpose();
        let meta = meta.map_err(|error| no_object("_meta", &error, None))?;
        let targets = Targets {
            frame: params,
            members: Some(&members),
            id: None,
        };
        let target = targets.find(lookup(method).map_or(TargetKind::None, |row| row.target))?;
        Ok(Self {
            members,
            meta,
            target,
        })
    }
}

impl Field<'_> {
    /// The target as text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

/// Params among which a target is looked for.
struct Targets<'t, 'm> {
    frame: &'m [u8],
    members: Option<&'t Members<'m>>,
    /// The id of the request, for errors.
    id: Option<&'t Id>,
}

impl<'m> Targets<'_, 'm> {
    fn find(&self, kind: TargetKind) -> Result<Option<Field<'m>>, Malformed> {
        let key = match (kind, kind.key()) {
            (TargetKind::Ref, _) => return self.find_ref().map(Some),
            (_, Some(key)) => key,
            (_, None) => return Ok(None),
        };
        let wrong = || self.malformed(&format!("`params.{key}` must be a string"));
        let member = self.get(key).ok_or_else(wrong)?;
        let text = member.text().ok_or_else(wrong)?;
        Ok(Some(Field {
            kind,
            text,
            span: member.span,
        }))
    }

    fn get(&self, key: &str) -> Option<Member<'m>> {
        self.members?.get(key)
    }

    fn malformed(&self, why: &str) -> Malformed {
        Malformed::params(why, self.id.cloned())
    }

    fn find_ref(&self) -> Result<Field<'m>, Malformed> {
        let wrong = |why: &str| self.malformed(why);
        let reference = self
            .get("ref")
            .ok_or_else(|| wrong("`params.ref` is missing"))?;
        let members = json::members(self.frame, reference.span)
            .map_err(|error| no_object("params.ref", &error, self.id.cloned()))?;
        refuse_twins(&members, &["type", "name", "uri"], self.id)?;
        let kind = members.get("type").and_then(|kind| kind.text());
        let (kind, key) = match kind.as_deref() {
            Some("ref/prompt") => (TargetKind::Name, "name"),
            Some("ref/resource") => (TargetKind::Uri, "uri"),
            Some(_) | None => {
                return Err(wrong(
                    "`params.ref.type` must be `ref/prompt` or `ref/resource`",
                ));
            }
        };
        let field = members
            .get(key)
            .and_then(|member| Some((member.text()?, member.span)));
        let (text, span) =
            field.ok_or_else(|| wrong("`params.ref` must name a prompt or a resource"))?;
        Ok(Field { kind, text, span })
    }
}

/// The members of params by which a request is judged, and what it is judged about.
const READ: [&str; 11] = [
    "name",
    "arguments",
    "uri",
    "_meta",
    "ref",
    "argument",
    "taskId",
    "task",
    "cursor",
    "requestState",
    "inputResponses",
];

/// Refuses members that differ from one of these in letter case alone.
fn refuse_twins(
    members: &Members<'_>,
    exact: &[&'static str],
    id: Option<&Id>,
) -> Result<(), Malformed> {
    for (key, _) in members.iter() {
        if let Some(meant) = twin_of(key, exact) {
            let why = format!("the member {key:?} could be taken for `{meant}`");
            return Err(Malformed::request(why, id.cloned()));
        }
    }
    Ok(())
}

/// The fault of a member that must be an object.
fn no_object(what: &str, error: &JsonError, id: Option<Id>) -> Malformed {
    match error {
        JsonError::NotAnObject => Malformed::params(format!("`{what}` must be an object"), id),
        other => Malformed::json(other, id),
    }
}

#[cfg(test)]
mod tests;
