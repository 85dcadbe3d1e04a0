//! Values that several tables share: expanded texts, names, capabilities, rates. Must not know the tables.

use std::sync::Arc;

use auth::Rate;
use model::{Capabilities, Capability, IdError, ParticipantId, TopicName};
use upstream::config::Secret;

use crate::config::expand::{ExpandError, expand};
use crate::config::node::{Node, Place, Value};
use crate::config::problem::Problem;
use crate::config::reader::{Problems, Table};

/// The environment, handed in so that tests have their own.
pub(crate) type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Expands the variables of one text; a mistake is noted and gives the text as it stands.
pub(crate) fn secret(text: &str, place: &Place, env: Env<'_>, problems: &Problems) -> Secret {
    match expand(text, env) {
        Ok(expanded) => Secret::expanded(expanded, text),
        Err(error) => {
            let hint = match &error {
                ExpandError::Unset(name) => format!("set {name}, or write a default: ${{{name}:-...}}"),
                ExpandError::Open => "write ${NAME}, or $${ for the characters themselves".into(),
                ExpandError::Name(name) if name.starts_with("input:") => {
                    "this gateway asks for no inputs: put the value into a variable and write ${NAME}".into()
                }
                ExpandError::Name(_) => "write ${NAME}, ${NAME:-default} or ${env:NAME}".into(),
            };
            problems.note(Problem::new("config_variable", error.to_string()).at(place).hint(hint));
            Secret::new(text)
        }
    }
}

/// The expanded text under a key.
pub(crate) fn secret_at(table: &Table<'_>, key: &'static str, env: Env<'_>) -> Option<Secret> {
    let text = table.text(key)?;
    let place = table.get(key).map_or(table.place(), |node| &node.place);
    Some(secret(text, place, env, table.problems()))
}

/// The expanded texts of a table of texts: `env`, `headers`. Numbers and flags count as their spelling.
pub(crate) fn secrets_at(table: &Table<'_>, key: &'static str, env: Env<'_>) -> Vec<(String, Secret)> {
    let one = |entry: &crate::config::node::Entry| {
        let text = match &entry.node.value {
            Value::Text(text) => text.clone(),
            Value::Integer(number) => number.to_string(),
            Value::Decimal(number) => number.to_string(),
            Value::Flag(flag) => flag.to_string(),
            Value::List(_) | Value::Table(_) => {
                let message = format!("`{}.{}` must be a text", table.full(key), entry.key);
                table.problems().note(Problem::new("config_value", message).at(&entry.place));
                return None;
            }
        };
        Some((entry.key.clone(), secret(&text, &entry.node.place, env, table.problems())))
    };
    table.entries(key).iter().filter_map(one).collect()
}

/// A participant's name as configured; a mistake is noted.
pub(crate) fn participant_id(name: &str, place: &Place, problems: &Problems) -> Option<ParticipantId> {
    noted(ParticipantId::new(name), name, place, problems)
}

/// A topic's name as configured; a mistake is noted.
pub(crate) fn topic_name(name: &str, place: &Place, problems: &Problems) -> Option<TopicName> {
    noted(TopicName::new(name), name, place, problems)
}

/// The capabilities under `capabilities`: texts, or `{ kind = "...", to = [...] }`.
pub(crate) fn capabilities(table: &Table<'_>) -> Option<Arc<Capabilities>> {
    let items = table.list("capabilities")?;
    Some(Arc::new(items.iter().filter_map(|item| capability(table, item)).collect()))
}

/// A rate: `"100/s"`, `"600/min"`, or `{ limit = "100/s", burst = 200 }`.
pub(crate) fn rate(table: &Table<'_>, key: &'static str) -> Option<Rate> {
    let node = table.get(key)?;
    let (limit, burst) = match &node.value {
        Value::Text(limit) => (Some(limit.as_str()), None),
        Value::Table(_) => {
            let inner = table.table(key)?;
            let (limit, burst) = (inner.text("limit"), inner.count("burst"));
            inner.finish();
            (limit, burst)
        }
        Value::Integer(_) | Value::Decimal(_) | Value::Flag(_) | Value::List(_) => (None, None),
    };
    let rate = limit.and_then(|limit| parse_rate(limit, burst));
    if rate.is_none() {
        let message = format!("`{}` is no rate", table.full(key));
        let hint = "write \"100/s\", \"600/min\", or { limit = \"100/s\", burst = 200 }";
        table.note_at(key, "config_value", message, hint);
    }
    rate
}

fn parse_rate(limit: &str, burst: Option<u64>) -> Option<Rate> {
    let (number, unit) = limit.split_once('/')?;
    let number: u32 = number.trim().parse().ok().filter(|number| *number > 0)?;
    let per_minute = match unit.trim() {
        "s" => number.checked_mul(60)?,
        "m" | "min" => number,
        _ => return None,
    };
    let burst = burst.map_or(Some(number), |burst| u32::try_from(burst).ok().filter(|burst| *burst > 0))?;
    Some(Rate { per_minute, burst })
}

fn capability(table: &Table<'_>, item: &Node) -> Option<Capability> {
    let wrong = |message: String| {
        let problem = Problem::new("config_capability", message).at(&item.place);
        table.problems().note(problem.hint("for example \"mcp/request:tools/call:read_*\" or \"chat\""));
    };
    let (kind, to) = match &item.value {
        Value::Text(kind) => (kind.as_str(), None),
        Value::Table(entries) => {
            let unknown = entries.iter().find(|entry| entry.key != "kind" && entry.key != "to");
            if let Some(entry) = unknown {
                wrong(format!("unknown key `{}` in a capability: it has `kind` and `to`", entry.key));
                return None;
            }
            let Some(Node { value: Value::Text(kind), .. }) = item.get("kind") else {
                wrong("a capability in braces needs a `kind`".into());
                return None;
            };
            (kind.as_str(), item.get("to"))
        }
        other => {
            wrong(format!("a capability is a text or {{ kind, to }}, not {}", other.what()));
            return None;
        }
    };
    let parsed = Capability::parse(kind).and_then(|capability| match to.map(addressees) {
        None => Ok(capability),
        Some(names) => capability.to(names),
    });
    parsed.map_err(|error| wrong(format!("`{kind}` is no capability: {error}"))).ok()
}

/// Anything but texts gives no name, and so an empty list, which is refused.
fn addressees(node: &Node) -> Vec<&str> {
    let text = |node: &'_ Node| matches!(node.value, Value::Text(_));
    match &node.value {
        Value::Text(name) => vec![name.as_str()],
        Value::List(items) if items.iter().all(text) => items
            .iter()
            .filter_map(|item| match &item.value {
                Value::Text(name) => Some(name.as_str()),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn noted<T>(parsed: Result<T, IdError>, name: &str, place: &Place, problems: &Problems) -> Option<T> {
    let note = |error| {
        problems.note(
            Problem::new("config_name", format!("`{}` is no name: {error}", name.escape_debug())).at(place),
        );
    };
    parsed.map_err(note).ok()
}
