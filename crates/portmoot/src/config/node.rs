//! A configuration as it was written: a tree of values that remember where they stand. Must not know what a key means,
//! and never holds an expanded variable.

use std::fmt;
use std::sync::Arc;

use upstream::config::Origin;

/// A file, or another place that settings come from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Layer {
    /// How it is named to the user: a path, `--listen`, `the defaults`.
    pub(crate) name: String,
    /// How far it is trusted to name commands.
    pub(crate) origin: Origin,
}

/// How the layer is named that holds what nobody has written.
pub(crate) const DEFAULTS: &str = "the defaults";

/// Where a value stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) layer: Arc<Layer>,
    /// From 1; unknown in JSON files and for flags.
    pub(crate) line: Option<usize>,
}

/// A value and its place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) place: Place,
}

/// A value. Dates are not among them: no key takes one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Integer(i64),
    Decimal(f64),
    Flag(bool),
    List(Vec<Node>),
    Table(Vec<Entry>),
}

/// A key with its value, in the order in which they were written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) place: Place,
    pub(crate) node: Node,
}

impl Layer {
    pub(crate) fn new(name: impl Into<String>, origin: Origin) -> Arc<Layer> {
        Arc::new(Layer { name: name.into(), origin })
    }

    /// A place in this layer whose line is not known.
    pub(crate) fn somewhere(self: &Arc<Layer>) -> Place {
        Place { layer: Arc::clone(self), line: None }
    }
}

impl Node {
    /// An empty table, to lay others on.
    pub(crate) fn empty(layer: &Arc<Layer>) -> Node {
        Node { value: Value::Table(Vec::new()), place: layer.somewhere() }
    }

    /// A table that holds one value under a path of keys.
    pub(crate) fn at(layer: &Arc<Layer>, path: &[&str], value: Value) -> Node {
        let place = layer.somewhere();
        path.iter().rev().fold(Node { value, place: place.clone() }, |node, key| {
            let entry = Entry { key: (*key).to_owned(), place: place.clone(), node };
            Node { value: Value::Table(vec![entry]), place: place.clone() }
        })
    }

    /// Lays another tree on this one: tables are merged key by key, anything else is replaced.
    pub(crate) fn overlay(&mut self, upper: Node) {
        match (&mut self.value, upper.value) {
            (Value::Table(lower), Value::Table(upper)) => {
                upper.into_iter().for_each(|entry| overlay_entry(lower, entry));
            }
            (lower, upper_value) => {
                *lower = upper_value;
                self.place = upper.place;
            }
        }
    }

    /// The entries, if this is a table.
    pub(crate) fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Table(entries) => entries,
            Value::Text(_) | Value::Integer(_) | Value::Decimal(_) | Value::Flag(_) | Value::List(_) => &[],
        }
    }

    /// The value under a key, if this is a table that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entries().iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }
}

impl Value {
    /// What it is, for messages: `a text`, `a list`.
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

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}", self.layer.name),
            None => f.write_str(&self.layer.name),
        }
    }
}

fn overlay_entry(lower: &mut Vec<Entry>, upper: Entry) {
    match lower.iter_mut().find(|entry| entry.key == upper.key) {
        Some(entry) => entry.node.overlay(upper.node),
        None => lower.push(upper),
    }
}
