//! Objects of the API as text: cells of tables, lines of details.

use json::visible;
use model::overlap;
use serde_json::Value;

use crate::remote::api::Answer;
use terminal::failure::Failure;
use terminal::output::Output;

/// Characters of a description in a table.
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
    let items = object.get(name).and_then(Value::as_array).into_iter().flatten();
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
    let pattern: Vec<Option<char>> = pattern.chars().map(|c| Some(c).filter(|c| *c != '*')).collect();
    overlap(&pattern, &name.chars().map(Some).collect::<Vec<_>>())
}

/// The beginning of the first line of a description.
pub(crate) fn short(description: &str) -> String {
    let line = description.lines().next().unwrap_or_default();
    let short: String = line.chars().take(DESCRIPTION_CHARS).collect();
    format!("{short}{}", if short.len() < line.len() { "..." } else { "" })
}

/// An object as lines of `name: value`, with hidden characters made visible.
fn details(object: &Value) -> String {
    let lines = object.as_object().into_iter().flatten().map(|(name, value)| match value {
        Value::String(text) => format!("{name}: {}", visible::line(text)),
        Value::Array(items) if name == "stderr" => {
            let lines =
                items.iter().filter_map(Value::as_str).map(|line| format!("\n  {}", visible::line(line)));
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
