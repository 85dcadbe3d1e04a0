//! Objects of the API as text: cells of tables, lines of details.

use json::visible;
use model::overlap;
use serde_json::Value;

use crate::remote::api::Answer;
use terminal::failure::Failure;
use terminal::output::Output;

/// Characters of a description in a table; as many as a wider terminal has columns.
const DESCRIPTION_CHARS: usize = 80;

/// Prints an object: JSON with `--json`, else its details.
pub(crate) fn print(answer: &Answer, output: Output) -> Result<(), Failure> {
    let object = answer.read()?;
    if output.json {
        output.result_json(&object)
    } else {
        output.result(&details(&object))
    }
    Ok(())
}

/// The texts of a list; empty for a missing member.
pub(crate) fn texts<'a>(object: &'a Value, name: &str) -> Vec<&'a str> {
    let items = object
        .get(name)
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    items.filter_map(Value::as_str).collect()
}

/// A member of an object as a cell: the length of a list, a dash for a missing member.
pub(crate) fn cell(row: &Value, name: &str) -> String {
    match row.get(name) {
        None | Some(Value::Null) => "-".into(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(items)) => items.len().to_string(),
        Some(other @ (Value::Bool(_) | Value::Number(_) | Value::Object(_))) => other.to_string(),
    }
}

/// Whether a name matches a pattern with stars, or contains one without.
pub(crate) fn is_named(name: &str, pattern: &str) -> bool {
    if !pattern.contains('*') {
        return name.contains(pattern);
    }
    let pattern: Vec<Option<char>> = pattern
        .chars()
        .map(|c| Some(c).filter(|c| *c != '*'))
        .collect();
    overlap(&pattern, &name.chars().map(Some).collect::<Vec<_>>())
}

/// The beginning of the first line of a description.
pub(crate) fn short(description: &str) -> String {
    let line = description.lines().next().unwrap_or_default();
    let room = chat::rows::columns()
        .unwrap_or_default()
        .max(DESCRIPTION_CHARS);
    let short: String = line.chars().take(room).collect();
    format!(
        "{short}{}",
        if short.len() < line.len() { "..." } else { "" }
    )
}

/// Members that stand first among details, in this order.
const FIRST: [&str; 12] = [
    "name",
    "state",
    "reason",
    "cause",
    "stderr",
    "server",
    "description",
    "transport",
    "version",
    "tools",
    "resources",
    "prompts",
];

/// Whether a value says nothing.
fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// An object as lines of `name: value`, what matters first, with hidden characters made visible and
/// without what says nothing.
fn details(object: &Value) -> String {
    let members = object
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(_, value)| !is_blank(value));
    let mut members: Vec<(&String, &Value)> = members.collect();
    members.sort_by_key(|(name, _)| {
        FIRST
            .iter()
            .position(|first| first == name)
            .unwrap_or(FIRST.len())
    });
    let lines = members.into_iter().map(|(name, value)| match value {
        Value::String(text) => format!("{name}: {}", visible::line(text)),
        Value::Array(items) if name == "stderr" => {
            let lines = items
                .iter()
                .filter_map(Value::as_str)
                .map(|line| format!("\n  {}", visible::line(line)));
            format!("{name}:{}", lines.collect::<String>())
        }
        Value::Array(items) if items.iter().all(Value::is_string) => {
            format!("{name}: {}", visible::line(&texts(object, name).join(", ")))
        }
        Value::Array(_) | Value::Object(_) => {
            let text = serde_json::to_string_pretty(value).unwrap_or_default();
            format!("{name}:\n{}", visible::lines(&text))
        }
        Value::Null => format!("{name}: -"),
        Value::Bool(_) | Value::Number(_) => format!("{name}: {value}"),
    });
    lines.collect::<Vec<_>>().join("\n")
}
