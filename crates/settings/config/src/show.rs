//! Trees as TOML or JSON, with variables unexpanded; literal secrets are hidden from all but the
//! one who is asked for consent.

use std::fmt::Write as _;

use serde_json::{Map, Value as Json};

use crate::expand::is_reference;
use crate::hidden::{HIDDEN, SECRET_KEYS, SECRET_TABLES, is_hidden, names_secret};
use crate::node::{Node, TreeEntry, Value};

/// The tree as TOML; with `origins`, every value has a comment with its location.
pub fn to_toml(tree: &Node, origins: bool) -> String {
    let mut out = String::new();
    table(
        &mut out,
        &[],
        tree,
        Style {
            origins,
            hides: true,
        },
    );
    out
}

/// The tree as TOML, values in `env` and `headers` too as they are written.
pub(crate) fn to_toml_in_full(tree: &Node) -> String {
    let mut out = String::new();
    table(
        &mut out,
        &[],
        tree,
        Style {
            origins: false,
            hides: false,
        },
    );
    out
}

#[derive(Clone, Copy)]
struct Style {
    origins: bool,
    /// Whether values that may be secrets are hidden.
    hides: bool,
}

/// A value on one line, as it is written.
pub(crate) fn inline_in_full(node: &Node) -> String {
    inline(node, false)
}

/// The tree as JSON.
pub fn to_json(tree: &Node) -> Json {
    json(tree, false)
}

fn table<'a>(out: &mut String, path: &[&'a str], node: &'a Node, style: Style) {
    let is_table = |entry: &&TreeEntry| matches!(entry.node.value, Value::Table(_));
    let plain: Vec<&TreeEntry> = node
        .entries()
        .iter()
        .filter(|entry| !is_table(entry))
        .collect();
    if !path.is_empty() && (!plain.is_empty() || node.entries().is_empty()) {
        let name: Vec<String> = path.iter().map(|key| toml_key(key)).collect();
        let gap = if out.is_empty() { "" } else { "\n" };
        let _ = writeln!(out, "{gap}[{}]", name.join("."));
    }
    let is_secret = match path {
        // A table in `env` or `headers` of a server.
        [_, _, .., parent, _] if SECRET_TABLES.contains(parent) => !names_secret(node),
        [.., last] => SECRET_TABLES.contains(last),
        [] => false,
    };
    for entry in plain {
        let hides = style.hides && (is_secret || SECRET_KEYS.contains(&entry.key.as_str()));
        let _ = write!(
            out,
            "{} = {}",
            toml_key(&entry.key),
            inline(&entry.node, hides)
        );
        if style.origins {
            let _ = write!(out, "  # {}", entry.node.location);
        }
        out.push('\n');
    }
    for entry in node.entries().iter().filter(is_table) {
        let mut path = path.to_vec();
        path.push(&entry.key);
        table(out, &path, &entry.node, style);
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
            let pair = |entry: &TreeEntry| {
                format!("{} = {}", toml_key(&entry.key), inline(&entry.node, secret))
            };
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
                (
                    entry.key.clone(),
                    json(&entry.node, is_hidden(entry, secret)),
                )
            };
            Json::Object(entries.iter().map(member).collect::<Map<_, _>>())
        }
    }
}

fn shown(text: &str, secret: bool) -> &str {
    if secret && !is_reference(text) {
        HIDDEN
    } else {
        text
    }
}

/// A key as TOML writes it.
pub(crate) fn toml_key(key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !key.is_empty() && key.chars().all(bare) {
        key.to_owned()
    } else {
        toml_text(key)
    }
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
