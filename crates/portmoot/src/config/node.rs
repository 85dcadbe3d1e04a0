//! Configuration tree: values with their locations, variables unexpanded.

use std::fmt;
use std::sync::Arc;

use upstream::config::Origin;

/// A file, flag or other source of settings.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Layer {
    /// Name in messages: a path, `--listen`, `the defaults`.
    pub(crate) name: String,
    /// Decides whether commands from this layer need consent.
    pub(crate) origin: Origin,
}

/// Name of the layer of defaults.
pub(crate) const DEFAULTS: &str = "the defaults";

/// Location of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) layer: Arc<Layer>,
    /// Line number from 1; unknown in JSON files and for flags.
    pub(crate) line: Option<usize>,
}

/// A value and its location.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) location: Location,
}

/// A value. Dates are not among them: no key takes one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Integer(i64),
    Decimal(f64),
    Flag(bool),
    List(Vec<Node>),
    Table(Vec<TreeEntry>),
}

/// A key with its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TreeEntry {
    pub(crate) key: String,
    pub(crate) location: Location,
    pub(crate) node: Node,
}

impl Layer {
    pub(crate) fn new(name: impl Into<String>, origin: Origin) -> Arc<Layer> {
        Arc::new(Layer { name: name.into(), origin })
    }

    /// A location in this layer whose line is not known.
    pub(crate) fn unknown_line(self: &Arc<Layer>) -> Location {
        Location { layer: Arc::clone(self), line: None }
    }
}

impl Node {
    /// An empty table.
    pub(crate) fn empty(layer: &Arc<Layer>) -> Node {
        Node { value: Value::Table(Vec::new()), location: layer.unknown_line() }
    }

    /// A table that holds one value under a path of keys.
    pub(crate) fn at(layer: &Arc<Layer>, path: &[&str], value: Value) -> Node {
        let location = layer.unknown_line();
        path.iter().rev().fold(Node { value, location: location.clone() }, |node, key| {
            let entry = TreeEntry { key: (*key).to_owned(), location: location.clone(), node };
            Node { value: Value::Table(vec![entry]), location: location.clone() }
        })
    }

    /// Merges another tree into this one: tables are merged key by key, other values are replaced.
    pub(crate) fn overlay(&mut self, upper: Node) {
        match (&mut self.value, upper.value) {
            (Value::Table(lower), Value::Table(upper)) => {
                upper.into_iter().for_each(|entry| overlay_entry(lower, entry));
            }
            (lower, upper_value) => {
                *lower = upper_value;
                self.location = upper.location;
            }
        }
    }

    /// The entries, if this is a table.
    pub(crate) fn entries(&self) -> &[TreeEntry] {
        match &self.value {
            Value::Table(entries) => entries,
            Value::Text(_) | Value::Integer(_) | Value::Decimal(_) | Value::Flag(_) | Value::List(_) => &[],
        }
    }

    /// The text, if this is one.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            Value::Integer(_) | Value::Decimal(_) | Value::Flag(_) | Value::List(_) | Value::Table(_) => None,
        }
    }

    /// The location of the value under a path of keys, or of the last table on the way to it.
    pub(crate) fn place(&self, path: &[&str]) -> &Location {
        let below = path.split_first().and_then(|(key, rest)| Some((self.get(key)?, rest)));
        below.map_or(&self.location, |(node, rest)| node.place(rest))
    }

    /// The value under a key, if this is a table that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entries().iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }
}

impl Value {
    /// Type of the value, for messages: `a text`, `a list`.
    pub(crate) fn what(&self) -> &'static str {
        match self {
            Value::Text(_) => "a text",
            Value::Integer(_) | Value::Decimal(_) => "a number",
            Value::Flag(_) => "true or false",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}", self.layer.name),
            None => f.write_str(&self.layer.name),
        }
    }
}

fn overlay_entry(lower: &mut Vec<TreeEntry>, upper: TreeEntry) {
    match lower.iter_mut().find(|entry| entry.key == upper.key) {
        Some(entry) => entry.node.overlay(upper.node),
        None => lower.push(upper),
    }
}
