//! Tables `[sets.NAME]`: named sets of tools, which topics and capabilities name as `@NAME`; and
//! patterns of tools elsewhere.

use model::{NameFilter, NamePattern};
use topic::section::Sets;

use crate::node::Location;
use crate::problem::Problem;
use crate::reader::{ListedText, Table};

/// Sign before the name of a set.
const SIGN: char = '@';

/// Reads every set.
pub(crate) fn read(root: &Table<'_>) -> Sets {
    let mut sets = Sets::new();
    for (entry, table) in root.tables("sets") {
        let written = table.texts("tools");
        if written.is_none() && table.get("tools").is_none() {
            let message = format!("{} has no `tools`", table.name());
            table.wrong(
                "config_value",
                message,
                "list patterns of tools; [] is a set without tools",
            );
        }
        let patterns = written
            .unwrap_or_default()
            .into_iter()
            .filter_map(|one| name_pattern(&table, "tools", one))
            .collect();
        table.finish();
        sets.insert(entry.key.clone(), patterns);
    }
    sets
}

/// The patterns of the set that a text in a list names; notes a problem if there is no such set.
pub(crate) fn of<'s>(
    sets: &'s Sets,
    name: &str,
    table: &Table<'_>,
    key: &str,
    location: &Location,
) -> &'s [NamePattern] {
    if let Some(patterns) = sets.get(name) {
        return patterns;
    }
    let message = format!("`{}`: there is no set `{name}`", table.full(key));
    let problem = Problem::new("config_unknown_set", message).at(location);
    let known = sets.keys().map(String::as_str);
    table
        .problems()
        .note(problem.suggest(name, known, format!("add [sets.{name}]")));
    &[]
}

/// The names that `tools` and `hide` choose, by patterns and, where there are `sets`, by those of
/// the sets that they name.
pub(crate) fn name_filter(table: &Table<'_>, sets: Option<&Sets>) -> NameFilter {
    NameFilter {
        only: patterns(table, "tools", sets),
        hide: patterns(table, "hide", sets).unwrap_or_default(),
    }
}

/// The patterns of a list; `None` if the key is not written.
fn patterns(table: &Table<'_>, key: &'static str, sets: Option<&Sets>) -> Option<Vec<NamePattern>> {
    let mut patterns = Vec::new();
    for one in table.texts(key)? {
        match (one.text.strip_prefix(SIGN), sets) {
            (Some(name), Some(sets)) => {
                patterns.extend_from_slice(of(sets, name, table, key, one.location));
            }
            (Some(_), None) => {
                let message = format!(
                    "`{}`: `{}` is a set, whose names have prefixes",
                    table.full(key),
                    one.text
                );
                table.problems().note_value(
                    one.location,
                    message,
                    "a topic takes sets: write the server's own names here",
                );
            }
            (None, _) => patterns.extend(name_pattern(table, key, one)),
        }
    }
    Some(patterns)
}

/// A pattern of names; notes a problem if the text is none.
fn name_pattern(table: &Table<'_>, key: &str, written: ListedText<'_>) -> Option<NamePattern> {
    match NamePattern::parse(written.text) {
        Ok(pattern) => Some(pattern),
        Err(error) => {
            let message = format!(
                "`{}`: `{}` is no pattern: {error}",
                table.full(key),
                written.text.escape_debug()
            );
            table
                .problems()
                .note_value(written.location, message, "for example \"get_*\"");
            None
        }
    }
}

/// The set of tools that a capability for calls names as its context, behind the beginning of the
/// capability.
pub(crate) fn named(kind: &str) -> Option<(&str, &str)> {
    const METHOD: &str = ":tools/call:";
    let head = kind.strip_prefix("mcp/")?.find(METHOD)?;
    let (act, context) = kind.split_at("mcp/".len() + head + METHOD.len());
    let name = context.strip_prefix(SIGN)?;
    // `mcp/HEAD:tools/call:` and no part more before it.
    (act.matches(':').count() == 2).then_some((act, name))
}
