//! Connections of clients with the gateway: an entry in the client's file, and a copy of the file
//! from before.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::change::{FileChange, SetupError, edited};
use crate::clients::{ClientProgram, Spot};
use crate::edit::{NewEntry, TableEntry};
use crate::files::{BOM, FileError, TextFile, digest, read_bytes, write_bytes};
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
    /// SHA-256 of the entry as it was written; empty in a record of an earlier version.
    #[serde(default)]
    entry: String,
    /// Whether the copy is not the file as it was, but without an earlier entry of the gateway.
    #[serde(default)]
    is_edited: bool,
}

/// Way in which a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The file is as it was before the connection, byte for byte.
    Restored,
    /// Another program changed the file since: the gateway's entry alone is taken out, and one that
    /// it replaced is put back.
    Changed,
    /// An earlier connection's entry was there when the connection began: the gateway's entry alone
    /// is taken out.
    TakenOut,
    /// No connection of this file is known: entries that lead to the gateway are taken out.
    Unknown,
}

/// A planned connection, or its end.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Change of the client's file.
    pub change: FileChange,
    /// How the connection ends; `None` if it begins.
    pub ending: Option<Ending>,
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

    /// Whether the last connection of a file wrote this entry, just so.
    fn wrote(&self, entry: &TableEntry, spot: &Spot) -> bool {
        let value = Value::Object(pairs(entry, spot).collect()).to_string();
        self.read(&spot.file).is_some_and(|(record, _)| {
            record.name == entry.name && record.entry == digest(value.as_bytes())
        })
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
    let expected = Value::Object(fields.iter().cloned().collect());
    let same = |entry: &TableEntry| {
        entry.name == name && Value::Object(pairs(entry, spot).collect()) == expected
    };
    if !entries.iter().any(same) {
        text = edited(&file, spot.table.insert(&text, name, &fields), snippet)?;
    }
    let own = entries
        .iter()
        .find(|entry| same(entry) || copies.wrote(entry, spot));
    let (copy, is_edited) = before(&file, own, spot, copies)?;
    let change = FileChange::text(file, &text);
    let record = Record {
        client: client.id.to_owned(),
        file: spot.file.clone(),
        name: name.to_owned(),
        existed: copy.is_some(),
        written: digest(change.after.as_deref().unwrap_or_default()),
        entry: digest(expected.to_string().as_bytes()),
        is_edited,
    };
    Ok(Plan {
        change,
        ending: None,
        copies: copies.clone(),
        kept: Some((record, copy)),
    })
}

/// The keys of an entry, as a client's file has them below its name.
fn pairs(entry: &TableEntry, spot: &Spot) -> impl Iterator<Item = (String, Value)> {
    let has_name = spot.table.is_list;
    let map = entry.value.as_object().cloned().unwrap_or_default();
    map.into_iter()
        .filter(move |(key, _)| !(has_name && key == "name"))
}

/// The copy to keep of a file, and whether it is not the file itself: the file from before the
/// first connection, if no other program changed it since; else the file as it is, but with what the
/// entry `own` of an earlier connection replaced. An entry that a person wrote stays in the copy.
fn before(
    file: &TextFile,
    own: Option<&TableEntry>,
    spot: &Spot,
    copies: &Copies,
) -> Result<(Option<Vec<u8>>, bool), SetupError> {
    let written = file.bytes.as_deref().map(digest);
    let mut earlier = Vec::new();
    if let Some((record, copy)) = copies.read(&spot.file) {
        if Some(&record.written) == written.as_ref() {
            return Ok((copy, record.is_edited));
        }
        earlier = entries_of(copy.as_deref(), spot);
    }
    let text = match own {
        Some(own) => undone(file, &file.text, own, &earlier, spot)?,
        None => file.text.clone(),
    };
    Ok((file.exists().then(|| file.with_text(&text)), own.is_some()))
}

/// The entries of a copy; none of one that cannot be read.
fn entries_of(copy: Option<&[u8]>, spot: &Spot) -> Vec<TableEntry> {
    let text = String::from_utf8_lossy(copy.unwrap_or_default());
    let entries = spot.table.entries(text.trim_start_matches(BOM));
    entries.unwrap_or_default()
}

