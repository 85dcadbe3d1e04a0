//! Typed reading of a tree. Reading continues after a problem, so that one run reports all of them.

use crate::hidden::SECRET_TABLES;
use crate::node::{Location, Node, TreeEntry, Value};
use crate::problem::{Problem, suggestion};
use crate::show::toml_key;
use std::cell::RefCell;
use std::time::Duration;

/// The problems found so far.
#[derive(Default)]
pub(crate) struct Problems {
    found: RefCell<Vec<Problem>>,
    /// Every key that was read, by its full name, to compare with the documentation.
    #[cfg(test)]
    pub(crate) read_keys: RefCell<std::collections::BTreeSet<String>>,
    /// The form of every key that was read, for the schema.
    #[cfg(test)]
    pub(crate) forms: RefCell<std::collections::BTreeMap<String, ValueForm>>,
}

/// The form of a value, as the schema for editors states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ValueForm {
    Text,
    Flag,
    Count,
    Decimal,
    Bytes,
    Duration,
    /// One of these words.
    Choice(Vec<&'static str>),
    List,
    Texts,
    /// A list of these words.
    Choices(Vec<&'static str>),
    Table,
    /// A table of values by names.
    Entries,
    /// A table of tables by names.
    Tables,
}

impl Problems {
    pub(crate) fn note(&self, problem: Problem) {
        self.found.borrow_mut().push(problem);
    }

    /// Notes that the value at a location cannot be used.
    pub(crate) fn note_value(
        &self,
        location: &Location,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.note(
            Problem::new("config_value", message)
                .at(location)
                .hint(hint),
        );
    }

    /// The number of problems so far.
    pub(crate) fn count(&self) -> usize {
        self.found.borrow().len()
    }

    /// Takes the problems after the first ones.
    pub(crate) fn take_from(&self, count: usize) -> Vec<Problem> {
        let mut found = self.found.borrow_mut();
        let count = count.min(found.len());
        found.split_off(count)
    }

    pub(crate) fn into_inner(self) -> Vec<Problem> {
        self.found.into_inner()
    }
}

/// A text of a list of texts.
#[derive(Clone, Copy)]
pub(crate) struct ListedText<'a> {
    pub(crate) text: &'a str,
    pub(crate) location: &'a Location,
}

/// A table being read. Keys that were not read before [`Table::finish`] are unknown.
pub(crate) struct Table<'a> {
    node: &'a Node,
    path: String,
    read_keys: RefCell<Vec<&'static str>>,
    problems: &'a Problems,
}

