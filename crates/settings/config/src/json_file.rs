//! JSON files as trees, members in the order of the file.

use std::fmt::Display;
use std::sync::Arc;

use json::{Span, elements, members_with_duplicates};
use serde::de::IgnoredAny;
use serde_json::Value as Json;

use crate::excerpt::secrets;
use crate::jsonc::without_comments;
use crate::node::{Layer, Node, TreeEntry, Value};
use crate::problem::Problem;

/// Reads a JSON document, which may have comments and trailing commas. A `null` member counts as
/// absent.
///
/// # Errors
/// One problem with its place when the text is not JSON or repeats a member.
pub(crate) fn read(layer: &Arc<Layer>) -> Result<Node, Problem> {
    let text = without_comments(&layer.text);
    let source = Source { text: &text, layer };
    serde_json::from_str::<IgnoredAny>(&text).map_err(|error| {
        let why = error.to_string();
        // The location names the line.
        let message = why.split(" at line ").next().unwrap_or_default();
        let problem = source.problem(layer.place(error.line(), error.column()), "", &message);
        problem.hint("this file must be JSON; comments and commas at the end of lists are accepted")
    })?;
    let whole = Span::all(text.as_bytes());
    let tree = source
        .node(whole, "")?
        .unwrap_or_else(|| Node::empty(layer));
    let _ = layer.secrets.set(secrets(&tree));
    Ok(tree)
}

/// A text whose syntax has been checked.
struct Source<'a> {
    text: &'a str,
    layer: &'a Arc<Layer>,
}

impl Source<'_> {
    /// The value at this place; `None` for `null`. `path` names it in messages.
    fn node(&self, place: Span, path: &str) -> Result<Option<Node>, Problem> {
        let place = self.trimmed(place);
        let text = self.text.get(place.start..place.end).unwrap_or_default();
        let wrong = |why: &dyn Display| self.problem(place, path, why);
        let value = match text.as_bytes().first() {
            Some(b'{') => self.table(place, path)?,
            Some(b'[') => {
                let items = elements(self.text.as_bytes(), place).map_err(|error| wrong(&error))?;
                let items = items
                    .into_iter()
                    .filter_map(|item| self.node(item, path).transpose());
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
                // The syntax has been checked: only a number can be out of range.
                Err(_) => return Err(wrong(&"a number is too large")),
            },
        };
        Ok(Some(Node {
            value,
            location: self.layer.at(place),
        }))
    }

    fn table(&self, place: Span, path: &str) -> Result<Value, Problem> {
        let members = members_with_duplicates(self.text.as_bytes(), place)
            .map_err(|error| self.problem(place, path, &error))?;
        let mut table = Vec::with_capacity(members.len());
        for (at, (key, member)) in members.iter().enumerate() {
            let place = self.trimmed(Span {
                start: member.whole.start,
                end: member.span.start,
            });
            if members.iter().take(at).any(|(known, _)| known == key) {
                let why = format!("the member `{key}` occurs twice");
                return Err(self.problem(place, path, &why).hint("keep one of them"));
            }
            let below = if path.is_empty() {
                key.to_owned()
            } else {
                format!("{path}.{key}")
            };
            let location = self.layer.at(place);
            let node = self
                .node(member.span, &below)?
                .map(|node| match node.value {
                    // As in TOML, a table is where its name is.
                    Value::Table(_) => Node {
                        location: location.clone(),
                        ..node
                    },
                    _ => node,
                });
            table.extend(node.map(|node| TreeEntry {
                key: key.to_owned(),
                location,
                node,
            }));
        }
        Ok(Value::Table(table))
    }

    /// A place without the white space around it, and without the colon behind a key.
    fn trimmed(&self, place: Span) -> Span {
        let text = self.text.get(place.start..place.end).unwrap_or_default();
        let start = place.start + text.len() - text.trim_start().len();
        let length = text
            .trim()
            .trim_end_matches(|c: char| c == ':' || c.is_whitespace())
            .len();
        Span {
            start,
            end: start + length,
        }
    }

    fn problem(&self, place: Span, path: &str, why: &dyn Display) -> Problem {
        let why = if path.is_empty() {
            why.to_string()
        } else {
            format!("`{path}`: {why}")
        };
        Problem::new("config_syntax", why).at(&self.layer.at(place))
    }
}