/// A text of a file without an entry of the gateway, or with the one that it had `earlier` under its
/// name.
fn undone(
    file: &TextFile,
    text: &str,
    entry: &TableEntry,
    earlier: &[TableEntry],
    spot: &Spot,
) -> Result<String, SetupError> {
    let replaced = earlier.iter().find(|one| one.name == entry.name);
    let edit = match replaced {
        Some(same) if same.value == entry.value => return Ok(text.to_owned()),
        Some(replaced) => {
            let fields: NewEntry = pairs(replaced, spot).collect();
            spot.table.insert(text, &entry.name, &fields)
        }
        None => spot.table.remove(text, &entry.name),
    };
    edited(file, edit, || None)
}

/// Plans the end of a client's connection: the file from before, if no program changed it since;
/// else the file without the gateway's entries, and with one that the gateway's replaced.
///
/// # Errors
/// When the file cannot be read or edited; nothing was written.
pub fn disconnect(spot: &Spot, copies: &Copies) -> Result<Plan, SetupError> {
    let (file, entries) = look(spot)?;
    let written = file.bytes.as_deref().map(digest);
    let known = copies.read(&spot.file);
    let plan = |change, ending| Plan {
        change,
        ending: Some(ending),
        copies: copies.clone(),
        kept: None,
    };
    let Some((record, copy)) = known else {
        let text = without_gateway(&file, &entries, spot, &[], None)?;
        return Ok(plan(FileChange::text(file, &text), Ending::Unknown));
    };
    if Some(&record.written) == written.as_ref() {
        let ending = if record.is_edited {
            Ending::TakenOut
        } else {
            Ending::Restored
        };
        return Ok(plan(FileChange { file, after: copy }, ending));
    }
    let earlier = entries_of(copy.as_deref(), spot);
    let text = without_gateway(&file, &entries, spot, &earlier, Some(&record.name))?;
    Ok(plan(FileChange::text(file, &text), Ending::Changed))
}

/// The text of a file without entries that lead to the gateway, and without the one of this name.
/// One of these that the file had `earlier` is there as it was.
fn without_gateway(
    file: &TextFile,
    entries: &[TableEntry],
    spot: &Spot,
    earlier: &[TableEntry],
    own: Option<&String>,
) -> Result<String, SetupError> {
    let mut text = file.text.clone();
    let of_gateway = |entry: &&TableEntry| {
        is_gateway(entry, &spot.shape) || own.is_some_and(|own| *own == entry.name)
    };
    for entry in entries.iter().filter(of_gateway) {
        text = undone(file, &text, entry, earlier, spot)?;
    }
    Ok(text)
}

impl Plan {
    /// Keeps the copy, then changes the file; at the end of a connection, changes the file, then
    /// forgets the copy. No other plan is made meanwhile.
    ///
    /// # Errors
    /// When the copy or the file cannot be written, or another program changed the file meanwhile.
    pub fn make(&self) -> Result<(), FileError> {
        let path = &self.change.file.path;
        let unwritable = |error: io::Error| FileError::Unwritable {
            path: self.copies.folder.clone(),
            why: error.to_string(),
        };
        let change = self.change.hold()?;
        match &self.kept {
            Some((record, copy)) => {
                self.copies
                    .keep(record, copy.as_deref())
                    .map_err(unwritable)?;
                change.make()
            }
            None => {
                change.make()?;
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

    /// Whether the copy is the file as it was before the connection, byte for byte.
    #[must_use]
    pub fn is_copy_exact(&self) -> bool {
        self.kept
            .as_ref()
            .is_some_and(|(record, _)| !record.is_edited)
    }

    /// The names of entries that lead to a gateway once the plan is made: at the end of a
    /// connection, those that were there before it.
    #[must_use]
    pub fn left(&self, spot: &Spot) -> Vec<String> {
        entries_of(self.change.after.as_deref(), spot)
            .into_iter()
            .filter(|entry| is_gateway(entry, &spot.shape))
            .map(|entry| entry.name)
            .collect()
    }
}