impl<'a> Table<'a> {
    pub(crate) fn root(node: &'a Node, problems: &'a Problems) -> Table<'a> {
        Table {
            node,
            path: String::new(),
            read_keys: RefCell::default(),
            problems,
        }
    }

    /// Name of the table in messages.
    pub(crate) fn name(&self) -> String {
        if self.path.is_empty() {
            "the configuration".into()
        } else {
            format!("`[{}]`", self.path)
        }
    }

    pub(crate) fn location(&self) -> &'a Location {
        &self.node.location
    }

    pub(crate) fn problems(&self) -> &'a Problems {
        self.problems
    }

    /// Notes a problem in this table.
    pub(crate) fn wrong(
        &self,
        code: &'static str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.problems
            .note(Problem::new(code, message).at(self.location()).hint(hint));
    }

    /// The value under a key; marks the key as known.
    pub(crate) fn get(&self, key: &'static str) -> Option<&'a Node> {
        self.read_keys.borrow_mut().push(key);
        #[cfg(test)]
        self.problems.read_keys.borrow_mut().insert(self.full(key));
        self.node.get(key)
    }

    pub(crate) fn text(&self, key: &'static str) -> Option<&'a str> {
        self.form(key, ValueForm::Text);
        self.read(key, "a text", |value| match value {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }

    pub(crate) fn flag(&self, key: &'static str) -> Option<bool> {
        self.form(key, ValueForm::Flag);
        self.read(key, "true or false", |value| match value {
            Value::Flag(flag) => Some(*flag),
            _ => None,
        })
    }

    pub(crate) fn count(&self, key: &'static str) -> Option<u64> {
        self.form(key, ValueForm::Count);
        self.read(key, "a whole number", |value| match value {
            Value::Integer(number) => u64::try_from(*number).ok(),
            _ => None,
        })
    }

    /// A number of bytes: `4096`, `"64KiB"`, `"4MiB"`.
    /// A number, whole or not.
    pub(crate) fn decimal(&self, key: &'static str) -> Option<f64> {
        self.form(key, ValueForm::Decimal);
        self.read(key, "a number", |value| match value {
            Value::Decimal(number) => Some(*number),
            Value::Integer(number) => i32::try_from(*number).ok().map(f64::from),
            _ => None,
        })
    }

    pub(crate) fn bytes(&self, key: &'static str) -> Option<usize> {
        self.form(key, ValueForm::Bytes);
        self.read(
            key,
            "a number of bytes, such as 65536 or \"64KiB\"",
            |value| match value {
                Value::Integer(number) => usize::try_from(*number).ok(),
                Value::Text(text) => bytes(text),
                _ => None,
            },
        )
    }

    /// A span of time with its unit: `"500ms"`, `"30s"`, `"5m"`, `"2h"`.
    pub(crate) fn duration(&self, key: &'static str) -> Option<Duration> {
        self.form(key, ValueForm::Duration);
        self.read(key, DURATION, |value| match value {
            Value::Text(text) => duration(text),
            _ => None,
        })
    }

    /// One of several words.
    pub(crate) fn choice<T: Copy>(
        &self,
        key: &'static str,
        choices: &[(&'static str, T)],
    ) -> Option<T> {
        let written = self.text(key);
        let words: Vec<&'static str> = choices.iter().map(|(word, _)| *word).collect();
        // Before the return for a key that is not written: the schema has those too.
        self.form(key, ValueForm::Choice(words.clone()));
        let written = written?;
        for (word, value) in choices {
            if *word == written {
                return Some(*value);
            }
        }
        let message = format!("`{written}` is not a value of `{}`", self.full(key));
        let otherwise = format!("one of `{}`", words.join("`, `"));
        let problem = Problem::new("config_value", message).at(self.place(key));
        self.problems
            .note(problem.suggest(written, words, otherwise));
        None
    }

    /// The items of a list.
    pub(crate) fn list(&self, key: &'static str) -> Option<&'a [Node]> {
        self.form(key, ValueForm::List);
        self.read(key, "a list", |value| match value {
            Value::List(items) => Some(items.as_slice()),
            _ => None,
        })
    }

    /// A list of texts with their locations.
    pub(crate) fn texts(&self, key: &'static str) -> Option<Vec<ListedText<'a>>> {
        let items = self.list(key);
        self.form(key, ValueForm::Texts);
        let mut texts = Vec::new();
        for item in items? {
            let location = &item.location;
            match item.text() {
                Some(text) => texts.push(ListedText { text, location }),
                None => self.mistyped(key, location, "a list of texts", &item.value),
            }
        }
        Some(texts)
    }

    /// The texts of a list without their locations; none if the key is not written.
    pub(crate) fn plain_texts(&self, key: &'static str) -> Vec<String> {
        self.texts(key)
            .unwrap_or_default()
            .iter()
            .map(|one| one.text.to_owned())
            .collect()
    }

    /// The table under a key.
    pub(crate) fn table(&self, key: &'static str) -> Option<Table<'a>> {
        self.form(key, ValueForm::Table);
        let node = self.get(key)?;
        match &node.value {
            Value::Table(_) => Some(self.child(self.full(key), node)),
            other => {
                self.mistyped(key, &node.location, "a table", other);
                None
            }
        }
    }

    /// The entries of the table under a key.
    pub(crate) fn entries(&self, key: &'static str) -> &'a [TreeEntry] {
        self.form(key, ValueForm::Entries);
        self.read(key, "a table", |value| match value {
            Value::Table(entries) => Some(entries.as_slice()),
            _ => None,
        })
        .unwrap_or_default()
    }

    /// The tables under a key, by their names.
    pub(crate) fn tables(&self, key: &'static str) -> Vec<(&'a TreeEntry, Table<'a>)> {
        let entries = self.entries(key);
        self.form(key, ValueForm::Tables);
        let mut tables = Vec::with_capacity(entries.len());
        for entry in entries {
            if let Value::Table(_) = &entry.node.value {
                let path = format!("{}.{}", self.full(key), toml_key(&entry.key));
                tables.push((entry, self.child(path, &entry.node)));
            } else {
                self.mistyped(key, &entry.location, "a table of tables", &entry.node.value);
            }
        }
        tables
    }

    /// Notes the form of a key, where it is not what the last reading of the key says.
    pub(crate) fn form(&self, key: &'static str, form: ValueForm) {
        #[cfg(test)]
        self.problems
            .forms
            .borrow_mut()
            .insert(self.full(key), form);
        // Only the test that writes the schema reads it.
        #[cfg(not(test))]
        let _ = (key, form);
    }

    /// The tables of a list of tables, as `[[a.b]]` writes it.
    pub(crate) fn items(&self, key: &'static str) -> Vec<Table<'a>> {
        let mut tables = Vec::new();
        for item in self.list(key).unwrap_or_default() {
            if let Value::Table(_) = &item.value {
                tables.push(self.child(self.full(key), item));
            } else {
                self.mistyped(key, &item.location, "a list of tables", &item.value);
            }
        }
        tables
    }

    /// Notes a problem for every unknown key.
    pub(crate) fn finish(self) {
        self.finish_by_ref();
    }

    /// Notes a problem for every unknown key of a table that is read further.
    pub(crate) fn finish_by_ref(&self) {
        let read_keys = self.read_keys.borrow();
        for entry in self.node.entries() {
            if read_keys.contains(&entry.key.as_str()) {
                continue;
            }
            let message = format!("unknown key `{}` in {}", entry.key, self.name());
            let mut problem = Problem::new("config_unknown_key", message).at(&entry.location);
            problem.hint = suggestion(&entry.key, read_keys.iter().copied());
            self.problems.note(problem);
        }
    }

    /// Notes that the value of a key cannot be used.
    pub(crate) fn note_value(&self, key: &str, message: String, hint: impl Into<String>) {
        self.note_at(key, "config_value", message, hint);
    }

    /// Notes a problem in the value of a key.
    pub(crate) fn note_at(
        &self,
        key: &str,
        code: &'static str,
        message: String,
        hint: impl Into<String>,
    ) {
        self.problems
            .note(Problem::new(code, message).at(self.place(key)).hint(hint));
    }

    /// The location of a value; that of the table if the key is missing.
    pub(crate) fn place(&self, key: &str) -> &'a Location {
        self.node
            .get(key)
            .map_or(self.location(), |node| &node.location)
    }

    /// The full name of a key of this table.
    pub(crate) fn full(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    fn child(&self, path: String, node: &'a Node) -> Table<'a> {
        Table {
            node,
            path,
            read_keys: RefCell::default(),
            problems: self.problems,
        }
    }

    fn read<T>(
        &self,
        key: &'static str,
        wanted: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Option<T> {
        let node = self.get(key)?;
        let value = read(&node.value);
        if value.is_none() {
            self.mistyped(key, &node.location, wanted, &node.value);
        }
        value
    }

    /// Notes that a value has another type than its key wants.
    fn mistyped(&self, key: &str, location: &Location, wanted: &str, found: &Value) {
        let found = match found {
            // A text there is a secret, which is in no message.
            Value::Text(_) if SECRET_TABLES.contains(&key) => found.what().to_owned(),
            Value::Text(text) => format!("\"{text}\""),
            Value::Integer(number) => number.to_string(),
            Value::Decimal(number) => number.to_string(),
            Value::Flag(flag) => flag.to_string(),
            Value::List(_) | Value::Table(_) => found.what().to_owned(),
        };
        let message = format!("`{}` must be {wanted}, not {found}", self.full(key));
        self.problems
            .note(Problem::new("config_value", message).at(location));
    }
}

/// The format of durations, for messages.
pub const DURATION: &str =
    "a duration with its unit, such as \"500ms\", \"30s\", \"5m\", \"2h\" or \"7d\"";

/// Parses `"500ms"`, `"30s"`, `"5m"`, `"2h"`, `"7d"`; zero is not accepted.
pub fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let number: u64 = number.parse().ok().filter(|number| *number > 0)?;
    let millis = match unit.trim() {
        "ms" => 1,
        "s" => 1_000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.checked_mul(millis).map(Duration::from_millis)
}

/// A number of bytes: `4096`, `"64KiB"`, `"4MiB"`.
fn bytes(text: &str) -> Option<usize> {
    let (number, unit) = text.split_at(
        text.find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len()),
    );
    let number: usize = number.parse().ok()?;
    let unit = match unit.trim() {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes() {
        for (text, expect) in [
            ("500ms", Some(500)),
            ("30s", Some(30_000)),
            ("5m", Some(300_000)),
            ("2 h", Some(7_200_000)),
            ("7d", Some(604_800_000)),
            ("0s", None),
            ("30", None),
            ("s", None),
            ("-1s", None),
            ("1.5s", None),
            ("30 sheep", None),
            ("", None),
        ] {
            assert_eq!(duration(text), expect.map(Duration::from_millis), "{text}");
        }
        for (text, expect) in [
            ("12", Some(12)),
            ("64KiB", Some(65_536)),
            ("4 MiB", Some(4 << 20)),
            ("4MB", None),
            ("x", None),
        ] {
            assert_eq!(bytes(text), expect, "{text}");
        }
    }
}
