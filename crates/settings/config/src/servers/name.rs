//! Name of a server in topics, and the prefix of the public names of what it has.

use std::sync::Arc;

use identity::is_gateways_name;
use model::{GATEWAY, IdError, ParticipantId};
use sha2::{Digest as _, Sha256};

use crate::node::TreeEntry;
use crate::problem::Problem;
use crate::reader::{Problems, Table};
use crate::values::participant_id;

/// The name of a server. MCP clients allow white space in names; ids have none, so it becomes `-`.
pub(crate) fn server_name(key: &str) -> String {
    let words: Vec<&str> = key.split_whitespace().collect();
    if words.is_empty() {
        key.to_owned()
    } else {
        words.join("-")
    }
}

/// The name under which a server of this name is in topics: its own, or another one where that
/// belongs to callers or the gateway (`local`, `anonymous-1`, `rules`, `system`, and what looks like
/// them).
#[must_use]
pub fn free_name(name: &str) -> String {
    let is_taken = is_gateways_name(name) || ParticipantId::new(name) == Err(IdError::Reserved);
    if is_taken && name != GATEWAY {
        format!("server-{name}")
    } else {
        name.to_owned()
    }
}

pub(super) fn server_id(
    entry: &TreeEntry,
    problems: &Problems,
    notices: &mut Vec<String>,
) -> Option<ParticipantId> {
    let written = server_name(&entry.key);
    let name = free_name(&written);
    if name != written {
        notices.push(format!(
            "{}: the server `{written}` is called `{name}`: callers or the gateway have its own name",
            entry.location
        ));
    }
    if name == GATEWAY {
        let problem = Problem::new(
            "config_name",
            format!("a server cannot be called `{GATEWAY}`"),
        )
        .at(&entry.location);
        problems.note(problem.hint("the gateway uses that name itself: choose another"));
        return None;
    }
    participant_id(&name, &entry.location, problems)
}

/// The prefix of public names. Tool names have letters, digits, `_`, `-` and `.` only.
pub(super) fn prefix(table: &Table<'_>, name: Option<&ParticipantId>) -> Arc<str> {
    match table.text("prefix") {
        Some(prefix) if prefix.chars().all(fits_prefix) => prefix.into(),
        Some(prefix) => {
            let message = format!(
                "`{}`: `{}` cannot be part of a tool name",
                table.full("prefix"),
                prefix.escape_debug()
            );
            table.note_value("prefix", message, "use letters, digits, `_`, `-` and `.`");
            prefix.into()
        }
        None => default_prefix(name.map(ParticipantId::as_str).unwrap_or_default()).into(),
    }
}

/// The prefix of a server without a configured one: its name with `_` for other characters. Where
/// these are letters of other scripts, which would all be `_`, what is left is followed by digits
/// that differ where names differ.
pub(super) fn default_prefix(name: &str) -> String {
    let fitting: String = name
        .chars()
        .map(|c| if fits_prefix(c) { c } else { '_' })
        .collect();
    if name.is_ascii() {
        return fitting;
    }
    let mut left: String = fitting
        .split('_')
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("_");
    if left.is_empty() {
        left.push('s');
    }
    let digest = Sha256::digest(name.as_bytes());
    let digits: String = digest
        .iter()
        .take(3)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{left}_{digits}")
}

/// Whether a character may be part of a prefix.
fn fits_prefix(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-.".contains(c)
}
