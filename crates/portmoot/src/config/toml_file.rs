//! TOML text to a tree with line numbers. Must not know any key.

use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use crate::config::node::{Entry, Layer, Node, Place, Value};
use crate::config::problem::Problem;

/// Reads a TOML document.
///
/// # Errors
/// One problem with its line when the text is not TOML, or holds a date or a number beyond 64 bits.
pub(crate) fn read(text: &str, layer: &Arc<Layer>) -> Result<Node, Problem> {
    let source = Source { text, layer };
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        Problem::new("config_syntax", error.message().trim().replace('\n', ", ")).at(&source.place(at))
    })?;
    let value = source.table(table.get_ref())?;
    Ok(Node { value, place: layer.somewhere() })
}

struct Source<'a> {
    text: &'a str,
    layer: &'a Arc<Layer>,
}

impl Source<'_> {
    fn place(&self, at: usize) -> Place {
        let before = self.text.as_bytes().get(..at).unwrap_or(self.text.as_bytes());
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        Place { layer: Arc::clone(self.layer), line: Some(line) }
    }

    fn node(&self, value: &Spanned<DeValue<'_>>) -> Result<Node, Problem> {
        let place = self.place(value.span().start);
        let value = match value.get_ref() {
            DeValue::String(text) => Value::Text(text.clone().into_owned()),
            DeValue::Boolean(flag) => Value::Flag(*flag),
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
                .map(Value::Integer)
                .map_err(|_| Problem::new("config_value", "a number is too large").at(&place))?,
            DeValue::Float(number) => number
                .as_str()
                .parse()
                .map(Value::Decimal)
                .map_err(|_| Problem::new("config_value", "a number cannot be read").at(&place))?,
            DeValue::Datetime(_) => {
                return Err(Problem::new("config_value", "a date means nothing here").at(&place));
            }
            DeValue::Array(items) => self.list(items)?,
            DeValue::Table(table) => self.table(table)?,
        };
        Ok(Node { value, place })
    }

    fn list(&self, items: &DeArray<'_>) -> Result<Value, Problem> {
        items.iter().map(|item| self.node(item)).collect::<Result<_, _>>().map(Value::List)
    }

    /// In the order of the file: what stands earlier wins where order matters.
    fn table(&self, table: &DeTable<'_>) -> Result<Value, Problem> {
        let mut keys: Vec<_> = table.iter().collect();
        keys.sort_by_key(|(key, _)| key.span().start);
        let entry = |(key, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
            let key_text: &std::borrow::Cow<'_, str> = key.get_ref();
            let node = self.node(value)?;
            Ok(Entry { key: key_text.clone().into_owned(), place: self.place(key.span().start), node })
        };
        keys.into_iter().map(entry).collect::<Result<_, _>>().map(Value::Table)
    }
}
