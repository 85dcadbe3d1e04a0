//! Servers found in a client's file.

use setup::{Client, Server, Spot, Surroundings, TextFile};

use crate::failure::Failure;

/// The servers of a client's file.
pub(super) struct Found {
    pub(super) client: &'static Client,
    pub(super) file: TextFile,
    pub(super) servers: Vec<Server>,
    pub(super) notes: Vec<String>,
}

/// Reads the servers of a client's file, without the gateway itself.
pub(super) fn read_servers(
    client: &'static Client,
    spot: &Spot,
    at: &Surroundings<'_>,
) -> Result<Found, Failure> {
    let (file, mut entries) = setup::look(spot)?;
    for table in &spot.others {
        entries.extend(table.entries(&file.text).unwrap_or_default());
    }
    let (mut servers, mut notes): (Vec<Server>, Vec<String>) = (Vec::new(), Vec::new());
    for entry in entries.iter().filter(|entry| !setup::is_gateway(entry, &spot.shape)) {
        let imported = setup::read(entry, &spot.shape, at.project);
        notes.extend(imported.notes);
        let new = imported.server.filter(|one| !servers.iter().any(|known| known.name == one.name));
        servers.extend(new);
    }
    Ok(Found { client, file, servers, notes })
}
