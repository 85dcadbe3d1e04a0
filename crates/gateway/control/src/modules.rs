//! Schemas of tools in protobuf: those that calls are checked by, and the modules of the schema
//! registry that have them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use ::registry::{OWNER, Viewer};
use auth::Participant;
use lists::{Manifests, ModuleNames, Modules};
use model::{Form, Narrowing, ParticipantId};
use platform::unix_ms;
use schema::{Reference, ToolSchema};
use topic::PublicTarget;
use upstream::Manifest;

use crate::registry::Registry;
use gateway::{Dispatch, Link};

/// A caller on a link, with what its access token narrows its participant's capabilities to.
pub type ModuleCaller<'a> = (&'a Link, Option<&'a Narrowing>);

/// The schema of a tool by its public name, if this caller could call it, or propose the call.
pub fn tool_schema(
    dispatch: &Dispatch,
    asking: ModuleCaller<'_>,
    tool: &str,
) -> Option<ToolSchema> {
    Found::of(dispatch, asking, tool)?.schema()
}

/// Whether a caller could call this tool, and its server sent a schema that cannot be used or
/// resolved: its arguments are any object.
pub fn is_untyped(dispatch: &Dispatch, asking: ModuleCaller<'_>, tool: &str) -> bool {
    let found = Found::of(dispatch, asking, tool);
    found.is_some_and(|found| {
        found
            .manifest
            .untyped
            .iter()
            .any(|one| one.name == found.own)
    })
}

/// A tool that a caller could call.
struct Found {
    server: ParticipantId,
    own: String,
    manifest: Arc<Manifest>,
}

impl Found {
    fn of(dispatch: &Dispatch, (link, narrowing): ModuleCaller<'_>, tool: &str) -> Option<Self> {
        if !dispatch.with(|topic| topic.could_call(link.id, narrowing, tool)) {
            return None;
        }
        let found = match dispatch.route(link.id, PublicTarget::Tool(tool)) {
            Some((server, own)) => {
                let manifest = server.manifest_for(&link.participant.id, Form::Legacy);
                Self {
                    server: server.id.clone(),
                    own,
                    manifest,
                }
            }
            None => {
                let server = ParticipantId::gateway();
                let manifest = dispatch.own_manifest();
                Self {
                    server,
                    own: tool.to_owned(),
                    manifest,
                }
            }
        };
        Some(found)
    }

    fn schema(&self) -> Option<ToolSchema> {
        self.manifest.tool_schema(self.server.as_str(), &self.own)
    }
}

/// Lists of each server of a topic to a participant's clients of proto-mcp, the gateway's own last.
fn manifests(dispatch: &Dispatch, who: &ParticipantId) -> Manifests {
    let servers = dispatch.servers();
    let listed = servers
        .iter()
        .map(|server| (server.id.clone(), server.manifest_for(who, Form::Legacy)));
    listed
        .chain([(ParticipantId::gateway(), dispatch.own_manifest())])
        .collect()
}

/// The modules of all topics that a participant may enter, the first topic by name first.
pub fn modules_of(registry: &Registry, who: &Participant) -> Modules {
    let names = names(registry);
    let mut modules = Modules::default();
    for (dispatch, who) in registry.topics_of(who) {
        let snapshot = dispatch.with(|topic| topic.list_snapshot_of(&who.id, &who.capabilities));
        modules.add(&names, manifests(&dispatch, &who.id), &snapshot);
    }
    modules
}

fn names(registry: &Registry) -> ModuleNames {
    let topics = registry.topics();
    let servers = topics
        .iter()
        .flat_map(|topic| topic.servers())
        .map(|server| server.id.clone());
    ModuleNames::of(servers.chain([ParticipantId::gateway()]).collect())
}

/// Modules in which the tools of a caller's list have their schemas.
pub struct ListedModules<'l> {
    registry: &'l Registry,
    dispatch: &'l Dispatch,
    asking: ModuleCaller<'l>,
    /// The gateway as the client names it; `None` if the client cannot ask its schema registry.
    host: Option<&'l str>,
    names: ModuleNames,
    modules: Modules,
    /// Module and commit of the servers that were asked for.
    commits: RefCell<HashMap<ParticipantId, Option<String>>>,
}

impl<'l> ListedModules<'l> {
    /// The list of a caller whose client reaches the gateway at `host`.
    pub fn new(
        registry: &'l Registry,
        dispatch: &'l Dispatch,
        asking: ModuleCaller<'l>,
        host: Option<&'l str>,
    ) -> Self {
        let (link, narrowing) = asking;
        // A guest is no participant of the registry.
        let host = host.filter(|_| !link.participant.id.is_guest());
        let mut known = ModuleNames::default();
        let mut modules = Modules::default();
        if host.is_some()
            && let Some(snapshot) = dispatch.with(|topic| topic.list_snapshot(link.id, narrowing))
        {
            known = names(registry);
            modules.add(&known, manifests(dispatch, &link.participant.id), &snapshot);
        }
        Self {
            registry,
            dispatch,
            asking,
            host,
            names: known,
            modules,
            commits: RefCell::default(),
        }
    }

    /// The schema of a tool by its public name, and the reference under which a registry has it:
    /// the one that its server gave, or one of the gateway's own registry, which answers it for as
    /// long as it keeps the commit.
    pub fn schema(&self, tool: &str) -> Option<(ToolSchema, Option<String>)> {
        let found = Found::of(self.dispatch, self.asking, tool)?;
        let schema = found.schema()?;
        let manifest = &found.manifest;
        let reference = match (
            manifest.sent_to_callers(&found.own),
            manifest.reference(&found.own),
        ) {
            (_, Some(reference)) => Some(reference.to_owned()),
            (Some(_), None) => None,
            (None, None) => self.own_reference(&found, &schema),
        };
        Some((schema, reference))
    }

    /// The reference of a schema that the gateway has converted. `google.protobuf.Struct` is in no
    /// module.
    fn own_reference(&self, found: &Found, schema: &ToolSchema) -> Option<String> {
        let host = self.host?;
        let module = self.names.get(&found.server)?;
        if schema.takes_struct() || !self.modules.shows(module, &found.own) {
            return None;
        }
        let mut commits = self.commits.borrow_mut();
        let commit = commits.entry(found.server.clone()).or_insert_with(|| {
            let viewer = Viewer {
                id: self.asking.0.participant.id.as_str(),
                source: &self.modules,
                now_ms: unix_ms(),
            };
            Some(
                self.registry
                    .shelf
                    .current(module, &viewer)?
                    .id()
                    .to_owned(),
            )
        });
        let reference = Reference {
            host: host.to_ascii_lowercase(),
            owner: OWNER.to_owned(),
            module: module.to_owned(),
            symbol: schema.input().full_name().to_owned(),
            version: Some(commit.clone()?),
        };
        // A client reads it as a reference, or gets the schema inline.
        reference
            .to_string()
            .parse::<Reference>()
            .is_ok()
            .then(|| reference.to_string())
    }
}
