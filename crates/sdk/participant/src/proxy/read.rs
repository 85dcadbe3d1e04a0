//! Results of the proxy tool (section 3), decoded by their annotations (section 4). Bytes are
//! spliced, so unknown members survive.

use json::{MemberChange, Members, Span};
use model::ListKind;
use serde_json::value::RawValue;
use wire::mcp::proxy::ProxySubject;

use super::definition::{Definition, owned, text};
use super::error::ProxyError;

/// The media type of data, and of resources that the tool re-encoded.
const JSON: &str = "application/json";
/// The annotations with the type's name: neutral ones first, then Magg's (section 4.1.1).
const TYPES: [&str; 3] = ["dataType", "objectType", "pythonType"];
/// The annotations that say whether the data is a list.
const MANY: [&str; 3] = ["isArray", "multiple", "many"];
/// The type of the data of a prompt (section 3.2.3).
const PROMPT_RESULT: &str = "GetPromptResult";

/// One page of a list.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) entries: Vec<Definition>,
    /// The number of all entries, if the tool named it.
    pub(super) total: Option<usize>,
}

/// The result of `list`; `None` without content, as Magg answers for an empty list.
pub(super) fn list(result: &[u8], subject: ProxySubject) -> Result<Option<Page>, ProxyError> {
    let Some(item) = query(result, subject, "list")? else {
        return Ok(None);
    };
    let total = item
        .notes
        .get("totalCount")
        .and_then(|total| json::integer(total.raw));
    let among = item.lists(subject)?;
    let entries = match item.is_many()? {
        true => elements(item.data.as_bytes(), Span::all(item.data.as_bytes()))?
            .iter()
            .map(|span| Definition::read(span.of(item.data.as_bytes()), &among))
            .collect::<Result<_, _>>()?,
        false => vec![Definition::read(item.data.as_bytes(), &among)?],
    };
    Ok(Some(Page {
        entries,
        total: total.and_then(|total| usize::try_from(total).ok()),
    }))
}

/// The result of `info`.
pub(super) fn info(result: &[u8], subject: ProxySubject) -> Result<Definition, ProxyError> {
    let item =
        query(result, subject, "info")?.ok_or(ProxyError::Unreadable("there is no content"))?;
    if item.is_many()? {
        return Err(ProxyError::Unreadable("the answer to `info` is a list"));
    }
    Definition::read(item.data.as_bytes(), &item.lists(subject)?)
}

/// The result of a call of a resource, as that of `resources/read`: objectified contents have their
/// media type again, though not their white space (section 4.2).
pub(super) fn resource(result: &[u8]) -> Result<Box<RawValue>, ProxyError> {
    let (members, content) = complete(result)?;
    let mut contents = Vec::new();
    for item in content {
        let resource =
            json::at(item.of(result), &["resource"]).filter(|resource| json::is_object(resource));
        let resource = resource.ok_or(ProxyError::Unreadable("an item is no embedded resource"))?;
        contents.push(restored(resource)?);
    }
    let contents = [b"[", &*contents.join(&b","[..]), b"]"].concat();
    let changes: [MemberChange<'_>; 3] = [
        ("content", None),
        ("isError", None),
        ("contents", Some(&contents)),
    ];
    let whole = json::edited(members.object().of(result), &changes);
    owned(&whole.map_err(|_| ProxyError::Unreadable("the result is no object"))?)
}

/// A content of a resource with the media type that it had at its server.
fn restored(resource: &[u8]) -> Result<Vec<u8>, ProxyError> {
    let unreadable = |_| ProxyError::Unreadable("an embedded resource is no object");
    let members = json::members(resource, Span::all(resource)).map_err(unreadable)?;
    match members
        .get("contentType")
        .filter(|old| old.text().is_some())
    {
        Some(old) if text(&members, "mimeType").as_deref() == Some(JSON) => json::edited(
            resource,
            &[("mimeType", Some(old.raw)), ("contentType", None)],
        )
        .map_err(unreadable),
        _ => Ok(resource.to_vec()),
    }
}

/// The result of a call of a prompt, as that of `prompts/get`.
pub(super) fn prompt(result: &[u8]) -> Result<Box<RawValue>, ProxyError> {
    let item = query(result, ProxySubject::Prompt, "call")?
        .ok_or(ProxyError::Unreadable("there is no content"))?;
    if let Some(name) = item
        .type_name()
        .filter(|name| names(name).ne([PROMPT_RESULT]))
    {
        return Err(ProxyError::UnexpectedType(name));
    }
    let data = item.data.as_bytes();
    let messages =
        json::at(data, &["messages"]).and_then(|raw| json::elements(raw, Span::all(raw)).ok());
    messages.ok_or(ProxyError::Unreadable("a prompt has no messages"))?;
    owned(data)
}

