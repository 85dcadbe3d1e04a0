//! TOML files as trees with line numbers.

use std::sync::Arc;

use crate::config::node::{Layer, Location, Node, TreeEntry, Value};
use crate::config::problem::Problem;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// Reads a TOML document.
///
/// # Errors
/// One problem with its line when the text is not TOML, or holds a date or a number beyond 64 bits.
pub(crate) fn read(text: &str, layer: &Arc<Layer>) -> Result<Node, Problem> {
    let line_ends = text.match_indices('\n').map(|(at, _)| at).collect();
    let source = Source { line_ends, layer };
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        Problem::new("config_syntax", error.message().trim().replace('\n', ", ")).at(&source.location(at))
    })?;
    let value = source.table(table.get_ref())?;
    Ok(Node { value, location: layer.unknown_line() })
}

struct Source<'a> {
    /// The position of each line's end in the text.
    line_ends: Vec<usize>,
    layer: &'a Arc<Layer>,
}

impl Source<'_> {
    fn location(&self, at: usize) -> Location {
        let line = self.line_ends.partition_point(|end| *end < at) + 1;
        Location { layer: Arc::clone(self.layer), line: Some(line) }
    }

    fn node(&self, value: &Spanned<DeValue<'_>>) -> Result<Node, Problem> {
        let location = self.location(value.span().start);
        let value = match value.get_ref() {
            DeValue::String(text) => Value::Text(text.clone().into_owned()),
            DeValue::Boolean(flag) => Value::Flag(*flag),
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
                .map(Value::Integer)
                .map_err(|_| Problem::new("config_value", "a number is too large").at(&location))?,
            DeValue::Float(number) => number
                .as_str()
                .parse()
                .map(Value::Decimal)
                .map_err(|_| Problem::new("config_value", "a number cannot be read").at(&location))?,
            DeValue::Datetime(_) => {
                return Err(Problem::new("config_value", "a date is not a valid value here").at(&location));
            }
            DeValue::Array(items) => self.list(items)?,
            DeValue::Table(table) => self.table(table)?,
        };
        Ok(Node { value, location })
    }

    fn list(&self, items: &DeArray<'_>) -> Result<Value, Problem> {
        items.iter().map(|item| self.node(item)).collect::<Result<_, _>>().map(Value::List)
    }

    /// Converts a table, keeping the order of the file.
    fn table(&self, table: &DeTable<'_>) -> Result<Value, Problem> {
        let mut keys: Vec<_> = table.iter().collect();
        keys.sort_by_key(|(key, _)| key.span().start);
        let entry = |(key, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
            let key_text: &std::borrow::Cow<'_, str> = key.get_ref();
            let node = self.node(value)?;
            Ok(TreeEntry {
                key: key_text.clone().into_owned(),
                location: self.location(key.span().start),
                node,
            })
        };
        keys.into_iter().map(entry).collect::<Result<_, _>>().map(Value::Table)
    }
}
