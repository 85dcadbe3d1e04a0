//! Edits of configuration files as texts: one entry of a table is put in or taken out, all other bytes stay as they are.

mod jsonc;
mod lines;
mod parts;
mod toml;
mod yaml;

use serde_json::Value;

pub use parts::{EditError, Fields, Format, Table, TableEntry};
use parts::{object, prune, put};

impl Table {
    /// The entries of the table; none if the file does not have it.
    ///
    /// # Errors
    /// When the text is not of its format, or the table is something else.
    pub fn entries(&self, text: &str) -> Result<Vec<TableEntry>, EditError> {
        match self.format {
            Format::Json => jsonc::entries(self, text),
            Format::Toml => toml::entries(self, text),
            Format::Yaml => yaml::entries(self, text),
        }
    }

    /// The text with one more entry. It replaces one of the same name.
    ///
    /// # Errors
    /// As [`Table::entries`], and when no edit keeps all else as it is.
    pub fn insert(&self, text: &str, name: &str, fields: &Fields) -> Result<String, EditError> {
        let there = self.entries(text)?.iter().any(|entry| entry.name == name);
        if there
            && self.format == Format::Toml
            && let Some(replaced) = self.replaced(text, name, fields)
        {
            return Ok(replaced);
        }
        let text = if there { self.remove(text, name)? } else { text.to_owned() };
        let edited = match self.format {
            Format::Json => jsonc::insert(self, &text, name, fields),
            Format::Toml => toml::insert(self, &text, name, fields),
            Format::Yaml => yaml::insert(self, &text, name, fields),
        }?;
        let mut expected = self.value(&text)?;
        put(&mut expected, self, name, Some(object(fields)));
        self.verified(edited, expected)
    }

    /// The text with another entry of a name in its place: of two servers, the earlier one gets an equal URI.
    fn replaced(&self, text: &str, name: &str, fields: &Fields) -> Option<String> {
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
            Format::Json => jsonc::remove(self, text, name),
            Format::Toml => toml::remove(self, text, name),
            Format::Yaml => yaml::remove(self, text, name),
        }?;
        let mut expected = self.value(text)?;
        put(&mut expected, self, name, None);
        self.verified(edited, expected)
    }

    /// The entry as the file would have it, to show what a file that cannot be edited needs.
    #[must_use]
    pub fn snippet(&self, name: &str, fields: &Fields) -> String {
        self.insert("", name, fields).unwrap_or_default()
    }

    /// The whole file as data.
    fn value(&self, text: &str) -> Result<Value, EditError> {
        match self.format {
            Format::Json => jsonc::value(text),
            Format::Toml => toml::value(text),
            Format::Yaml => yaml::value(text),
        }
    }

    /// An edited text, if it says what it should.
    fn verified(&self, edited: String, mut expected: Value) -> Result<String, EditError> {
        let mut found = self.value(&edited).map_err(|_| EditError::Unsafe)?;
        prune(&mut expected, &self.path);
        prune(&mut found, &self.path);
        if found == expected { Ok(edited) } else { Err(EditError::Unsafe) }
    }
}

#[cfg(test)]
mod tests;
