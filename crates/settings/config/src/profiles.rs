//! Tables `[profiles.NAME]`: named sets of capabilities for participants and topics. Sets of tools
//! are read with them.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::Capabilities;
use topic::section::Sets;

use crate::problem::Problem;
use crate::reader::Table;
use crate::sets;
use crate::values::capabilities;

/// Profiles and sets of tools of which capabilities are made.
pub(crate) struct Profiles {
    /// The configured profiles, by name.
    named: BTreeMap<String, Arc<Capabilities>>,
    /// The configured sets of tools.
    pub(crate) sets: Sets,
}

/// Reads every profile, and every set of tools.
pub(crate) fn read(root: &Table<'_>) -> Profiles {
    let sets = sets::read(root);
    let mut named = BTreeMap::new();
    for (entry, table) in root.tables("profiles") {
        let held = capabilities(&table, &sets);
        if held.is_none() && table.get("capabilities").is_none() {
            let message = format!("{} has no `capabilities`", table.name());
            table.wrong(
                "config_value",
                message,
                "list them; [] is a profile without capabilities",
            );
        }
        table.finish();
        named.insert(entry.key.clone(), held.unwrap_or_default());
    }
    Profiles { named, sets }
}

/// The profile that a key names; notes a problem if there is none.
pub(crate) fn profile(
    table: &Table<'_>,
    key: &'static str,
    profiles: &Profiles,
) -> Option<Arc<Capabilities>> {
    let name = table.text(key)?;
    let found = profiles.named.get(name).cloned();
    if found.is_none() {
        let message = format!("`{}`: there is no profile `{name}`", table.full(key));
        let problem = Problem::new("config_unknown_profile", message).at(table.place(key));
        let known = profiles.named.keys().map(String::as_str);
        table
            .problems()
            .note(problem.suggest(name, known, format!("add [profiles.{name}]")));
    }
    found
}
