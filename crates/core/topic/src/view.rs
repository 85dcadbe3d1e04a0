//! One server's manifest, in its own order and spelling, and its index: public names, URIs,
//! templates, and quarantined entries.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use model::{ListKind, MethodFacts};

use crate::{
    config::{Limits, UpstreamNames},
    names::{lies_under, whole_name},
    template::Template,
};

/// The reason for which the topic offers an entry of a manifest to no caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Quarantine {
    /// The name is empty.
    #[error("the name is empty")]
    Empty,
    /// Longer than [`Limits::name_bytes_max`] or [`Limits::uri_bytes_max`].
    #[error("the name or URI is too long")]
    TooLong,
    /// Beyond [`Limits::items_per_list_max`] or [`Limits::templates_max`].
    #[error("the list is too long")]
    TooMany,
    /// The server lists it a second time, or another of its names is the same in public: shortened,
    /// or because that one has the prefix itself.
    #[error(
        "another entry of the server has the same public name: another `prefix` may keep them apart"
    )]
    Twice,
    /// It lies in the space of another server's prefix, or is a name of the gateway's own.
    #[error(
        "the name belongs to another server or to the gateway: give this server another `prefix`"
    )]
    Shadows,
    /// No URI template by RFC 6570, or one of more than 32 expressions.
    #[error("the URI template cannot be read")]
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

/// An entry that the topic offers.
#[derive(Debug)]
pub(crate) struct OfferedEntry {
    /// The public name; of a resource or template, the server's own spelling.
    pub(crate) public: Arc<str>,
    pub(crate) own: Arc<str>,
    /// The name or URI by which capabilities judge it: the public one itself, unless the
    /// configuration gives it its name.
    pub(crate) ruled: Arc<str>,
    pub(crate) digest: u64,
    /// The compiled template, if it is one.
    pub(crate) template: Option<Template>,
}

/// The entries of one list, in order, and their index.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    pub(crate) all: Vec<OfferedEntry>,
    index: HashMap<Arc<str>, usize>,
    /// The entries whose public names differ from their own, by their own names.
    by_own: HashMap<Arc<str>, usize>,
}

impl Entries {
    fn push(&mut self, entry: OfferedEntry) {
        let place = self.all.len();
        self.index.insert(entry.public.clone(), place);
        if entry.public != entry.own {
            self.by_own.insert(entry.own.clone(), place);
        }
        self.all.push(entry);
    }

    pub(crate) fn get(&self, public: &str) -> Option<&OfferedEntry> {
        self.index.get(public).and_then(|at| self.all.get(*at))
    }

    /// The entry whose own name this is, if its public name is another.
    pub(crate) fn renamed(&self, own: &str) -> Option<&OfferedEntry> {
        self.by_own.get(own).and_then(|at| self.all.get(*at))
    }
}

/// One manifest, ready for look-up.
#[derive(Debug, Default)]
pub(crate) struct UpstreamView {
    pub(crate) manifest: ServerLists,
    lists: PerList<Entries>,
    pub(crate) quarantined: Vec<Quarantined>,
    /// The own names that are withheld; nearly always none.
    withheld: PerList<HashSet<Arc<str>>>,
    /// The resources of its apps, listed or not.
    pub(crate) apps: HashSet<Arc<str>>,
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
    pub(crate) fn new(manifest: ServerLists, naming: Naming<'_>) -> Self {
        let mut quarantined = Vec::new();
        let lists =
            PerList::new(|list| naming.entries(list, manifest.list(list), &mut quarantined));
        let withheld = PerList::new(|list| {
            let items = manifest.list(list).iter();
            items
                .filter(|item| item.withheld != Withholding::None)
                .map(|item| item.own.clone())
                .collect()
        });
        Self {
            apps: naming.apps(&manifest.tools),
            manifest,
            lists,
            quarantined,
            withheld,
        }
    }

    /// Whether it lists a template that a URI may be an expansion of, or that is written so.
    pub(crate) fn has_template_for(&self, uri: &str) -> bool {
        let templates = &self.list(ListKind::Templates).all;
        templates.iter().any(|entry| {
            let template = entry.template.as_ref();
            *entry.own == *uri || template.is_some_and(|template| template.matches(uri))
        })
    }

    /// Whether a URI lies in the directory of a skill that it lists.
    pub(crate) fn has_skill_around(&self, uri: &str) -> bool {
        let skills = self.list(ListKind::Skills);
        !skills.all.is_empty() && skill_files(uri).any(|file| skills.get(&file).is_some())
    }

