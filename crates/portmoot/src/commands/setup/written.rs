//! The configuration file as it is written, with the schema beside a first one.

use std::path::Path;

use setup::{Change, SCHEMA_FILE, TextFile};

/// Writes a changed configuration file; beside a new one, the schema for editors.
pub(super) fn write(change: &Change) -> Result<(), setup::FileError> {
    if !change.file.exists() {
        write_schema(&change.file.path)?;
    }
    change.make()
}

/// Writes the schema that a first file names. It is made anew each time: no one edits it.
fn write_schema(file: &Path) -> Result<(), setup::FileError> {
    let path = file.parent().unwrap_or(Path::new("")).join(SCHEMA_FILE);
    let schema = TextFile::read(&path)?;
    Change::text(schema, config::SCHEMA).make()
}
