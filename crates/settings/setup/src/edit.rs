//! Edits of configuration files as texts: one entry of a table is put in or taken out, all other
//! bytes stay as they are.

mod jsonc;
mod lines;
mod parts;
mod toml;
mod yaml;

use serde_json::Value;

pub use parts::{EditError, NewEntry, Syntax, Table, TableEntry};
use parts::{object, prune, put};

impl Table {
    /// The entries of the table; none if the file does not have it.
    ///
    /// # Errors
    /// When the text is not of its format, or the table is something else.
    pub fn entries(&self, text: &str) -> Result<Vec<TableEntry>, EditError> {
        match self.format {
            Syntax::Json => jsonc::entries(self, text),
            Syntax::Toml => toml::entries(self, text),
            Syntax::Yaml => yaml::entries(self, text),
        }
    }

    /// The text with one more entry. It replaces one of the same name.
    ///
    /// # Errors
    /// As [`Table::entries`], and when no edit keeps all else as it is.
    pub fn insert(&self, text: &str, name: &str, fields: &NewEntry) -> Result<String, EditError> {
        let there = self.entries(text)?.iter().any(|entry| entry.name == name);
        if there
            && self.format == Syntax::Toml
            && let Some(replaced) = self.replaced(text, name, fields)
        {
            return Ok(replaced);
        }
        let text = if there {
            self.remove(text, name)?
        } else {
            text.to_owned()
        };
        let edited = match self.format {
            Syntax::Json => jsonc::insert(self, &text, name, fields),
            Syntax::Toml => toml::insert(self, &text, name, fields),
            Syntax::Yaml => yaml::insert(self, &text, name, fields),
        }?;
        let mut expected = self.value(&text)?;
        put(&mut expected, self, name, Some(object(fields)));
        self.verified(edited, expected)
    }

    /// The text with another entry of a name in its place: of two servers, the earlier one gets an
    /// equal URI.
    fn replaced(&self, text: &str, name: &str, fields: &NewEntry) -> Option<String> {
        let edited = toml::replace_section(self, text, name, fields)?;
        let mut expected = self.value(text).ok()?;
        put(&mut expected, self, name, Some(object(fields)));
        self.verified(edited, expected).ok()
    }

    /// The text without an entry; unchanged if it has none of this name.
    ///
    /// # Errors
    /// As [`Table::insert`].
    pub fn remove(&self, text: &str, name: &str) -> Result<String, EditError> {
        if !self.entries(text)?.iter().any(|entry| entry.name == name) {
            return Ok(text.to_owned());
        }
        let edited = match self.format {
            Syntax::Json => jsonc::remove(self, text, name),
            Syntax::Toml => toml::remove(self, text, name),
            Syntax::Yaml => yaml::remove(self, text, name),
        }?;
        let mut expected = self.value(text)?;
        put(&mut expected, self, name, None);
        self.verified(edited, expected)
    }

    /// The text with a key of an entry set, or without it. All other keys of the entry stay. Only
    /// TOML is edited so.
    ///
    /// # Errors
    /// As [`Table::insert`], and when there is no such entry.
    pub fn set(
        &self,
        text: &str,
        name: &str,
        key: &str,
        value: Option<&Value>,
    ) -> Result<String, EditError> {
        if self.format != Syntax::Toml {
            return Err(EditError::Unsafe);
        }
        let mut entries = self.entries(text)?.into_iter();
        let mut entry = entries
            .find(|entry| entry.name == name)
            .ok_or(EditError::Unsafe)?
            .value;
        let fields = entry.as_object_mut().ok_or(EditError::Unsafe)?;
        match value {
            Some(value) => drop(fields.insert(key.to_owned(), value.clone())),
            None => drop(fields.remove(key)),
        }
        let mut expected = self.value(text)?;
        put(&mut expected, self, name, Some(entry));
        let by_lines = toml::set_line(self, text, name, key, value)?;
        let by_lines = by_lines.and_then(|edited| self.verified(edited, expected.clone()).ok());
        match by_lines {
            Some(edited) => Ok(edited),
            None => self.verified(toml::set_item(self, text, name, key, value)?, expected),
        }
    }

    /// The entry as the file would have it, to show what a file that cannot be edited needs.
    #[must_use]
    pub fn snippet(&self, name: &str, fields: &NewEntry) -> String {
        self.insert("", name, fields).unwrap_or_default()
    }

    /// The whole file as data.
    fn value(&self, text: &str) -> Result<Value, EditError> {
        match self.format {
            Syntax::Json => jsonc::value(text),
            Syntax::Toml => toml::value(text),
            Syntax::Yaml => yaml::value(text),
        }
    }

    /// An edited text, if it says what it should.
    fn verified(&self, edited: String, mut expected: Value) -> Result<String, EditError> {
        let mut found = self.value(&edited).map_err(|_| EditError::Unsafe)?;
        prune(&mut expected, &self.path);
        prune(&mut found, &self.path);
        if found == expected {
            Ok(edited)
        } else {
            Err(EditError::Unsafe)
        }
    }
}

#[cfg(test)]
mod tests;
