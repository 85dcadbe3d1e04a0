//! Results of `list` and `info` (section 3.1), and what filters read in an entry.

use std::borrow::Cow;

use json::{Object, Span};
use model::{Form, ListKind};

use super::ProxySubject;
use super::arguments::{Filter, ProxyPage};
use crate::mcp::result::end;

/// An entry of a list, under the name that the caller sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedEntry {
    /// The list.
    pub list: ListKind,
    /// The definition.
    pub raw: Vec<u8>,
}

/// Query that was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Query<'q> {
    /// A page of a list that has so many entries.
    List(ProxyPage, usize),
    /// One entry, by name or URI.
    Info(&'q str),
}

/// The name of the type of an entry, by the list that it is on.
fn type_name(list: ListKind) -> &'static str {
    match list {
        ListKind::Tools => "Tool",
        ListKind::Prompts => "Prompt",
        ListKind::Resources => "Resource",
        ListKind::Templates => "ResourceTemplate",
        ListKind::Skills => "Skill",
    }
}

/// The name of the type of all entries of a list, as Magg spells it, and as the extension does
/// (section 4.1.2).
fn union_name(subject: ProxySubject) -> (&'static str, &'static str) {
    match subject {
        ProxySubject::Tool => ("Tool", "Tool"),
        ProxySubject::Prompt => ("Prompt", "Prompt"),
        ProxySubject::Resource => (
            "mcp.types.Resource | mcp.types.ResourceTemplate",
            "Resource|ResourceTemplate",
        ),
    }
}

/// The result: one embedded resource. Without entries the text of a list is `[]`.
#[must_use]
pub fn query(
    subject: ProxySubject,
    query: Query<'_>,
    entries: &[ListedEntry],
    form: Form,
) -> Vec<u8> {
    let (kind, many) = (subject.as_str(), matches!(query, Query::List(..)));
    let (python, neutral) = match (query, entries.first()) {
        (Query::Info(_), Some(entry)) => (type_name(entry.list), type_name(entry.list)),
        (Query::Info(_) | Query::List(..), _) => union_name(subject),
    };
    let uri = match query {
        Query::List(..) => format!("proxy:list/{kind}"),
        Query::Info(path) => format!("proxy:info/{kind}/{path}"),
    };
    let mut text = entries
        .iter()
        .map(|entry| &*entry.raw)
        .collect::<Vec<_>>()
        .join(&b","[..]);
    if many {
        text = [b"[", &*text, b"]"].concat();
    }
    json::object(|out| {
        out.array("content", |content| {
            content.object(|item| {
                item.text("type", "resource")
                    .object("resource", |resource| {
                        resource
                            .text("uri", &uri)
                            .text("mimeType", "application/json");
                        resource.text("text", &String::from_utf8_lossy(&text));
                    });
                item.object("annotations", |notes| {
                    match query {
                        Query::List(page, total) => {
                            annotate(notes, subject, "list", None);
                            notes
                                .number("totalCount", total)
                                .number("offset", page.offset);
                            notes.number("limit", page.limit);
                        }
                        Query::Info(path) => annotate(notes, subject, "info", Some(path)),
                    }
                    notes.text("pythonType", python).bool("many", many);
                    notes.text("dataType", neutral).bool("isArray", many);
                });
            });
        });
        end(out, false, form);
    })
}

/// Writes the annotations that every item has (sections 3.1.2 and 3.2).
pub(super) fn annotate(
    notes: &mut Object<'_>,
    subject: ProxySubject,
    action: &str,
    path: Option<&str>,
) {
    notes
        .text("proxyType", subject.as_str())
        .text("proxyAction", action)
        .optional_text("proxyPath", path);
}

impl Filter {
    /// Whether an entry of this server, under this name or URI, fits all that was asked for.
    #[must_use]
    pub fn fits(&self, server: &str, public: &str, raw: &[u8]) -> bool {
        let begins = |text: &str| {
            public.starts_with(text)
                || resource_name(raw).is_some_and(|name| name.starts_with(text))
        };
        self.server
            .as_deref()
            .is_none_or(|wanted| wanted == server || begins(wanted))
            && self.prefix.as_deref().is_none_or(begins)
            && (self.tags.is_empty() || tags_of(raw).iter().any(|tag| self.tags.contains(tag)))
    }
}

/// The name of a resource or template, by which it is not called.
#[must_use]
pub fn resource_name(raw: &[u8]) -> Option<String> {
    let members = json::members(raw, Span::all(raw)).ok()?;
    members.get("uri").or_else(|| members.get("uriTemplate"))?;
    members.get("name")?.text().map(Cow::into_owned)
}

/// The tags of an entry: the member `tags`, or that of FastMCP's `_meta`.
pub(super) fn tags_of(raw: &[u8]) -> Vec<String> {
    let places: [&[&str]; 3] = [
        &["tags"],
        &["_meta", "fastmcp", "tags"],
        &["_meta", "_fastmcp", "tags"],
    ];
    let found = places.iter().filter_map(|path| json::at(raw, path));
    let each = |raw: &[u8]| {
        let spans = json::elements(raw, Span::all(raw)).unwrap_or_default();
        spans
            .iter()
            .filter_map(|span| json::text(span.of(raw)).map(Cow::into_owned))
            .collect::<Vec<_>>()
    };
    found.flat_map(each).collect()
}
