//! Parts that the syntaxes share: tables, entries, errors, places in a text.

use serde_json::{Map, Value};

/// Deepest nesting that is read, so that a file cannot exhaust the stack.
pub(super) const DEPTH_MAX: usize = 100;

/// The syntax of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// JSON; comments and trailing commas are accepted.
    Json,
    /// TOML.
    Toml,
    /// YAML, one document.
    Yaml,
}

/// Table in which a file has its entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// The syntax.
    pub format: Syntax,
    /// The keys that lead to the table, from the outermost.
    pub path: Vec<String>,
    /// Whether it is a list whose items have their name under `name`, and not a table by names.
    pub is_list: bool,
}

/// An entry of a table, in the order of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct TableEntry {
    /// Its name.
    pub name: String,
    /// Its content.
    pub value: Value,
}

/// A new entry: its keys in the order in which they are written.
pub type NewEntry = Vec<(String, Value)>;

/// Why a file cannot be read or edited. The file stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The text is not of its format.
    #[error("line {line}, column {column}: {why}")]
    Syntax {
        /// Line from 1.
        line: usize,
        /// Column from 1, in characters.
        column: usize,
        /// Fault of the text.
        why: String,
    },
    /// The text has another shape than the client's files have.
    #[error("{0}")]
    Shape(String),
    /// The entry cannot be put in or taken out without a change of something else.
    #[error("the place of the servers is written in a way that cannot be edited safely")]
    Unsafe,
}

impl Table {
    /// A table by names.
    #[must_use]
    pub fn new(format: Syntax, path: &[&str]) -> Self {
        Self {
            format,
            path: path.iter().map(|key| (*key).to_owned()).collect(),
            is_list: false,
        }
    }

    /// A list of named items.
    #[must_use]
    pub fn list(format: Syntax, path: &[&str]) -> Self {
        Self {
            is_list: true,
            ..Self::new(format, path)
        }
    }
}

/// The fields as a JSON object.
pub(super) fn object(fields: &NewEntry) -> Value {
    Value::Object(fields.iter().cloned().collect())
}

/// Puts an entry into the data of a file, or takes it out.
pub(super) fn put(file: &mut Value, table: &Table, name: &str, entry: Option<Value>) {
    let mut at = file;
    for key in &table.path {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        let Value::Object(map) = at else { return };
        at = map.entry(key.clone()).or_insert(Value::Null);
    }
    if table.is_list {
        let mut items = match at.take() {
            Value::Array(items) => items,
            _ => Vec::new(),
        };
        items.retain(|item| item.get("name").and_then(Value::as_str) != Some(name));
        items.extend(entry.map(|mut entry| {
            if let Value::Object(map) = &mut entry {
                map.insert("name".to_owned(), name.into());
            }
            entry
        }));
        *at = Value::Array(items);
        return;
    }
    let mut map = match at.take() {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    match entry {
        Some(entry) => drop(map.insert(name.to_owned(), entry)),
        None => drop(map.remove(name)),
    }
    *at = Value::Object(map);
}

/// Makes an empty table, one without a value and an absent one equal.
pub(super) fn prune(value: &mut Value, path: &[String]) {
    let Some((key, rest)) = path.split_first() else {
        return;
    };
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    let Value::Object(map) = value else { return };
    if let Some(below) = map.get_mut(key) {
        prune(below, rest);
        let empty = match below {
            Value::Null => true,
            Value::Object(map) => map.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        };
        if empty {
            map.remove(key);
        }
    }
}

/// The line end that a text uses most.
pub(super) fn line_end(text: &str) -> &'static str {
    let all = text.matches('\n').count();
    let with_return = text.matches("\r\n").count();
    if with_return * 2 > all { "\r\n" } else { "\n" }
}

/// Line and column of a byte, both from 1; the column in characters.
pub(super) fn place(text: &str, at: usize) -> (usize, usize) {
    let at = (0..=at.min(text.len()))
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or_default();
    let before = text.get(..at).unwrap_or_default();
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    let column = before.get(line_start..).unwrap_or_default().chars().count() + 1;
    (before.matches('\n').count() + 1, column)
}

/// A text with a part replaced.
pub(super) fn spliced(text: &str, part: std::ops::Range<usize>, by: &str) -> String {
    let before = text.get(..part.start);
    let after = text.get(part.end..);
    [before.unwrap_or_default(), by, after.unwrap_or_default()].concat()
}
