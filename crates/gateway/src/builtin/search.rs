//! Built-in tool `search_tools`: the tools and skills that the caller may use, found by words.

use std::sync::Arc;

use lists::Seen;
use model::{ListKind, Refusal, RefusalCode};
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
}

/// What was found.
#[derive(Serialize)]
pub(super) struct FoundTools {
    tools: Vec<Box<RawValue>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    skills: Vec<Box<RawValue>>,
}

/// The tools that fit the query best.
pub(super) async fn tools(dispatch: Arc<Dispatch>, call: Arc<Call>) -> Result<FoundTools, Refusal> {
    let SearchArguments { query, limit } = arguments::read(&call.request)?;
    if !query.contains(char::is_alphanumeric) {
        return Err(Refusal::new(RefusalCode::Malformed, "`query` has no word"));
    }
    let limit = limit.unwrap_or(FOUND_TOOLS).clamp(1, FOUND_TOOLS_MAX);
    let seen = manifests::seen(&dispatch, &call).await?;
    // The index of many tools takes a while to make: no call waits behind it.
    let found = tokio::task::spawn_blocking(move || find(&dispatch, &seen, &query, limit)).await;
    found.map_err(|_| Refusal::new(RefusalCode::Internal, "the search has failed"))
}

fn find(dispatch: &Dispatch, seen: &Seen, query: &str, limit: usize) -> FoundTools {
    let places = seen.index(ListKind::Tools, &dispatch.indexes).find(query, limit);
    let merged = seen.list(ListKind::Tools);
    let tools = places.iter().filter_map(|at| merged.entries().get(*at)).filter_map(|entry| {
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
    FoundTools { tools: tools.collect(), skills: skills(dispatch, seen, query, limit) }
}

/// The skills that fit the query best: their URIs, by which they are read, and what they are for.
fn skills(dispatch: &Dispatch, seen: &Seen, query: &str, limit: usize) -> Vec<Box<RawValue>> {
    let merged = seen.list(ListKind::Skills);
    if merged.entries().is_empty() {
        return Vec::new();
    }
    let places = seen.index(ListKind::Skills, &dispatch.indexes).find(query, limit);
    let skills = places.iter().filter_map(|at| merged.entries().get(*at)).filter_map(|entry| {
        let made = json::object(|skill| {
            skill.text("uri", &entry.public).text("server", entry.server.as_str());
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
