//! Resource URIs wherever a server's messages contain them, and their rewriting.
//!
//! Looks only where the protocol puts such URIs: contents, resource links, embedded resources (also
//! in tool results inside sampling messages), skills and directories, `_meta.ui.resourceUri`,
//! `resources/updated`.

use std::sync::LazyLock;

use bytes::Bytes;
use json::{JsonError, Member, Span, Splice, quote};
use memchr::memmem::Finder;

use model::ListKind;

/// The greatest depth of content inside content that is searched.
const DEEPEST: usize = 4;

/// Writes into `splice` what `map` gives for each URI in a result of `method`, or in a request or
/// notification from a server (then `method` is its own). URIs for which `map` gives nothing stay.
///
/// # Errors
/// [`JsonError`] when an object on the way has a member twice.
pub(super) fn map_uris(
    (frame, body): (&[u8], Span),
    method: &str,
    map: &dyn Fn(&str) -> Option<String>,
    splice: &mut Splice,
) -> Result<(), JsonError> {
    if !may_hold_uris(body.of(frame)) {
        return Ok(());
    }
    let mut walk = Walk { frame, map, splice };
    match method {
        "resources/read" => walk.list(body, "contents", Walk::resource),
        "tools/call" | "tasks/result" => walk.result(body),
        "prompts/get" | "sampling/createMessage" => walk.list(body, "messages", |walk, message| {
            walk.inside(message, "content", |walk, content| walk.content(content, 0))
        }),
        "notifications/resources/updated" => walk.uri_of(body, "uri"),
        "skills/get" => walk.inside(body, "skill", Walk::skill),
        "resources/directory/read" => walk.list(body, "resources", Walk::resource),
        _ => Ok(()),
    }
}

/// An item of a list with the URIs in its `_meta` mapped; `None` if it stays as it is. The caller
/// maps the item's own key.
#[must_use]
pub fn rewrite_item(
    kind: ListKind,
    raw: &Bytes,
    map: &dyn Fn(&str) -> Option<String>,
) -> Option<Bytes> {
    static SIGNS: LazyLock<[Finder<'static>; 2]> =
        LazyLock::new(|| [Finder::new("esourceUri\""), Finder::new("\\u")]);
    let mut splice = Splice::new();
    let mut walk = Walk {
        frame: raw,
        map,
        splice: &mut splice,
    };
    // A URI that an object names twice cannot be mapped.
    match kind {
        ListKind::Tools if SIGNS.iter().any(|sign| sign.find(raw).is_some()) => {
            walk.meta(Span::all(raw)).ok()?;
        }
        ListKind::Skills => walk.files(Span::all(raw)).ok()?,
        ListKind::Tools | ListKind::Prompts | ListKind::Resources | ListKind::Templates => {
            return None;
        }
    }
    (!splice.is_empty()).then(|| splice.apply(raw))
}

/// Whether the text contains the end of `uri` or `resourceUri`, or an escape that could hide one.
pub(super) fn may_hold_uris(raw: &[u8]) -> bool {
    static SIGNS: LazyLock<[Finder<'static>; 2]> =
        LazyLock::new(|| [Finder::new("ri\""), Finder::new("\\u")]);
    SIGNS.iter().any(|sign| sign.find(raw).is_some())
}

struct Walk<'a> {
    frame: &'a [u8],
    map: &'a dyn Fn(&str) -> Option<String>,
    splice: &'a mut Splice,
}

impl<'a> Walk<'a> {
    fn result(&mut self, at: Span) -> Result<(), JsonError> {
        self.meta(at)?;
        self.inside(at, "content", |walk, content| walk.content(content, 0))
    }

    /// One block of content, or a list of them.
    fn content(&mut self, at: Span, depth: usize) -> Result<(), JsonError> {
        match at.of(self.frame).first() {
            Some(b'[') => {
                for block in json::elements(self.frame, at)? {
                    self.block(block, depth)?;
                }
                Ok(())
            }
            Some(_) | None => self.block(at, depth),
        }
    }

    fn block(&mut self, at: Span, depth: usize) -> Result<(), JsonError> {
        let Some(kind) = self.member(at, "type")? else {
            return Ok(());
        };
        match json::text(kind.raw).as_deref() {
            Some("resource_link") => self.resource(at),
            Some("resource") => {
                self.meta(at)?;
                self.inside(at, "resource", Walk::resource)
            }
            Some("tool_result") if depth < DEEPEST => {
                self.inside(at, "content", |walk, content| {
                    walk.content(content, depth + 1)
                })
            }
            Some(_) | None => self.meta(at),
        }
    }

    /// An object with a `uri` of its own.
    fn resource(&mut self, at: Span) -> Result<(), JsonError> {
        self.uri_of(at, "uri")?;
        self.meta(at)
    }

    /// The entry of a skill.
    fn skill(&mut self, at: Span) -> Result<(), JsonError> {
        self.uri_of(at, "uri")?;
        self.files(at)
    }

    /// The files of a skill: a list, unless its content is made anew for each reading.
    fn files(&mut self, at: Span) -> Result<(), JsonError> {
        self.list(at, "resources", |walk, file| walk.uri_of(file, "uri"))
    }

    /// `_meta.ui.resourceUri`, and its older flat spelling.
    fn meta(&mut self, at: Span) -> Result<(), JsonError> {
        self.inside(at, "_meta", |walk, meta| {
            walk.uri_of(meta, "ui/resourceUri")?;
            walk.inside(meta, "ui", |walk, ui| walk.uri_of(ui, "resourceUri"))
        })
    }

    fn uri_of(&mut self, at: Span, key: &str) -> Result<(), JsonError> {
        if let Some(member) = self.member(at, key)?
            && let Some(uri) = json::text(member.raw)
            && let Some(mapped) = (self.map)(&uri)
            && mapped != *uri
        {
            self.splice.replace(member.span, quote(&mapped).as_bytes());
        }
        Ok(())
    }

    fn list(
        &mut self,
        at: Span,
        key: &str,
        mut each: impl FnMut(&mut Self, Span) -> Result<(), JsonError>,
    ) -> Result<(), JsonError> {
        self.meta(at)?;
        let Some(list) = self
            .member(at, key)?
            .filter(|list| list.raw.first() == Some(&b'['))
        else {
            return Ok(());
        };
        for element in json::elements(self.frame, list.span)? {
            each(self, element)?;
        }
        Ok(())
    }

    fn inside(
        &mut self,
        at: Span,
        key: &str,
        then: impl FnOnce(&mut Self, Span) -> Result<(), JsonError>,
    ) -> Result<(), JsonError> {
        match self.member(at, key)? {
            Some(member) => then(self, member.span),
            None => Ok(()),
        }
    }

    /// A member of what lies at `at`; `None` if that is no object.
    fn member(&self, at: Span, key: &str) -> Result<Option<Member<'a>>, JsonError> {
        if !json::is_object(at.of(self.frame)) {
            return Ok(None);
        }
        Ok(json::members(self.frame, at)?.get(key))
    }
}

#[cfg(test)]
mod tests;