    /// Whether requests for an entry, by its own name, are refused.
    pub(crate) fn withholds(&self, list: ListKind, own: &str) -> bool {
        let withheld = self.withheld.list(list);
        !withheld.is_empty() && withheld.contains(own)
    }

    /// Whether requests for the files of a skill are refused, one of which this is.
    pub(crate) fn withholds_skill_around(&self, uri: &str) -> bool {
        let withheld = &self.withheld.skills;
        !withheld.is_empty()
            && (withheld.contains(uri) || skill_files(uri).any(|file| withheld.contains(&*file)))
    }

    /// The entries of one list.
    pub(crate) fn list(&self, list: ListKind) -> &Entries {
        self.lists.list(list)
    }
}

impl Naming<'_> {
    /// The entries of a list that are offered. All others are quarantined.
    fn entries(
        &self,
        list: ListKind,
        items: &[ListItem],
        quarantined: &mut Vec<Quarantined>,
    ) -> Entries {
        let entries_max = match list {
            ListKind::Tools | ListKind::Prompts | ListKind::Resources | ListKind::Skills => {
                self.limits.items_per_list_max
            }
            ListKind::Templates => self.limits.templates_max,
        };
        let with_prefix = self.names_with_prefix(list, items);
        let mut entries = Entries::default();
        let offered = items.iter().filter(|item| self.is_offered(list, item));
        for (at, item) in offered.enumerate() {
            let entry = if at < entries_max {
                self.new_entry(list, item, &entries, &with_prefix)
            } else {
                Err(Quarantine::TooMany)
            };
            match entry {
                Ok(entry) => entries.push(entry),
                Err(why) => quarantined.push(Quarantined {
                    list,
                    own: item.own.clone(),
                    why,
                }),
            }
            // The first that is too many stands for all others.
            if at >= entries_max {
                break;
            }
        }
        entries
    }

    fn is_offered(&self, list: ListKind, item: &ListItem) -> bool {
        item.withheld != Withholding::Unlisted && self.own.offers(list, &item.own)
    }

    /// The entry of an item, if no entry before it has its public name.
    fn new_entry(
        &self,
        list: ListKind,
        item: &ListItem,
        before: &Entries,
        with_prefix: &HashSet<&str>,
    ) -> Result<OfferedEntry, Quarantine> {
        let entry = self.entry(list, item)?;
        if before.get(&entry.public).is_some() || self.is_taken(list, item, with_prefix) {
            return Err(Quarantine::Twice);
        }
        Ok(entry)
    }

    /// The names of a list that have the server's prefix without receiving it.
    fn names_with_prefix<'n>(&'n self, list: ListKind, items: &'n [ListItem]) -> HashSet<&'n str> {
        if !is_named(list) {
            return HashSet::new();
        }
        let offered = items.iter().filter(|item| self.own.offers(list, &item.own));
        offered
            .map(|item| self.own.name(list, &item.own))
            .filter(|name| lies_under(&self.own.prefix, name))
            .collect()
    }

    /// Whether another name is the public name of an item already: a name that has the prefix
    /// itself wins over one that receives it, whatever their order.
    fn is_taken(&self, list: ListKind, item: &ListItem, with_prefix: &HashSet<&str>) -> bool {
        let prefix = self.own.prefix.as_str();
        let name = self.own.name(list, &item.own);
        !with_prefix.is_empty()
            && !lies_under(prefix, name)
            && with_prefix.contains(&*whole_name(prefix, name))
    }

    /// The resources of the apps of these tools.
    fn apps(&self, tools: &[ListItem]) -> HashSet<Arc<str>> {
        let mut apps = HashSet::new();
        for tool in tools {
            if self.is_offered(ListKind::Tools, tool)
                && let Some(uri) = &tool.app
                && uri.len() <= self.limits.uri_bytes_max
            {
                apps.insert(uri.clone());
            }
        }
        apps
    }

    fn entry(&self, list: ListKind, item: &ListItem) -> Result<OfferedEntry, Quarantine> {
        let own = item.own.clone();
        let digest = item.digest;
        let bytes_max = if is_named(list) {
            self.limits.name_bytes_max
        } else {
            self.limits.uri_bytes_max
        };
        if own.is_empty() {
            return Err(Quarantine::Empty);
        }
        if own.len() > bytes_max {
            return Err(Quarantine::TooLong);
        }
        let is_renamed = self.own.renames(list, &own);
        let has_own_name = self.own.prefix.is_empty() && !is_renamed;
        let public: Arc<str> = if has_own_name || !is_named(list) {
            own.clone()
        } else {
            self.own.public_name(list, &own).into()
        };
        let ruled = if is_renamed {
            self.own.ruled_name(&own).into()
        } else {
            Arc::clone(&public)
        };
        if self.is_anothers(list, &public) || self.is_anothers(list, &ruled) {
            return Err(Quarantine::Shadows);
        }
        let template = match list {
            ListKind::Templates => Some(Template::parse(&own).ok_or(Quarantine::NoTemplate)?),
            ListKind::Tools | ListKind::Prompts | ListKind::Resources | ListKind::Skills => None,
        };
        Ok(OfferedEntry {
            public,
            own,
            ruled,
            digest,
            template,
        })
    }

    /// Whether a public name belongs to another server, listed or not. Only names under an empty
    /// prefix can.
    pub(crate) fn is_anothers(&self, list: ListKind, public: &str) -> bool {
        if self.own.builtin || !is_named(list) {
            return false;
        }
        if let Some(builtin) = self.builtin
            && builtin.list(list).get(public).is_some()
        {
            return true;
        }
        let mut others = self.all.iter().filter(|other| other.id != self.own.id);
        self.own.prefix.is_empty() && others.any(|other| lies_under(&other.prefix, public))
    }
}

