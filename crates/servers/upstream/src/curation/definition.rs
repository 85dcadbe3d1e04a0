//! Definition of a tool as callers see it: other texts, and arguments cut from its schema. All
//! other bytes stay.

use bytes::Bytes;
use json::{JsonError, MemberChange, Span};
use wire::mcp::list::Item;

use super::tool::CuratedTool;

/// The deepest nesting of `allOf`, `anyOf`, `oneOf`, `if`, `then` and `else` in which arguments are
/// cut.
pub(super) const BRANCHES_DEPTH_MAX: usize = 16;

/// The arguments that are cut from a schema.
#[derive(Clone, Copy)]
pub(super) struct Hidden<'h> {
    /// Whether an argument of this name is.
    pub(super) argument: &'h dyn Fn(&str) -> bool,
    /// Whether it has a preset, so that every call has it.
    pub(super) preset: &'h dyn Fn(&str) -> bool,
}

/// An argument that a schema names.
pub(super) struct Argument {
    /// Its name.
    pub(super) name: String,
    /// Whether every call must have it.
    pub(super) is_required: bool,
}

/// The arguments among the properties of a schema; `None` if it has none, so that it takes any.
pub(super) fn arguments(schema: &[u8]) -> Option<Vec<Argument>> {
    let members = json::members(schema, Span::all(schema)).ok()?;
    let properties = json::members(schema, members.get("properties")?.span).ok()?;
    let required = members
        .get("required")
        .map(|required| texts(required.raw))
        .unwrap_or_default();
    let mut arguments = Vec::new();
    for (name, _) in properties.iter() {
        arguments.push(Argument {
            name: name.to_owned(),
            is_required: required.iter().any(|one| one == name),
        });
    }
    Some(arguments)
}

/// A definition with the texts of the configuration and this schema; `None` if it stays as it is.
pub(super) fn rewritten(
    item: &Item,
    tool: &CuratedTool,
    schema: Option<&[u8]>,
) -> Result<Option<Bytes>, JsonError> {
    let [title, description] =
        [&tool.title, &tool.description].map(|text| text.as_deref().map(json::quote));
    let annotations = if tool.annotations.is_empty() {
        None
    } else {
        let written = item.get("annotations").filter(|raw| json::is_object(raw));
        let changes = tool
            .annotations
            .iter()
            .map(|(key, value)| (key.as_str(), Some(value.as_bytes())));
        Some(json::edited(
            written.as_deref().unwrap_or(b"{}"),
            &changes.collect::<Vec<_>>(),
        )?)
    };
    let changes = [
        ("title", title.as_ref().map(|text| text.as_bytes())),
        (
            "description",
            description.as_ref().map(|text| text.as_bytes()),
        ),
        ("annotations", annotations.as_deref()),
        ("inputSchema", schema),
    ];
    let changes: Vec<MemberChange<'_>> = changes
        .into_iter()
        .filter(|(_, raw)| raw.is_some())
        .collect();
    if changes.is_empty() && !tool.cuts() {
        return Ok(None);
    }
    json::edited(&item.raw, &changes).map(|raw| Some(raw.into()))
}

/// A schema without these arguments; `None` if it names none of them.
pub(super) fn cut(schema: &[u8], hidden: Hidden<'_>) -> Result<Option<Vec<u8>>, JsonError> {
    cut_at(schema, hidden, 0)
}

/// A schema within the tool's without the hidden arguments; `None` if it stays as it is. `required`
/// in a branch keeps what no call can have, so that the branch stays one that no call fits.
fn cut_at(schema: &[u8], hidden: Hidden<'_>, depth: usize) -> Result<Option<Vec<u8>>, JsonError> {
    if !json::is_object(schema) || depth > BRANCHES_DEPTH_MAX {
        return Ok(None);
    }
    let is_needless = if depth == 0 {
        hidden.argument
    } else {
        hidden.preset
    };
    let members = json::members(schema, Span::all(schema))?;
    let mut changes = Vec::new();
    for (key, member) in members.iter() {
        let changed = match key {
            "properties" | "dependentSchemas" => without_members(member.raw, hidden.argument)?,
            "required" => without_texts(member.raw, is_needless)?,
            "dependentRequired" | "dependencies" => {
                let rest = without_members(member.raw, hidden.argument)?;
                let of = rest.as_deref().unwrap_or(member.raw);
                each_member(of, |raw| without_texts(raw, is_needless))?.or(rest)
            }
            "allOf" | "anyOf" | "oneOf" => {
                each_element(member.raw, |raw| cut_at(raw, hidden, depth + 1))?
            }
            "if" | "then" | "else" => cut_at(member.raw, hidden, depth + 1)?,
            _ => None,
        };
        changes.extend(changed.map(|raw| (key.to_owned(), raw)));
    }
    if changes.is_empty() {
        return Ok(None);
    }
    let changes: Vec<MemberChange<'_>> = changes
        .iter()
        .map(|(key, raw)| (key.as_str(), Some(&**raw)))
        .collect();
    json::edited(schema, &changes).map(Some)
}

