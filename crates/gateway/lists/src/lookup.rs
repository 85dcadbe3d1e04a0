//! Lookups of the proxy tool, `list` and `info`: what the caller's own lists show, and nothing
//! else.

use model::{Form, ListKind};
use wire::mcp::proxy::{
    ListedEntry as Found, ProxyList, ProxySubject, Query, ReadOperation, query, resource_name,
};
use wire::mcp::result::words;

use crate::{merged::ListEntry, seen::Seen};

/// The result of `list` or `info`, or words about a target that the caller cannot see.
pub fn look_up(seen: &Seen, look: &ReadOperation, form: Form) -> Vec<u8> {
    match look {
        ReadOperation::List(of) => list(seen, of, form),
        ReadOperation::Info { subject, path } => match info(seen, *subject, path) {
            Some(found) => query(*subject, Query::Info(path), &[found], form),
            None => words(&subject.not_found(path), true, form),
        },
    }
}

/// The lists of a subject, in the order in which they are shown.
fn lists(subject: ProxySubject) -> &'static [ListKind] {
    match subject {
        ProxySubject::Tool => &[ListKind::Tools],
        ProxySubject::Prompt => &[ListKind::Prompts],
        ProxySubject::Resource => &[ListKind::Resources, ListKind::Templates],
    }
}

/// A page of what fits the filter. Only the entries of the page are rendered.
fn list(
    seen: &Seen,
    ProxyList {
        subject,
        filter,
        page,
    }: &ProxyList,
    form: Form,
) -> Vec<u8> {
    let mut total = 0;
    let mut found = Vec::new();
    for list in lists(*subject) {
        let merged = seen.list(*list);
        for entry in merged
            .entries()
            .iter()
            .filter(|entry| filter.fits(entry.server.as_str(), &entry.public, &entry.item.raw))
        {
            if total >= page.offset && found.len() < page.limit {
                found.push(Found {
                    list: *list,
                    raw: merged.definition(entry),
                });
            }
            total += 1;
        }
    }
    query(*subject, Query::List(*page, total), &found, form)
}

/// The entry of this name; of resources that of this URI or template, else the first of this name.
fn info(seen: &Seen, subject: ProxySubject, path: &str) -> Option<Found> {
    // Names of resources need not be unique: they count only where no key fits in any list.
    find(seen, subject, |entry| entry.public == path).or_else(|| {
        if subject != ProxySubject::Resource {
            return None;
        }
        find(seen, subject, |entry| {
            resource_name(&entry.item.raw).as_deref() == Some(path)
        })
    })
}

/// The first entry of a subject's lists that fits.
fn find(
    seen: &Seen,
    subject: ProxySubject,
    fits: impl Fn(&ListEntry<'_>) -> bool,
) -> Option<Found> {
    for list in lists(subject) {
        let merged = seen.list(*list);
        if let Some(entry) = merged.entries().iter().find(|entry| fits(entry)) {
            return Some(Found {
                list: *list,
                raw: merged.definition(entry),
            });
        }
    }
    None
}
