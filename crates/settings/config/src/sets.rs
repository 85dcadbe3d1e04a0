//! Tables `[sets.NAME]`: named sets of tools, which topics and capabilities name as `@NAME`; and
//! patterns of tools elsewhere.

use access::config::Sets;
use model::{NameFilter, NamePattern};

use crate::node::Location;
use crate::problem::Problem;
use crate::reader::Table;

/// Sign before the name of a set.
const SIGN: char = '@';

/// Reads every set.
pub(crate) fn read(root: &Table<'_>) -> Sets {
    let one = |(entry, table): (&crate::node::TreeEntry, Table<'_>)| {
        let written = table.texts("tools");
        if written.is_none() && table.get("tools").is_none() {
            let message = format!("{} has no `tools`", table.name());
            table.wrong(
                "config_value",
                message,
                "list patterns of tools; [] is a set without tools",
            );
        }
        let patterns = written.unwrap_or_default().into_iter();
        let patterns = patterns
            .filter_map(|text| name_pattern(&table, "tools", text))
            .collect();
        table.finish();
        (entry.key.clone(), patterns)
    };
    root.tables("sets").into_iter().map(one).collect()
}

/// The patterns of the set that a text in a list names; notes a problem if there is no such set.
pub(crate) fn of<'s>(
    sets: &'s Sets,
    name: &str,
    table: &Table<'_>,
    (key, location): (&str, &Location),
) -> &'s [NamePattern] {
    let found = sets.get(name);
    if found.is_none() {
        let message = format!("`{}`: there is no set `{name}`", table.full(key));
        let problem = Problem::new("config_unknown_set", message).at(location);
        let known = sets.keys().map(String::as_str);
        table
            .problems()
            .note(problem.suggest(name, known, format!("add [sets.{name}]")));
    }
    found.map(Vec::as_slice).unwrap_or_default()
}

/// The names that `tools` and `hide` choose, by patterns and, where there are `sets`, by those of
/// the sets that they name.
pub(crate) fn name_filter(table: &Table<'_>, sets: Option<&Sets>) -> NameFilter {
    let patterns = |key, (text, location): (&str, &Location)| match (text.strip_prefix(SIGN), sets)
    {
        (Some(name), Some(sets)) => of(sets, name, table, (key, location)).to_vec(),
        (Some(_), None) => {
            let message = format!(
                "`{}`: `{text}` is a set, whose names have prefixes",
                table.full(key)
            );
            let problem = Problem::new("config_value", message).at(location);
            table
                .problems()
                .note(problem.hint("a topic takes sets: write the server's own names here"));
            Vec::new()
        }
        (None, _) => name_pattern(table, key, (text, location))
            .into_iter()
            .collect(),
    };
    let read = |key| {
        Some(
            table
                .texts(key)?
                .into_iter()
                .flat_map(|text| patterns(key, text))
                .collect(),
        )
    };
    NameFilter {
        only: read("tools"),
        hide: read("hide").unwrap_or_default(),
    }
}

/// A pattern of names; notes a problem if the text is none.
fn name_pattern(
    table: &Table<'_>,
    key: &str,
    (text, location): (&str, &Location),
) -> Option<NamePattern> {
    let wrong = |error| {
        let message = format!(
            "`{}`: `{}` is no pattern: {error}",
            table.full(key),
            text.escape_debug()
        );
        table.problems().note(
            Problem::new("config_value", message)
                .at(location)
                .hint("for example \"get_*\""),
        );
    };
    NamePattern::parse(text).map_err(wrong).ok()
}

/// The set of tools that a capability for calls names as its context, behind the beginning of the
/// capability.
pub(crate) fn named(kind: &str) -> Option<(&str, &str)> {
    let at = kind.strip_prefix("mcp/")?.find(":tools/call:")? + "mcp/".len() + ":tools/call:".len();
    let (act, context) = kind.split_at(at);
    (act.matches(':').count() == 2).then_some((act, context.strip_prefix(SIGN)?))
}
