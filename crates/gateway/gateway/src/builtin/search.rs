//! Built-in tool `search_tools`: the tools and skills that the caller may use, found by words.

use std::sync::Arc;

use lists::{ListEntry, Seen};
use model::{ListKind, NamePattern, Refusal, RefusalCode};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::arguments;
use crate::{call::Call, dispatch::Dispatch, manifests};

/// Tools of one answer, without a `limit`.
const FOUND_TOOLS: usize = 5;
/// Most tools of one answer.
pub(super) const FOUND_TOOLS_MAX: usize = 50;
/// The members of a definition that a caller needs to call the tool.
const MEMBERS: [&str; 4] = ["title", "description", "inputSchema", "annotations"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchArguments {
    query: String,
    limit: Option<usize>,
    set: Option<String>,
}

/// Result of a search: the tools that it found.
#[derive(Serialize)]
pub(super) struct FoundTools {
    tools: Vec<Box<RawValue>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    skills: Vec<Box<RawValue>>,
}

/// The tools that fit the query best.
pub(super) async fn tools(dispatch: Arc<Dispatch>, call: Arc<Call>) -> Result<FoundTools, Refusal> {
    let SearchArguments { query, limit, set } = arguments::read(&call.request)?;
    if !query.contains(char::is_alphanumeric) {
        return Err(Refusal::new(RefusalCode::Malformed, "`query` has no word"));
    }
    let limit = limit.unwrap_or(FOUND_TOOLS).clamp(1, FOUND_TOOLS_MAX);
    let within = set.map(|set| set_of(&dispatch, &set)).transpose()?;
    let seen = manifests::seen(&dispatch, &call).await?;
    // The index of many tools takes a while to make: no call waits behind it.
    let found = tokio::task::spawn_blocking(move || {
        find(&dispatch, &seen, &query, limit, within.as_deref())
    })
    .await;
    found.map_err(|_| Refusal::new(RefusalCode::Internal, "the search has failed"))
}

/// The patterns of a set.
///
/// # Errors
/// There is no such set.
fn set_of(dispatch: &Dispatch, name: &str) -> Result<Vec<NamePattern>, Refusal> {
    let sets = dispatch.sets();
    let unknown = || {
        let refusal = Refusal::new(
            RefusalCode::Malformed,
            format!("there is no set `{}`", name.escape_debug()),
        );
        if sets.is_empty() {
            refusal.hint("leave `set` out: there are none")
        } else {
            let names: Vec<&str> = sets.keys().map(String::as_str).collect();
            refusal.hint(format!("the sets are: {}", names.join(", ")))
        }
    };
    sets.get(name).cloned().ok_or_else(unknown)
}

/// The tools that fit best; `within` are the patterns of the set to which they must belong.
fn find(
    dispatch: &Dispatch,
    seen: &Seen,
    query: &str,
    limit: usize,
    within: Option<&[NamePattern]>,
) -> FoundTools {
    // The index knows no sets: tools outside of the set would take the places of those within.
    let most = if within.is_some() { usize::MAX } else { limit };
    let places = seen
        .index(ListKind::Tools, &dispatch.indexes)
        .find(query, most);
    let merged = seen.list(ListKind::Tools);
    let is_within = |entry: &&ListEntry<'_>| {
        within.is_none_or(|patterns| {
            let ruled = dispatch.with(|topic| topic.ruled_name(entry.server, &entry.item.key));
            ruled.is_some_and(|ruled| patterns.iter().any(|pattern| pattern.matches(&ruled)))
        })
    };
    let fitting = places
        .iter()
        .filter_map(|at| merged.entries().get(*at))
        .filter(is_within);
    let tools = fitting.take(limit).filter_map(|entry| {
        let made = json::object(|tool| {
            tool.text("name", &entry.public);
            for key in MEMBERS {
                if let Some(raw) = entry.item.get(key) {
                    tool.raw(key, &raw);
                }
            }
        });
        RawValue::from_string(String::from_utf8(made).ok()?).ok()
    });
    let skills = if within.is_some() {
        Vec::new()
    } else {
        skills(dispatch, seen, query, limit)
    };
    FoundTools {
        tools: tools.collect(),
        skills,
    }
}

/// The skills that fit the query best: their URIs, by which they are read, and what they are for.
fn skills(dispatch: &Dispatch, seen: &Seen, query: &str, limit: usize) -> Vec<Box<RawValue>> {
    let merged = seen.list(ListKind::Skills);
    if merged.entries().is_empty() {
        return Vec::new();
    }
    let places = seen
        .index(ListKind::Skills, &dispatch.indexes)
        .find(query, limit);
    let skills = places
        .iter()
        .filter_map(|at| merged.entries().get(*at))
        .filter_map(|entry| {
            let made = json::object(|skill| {
                skill
                    .text("uri", &entry.public)
                    .text("server", entry.server.as_str());
                for key in ["name", "description"] {
                    if let Some(raw) = json::at(&entry.item.raw, &["frontmatter", key]) {
                        skill.raw(key, raw);
                    }
                }
            });
            RawValue::from_string(String::from_utf8(made).ok()?).ok()
        });
    skills.collect()
}
