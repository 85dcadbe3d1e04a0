//! Command `participants can`: what a participant may do on each wire, tool by tool, with the
//! capability that says so.

pub(crate) mod past;

use serde_json::Value;

use model::{APPROVE, KindRef};

use crate::cli::RunningArgs;
use crate::commands::target::running_endpoint;
use crate::commands::view::{cell, is_named, texts};
use crate::remote::api;
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;

const COLUMNS: [&str; 5] = [
    "TOPIC",
    "NAME",
    "OVER MCP, APPROVING",
    "IN ROOMS AS",
    "IN ROOMS",
];

/// Prints what a participant may do. With an act, exit code 3 if it may do it on no wire.
pub(crate) async fn run(
    id: &str,
    act: Option<&str>,
    topic: Option<&str>,
    gateway: &RunningArgs,
    output: Output,
) -> Result<Exit, Failure> {
    let endpoint = running_endpoint(gateway, output)?;
    let query: Vec<(&str, &str)> = topic.map(|topic| ("topic", topic)).into_iter().collect();
    let mut answer: Value = api::get(&endpoint, &["participants", id, "can"], &query)
        .await?
        .read()?;
    let plain = act.filter(|act| method_and_name(act).is_none() && is_plain(&answer, act));
    if let Some(Value::Array(entries)) = answer.get_mut("entries") {
        entries.retain(|entry| match act {
            Some(act) => is_meant(entry, act),
            None => may(entry, "mcp") || may(entry, "ws"),
        });
    }
    let entries = answer
        .get("entries")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    // The right to approve is none to make the call.
    let approves = act.is_some_and(|act| act.starts_with(APPROVE));
    let allowed = plain.is_some()
        || entries.iter().any(|entry| {
            ["mcp", "ws"].iter().any(|wire| {
                let is_right = approves || !has_verdict(entry, wire, "may approve");
                may(entry, wire) && is_right
            })
        });
    if output.json {
        output.result_json(&answer);
    } else {
        output.message(&format!(
            "`{id}` may come in over: {}",
            texts(&answer, "wires").join(", ")
        ));
        for line in in_shadow(&answer) {
            output.message(&line);
        }
        if plain.is_none() {
            output.listing(&answer, "entries", &COLUMNS, row);
        }
        if let Some(act) = act {
            output.message(&format!(
                "`{id}` {} {act}",
                if allowed { "may" } else { "may not" }
            ));
        }
    }
    Ok(if act.is_none() || allowed {
        Exit::Ok
    } else {
        Exit::Refused
    })
}

/// What the capabilities in shadow would have decided otherwise, for each topic in which it has some.
fn in_shadow(answer: &Value) -> Vec<String> {
    let topics = answer.get("topics").and_then(Value::as_array);
    let lines = topics.into_iter().flatten().filter_map(|topic| {
        let words = cell(
            topic.get("shadow").filter(|shadow| shadow.is_object())?,
            "words",
        );
        Some(format!("in shadow, in {}: {words}", cell(topic, "topic")))
    });
    lines.collect()
}

fn row(entry: &Value) -> Vec<String> {
    let name_in_rooms = format!("{} of {}", cell(entry, "own"), cell(entry, "server"));
    vec![
        cell(entry, "topic"),
        cell(entry, "name"),
        verdict(entry, "mcp"),
        name_in_rooms,
        verdict(entry, "ws"),
    ]
}

/// Whether an entry may be used on a wire, and the capability that says so.
fn verdict(entry: &Value, wire: &str) -> String {
    match entry.get(wire) {
        Some(way @ Value::Object(_)) => {
            let verdict = way.get("verdict").and_then(Value::as_str);
            let capability = way.get("capability").and_then(Value::as_str);
            format!(
                "{}: {}",
                verdict.unwrap_or_default(),
                capability.unwrap_or_default()
            )
        }
        _ => "-".to_owned(),
    }
}

fn has_verdict(entry: &Value, wire: &str, verdict: &str) -> bool {
    let said = entry.get(wire).and_then(|way| way.get("verdict"));
    said.and_then(Value::as_str) == Some(verdict)
}

fn may(entry: &Value, wire: &str) -> bool {
    entry.get(wire).is_some_and(Value::is_object)
}

/// Whether an entry is what an act names: a public name, a server's own name, or a request's kind
/// with one of them.
fn is_meant(entry: &Value, act: &str) -> bool {
    let (method, name) = method_and_name(act).unwrap_or((None, act));
    method.is_none_or(|method| cell(entry, "method") == method)
        && ["name", "own"]
            .iter()
            .any(|key| cell(entry, key) == name || is_pattern(name, &cell(entry, key)))
}

fn is_pattern(pattern: &str, name: &str) -> bool {
    pattern.contains('*') && is_named(name, pattern)
}

/// The method and the name of a kind such as `mcp/request:tools/call:read`.
fn method_and_name(act: &str) -> Option<(Option<&str>, &str)> {
    let mut parts = act.splitn(3, ':');
    if !parts.next()?.starts_with("mcp/") {
        return None;
    }
    Some((Some(parts.next()?), parts.next()?))
}

/// Whether an act that names no entry of a server, such as `chat` or `portmoot/tokens`, is admitted
/// in some topic.
fn is_plain(answer: &Value, act: &str) -> bool {
    let Ok(kind) = KindRef::parse(act) else {
        return false;
    };
    let topics = answer
        .get("topics")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let mut held = topics.flat_map(|topic| texts(topic, "capabilities"));
    held.any(|text| model::Capability::parse(text).is_ok_and(|capability| capability.admits(kind)))
}
