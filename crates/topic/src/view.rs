//! The index of one server's manifest: public names, URIs, templates, and quarantined entries.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use model::ListKind;

use crate::{
    config::{Limits, UpstreamNames},
    manifest::{Item, Manifest},
    names::{lies_under, public_name},
    template::Template,
};

/// The reason for which the topic offers an entry of a manifest to no caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Quarantine {
    /// The name is empty.
    Empty,
    /// Longer than [`Limits::name_bytes_max`] or [`Limits::uri_bytes_max`].
    TooLong,
    /// Beyond [`Limits::items_per_list_max`] or [`Limits::templates_max`].
    TooMany,
    /// The server lists it a second time, or another of its names is shortened to the same.
    Twice,
    /// It lies in the space of another server's prefix, or is a name of the gateway's own.
    Shadows,
    /// No URI template by RFC 6570, or one of more than 32 expressions.
    NoTemplate,
}

/// One quarantined entry, with the reason that the operator can see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quarantined {
    /// The list.
    pub list: ListKind,
    /// The server's own name or URI.
    pub own: Arc<str>,
    /// The reason.
    pub why: Quarantine,
}

/// A tool or prompt with both its names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) public: Arc<str>,
    pub(crate) own: Arc<str>,
    pub(crate) digest: u64,
}

/// The names of one list, in order, and their index.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(crate) all: Vec<Named>,
    index: HashMap<Arc<str>, usize>,
}

impl Names {
    pub(crate) fn get(&self, public: &str) -> Option<&Named> {
        self.index.get(public).and_then(|at| self.all.get(*at))
    }
}

/// A template with its compiled form.
#[derive(Debug)]
pub(crate) struct Templated {
    pub(crate) item: Item,
    pub(crate) template: Template,
    pub(crate) shape: Vec<Option<char>>,
}

/// One manifest, ready for look-up.
#[derive(Debug, Default)]
pub(crate) struct UpstreamView {
    pub(crate) manifest: Manifest,
    pub(crate) tools: Names,
    pub(crate) prompts: Names,
    pub(crate) resources: Vec<Item>,
    pub(crate) templates: Vec<Templated>,
    pub(crate) quarantined: Vec<Quarantined>,
    uris: HashSet<Arc<str>>,
}

/// The part of the configuration on which one server's view depends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Naming<'a> {
    /// The server that lists the manifest.
    pub(crate) own: &'a UpstreamNames,
    /// All servers.
    pub(crate) all: &'a [UpstreamNames],
    /// The gateway's own names, which win over all others.
    pub(crate) builtin: Option<&'a UpstreamView>,
    pub(crate) limits: &'a Limits,
}

impl UpstreamView {
    /// Indexes a manifest. An entry that cannot be offered is quarantined alone.
    pub(crate) fn new(manifest: Manifest, naming: Naming<'_>) -> Self {
        let mut view = Self { manifest, ..Self::default() };
        let manifest = std::mem::take(&mut view.manifest);
        view.tools = view.names(ListKind::Tools, &manifest.tools, naming);
        view.prompts = view.names(ListKind::Prompts, &manifest.prompts, naming);
        view.read_resources(&manifest.resources, naming.limits);
        view.read_templates(&manifest.templates, naming.limits);
        view.manifest = manifest;
        view
    }

    /// The names of one list.
    pub(crate) fn named(&self, list: ListKind) -> Option<&Names> {
        match list {
            ListKind::Tools => Some(&self.tools),
            ListKind::Prompts => Some(&self.prompts),
            ListKind::Resources | ListKind::Templates => None,
        }
    }

    /// Whether this server lists a resource of exactly this URI.
    pub(crate) fn lists_uri(&self, own: &str) -> bool {
        self.uris.contains(own)
    }

    fn names(&mut self, list: ListKind, items: &[Item], naming: Naming<'_>) -> Names {
        let mut names = Names::default();
        for (at, item) in items.iter().enumerate() {
            if at >= naming.limits.items_per_list_max {
                self.set_aside(list, item, Quarantine::TooMany);
                break;
            }
            if item.own.is_empty() {
                self.set_aside(list, item, Quarantine::Empty);
                continue;
            }
            if item.own.len() > naming.limits.name_bytes_max {
                self.set_aside(list, item, Quarantine::TooLong);
                continue;
            }
            let public: Arc<str> = match naming.own.prefix.as_str() {
                "" => item.own.clone(),
                prefix => public_name(prefix, &item.own).into(),
            };
            if naming.is_anothers(list, &public) {
                self.set_aside(list, item, Quarantine::Shadows);
            } else if names.index.contains_key(&public) {
                self.set_aside(list, item, Quarantine::Twice);
            } else {
                names.index.insert(public.clone(), names.all.len());
                names.all.push(Named { public, own: item.own.clone(), digest: item.digest });
            }
        }
        names
    }

    fn read_resources(&mut self, items: &[Item], limits: &Limits) {
        for (at, item) in items.iter().enumerate() {
            if at >= limits.items_per_list_max {
                self.set_aside(ListKind::Resources, item, Quarantine::TooMany);
                break;
            }
            if let Some(why) = bad_uri(item, limits) {
                self.set_aside(ListKind::Resources, item, why);
            } else if self.uris.insert(item.own.clone()) {
                self.resources.push(item.clone());
            } else {
                self.set_aside(ListKind::Resources, item, Quarantine::Twice);
            }
        }
    }

    fn read_templates(&mut self, items: &[Item], limits: &Limits) {
        let mut seen: HashSet<&str> = HashSet::new();
        for (at, item) in items.iter().enumerate() {
            if at >= limits.templates_max {
                self.set_aside(ListKind::Templates, item, Quarantine::TooMany);
                break;
            }
            if let Some(why) = bad_uri(item, limits) {
                self.set_aside(ListKind::Templates, item, why);
                continue;
            }
            let Some(template) = Template::parse(&item.own) else {
                self.set_aside(ListKind::Templates, item, Quarantine::NoTemplate);
                continue;
            };
            if seen.insert(&item.own) {
                let shape = template.shape();
                self.templates.push(Templated { item: item.clone(), template, shape });
            } else {
                self.set_aside(ListKind::Templates, item, Quarantine::Twice);
            }
        }
    }

    fn set_aside(&mut self, list: ListKind, item: &Item, why: Quarantine) {
        self.quarantined.push(Quarantined { list, own: item.own.clone(), why });
    }
}

impl Naming<'_> {
    /// Whether a public name belongs to another server, listed or not. Only names under an empty prefix can.
    pub(crate) fn is_anothers(&self, list: ListKind, public: &str) -> bool {
        if self.own.builtin {
            return false;
        }
        let taken =
            self.builtin.and_then(|view| view.named(list)).is_some_and(|names| names.get(public).is_some());
        taken
            || self.own.prefix.is_empty()
                && self.all.iter().any(|other| other.id != self.own.id && lies_under(&other.prefix, public))
    }
}

fn bad_uri(item: &Item, limits: &Limits) -> Option<Quarantine> {
    if item.own.is_empty() {
        Some(Quarantine::Empty)
    } else if item.own.len() > limits.uri_bytes_max {
        Some(Quarantine::TooLong)
    } else {
        None
    }
}