/// Whether the result of a call of a tool is one: it asks for nothing and is no task. An error of
/// the tool is a result.
pub(super) fn is_final(result: &[u8]) -> bool {
    json::at(result, &["content"]).is_some()
}

/// The one embedded resource of a query or a prompt.
struct Item<'a> {
    /// JSON, unescaped.
    data: String,
    notes: Members<'a>,
}

impl Item<'_> {
    fn type_name(&self) -> Option<String> {
        TYPES
            .iter()
            .find_map(|key| text(&self.notes, key))
            .map(std::borrow::Cow::into_owned)
    }

    /// Whether the data is a list, by the annotation; where it is absent, as in Magg's `info`, by
    /// the data.
    fn is_many(&self) -> Result<bool, ProxyError> {
        let said = MANY
            .iter()
            .find_map(|key| self.notes.get(key))
            .map(|said| said.raw);
        let is_array = self.data.trim_start().starts_with('[');
        match said {
            Some(b"true") if !is_array => Err(ProxyError::Unreadable("the data is no list")),
            Some(b"false") if is_array => Err(ProxyError::Unreadable("the data is a list")),
            _ => Ok(is_array),
        }
    }

    /// The lists of which the data may have entries, templates first: they too may have a member
    /// `uri`.
    fn lists(&self, subject: ProxySubject) -> Result<Vec<ListKind>, ProxyError> {
        let possible: &[(&str, ListKind)] = match subject {
            ProxySubject::Tool => &[("Tool", ListKind::Tools)],
            ProxySubject::Prompt => &[("Prompt", ListKind::Prompts)],
            ProxySubject::Resource => &[
                ("ResourceTemplate", ListKind::Templates),
                ("Resource", ListKind::Resources),
            ],
        };
        let Some(name) = self.type_name() else {
            return Ok(possible.iter().map(|(_, list)| *list).collect());
        };
        if let Some(other) =
            names(&name).find(|name| possible.iter().all(|(known, _)| known != name))
        {
            return Err(ProxyError::UnexpectedType(other.to_owned()));
        }
        let named = |known: &str| names(&name).any(|name| name == known);
        Ok(possible
            .iter()
            .filter(|(known, _)| named(known))
            .map(|(_, list)| *list)
            .collect())
    }
}

/// The types of a name: simple, qualified, or a union (section 4.1.2).
fn names(name: &str) -> impl Iterator<Item = &str> {
    name.split('|')
        .map(|part| part.trim().rsplit('.').next().unwrap_or_default())
}

/// The embedded resource of an operation that answers with exactly one; `None` without content.
fn query<'a>(
    result: &'a [u8],
    subject: ProxySubject,
    action: &str,
) -> Result<Option<Item<'a>>, ProxyError> {
    let (_, content) = complete(result)?;
    let item = match *content {
        [] => return Ok(None),
        [item] => item,
        [..] => return Err(ProxyError::Unreadable("there is more than one item")),
    };
    let item =
        json::members(result, item).map_err(|_| ProxyError::Unreadable("an item is no object"))?;
    let notes = item
        .get("annotations")
        .and_then(|notes| json::members(result, notes.span).ok());
    let notes = notes.ok_or(ProxyError::Unreadable("there are no annotations"))?;
    if text(&notes, "proxyAction").as_deref() != Some(action)
        || text(&notes, "proxyType").as_deref() != Some(subject.as_str())
    {
        return Err(ProxyError::Unreadable(
            "the annotations are those of another operation",
        ));
    }
    let resource = item
        .get("resource")
        .map(|resource| resource.raw)
        .unwrap_or_default();
    let data = json::at(resource, &["text"]).and_then(json::text);
    let data = data
        .ok_or(ProxyError::Unreadable(
            "the item is no embedded text resource",
        ))?
        .into_owned();
    json::check(data.as_bytes()).map_err(|_| ProxyError::Unreadable("the text is not JSON"))?;
    Ok(Some(Item { data, notes }))
}

/// The members and the content items of a final result that is no error.
fn complete(result: &[u8]) -> Result<(Members<'_>, Vec<Span>), ProxyError> {
    let members = json::members(result, Span::all(result))
        .map_err(|_| ProxyError::Unreadable("the result is no object"))?;
    let Some(content) = members.get("content") else {
        return Err(ProxyError::Unfinished(owned(result)?));
    };
    let content = elements(result, content.span)?;
    if members
        .get("isError")
        .is_some_and(|error| error.raw == b"true")
    {
        let texts = content
            .iter()
            .filter_map(|item| json::at(item.of(result), &["text"]).and_then(json::text));
        return Err(ProxyError::Failed(texts.collect::<Vec<_>>().join("\n")));
    }
    Ok((members, content))
}

fn elements(frame: &[u8], within: Span) -> Result<Vec<Span>, ProxyError> {
    json::elements(frame, within).map_err(|_| ProxyError::Unreadable("a list is no array"))
}
