//! Set-up without an editor: plans of changes to clients' files and to `portmoot.toml`. It asks and
//! prints nothing: the commands do.
//!
//! A plan names the file, has the difference to show, and is made only if no other program changed
//! the file meanwhile.

mod catalog;
mod change;
mod clients;
mod connection;
mod edit;
mod files;
mod import;
mod merge;
mod own;
mod secret;
mod server;
mod shape;
mod tools;

pub use catalog::{CatalogPage, Described, REGISTRY, RegistryEntry, ServerOffer};
pub use change::{CLIENT_SERVERS_MAX, DiffRow, FileChange, SetupError};
pub use clients::{CLIENTS, ClientProgram, FileScope, Os, Spot, Surroundings, client};
pub use connection::{Copies, Ending, Plan, connect, connected, disconnect, look};
pub use edit::{EditError, NewEntry, Syntax, Table, TableEntry};
pub use files::{FILE_BYTES_MAX, FileError, TextFile};
pub use import::{Imported, is_gateway, read};
pub use merge::{ClientServers, Merge, MergedFile, found, merge, write};
pub use own::{
    SCHEMA_FILE, add, check_name, entries, first, is_same, new_problems, put, remove, section,
};
pub use secret::is_secret;
pub use server::{NewServer, NewTransport, literal};
pub use shape::{ClientFormat, Gateway, endpoint};
pub use tools::{ToolEdit, edit_tools};

#[cfg(test)]
mod tests;
