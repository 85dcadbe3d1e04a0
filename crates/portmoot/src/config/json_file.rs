//! JSON files as trees, members in the order of the file.

use std::fmt::Display;
use std::sync::Arc;

use json::{Span, elements, members_with_duplicates};
use serde::de::IgnoredAny;
use serde_json::Value as Json;

use crate::config::node::{Layer, Location, Node, TreeEntry, Value};
use crate::config::problem::Problem;

/// Reads a JSON document. A `null` member counts as absent.
///
/// # Errors
/// One problem with its line when the text is not JSON or repeats a member.
pub(crate) fn read(text: &str, layer: &Arc<Layer>) -> Result<Node, Problem> {
    let source = Source { text, layer };
    serde_json::from_str::<IgnoredAny>(text).map_err(|error| source.problem(error.line(), &error))?;
    Ok(source.node(Span::all(text.as_bytes()))?.unwrap_or_else(|| Node::empty(layer)))
}

/// A text whose syntax has been checked.
struct Source<'a> {
    text: &'a str,
    layer: &'a Arc<Layer>,
}

impl Source<'_> {
    /// The value at this place; `None` for `null`.
    fn node(&self, place: Span) -> Result<Option<Node>, Problem> {
        let text = self.text.get(place.start..place.end).unwrap_or_default().trim();
        let wrong = |why: &dyn Display| self.problem(self.line(place), why);
        let value = match text.as_bytes().first() {
            Some(b'{') => self.table(place)?,
            Some(b'[') => {
                let items = elements(self.text.as_bytes(), place).map_err(|error| wrong(&error))?;
                let items = items.into_iter().filter_map(|item| self.node(item).transpose());
                Value::List(items.collect::<Result<_, _>>()?)
            }
            _ => match serde_json::from_str(text) {
                // An array or an object begins with its bracket.
                Ok(Json::Null | Json::Array(_) | Json::Object(_)) => return Ok(None),
                Ok(Json::Bool(flag)) => Value::Flag(flag),
                Ok(Json::String(text)) => Value::Text(text),
                Ok(Json::Number(number)) => match (number.as_i64(), number.as_f64()) {
                    (Some(number), _) => Value::Integer(number),
                    (None, Some(decimal)) if number.is_f64() => Value::Decimal(decimal),
                    (None, _) => return Err(wrong(&"a number is too large")),
                },
                Err(error) => return Err(wrong(&error)),
            },
        };
        Ok(Some(Node { value, location: self.layer.unknown_line() }))
    }

    fn table(&self, place: Span) -> Result<Value, Problem> {
        let members = members_with_duplicates(self.text.as_bytes(), place)
            .map_err(|error| self.problem(self.line(place), &error))?;
        let mut table = Vec::with_capacity(members.len());
        for (at, (key, member)) in members.iter().enumerate() {
            if members.iter().take(at).any(|(known, _)| known == key) {
                let why = format!("the member `{key}` occurs twice");
                return Err(self.problem(self.line(member.whole), &why));
            }
            let node = self.node(member.span)?;
            let entry = |node| TreeEntry { key: key.to_owned(), location: self.layer.unknown_line(), node };
            table.extend(node.map(entry));
        }
        Ok(Value::Table(table))
    }

    fn line(&self, place: Span) -> usize {
        self.text.bytes().take(place.start).filter(|byte| *byte == b'\n').count() + 1
    }

    fn problem(&self, line: usize, why: &dyn Display) -> Problem {
        let location = Location { line: Some(line), ..self.layer.unknown_line() };
        let why = why.to_string();
        // The location names the line.
        let message = why.split(" at line ").next().unwrap_or_default();
        Problem::new("config_syntax", message).at(&location).hint("this file must be JSON, without comments")
    }
}