/// The deepest directory of a skill in which a file of it is found.
const SKILL_DEPTH_MAX: usize = 32;

/// The `SKILL.md` of each skill that may have a file or directory of this URI (SEP-2640): in the
/// directory itself, and in those around it.
fn skill_files(uri: &str) -> impl Iterator<Item = String> {
    std::iter::successors(Some(uri), |inner| Some(inner.rsplit_once('/')?.0))
        .take(SKILL_DEPTH_MAX)
        .filter(|directory| !directory.ends_with('/'))
        .map(|directory| format!("{directory}/SKILL.md"))
}

/// The method that acts on an entry of a list: a caller that may use it sees the entry.
pub(crate) fn method(list: ListKind) -> &'static str {
    MethodFacts::acting_on(list).name
}

/// Whether the entries of a list have names, which the gateway prefixes; else they have URIs.
pub(crate) fn is_named(list: ListKind) -> bool {
    list.has_names()
}

/// One entry of a list.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ListItem {
    /// The server's own name, URI or URI template.
    pub own: Arc<str>,
    /// A digest of the whole definition, so that a changed description counts as a change. 0 if
    /// unknown.
    pub digest: u64,
    /// Whether requests for it are refused, whatever a caller may do.
    pub withheld: Withholding,
    /// The `ui://` resource of the app that shows its results, if it is a tool of one. It may be in
    /// no list.
    pub app: Option<Arc<str>>,
}

/// Whether requests for an entry are refused because its server has changed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Withholding {
    /// They are judged like all others.
    #[default]
    None,
    /// They are refused, and the entry is listed as it was before.
    Listed,
    /// They are refused, and the entry is not listed.
    Unlisted,
}

impl From<&str> for ListItem {
    fn from(own: &str) -> Self {
        Self {
            own: own.into(),
            digest: 0,
            withheld: Withholding::None,
            app: None,
        }
    }
}

impl From<Arc<str>> for ListItem {
    fn from(own: Arc<str>) -> Self {
        Self {
            own,
            digest: 0,
            withheld: Withholding::None,
            app: None,
        }
    }
}

/// The lists of one server, each in the server's order.
pub type ServerLists = PerList<Vec<ListItem>>;

/// One value for each list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PerList<T> {
    /// Of tools, which have names.
    pub tools: T,
    /// Of prompts, which have names.
    pub prompts: T,
    /// Of resources, which have URIs.
    pub resources: T,
    /// Of resource templates, which are URI templates.
    pub templates: T,
    /// Of skills, which have URIs.
    pub skills: T,
}

impl<T> PerList<T> {
    /// Makes one for each list.
    pub fn new(mut of: impl FnMut(ListKind) -> T) -> Self {
        Self {
            tools: of(ListKind::Tools),
            prompts: of(ListKind::Prompts),
            resources: of(ListKind::Resources),
            templates: of(ListKind::Templates),
            skills: of(ListKind::Skills),
        }
    }

    /// The value for one list.
    pub fn list(&self, list: ListKind) -> &T {
        match list {
            ListKind::Tools => &self.tools,
            ListKind::Prompts => &self.prompts,
            ListKind::Resources => &self.resources,
            ListKind::Templates => &self.templates,
            ListKind::Skills => &self.skills,
        }
    }
}
