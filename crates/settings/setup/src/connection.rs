//! Connections of clients with the gateway: an entry in the client's file, and a copy of the file
//! from before.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::change::{FileChange, SetupError, edited};
use crate::clients::{ClientProgram, Spot};
use crate::edit::TableEntry;
use crate::files::{FileError, TextFile, digest, read_bytes, write_bytes};
use crate::import::is_gateway;
use crate::shape::Gateway;

/// Folder of the copies in a data directory.
const FOLDER: &str = "clients";
/// Digits of a path's digest in the name of its copy.
const DIGITS: usize = 16;

/// The copies of clients' files from before they were connected.
#[derive(Debug, Clone)]
pub struct Copies {
    folder: PathBuf,
}

/// Record of a connected file.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Record {
    client: String,
    file: PathBuf,
    /// The name of the entry.
    name: String,
    /// Whether the file was there before.
    existed: bool,
    /// SHA-256 of the file as it was written.
    written: String,
}

/// A planned connection, or its end.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Change of the client's file.
    pub change: FileChange,
    /// Whether the end of a connection gives the file back byte for byte.
    pub is_restored: bool,
    copies: Copies,
    /// The record and the copy to keep; `None` at the end of a connection.
    kept: Option<(Record, Option<Vec<u8>>)>,
}

impl Copies {
    /// Copies in a data directory.
    #[must_use]
    pub fn in_dir(data_dir: &Path) -> Self {
        Self {
            folder: data_dir.join(FOLDER),
        }
    }

    fn path(&self, file: &Path, end: &str) -> PathBuf {
        let id = digest(file.as_os_str().as_encoded_bytes());
        self.folder
            .join(format!("{}.{end}", id.get(..DIGITS).unwrap_or(&id)))
    }

    /// The place of the copy of a file.
    #[must_use]
    pub fn copy_of(&self, file: &Path) -> PathBuf {
        self.path(file, "copy")
    }

    /// The record of a file, with the copy; `None` if there is none that can be read.
    fn read(&self, file: &Path) -> Option<(Record, Option<Vec<u8>>)> {
        let record = read_bytes(&self.path(file, "json")).ok()??;
        let record: Record = serde_json::from_slice(&record).ok()?;
        let copy = read_bytes(&self.copy_of(file)).ok()?;
        (record.file == file && record.existed == copy.is_some()).then_some((record, copy))
    }

    fn keep(&self, record: &Record, copy: Option<&[u8]>) -> io::Result<()> {
        let text = serde_json::to_vec(record).map_err(io::Error::other)?;
        match copy {
            Some(copy) => write_bytes(&self.copy_of(&record.file), copy)?,
            None => absent(&self.copy_of(&record.file))?,
        }
        write_bytes(&self.path(&record.file, "json"), &text)
    }

    fn forget(&self, file: &Path) -> io::Result<()> {
        absent(&self.path(file, "json"))?;
        absent(&self.copy_of(file))
    }
}

