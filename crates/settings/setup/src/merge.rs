//! Servers of a client's file, put into the configuration file beside those that are there.

use std::path::Path;

use crate::change::{CLIENT_SERVERS_MAX, FileChange, SetupError};
use crate::clients::{ClientProgram, Spot, Surroundings};
use crate::connection::look;
use crate::files::{FileError, TextFile};
use crate::import::{is_gateway, read};
use crate::own::{self, SCHEMA_FILE};
use crate::server::NewServer;

/// The servers of a client's file.
#[derive(Clone)]
pub struct ClientServers {
    /// The client.
    pub client: &'static ClientProgram,
    /// Its file.
    pub file: TextFile,
    /// The servers, without the gateway itself.
    pub servers: Vec<NewServer>,
    /// Notes that a person must read.
    pub notes: Vec<String>,
}

/// Way in which imported servers meet those that are there.
#[derive(Debug, Clone, Copy, Default)]
pub struct Merge {
    /// They replace others of their names.
    pub replace: bool,
    /// Their secrets become references to environment variables.
    pub hide_secrets: bool,
}

/// The configuration file with a client's servers.
#[derive(Debug, Clone)]
pub struct MergedFile {
    /// Change of the file.
    pub change: FileChange,
    /// The servers that are new in it.
    pub names: Vec<String>,
    /// Servers of the client that the file has afterwards, just so.
    pub there: Vec<String>,
    /// Notes that a person must read.
    pub notes: Vec<String>,
}

/// Reads the servers of a client's file.
///
/// # Errors
/// When the file cannot be read, is broken, or has more than [`CLIENT_SERVERS_MAX`].
pub fn found(
    client: &'static ClientProgram,
    spot: &Spot,
    at: &Surroundings<'_>,
) -> Result<ClientServers, SetupError> {
    let (file, mut entries) = look(spot)?;
    for table in &spot.others {
        entries.extend(table.entries(&file.text).unwrap_or_default());
    }
    if entries.len() > CLIENT_SERVERS_MAX {
        let path = file.path.display().to_string();
        return Err(SetupError::TooMany {
            path,
            count: entries.len(),
        });
    }
    let mut servers: Vec<NewServer> = Vec::new();
    let mut notes: Vec<String> = Vec::new();
    for entry in &entries {
        // The gateway would be a server of its own.
        if is_gateway(entry, &spot.shape) {
            continue;
        }
        let imported = read(entry, &spot.shape, at.project);
        notes.extend(imported.notes);
        // Two names may become the same one: the first entry has it.
        if let Some(server) = imported.server
            && !servers.iter().any(|known| known.name == server.name)
        {
            servers.push(server);
        }
    }
    Ok(ClientServers {
        client,
        file,
        servers,
        notes,
    })
}

/// Plans a configuration file with a client's servers.
///
/// # Errors
/// When the configuration file is broken or cannot be edited.
pub fn merge(found: ClientServers, file: TextFile, how: Merge) -> Result<MergedFile, SetupError> {
    let known = own::entries(&file)?;
    let mut new = Vec::new();
    let mut there = Vec::new();
    let mut notes = found.notes;
    let mut kept = Vec::new();
    for mut server in found.servers {
        let variables = if how.hide_secrets {
            server.hide_secrets()
        } else {
            Vec::new()
        };
        let name = server.name.clone();
        let same = known.iter().find(|entry| entry.name == name);
        if same.is_some_and(|entry| own::is_same(entry, &server)) {
            there.push(name);
            continue;
        }
        if same.is_some() && !how.replace {
            let path = file.path.display();
            notes.push(format!(
                "`{name}`: {path} has another server of this name, which stays"
            ));
            continue;
        }
        let path = found.file.path.display();
        for variable in &variables {
            notes.push(format!(
                "`{name}`: set {variable} where the gateway starts; its value is in {path}"
            ));
        }
        kept.extend(server.secrets());
        there.push(name);
        new.push(server);
    }
    if !kept.is_empty() {
        notes.push(format!(
            "copied with their values, as the client has them: {}; with --hide-secrets they become ${{NAME}}",
            kept.join(", ")
        ));
    }
    // A file without anything new stays as it is, or absent.
    let change = if new.is_empty() {
        FileChange::none(file)
    } else {
        own::add(file, &new)?
    };
    let names = new.into_iter().map(|server| server.name).collect();
    Ok(MergedFile {
        change,
        names,
        there,
        notes,
    })
}

/// Writes a changed configuration file; beside a new one, the schema for editors, which is made
/// anew each time.
///
/// # Errors
/// When another program changed a file meanwhile, or it cannot be written.
pub fn write(change: &FileChange, schema: &str) -> Result<(), FileError> {
    if !change.file.exists() {
        let path = change
            .file
            .path
            .parent()
            .unwrap_or(Path::new(""))
            .join(SCHEMA_FILE);
        FileChange::text(TextFile::read(&path)?, schema).make()?;
    }
    change.make()
}