/// An object without the members of these names; `None` if it has none of them, or is no object.
fn without_members(
    object: &[u8],
    is_hidden: &dyn Fn(&str) -> bool,
) -> Result<Option<Vec<u8>>, JsonError> {
    if !json::is_object(object) {
        return Ok(None);
    }
    let members = json::members(object, Span::all(object))?;
    let changes: Vec<MemberChange<'_>> = members
        .iter()
        .filter(|(name, _)| is_hidden(name))
        .map(|(name, _)| (name, None))
        .collect();
    if changes.is_empty() {
        Ok(None)
    } else {
        json::edited(object, &changes).map(Some)
    }
}

/// An array without these texts; `None` if it has none of them, or is no array.
fn without_texts(
    array: &[u8],
    is_hidden: &dyn Fn(&str) -> bool,
) -> Result<Option<Vec<u8>>, JsonError> {
    let Ok(elements) = json::elements(array, Span::all(array)) else {
        return Ok(None);
    };
    let mut rest = Vec::with_capacity(elements.len());
    for span in &elements {
        let raw = span.of(array);
        if !json::text(raw).is_some_and(|text| is_hidden(&text)) {
            rest.push(raw);
        }
    }
    if rest.len() == elements.len() {
        return Ok(None);
    }
    Ok(Some(array_of(&rest)))
}

/// An object with other values; `None` if none changes.
fn each_member(
    object: &[u8],
    change: impl Fn(&[u8]) -> Result<Option<Vec<u8>>, JsonError>,
) -> Result<Option<Vec<u8>>, JsonError> {
    if !json::is_object(object) {
        return Ok(None);
    }
    let members = json::members(object, Span::all(object))?;
    let mut changes = Vec::new();
    for (name, member) in members.iter() {
        changes.extend(change(member.raw)?.map(|raw| (name, raw)));
    }
    if changes.is_empty() {
        return Ok(None);
    }
    let changes: Vec<MemberChange<'_>> = changes
        .iter()
        .map(|(name, raw)| (*name, Some(&**raw)))
        .collect();
    json::edited(object, &changes).map(Some)
}

/// An array with other elements; `None` if none changes, or it is no array.
fn each_element(
    array: &[u8],
    change: impl Fn(&[u8]) -> Result<Option<Vec<u8>>, JsonError>,
) -> Result<Option<Vec<u8>>, JsonError> {
    let Ok(elements) = json::elements(array, Span::all(array)) else {
        return Ok(None);
    };
    let changed: Vec<_> = elements
        .iter()
        .map(|span| change(span.of(array)))
        .collect::<Result<_, _>>()?;
    if changed.iter().all(Option::is_none) {
        return Ok(None);
    }
    let all = elements.iter().zip(&changed);
    let all: Vec<&[u8]> = all
        .map(|(span, changed)| changed.as_deref().unwrap_or(span.of(array)))
        .collect();
    Ok(Some(array_of(&all)))
}

fn array_of(elements: &[&[u8]]) -> Vec<u8> {
    let mut array = vec![b'['];
    array.extend(elements.join(&b","[..]));
    array.push(b']');
    array
}

fn texts(array: &[u8]) -> Vec<String> {
    let elements = json::elements(array, Span::all(array)).unwrap_or_default();
    elements
        .iter()
        .filter_map(|span| Some(json::text(span.of(array))?.into_owned()))
        .collect()
}
