//! Modules of the schema registry: of each server the schemas in protobuf of the tools that a
//! caller's lists show.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use model::{ListKind, ParticipantId};
use registry::{Files, ModuleSource, files_of, module_name};
use schema::Module;
use topic::ListSnapshot;

use crate::merged::Manifests;

/// The names of the modules of servers.
#[derive(Debug, Default)]
pub struct ModuleNames(HashMap<ParticipantId, String>);

impl ModuleNames {
    /// Names of the modules of all servers: a server that a participant does not see has a name
    /// too, so that all agree on them.
    #[must_use]
    pub fn of(servers: BTreeSet<ParticipantId>) -> Self {
        let mut taken = HashSet::new();
        let mut names = HashMap::with_capacity(servers.len());
        // In the order of the set: two names that become one are numbered alike everywhere.
        for server in servers {
            let name = module_name(server.as_str(), &mut taken);
            names.insert(server, name);
        }
        Self(names)
    }

    /// The name of a server's module.
    #[must_use]
    pub fn get(&self, server: &ParticipantId) -> Option<&str> {
        self.0.get(server).map(String::as_str)
    }
}

/// The modules that a participant sees: of each server that its lists show.
#[derive(Debug, Default)]
pub struct Modules(BTreeMap<String, Seen>);

/// Part of a server that a participant sees.
#[derive(Debug)]
struct Seen {
    tools: Module,
    /// The tools that the participant's lists show, by their own names.
    shown: HashSet<String>,
}

impl Modules {
    /// Adds those of a topic. Where two topics have other tools of one server, its module is that
    /// of the one that was added first.
    pub fn add(&mut self, names: &ModuleNames, manifests: Manifests, snapshot: &ListSnapshot) {
        let mut shown: HashMap<&ParticipantId, HashSet<String>> = HashMap::new();
        let listings = snapshot.list(ListKind::Tools);
        for listing in &listings {
            shown
                .entry(listing.upstream)
                .or_default()
                .insert(listing.own.to_string());
        }
        for (server, manifest) in manifests {
            let Some((shown, name)) = shown.remove(&server).zip(names.get(&server)) else {
                continue;
            };
            let tools = manifest.module(server.as_str()).clone();
            match self.0.entry(name.to_owned()) {
                Entry::Vacant(free) => drop(free.insert(Seen { tools, shown })),
                Entry::Occupied(mut known) if known.get().tools.digest() == tools.digest() => {
                    known.get_mut().shown.extend(shown);
                }
                Entry::Occupied(_) => {}
            }
        }
    }

    /// Whether the tool of this own name is shown in a module.
    #[must_use]
    pub fn shows(&self, module: &str, tool: &str) -> bool {
        self.0
            .get(module)
            .is_some_and(|seen| seen.shown.contains(tool))
    }
}

impl ModuleSource for Modules {
    fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    fn files(&self, module: &str) -> Option<Files> {
        let Seen { tools, shown } = self.0.get(module)?;
        Some(files_of(tools, |tool| shown.contains(tool)))
    }
}
