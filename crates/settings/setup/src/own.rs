//! Servers of `portmoot.toml`: put in, taken out; a first file.

use config::{Problem, check_text};
use model::{GATEWAY, IdError, ParticipantId};

use crate::change::{FileChange, SetupError, edited};
use crate::edit::{NewEntry, Syntax, Table, TableEntry};
use crate::files::TextFile;
use crate::server::NewServer;

/// Name of the schema beside a first file.
pub const SCHEMA_FILE: &str = "portmoot.schema.json";
const FIRST: &str = include_str!("first.toml");

/// The table of servers.
fn servers() -> Table {
    Table::new(Syntax::Toml, &["servers"])
}

/// The servers of a configuration file.
///
/// # Errors
/// When the file is broken.
pub fn entries(file: &TextFile) -> Result<Vec<TableEntry>, SetupError> {
    edited(file, servers().entries(&file.text), || None)
}

/// Whether an entry is the same server.
#[must_use]
pub fn is_same(entry: &TableEntry, server: &NewServer) -> bool {
    let fields = server
        .fields()
        .into_iter()
        .collect::<serde_json::Map<_, _>>();
    entry.value == serde_json::Value::Object(fields)
}

/// A server as a section of the file.
#[must_use]
pub fn section(server: &NewServer) -> String {
    servers().snippet(&server.name, &server.fields())
}

/// Why a server cannot have this name.
///
/// # Errors
/// The reason.
pub fn check_name(name: &str) -> Result<(), String> {
    match ParticipantId::new(name) {
        Ok(_) if name == GATEWAY => Err("the gateway uses it itself".to_owned()),
        Ok(_) => Ok(()),
        Err(IdError::Character) => Err(format!(
            "{}: use letters, digits, `-`, `_` and `.`",
            IdError::Character
        )),
        Err(error) => Err(error.to_string()),
    }
}

/// The problems of a changed configuration file that it had not before.
#[must_use]
pub fn new_problems(change: &FileChange, env: &dyn Fn(&str) -> Option<String>) -> Vec<Problem> {
    let name = change.file.path.display().to_string();
    let before = check_text(&name, &change.file.text, env);
    let after = String::from_utf8_lossy(change.after.as_deref().unwrap_or_default()).into_owned();
    let mut problems = check_text(&name, after.strip_prefix('\u{feff}').unwrap_or(&after), env);
    problems.retain(|one| !before.iter().any(|known| known.message == one.message));
    problems
}

/// Plans a file with a server that has these keys; it replaces one of its name. A file that is not
/// there begins with comments.
///
/// # Errors
/// When the file is broken or cannot be edited.
pub fn put(file: TextFile, name: &str, fields: &NewEntry) -> Result<FileChange, SetupError> {
    let text = if file.exists() {
        file.text.clone()
    } else {
        first()
    };
    let snippet = || Some(servers().snippet(name, fields));
    let text = edited(&file, servers().insert(&text, name, fields), snippet)?;
    Ok(FileChange::text(file, &text))
}

/// Plans a file with these servers; each replaces one of its name. A file that is not there begins
/// with comments.
///
/// # Errors
/// When the file is broken or cannot be edited.
pub fn add(file: TextFile, added: &[NewServer]) -> Result<FileChange, SetupError> {
    let mut text = if file.exists() {
        file.text.clone()
    } else {
        first()
    };
    for server in added {
        let fields = server.fields();
        let snippet = || Some(section(server));
        text = edited(
            &file,
            servers().insert(&text, &server.name, &fields),
            snippet,
        )?;
    }
    Ok(FileChange::text(file, &text))
}

/// Plans a file without these servers.
///
/// # Errors
/// As [`add`].
pub fn remove(file: TextFile, names: &[String]) -> Result<FileChange, SetupError> {
    let mut text = file.text.clone();
    for name in names {
        text = edited(&file, servers().remove(&text, name), || None)?;
    }
    Ok(FileChange::text(file, &text))
}

/// The text of a first file: comments with examples, no settings.
#[must_use]
pub fn first() -> String {
    FIRST.replace("SCHEMA", SCHEMA_FILE)
}
