//! Trees as TOML or JSON, with variables unexpanded and secrets hidden.

use std::fmt::Write as _;

use serde_json::{Map, Value as Json};

use crate::config::expand::is_reference;
use crate::config::node::{Node, TreeEntry, Value};

/// Tables whose texts are hidden unless they have a variable.
const SECRET_TABLES: [&str; 2] = ["env", "headers"];
const HIDDEN: &str = "(hidden)";

/// The tree as TOML; with `origins`, every value has a comment with its location.
pub(crate) fn to_toml(tree: &Node, origins: bool) -> String {
    let mut out = String::new();
    table(&mut out, &[], tree, origins);
    out
}

/// The tree as JSON.
pub(crate) fn to_json(tree: &Node) -> Json {
    json(tree, false)
}

fn table<'a>(out: &mut String, path: &[&'a str], node: &'a Node, origins: bool) {
    let is_table = |entry: &&TreeEntry| matches!(entry.node.value, Value::Table(_));
    let plain: Vec<&TreeEntry> = node.entries().iter().filter(|entry| !is_table(entry)).collect();
    if !path.is_empty() && (!plain.is_empty() || node.entries().is_empty()) {
        let name: Vec<String> = path.iter().map(|key| toml_key(key)).collect();
        let gap = if out.is_empty() { "" } else { "\n" };
        let _ = writeln!(out, "{gap}[{}]", name.join("."));
    }
    let secret = path.last().is_some_and(|key| SECRET_TABLES.contains(key));
    for entry in plain {
        let _ = write!(out, "{} = {}", toml_key(&entry.key), inline(&entry.node, secret));
        if origins {
            let _ = write!(out, "  # {}", entry.node.location);
        }
        out.push('\n');
    }
    for entry in node.entries().iter().filter(is_table) {
        let mut path = path.to_vec();
        path.push(&entry.key);
        table(out, &path, &entry.node, origins);
    }
}

fn inline(node: &Node, secret: bool) -> String {
    match &node.value {
        Value::Text(text) => toml_text(shown(text, secret)),
        Value::Integer(number) => number.to_string(),
        Value::Decimal(number) => format!("{number:?}"),
        Value::Flag(flag) => flag.to_string(),
        Value::List(items) => {
            let items: Vec<String> = items.iter().map(|item| inline(item, secret)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Table(entries) => {
            let pair =
                |entry: &TreeEntry| format!("{} = {}", toml_key(&entry.key), inline(&entry.node, secret));
            let pairs: Vec<String> = entries.iter().map(pair).collect();
            format!("{{ {} }}", pairs.join(", "))
        }
    }
}

fn json(node: &Node, secret: bool) -> Json {
    match &node.value {
        Value::Text(text) => Json::from(shown(text, secret)),
        Value::Integer(number) => Json::from(*number),
        Value::Decimal(number) => Json::from(*number),
        Value::Flag(flag) => Json::from(*flag),
        Value::List(items) => items.iter().map(|item| json(item, secret)).collect(),
        Value::Table(entries) => {
            let member = |entry: &TreeEntry| {
                let secret = secret || SECRET_TABLES.contains(&entry.key.as_str());
                (entry.key.clone(), json(&entry.node, secret))
            };
            Json::Object(entries.iter().map(member).collect::<Map<_, _>>())
        }
    }
}

fn shown(text: &str, secret: bool) -> &str {
    if secret && !is_reference(text) { HIDDEN } else { text }
}

/// A key as TOML writes it.
pub(crate) fn toml_key(key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !key.is_empty() && key.chars().all(bare) { key.to_owned() } else { toml_text(key) }
}

fn toml_text(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if json::visible::is_hidden(c) => {
                let _ = write!(out, "\\U{:08X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
