//! Configuration tree: values with their locations, variables unexpanded.

use std::fmt;
use std::sync::{Arc, OnceLock};

use json::Span;

/// Origin of a source of settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceOrigin {
    /// The operator: a file or flag of the command line or the environment, or a file in the
    /// operator's configuration directory.
    Operator,
    /// A file that was found in the working directory. Another person may have put it there.
    Found,
}

/// A file, flag or other source of settings.
#[derive(Debug, PartialEq, Eq)]
pub struct Layer {
    /// Name in messages: a path, `--listen`, `the defaults`.
    pub name: String,
    /// Decides whether this layer needs consent.
    pub origin: SourceOrigin,
    /// The text of a file; empty for a flag.
    pub(crate) text: String,
    /// The positions of its line ends.
    line_ends: Vec<usize>,
    /// Whether it is a file of an MCP client: what its program understands and the gateway does
    /// not, stops no other server.
    pub(crate) is_of_client: bool,
    /// The places of secrets in the text, once it has been read.
    pub(crate) secrets: OnceLock<Vec<Span>>,
}

/// Name of the layer of defaults.
pub(crate) const DEFAULTS: &str = "the defaults";

/// Location of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The source that has the value.
    pub layer: Arc<Layer>,
    /// Line number from 1; flags have none.
    pub line: Option<usize>,
    /// The place in the text of the layer.
    pub(crate) span: Option<Span>,
}

/// A value and its location.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
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
    /// A layer without a text.
    pub fn new(name: impl Into<String>, origin: SourceOrigin) -> Arc<Layer> {
        Layer::file(name, origin, "")
    }

    /// A file.
    pub(crate) fn file(
        name: impl Into<String>,
        origin: SourceOrigin,
        text: impl Into<String>,
    ) -> Arc<Layer> {
        Arc::new(Layer::of_text(name.into(), origin, text.into()))
    }

    /// A file of an MCP client, which the operator has named.
    pub(crate) fn client_file(name: impl Into<String>, text: impl Into<String>) -> Arc<Layer> {
        let file = Layer::of_text(name.into(), SourceOrigin::Operator, text.into());
        Arc::new(Layer {
            is_of_client: true,
            ..file
        })
    }

    fn of_text(name: String, origin: SourceOrigin, text: String) -> Layer {
        let line_ends = text.match_indices('\n').map(|(at, _)| at).collect();
        Layer {
            name,
            origin,
            text,
            line_ends,
            is_of_client: false,
            secrets: OnceLock::new(),
        }
    }

    /// A location in this layer whose line is not known.
    pub(crate) fn unknown_line(self: &Arc<Layer>) -> Location {
        Location {
            layer: Arc::clone(self),
            line: None,
            span: None,
        }
    }

    /// The location of a place in the text.
    pub(crate) fn at(self: &Arc<Layer>, span: Span) -> Location {
        let line = self.line_ends.partition_point(|end| *end < span.start) + 1;
        Location {
            layer: Arc::clone(self),
            line: Some(line),
            span: Some(span),
        }
    }

    /// The place of a character by its line and column, both from 1.
    pub(crate) fn place(&self, line: usize, column: usize) -> Span {
        let end_before = line
            .checked_sub(2)
            .and_then(|line| self.line_ends.get(line));
        let line_start = end_before.map_or(0, |end| end + 1);
        let mut start = (line_start + column.saturating_sub(1)).min(self.text.len());
        // serde_json counts columns in bytes, and may stop within a character.
        while !self.text.is_char_boundary(start) {
            start -= 1;
        }
        let width = self
            .text
            .get(start..)
            .and_then(|rest| rest.chars().next())
            .map_or(0, char::len_utf8);
        Span {
            start,
            end: start + width,
        }
    }
}

impl Node {
    /// An empty table.
    pub fn empty(layer: &Arc<Layer>) -> Node {
        Node {
            value: Value::Table(Vec::new()),
            location: layer.unknown_line(),
        }
    }

    /// A table that holds one value under a path of keys.
    pub(crate) fn at(layer: &Arc<Layer>, path: &[&str], value: Value) -> Node {
        let location = layer.unknown_line();
        let mut node = Node {
            value,
            location: location.clone(),
        };
        for key in path.iter().rev() {
            let entry = TreeEntry {
                key: (*key).to_owned(),
                location: location.clone(),
                node,
            };
            node = Node {
                value: Value::Table(vec![entry]),
                location: location.clone(),
            };
        }
        node
    }

    /// Merges another tree into this one: tables are merged key by key, other values are replaced.
    pub(crate) fn overlay(&mut self, upper: Node) {
        match (&mut self.value, upper.value) {
            (Value::Table(lower), Value::Table(upper)) => {
                for entry in upper {
                    overlay_entry(lower, entry);
                }
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
            Value::Text(_)
            | Value::Integer(_)
            | Value::Decimal(_)
            | Value::Flag(_)
            | Value::List(_) => &[],
        }
    }

    /// The text, if this is one.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            Value::Integer(_)
            | Value::Decimal(_)
            | Value::Flag(_)
            | Value::List(_)
            | Value::Table(_) => None,
        }
    }

    /// The location of the value under a path of keys, or of the last table on the way to it.
    pub fn place(&self, path: &[&str]) -> &Location {
        let mut last = self;
        for key in path {
            let Some(below) = last.get(key) else { break };
            last = below;
        }
        &last.location
    }

    /// The value under a key, if this is a table that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entries()
            .iter()
            .find(|entry| entry.key == key)
            .map(|entry| &entry.node)
    }
}

impl Location {
    /// Column number from 1, in characters.
    pub(crate) fn column(&self) -> Option<usize> {
        let before = self.layer.text.get(..self.span?.start)?;
        let of_line = before.rsplit('\n').next().unwrap_or_default();
        Some(of_line.chars().count() + 1)
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