/// Removes a file if it is there.
fn absent(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The file of a client, and its servers.
///
/// # Errors
/// When the file cannot be read, or is broken.
pub fn look(spot: &Spot) -> Result<(TextFile, Vec<TableEntry>), SetupError> {
    let file = TextFile::read(&spot.file)?;
    let entries = edited(&file, spot.table.entries(&file.text), || None)?;
    Ok((file, entries))
}

/// The names of a file's entries that lead to a gateway.
///
/// # Errors
/// As [`look`].
pub fn connected(spot: &Spot) -> Result<Vec<String>, SetupError> {
    let (_, entries) = look(spot)?;
    Ok(entries
        .into_iter()
        .filter(|entry| is_gateway(entry, &spot.shape))
        .map(|entry| entry.name)
        .collect())
}

/// Plans the connection of a client, under a name. The entries `moved` are taken out: the gateway
/// has these servers.
///
/// # Errors
/// When the file cannot be read or edited; nothing was written.
pub fn connect(
    client: &ClientProgram,
    spot: &Spot,
    (name, gateway): (&str, &Gateway),
    moved: &[String],
    copies: &Copies,
) -> Result<Plan, SetupError> {
    let (file, entries) = look(spot)?;
    let fields = gateway.fields(name, &spot.shape);
    let snippet = || Some(spot.table.snippet(name, &fields));
    let mut text = file.text.clone();
    for other in moved.iter().filter(|other| *other != name) {
        text = edited(&file, spot.table.remove(&text, other), || None)?;
    }
    let expected: serde_json::Value = fields
        .iter()
        .cloned()
        .collect::<serde_json::Map<_, _>>()
        .into();
    let same = |entry: &TableEntry| {
        let mut value = entry.value.clone();
        if let (true, serde_json::Value::Object(map)) = (spot.table.is_list, &mut value) {
            map.remove("name");
        }
        entry.name == name && value == expected
    };
    if !entries.iter().any(same) {
        text = edited(&file, spot.table.insert(&text, name, &fields), snippet)?;
    }
    // The file from before the first connection, if it is as that one left it.
    let written = file.bytes.as_deref().map(digest);
    let before = copies
        .read(&spot.file)
        .filter(|(record, _)| Some(&record.written) == written.as_ref());
    let copy = match before {
        Some((_, copy)) => copy,
        None => {
            let mut text = file.text.clone();
            for entry in entries
                .iter()
                .filter(|entry| entry.name == name && is_gateway(entry, &spot.shape))
            {
                text = edited(&file, spot.table.remove(&text, &entry.name), || None)?;
            }
            file.exists().then(|| file.with_text(&text))
        }
    };
    let change = FileChange::text(file, &text);
    let record = Record {
        client: client.id.to_owned(),
        file: spot.file.clone(),
        name: name.to_owned(),
        existed: copy.is_some(),
        written: digest(change.after.as_deref().unwrap_or_default()),
    };
    Ok(Plan {
        change,
        is_restored: false,
        copies: copies.clone(),
        kept: Some((record, copy)),
    })
}

/// Plans the end of a client's connection: the file from before, if no program changed it since;
/// else the file without the gateway's entries.
///
/// # Errors
/// When the file cannot be read or edited; nothing was written.
pub fn disconnect(spot: &Spot, copies: &Copies) -> Result<Plan, SetupError> {
    let (file, entries) = look(spot)?;
    let written = file.bytes.as_deref().map(digest);
    let record = copies.read(&spot.file);
    let (record, copy) = record.map_or((None, None), |(record, copy)| (Some(record), copy));
    let plan = |change, is_restored| Plan {
        change,
        is_restored,
        copies: copies.clone(),
        kept: None,
    };
    if record
        .as_ref()
        .is_some_and(|record| Some(&record.written) == written.as_ref())
    {
        return Ok(plan(FileChange { file, after: copy }, true));
    }
    let mut text = file.text.clone();
    let own = record.map(|record| record.name);
    for entry in &entries {
        if is_gateway(entry, &spot.shape) || own.as_ref() == Some(&entry.name) {
            text = edited(&file, spot.table.remove(&text, &entry.name), || None)?;
        }
    }
    Ok(plan(FileChange::text(file, &text), false))
}

impl Plan {
    /// Keeps the copy, then changes the file; at the end of a connection, changes the file, then
    /// forgets the copy.
    ///
    /// # Errors
    /// When the copy or the file cannot be written, or another program changed the file meanwhile.
    pub fn make(&self) -> Result<(), FileError> {
        let path = &self.change.file.path;
        let unwritable = |error: io::Error| FileError::Unwritable {
            path: self.copies.folder.clone(),
            why: error.to_string(),
        };
        match &self.kept {
            Some((record, copy)) => {
                self.copies
                    .keep(record, copy.as_deref())
                    .map_err(unwritable)?;
                self.change.make()
            }
            None => {
                self.change.make()?;
                self.copies.forget(path).map_err(unwritable)
            }
        }
    }

    /// Path of the copy.
    #[must_use]
    pub fn copy(&self) -> Option<PathBuf> {
        let (record, copy) = self.kept.as_ref()?;
        copy.as_ref().map(|_| self.copies.copy_of(&record.file))
    }
}
