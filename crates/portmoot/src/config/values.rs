//! Values that several tables share: expanded texts, names, capabilities, rates.

use std::path::PathBuf;
use std::sync::Arc;

use model::{Capabilities, Capability, IdError, ParticipantId, RateLimit, TopicName};
use upstream::config::Secret;

use crate::config::expand::{ExpandError, expand, expand_home, expand_path};
use crate::config::node::{Location, Node, Value};
use crate::config::problem::Problem;
use crate::config::reader::{Problems, Table};

/// Hint at a `~user`.
pub(crate) const FULL_PATH: &str = "write the full path: only `~` and `~/` mean a home directory, your own";

/// Lookup of environment variables; tests pass their own.
pub(crate) type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Expands the variables of a text; after a problem, the text stays unexpanded.
pub(crate) fn secret(text: &str, location: &Location, env: Env<'_>, problems: &Problems) -> Secret {
    expanded(expand(text, env), text, location, problems)
}

fn expanded(
    result: Result<String, ExpandError>,
    text: &str,
    location: &Location,
    problems: &Problems,
) -> Secret {
    match result {
        Ok(expanded) => Secret::expanded(expanded, text),
        Err(error) => {
            let hint = match &error {
                ExpandError::Unset(name) => format!("set {name}, or write a default: ${{{name}:-...}}"),
                ExpandError::Open => "write ${NAME}, or $${ for a literal ${".into(),
                ExpandError::Name(name) if name.starts_with("input:") => {
                    "the gateway does not support inputs: put the value in an environment variable and write ${NAME}".into()
                }
                ExpandError::User(_) => FULL_PATH.into(),
                ExpandError::Name(_) => "write ${NAME}, ${NAME:-default} or ${env:NAME}".into(),
            };
            problems.note(Problem::new("config_variable", error.to_string()).at(location).hint(hint));
            Secret::new(text)
        }
    }
}

/// The expanded text under a key.
pub(crate) fn secret_at(table: &Table<'_>, key: &'static str, env: Env<'_>) -> Option<Secret> {
    let text = table.text(key)?;
    Some(secret(text, table.place(key), env, table.problems()))
}

/// The expanded path under a key: `~` and variables.
pub(crate) fn path_at(table: &Table<'_>, key: &'static str, env: Env<'_>) -> Option<Secret> {
    let text = table.text(key)?;
    Some(expanded(expand_path(text, env), text, table.place(key), table.problems()))
}

/// The path under a key, in which only `~` is expanded.
pub(crate) fn plain_path_at(table: &Table<'_>, key: &'static str, env: Env<'_>) -> Option<PathBuf> {
    let text = table.text(key)?;
    let path = expanded(expand_home(text, env), text, table.place(key), table.problems());
    Some(PathBuf::from(path.expose()))
}

/// The expanded texts of a table of texts: `env`, `headers`. Numbers and flags count as their spelling.
pub(crate) fn secrets_at(table: &Table<'_>, key: &'static str, env: Env<'_>) -> Vec<(String, Secret)> {
    let one = |entry: &crate::config::node::TreeEntry| {
        let text = match &entry.node.value {
            Value::Text(text) => text.clone(),
            Value::Integer(number) => number.to_string(),
            Value::Decimal(number) => number.to_string(),
            Value::Flag(flag) => flag.to_string(),
            Value::List(_) | Value::Table(_) => {
                let message = format!("`{}.{}` must be a text", table.full(key), entry.key);
                table.problems().note(Problem::new("config_value", message).at(&entry.location));
                return None;
            }
        };
        Some((entry.key.clone(), secret(&text, &entry.node.location, env, table.problems())))
    };
    table.entries(key).iter().filter_map(one).collect()
}

/// Parses the name of a participant; notes a problem if it is not valid.
pub(crate) fn participant_id(name: &str, location: &Location, problems: &Problems) -> Option<ParticipantId> {
    noted(ParticipantId::new(name), name, location, problems)
}

/// Parses the name of a topic; notes a problem if it is not valid.
pub(crate) fn topic_name(name: &str, location: &Location, problems: &Problems) -> Option<TopicName> {
    noted(TopicName::new(name), name, location, problems)
}

/// The capabilities under `capabilities`: texts, or `{ kind = "...", to = [...] }`.
pub(crate) fn capabilities(table: &Table<'_>) -> Option<Arc<Capabilities>> {
    let items = table.list("capabilities")?;
    Some(Arc::new(items.iter().filter_map(|item| capability(table, item)).collect()))
}

/// A rate: `"100/s"`, `"600/min"`, or `{ limit = "100/s", burst = 200 }`.
pub(crate) fn rate(table: &Table<'_>, key: &'static str) -> Option<RateLimit> {
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
        let message = format!("`{}` is not a rate", table.full(key));
        let hint = "write \"100/s\", \"600/min\", or { limit = \"100/s\", burst = 200 }";
        table.note_value(key, message, hint);
    }
    rate
}

fn parse_rate(limit: &str, burst: Option<u64>) -> Option<RateLimit> {
    let (number, unit) = limit.split_once('/')?;
    let number: u32 = number.trim().parse().ok().filter(|number| *number > 0)?;
    let per_minute = match unit.trim() {
        "s" => number.checked_mul(60)?,
        "m" | "min" => number,
        _ => return None,
    };
    let burst = burst.map_or(Some(number), |burst| u32::try_from(burst).ok().filter(|burst| *burst > 0))?;
    Some(RateLimit { per_minute, burst })
}

fn capability(table: &Table<'_>, item: &Node) -> Option<Capability> {
    let wrong = |message: String| {
        let problem = Problem::new("config_capability", message).at(&item.location);
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
            let Some(kind) = item.get("kind").and_then(Node::text) else {
                wrong("a capability table needs a `kind`".into());
                return None;
            };
            (kind, item.get("to"))
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
    parsed.map_err(|error| wrong(format!("`{kind}` is not a capability: {error}"))).ok()
}

/// The addressees. A value that is not a text or a list of texts gives an empty list, which is not valid.
fn addressees(node: &Node) -> Vec<&str> {
    match &node.value {
        Value::List(items) => items.iter().map(Node::text).collect::<Option<_>>().unwrap_or_default(),
        _ => node.text().into_iter().collect(),
    }
}

fn noted<T>(parsed: Result<T, IdError>, name: &str, location: &Location, problems: &Problems) -> Option<T> {
    let note = |error| {
        problems.note(
            Problem::new("config_name", format!("`{}` is not a valid name: {error}", name.escape_debug()))
                .at(location),
        );
    };
    parsed.map_err(note).ok()
}
