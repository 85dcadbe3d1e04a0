//! Places in a value, for errors and as JSON pointers.

use std::borrow::Cow;
use std::fmt::Write as _;

use prost_reflect::{DynamicMessage, Kind, Value};

/// A value that a message, or JSON, cannot carry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{why}", if field.is_empty() { String::new() } else { format!("{field}: ") })]
pub struct ValueError {
    /// Place of the fault, such as `filter.tags[2]` or `labels["a"]`; empty for the whole value.
    pub field: String,
    /// Fault of the value.
    pub why: String,
}

/// Messages, and entries of maps, inside each other: protobuf's runtimes read no more.
pub(super) const DEPTH_MAX: usize = 100;

enum Step<'a> {
    Member(Cow<'a, str>),
    Key(Cow<'a, str>),
    Index(usize),
}

/// The steps from the whole value to one inside.
#[derive(Default)]
pub(super) struct Path<'a> {
    steps: Vec<Step<'a>>,
    /// Messages around the value.
    depth: usize,
}

impl<'a> Path<'a> {
    pub(super) fn member(&mut self, name: impl Into<Cow<'a, str>>) {
        self.steps.push(Step::Member(name.into()));
    }

    pub(super) fn key(&mut self, key: impl Into<Cow<'a, str>>) {
        self.steps.push(Step::Key(key.into()));
    }

    pub(super) fn index(&mut self, index: usize) {
        self.steps.push(Step::Index(index));
    }

    pub(super) fn leave(&mut self) {
        self.steps.pop();
    }

    /// Enters this many messages.
    pub(super) fn deeper(&mut self, messages: usize) -> Result<(), ValueError> {
        self.depth += messages;
        if self.depth > DEPTH_MAX {
            return Err(self.error(format!("nested deeper than {DEPTH_MAX} messages")));
        }
        Ok(())
    }

    pub(super) fn back(&mut self, messages: usize) {
        self.depth -= messages;
    }

    pub(super) fn error(&self, why: impl Into<String>) -> ValueError {
        let mut field = String::new();
        for step in &self.steps {
            let dot = if field.is_empty() { "" } else { "." };
            let _ = match step {
                Step::Member(name) => write!(field, "{dot}{name}"),
                Step::Key(key) => write!(field, "[{}]", json::quote(key)),
                Step::Index(index) => write!(field, "[{index}]"),
            };
        }
        ValueError {
            field,
            why: why.into(),
        }
    }

    pub(super) fn pointer(&self) -> String {
        let mut pointer = String::new();
        for step in &self.steps {
            pointer.push('/');
            match step {
                Step::Member(name) | Step::Key(name) => {
                    pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
                }
                Step::Index(index) => {
                    let _ = write!(pointer, "{index}");
                }
            }
        }
        pointer
    }
}

/// An error of the whole value.
pub(super) fn whole(why: String) -> ValueError {
    ValueError {
        field: String::new(),
        why,
    }
}

/// Refuses fields that the descriptors do not have.
pub(super) fn refuse_unknown(message: &DynamicMessage) -> Result<(), ValueError> {
    search(message, &mut Path::default())
}

fn search(message: &DynamicMessage, path: &mut Path<'_>) -> Result<(), ValueError> {
    if let Some(unknown) = message.unknown_fields().next() {
        return Err(path.error(format!(
            "has a field {} that the schema does not name",
            unknown.number()
        )));
    }
    for (field, value) in message.fields() {
        if !matches!(field.kind(), Kind::Message(_)) {
            continue;
        }
        path.member(field.name().to_owned());
        match value {
            Value::Message(inner) => search(inner, path)?,
            Value::List(list) => {
                for (at, inner) in list.iter().enumerate() {
                    path.index(at);
                    if let Some(inner) = inner.as_message() {
                        search(inner, path)?;
                    }
                    path.leave();
                }
            }
            Value::Map(map) => {
                for inner in map.values() {
                    if let Some(inner) = inner.as_message() {
                        search(inner, path)?;
                    }
                }
            }
            _ => {}
        }
        path.leave();
    }
    Ok(())
}
