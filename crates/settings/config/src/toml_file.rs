//! TOML files as trees.

use std::ops::Range;
use std::sync::Arc;

use json::Span;

use crate::excerpt::secrets;
use crate::node::{Layer, Location, Node, TreeEntry, Value};
use crate::problem::Problem;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// Reads a TOML document.
///
/// # Errors
/// One problem with its place when the text is not TOML, or holds a date or a number beyond 64
/// bits.
pub(crate) fn read(layer: &Arc<Layer>) -> Result<Node, Problem> {
    let source = Source { layer };
    let table = DeTable::parse(&layer.text).map_err(|error| {
        let at = error.span().unwrap_or_default();
        Problem::new("config_syntax", error.message().trim().replace('\n', ", "))
            .at(&source.location(at))
    })?;
    let value = source.table(table.get_ref())?;
    let tree = Node {
        value,
        location: layer.unknown_line(),
    };
    let _ = layer.secrets.set(secrets(&tree));
    Ok(tree)
}

struct Source<'a> {
    layer: &'a Arc<Layer>,
}

impl Source<'_> {
    fn location(&self, at: Range<usize>) -> Location {
        self.layer.at(Span {
            start: at.start,
            end: at.end,
        })
    }

    fn node(&self, value: &Spanned<DeValue<'_>>) -> Result<Node, Problem> {
        let location = self.location(value.span());
        let value = match value.get_ref() {
            DeValue::String(text) => Value::Text(text.clone().into_owned()),
            DeValue::Boolean(flag) => Value::Flag(*flag),
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
                .map(Value::Integer)
                .map_err(|_| Problem::new("config_value", "a number is too large").at(&location))?,
            DeValue::Float(number) => {
                number.as_str().parse().map(Value::Decimal).map_err(|_| {
                    Problem::new("config_value", "a number cannot be read").at(&location)
                })?
            }
            DeValue::Datetime(_) => {
                return Err(
                    Problem::new("config_value", "a date is not a valid value here").at(&location),
                );
            }
            DeValue::Array(items) => self.list(items)?,
            DeValue::Table(table) => self.table(table)?,
        };
        Ok(Node { value, location })
    }

    fn list(&self, items: &DeArray<'_>) -> Result<Value, Problem> {
        items
            .iter()
            .map(|item| self.node(item))
            .collect::<Result<_, _>>()
            .map(Value::List)
    }

    /// Converts a table, keeping the order of the file.
    fn table(&self, table: &DeTable<'_>) -> Result<Value, Problem> {
        let mut keys: Vec<_> = table.iter().collect();
        // The parser has them by name.
        keys.sort_by_key(|(key, _)| key.span().start);
        let mut entries = Vec::with_capacity(keys.len());
        for (key, value) in keys {
            entries.push(TreeEntry {
                key: key.get_ref().clone().into_owned(),
                location: self.location(key.span()),
                node: self.node(value)?,
            });
        }
        Ok(Value::Table(entries))
    }
}
