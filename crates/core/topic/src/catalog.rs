//! Catalog of public names and URIs: each leads to a server and its own spelling.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use model::{Capabilities, ListKind, MethodFacts, ParticipantId, method::CALL_TOOL, overlap};

use crate::{
    BuiltinTool,
    admission::{Looker, admits, admits_kind},
    config::{AUTHORIZE, Limits, UPSTREAMS_MAX, UpstreamNames},
    event::PublicTarget,
    names::{Rewritten, behind_rewriting, public_name, public_uri},
    template::Template,
    view::{Naming, OfferedEntry, PerList, ServerLists, UpstreamView, is_named},
};

/// Name of an entry of a server in the requests of MCP clients.
pub(crate) enum ClientName {
    /// Under this public name or URI.
    Public(String),
    /// Not at all: another entry of its server has the name.
    Hidden,
    /// As its kind does: it is no entry of a server, or one of the gateway.
    None,
}

impl ClientName {
    /// Whether these capabilities admit a request to a participant for what has this name, and that
    /// name there.
    pub(crate) fn is_admitted(
        &self,
        capabilities: &Capabilities,
        method: &str,
        own: Option<&str>,
        to: &ParticipantId,
    ) -> bool {
        match self {
            Self::Public(public) => admits(capabilities, method, Some(public), to.as_str()),
            Self::Hidden => false,
            Self::None => admits_kind(capabilities, method, own, to.as_str()),
        }
    }

    /// Whether these capabilities let a participant decide about a proposal of a request to a
    /// participant for what has this name, and that name there.
    pub(crate) fn is_decidable(
        &self,
        capabilities: &Capabilities,
        method: &str,
        own: Option<&str>,
        to: &ParticipantId,
    ) -> bool {
        let named = match self {
            Self::Public(public) => Some(public.as_str()),
            Self::Hidden => return false,
            Self::None => own,
        };
        self.is_admitted(capabilities, method, own, to)
            || capabilities.admits_deciding(method, named, &[to.as_str()])
    }
}

/// A server's place in the configured order. It changes only with
/// [`Event::Configure`](crate::Event).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UpstreamIndex(pub usize);

/// The route of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route<'a> {
    /// The server, or the gateway itself.
    pub upstream: &'a ParticipantId,
    /// Its place in the configured order.
    pub index: UpstreamIndex,
    /// The server's own name or URI; empty if the target names nothing in it.
    pub own: Cow<'a, str>,
    /// The public name as the catalog holds it, if it is listed under a name.
    pub(crate) public: Option<&'a Arc<str>>,
    /// The own name as the catalog holds it, if it is listed and differs from the public one.
    pub(crate) renamed: Option<&'a Arc<str>>,
    /// The name by which capabilities judge it, if that is not the one that was looked up.
    pub(crate) ruled: Option<Cow<'a, str>>,
}

impl Route<'_> {
    /// The context that capabilities judge, of a request that names this one.
    pub(crate) fn ruled_context<'c>(&'c self, asked: Option<&'c str>) -> Option<&'c str> {
        self.ruled.as_deref().or(asked)
    }

    /// Whether it is listed under the name that was looked up; else it may be hidden, or a URI.
    pub fn is_listed(&self) -> bool {
        self.public.is_some()
    }

    /// The server's own spelling of a target, if it differs from the requested one and is not
    /// listed under a name.
    pub(crate) fn respelled(&self, asked: Option<&str>) -> Option<&str> {
        let own = &*self.own;
        if own.is_empty() || self.is_listed() || asked == Some(own) {
            return None;
        }
        Some(own)
    }
}

/// Views of one link that replace the shared ones; nearly all links have none.
pub(crate) type Overrides = BTreeMap<UpstreamIndex, Arc<UpstreamView>>;

/// A server with the view of its lists that counts for a link.
pub(crate) struct Viewed<'a> {
    pub(crate) index: UpstreamIndex,
    pub(crate) names: &'a UpstreamNames,
    pub(crate) view: &'a Arc<UpstreamView>,
}

/// An entry of a server's list, with the server's place.
struct Found<'a> {
    index: UpstreamIndex,
    entry: &'a OfferedEntry,
}

/// The owner of a public URI, with its own spelling.
struct OwnedUri<'a> {
    index: UpstreamIndex,
    own: Cow<'a, str>,
}

/// The place of an entry in the shared lists.
#[derive(Debug, Clone, Copy)]
struct Place {
    index: UpstreamIndex,
    /// The entry's number in the list.
    number: usize,
}

/// All servers' names, in configuration order.
#[derive(Debug, Clone)]
pub(crate) struct Catalog {
    limits: Limits,
    upstreams: Vec<UpstreamNames>,
    views: Vec<Arc<UpstreamView>>,
    by_id: HashMap<ParticipantId, UpstreamIndex>,
    /// Each public name or URI that a server lists: the first server that does, and the entry's
    /// place in its shared list.
    listed: PerList<HashMap<Arc<str>, Place>>,
    /// The first server with an app of this resource.
    apps: HashMap<Arc<str>, UpstreamIndex>,
    builtin: Option<UpstreamIndex>,
    /// The server whose names have no prefix; at most one has none.
    bare: Option<UpstreamIndex>,
    /// The server that gets URIs which no server lists.
    rest: Option<UpstreamIndex>,
    /// Whether some server has lists for each caller.
    has_own_lists: bool,
}

impl Catalog {
    pub(crate) fn new(upstreams: &[UpstreamNames], limits: Limits) -> Self {
        // The gateway's own names are taken first.
        let mut upstreams: Vec<UpstreamNames> =
            upstreams.iter().take(UPSTREAMS_MAX).cloned().collect();
        upstreams.sort_by_key(|upstream| !upstream.builtin);
        let mut by_id = HashMap::new();
        let mut builtin = None;
        let mut bare = None;
        let mut servers = Vec::new();
        for (at, upstream) in upstreams.iter().enumerate() {
            let index = UpstreamIndex(at);
            // Of several with one name, one prefix or one role, the first counts.
            by_id.entry(upstream.id.clone()).or_insert(index);
            if upstream.builtin {
                builtin.get_or_insert(index);
                continue;
            }
            servers.push(index);
            if upstream.prefix.is_empty() {
                bare.get_or_insert(index);
            }
        }
        // A URI that no server lists can belong to the only one, whatever its prefix.
        let only = match &*servers {
            [only] => Some(*only),
            _ => None,
        };
        Self {
            has_own_lists: upstreams.iter().any(|upstream| upstream.own_lists),
            limits,
            views: upstreams.iter().map(|_| Arc::default()).collect(),
            upstreams,
            by_id,
            listed: PerList::default(),
            apps: HashMap::new(),
            builtin,
            bare,
            rest: bare.or(only),
        }
    }

    pub(crate) fn index(&self, id: &ParticipantId) -> Option<UpstreamIndex> {
        self.by_id.get(id).copied()
    }

    pub(crate) fn builtin(&self) -> Option<UpstreamIndex> {
        self.builtin
    }

    pub(crate) fn names(&self, index: UpstreamIndex) -> Option<&UpstreamNames> {
        self.upstreams.get(index.0)
    }

    pub(crate) fn id(&self, index: UpstreamIndex) -> Option<&ParticipantId> {
        self.names(index).map(|names| &names.id)
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = &ParticipantId> {
        self.upstreams.iter().map(|upstream| &upstream.id)
    }

    pub(crate) fn shared(&self, index: UpstreamIndex) -> Option<&Arc<UpstreamView>> {
        self.views.get(index.0)
    }

    /// Name of a server's entry, listed or not, in clients' requests: capabilities judge by it.
    pub(crate) fn client_name(
        &self,
        server: &ParticipantId,
        method: &str,
        own: &str,
    ) -> ClientName {
        let Some(index) = self.index(server) else {
            return ClientName::None;
        };
        let Some(naming) = self.naming(index) else {
            return ClientName::None;
        };
        let names = naming.own;
        if names.builtin {
            return ClientName::None;
        }
        let Some(list) = MethodFacts::of(method).names_in() else {
            let respelled = self.respelled(&Overrides::default(), index, own);
            return ClientName::Public(respelled.unwrap_or_else(|| own.to_owned()));
        };
        if names.prefix.is_empty() && naming.is_anothers(list, own) {
            // The entry is listed under no name; this one begins with the server's.
            return ClientName::Public(public_name(names.id.as_str(), own));
        }
        if self.has_public_name(names, list, own) {
            ClientName::Public(names.ruled_name(own))
        } else {
            ClientName::Hidden
        }
    }

    /// Whether requests of this method for a server's own name are refused, for a link with these
    /// views of its own.
    pub(crate) fn withholds(
        &self,
        overrides: &Overrides,
        index: UpstreamIndex,
        method: &str,
        own: &str,
    ) -> bool {
        let Some(view) = overrides.get(&index).or_else(|| self.shared(index)) else {
            return false;
        };
        let facts = MethodFacts::of(method);
        match facts.names_in() {
            Some(list) => view.withholds(list, own),
            None => facts.reads_skills && view.withholds_skill_around(own),
        }
    }

    /// The names of a server, as it is configured.
    pub(crate) fn names_of(&self, id: &ParticipantId) -> Option<&UpstreamNames> {
        self.names(self.index(id)?)
    }

    /// All servers in configuration order, each with the view that counts for the link.
    pub(crate) fn each<'a>(&'a self, overrides: &'a Overrides) -> impl Iterator<Item = Viewed<'a>> {
        let all = self.upstreams.iter().zip(&self.views).enumerate();
        all.map(|(at, (names, shared))| {
            let index = UpstreamIndex(at);
            Viewed {
                index,
                names,
                view: overrides.get(&index).unwrap_or(shared),
            }
        })
    }

    /// Indexes a manifest for look-up, under this server's prefix.
    pub(crate) fn index_manifest(
        &self,
        index: UpstreamIndex,
        manifest: ServerLists,
    ) -> UpstreamView {
        match self.naming(index) {
            Some(naming) => UpstreamView::new(manifest, naming),
            None => UpstreamView::default(),
        }
    }

    fn naming(&self, index: UpstreamIndex) -> Option<Naming<'_>> {
        let builtin = self
            .builtin
            .and_then(|builtin| self.shared(builtin))
            .map(Arc::as_ref);
        Some(Naming {
            own: self.names(index)?,
            all: &self.upstreams,
            builtin,
            limits: &self.limits,
        })
    }

    /// Index of a manifest for look-up, under the server's prefix: the shared view itself if its
    /// manifest is equal.
    pub(crate) fn view_of(&self, index: UpstreamIndex, manifest: ServerLists) -> Arc<UpstreamView> {
        match self.shared(index) {
            Some(shared) if shared.manifest == manifest => shared.clone(),
            _ => Arc::new(self.index_manifest(index, manifest)),
        }
    }

    /// Indexes every view again, after the gateway's own names have changed.
    pub(crate) fn index_again(&mut self) {
        let manifests = self
            .views
            .iter()
            .map(|view| view.manifest.clone())
            .collect();
        self.index_all(manifests);
    }

    /// Takes over the shared manifests of an older catalog, for servers that are still configured.
    pub(crate) fn take_views(&mut self, older: &Self) {
        let manifests = self.ids().map(|id| older.manifest_of(id)).collect();
        self.index_all(manifests);
    }

    /// The shared manifest of a server; an empty one if it is not configured.
    fn manifest_of(&self, id: &ParticipantId) -> ServerLists {
        match self.index(id).and_then(|index| self.shared(index)) {
            Some(view) => view.manifest.clone(),
            None => ServerLists::default(),
        }
    }

    /// Indexes a manifest for each server: the gateway's own first, because its names win.
    fn index_all(&mut self, manifests: Vec<ServerLists>) {
        for (at, manifest) in manifests.into_iter().enumerate() {
            let view = Arc::new(self.index_manifest(UpstreamIndex(at), manifest));
            self.replace(UpstreamIndex(at), view);
        }
        self.merge();
    }

    /// Replaces a shared view and returns the older one. The caller calls [`Catalog::merge`]
    /// afterwards.
    pub(crate) fn replace(
        &mut self,
        index: UpstreamIndex,
        view: Arc<UpstreamView>,
    ) -> Option<Arc<UpstreamView>> {
        let slot = self.views.get_mut(index.0)?;
        Some(std::mem::replace(slot, view))
    }

    /// Builds the merged indexes again: servers that are configured earlier win.
    pub(crate) fn merge(&mut self) {
        self.listed = PerList::new(|list| {
            let mut listed = HashMap::new();
            for (at, view) in self.views.iter().enumerate() {
                for (number, entry) in view.list(list).all.iter().enumerate() {
                    let index = UpstreamIndex(at);
                    listed
                        .entry(entry.public.clone())
                        .or_insert(Place { index, number });
                }
            }
            listed
        });
        self.apps.clear();
        for (at, view) in self.views.iter().enumerate() {
            for app in &view.apps {
                self.apps.entry(app.clone()).or_insert(UpstreamIndex(at));
            }
        }
    }

    /// The first server that lists this public name or URI, for a link with these views of its own.
    fn listed<'a>(
        &'a self,
        overrides: &'a Overrides,
        list: ListKind,
        public: &str,
    ) -> Option<Found<'a>> {
        let place = self.listed.list(list).get(public).copied();
        if overrides.is_empty() {
            return self.found(list, place?);
        }
        // No two servers have one name, so the link's other views do not matter. But several may
        // list one URI.
        if let Some(place) = place
            && is_named(list)
            && !overrides.contains_key(&place.index)
        {
            return self.found(list, place);
        }
        self.each(overrides).find_map(|server| {
            Some(Found {
                index: server.index,
                entry: server.view.list(list).get(public)?,
            })
        })
    }

    /// The entry at a place in the shared lists.
    fn found(&self, list: ListKind, place: Place) -> Option<Found<'_>> {
        Some(Found {
            index: place.index,
            entry: self.shared(place.index)?.list(list).all.get(place.number)?,
        })
    }

    /// The route of a target, for a link with these views of its own.
    pub(crate) fn resolve<'a>(
        &'a self,
        overrides: &'a Overrides,
        target: Option<PublicTarget<'a>>,
    ) -> Option<Route<'a>> {
        match target {
            None | Some(PublicTarget::Kept) => self.route(self.builtin?, ""),
            Some(PublicTarget::Tool(name)) => self.resolve_name(overrides, ListKind::Tools, name),
            Some(PublicTarget::Prompt(name)) => {
                self.resolve_name(overrides, ListKind::Prompts, name)
            }
            Some(PublicTarget::Uri(uri)) => {
                let owned = self.resolve_uri(overrides, uri)?;
                self.route(owned.index, owned.own)
            }
            Some(PublicTarget::Task(task)) => {
                let index = self.index(task.right.server)?;
                self.route(index, "")
            }
            Some(PublicTarget::Upstream(id)) => {
                let place = self
                    .upstreams
                    .iter()
                    .position(|upstream| upstream.id.as_str() == id)?;
                self.route(UpstreamIndex(place), "")
            }
        }
    }

    /// Whether a server's own name has its public name, and no other of its names.
    fn has_public_name(&self, names: &UpstreamNames, list: ListKind, own: &str) -> bool {
        let Some(view) = self.index(&names.id).and_then(|index| self.shared(index)) else {
            return false;
        };
        view.list(list)
            .get(&names.public_name(list, own))
            .is_none_or(|entry| *entry.own == *own)
    }

    /// Whether the topic offers what a request of this method names at a server, by its own name.
    pub(crate) fn offers(&self, server: &ParticipantId, method: &str, own: &str) -> bool {
        // A topic's filter of offers is for tools alone.
        if !MethodFacts::of(method).calls_tool() {
            return true;
        }
        match self.names_of(server) {
            Some(names) => names.offers(ListKind::Tools, own),
            None => true,
        }
    }

    /// The route to the one server whose prefix is empty, if there is one.
    pub(crate) fn bare_route(&self) -> Option<Route<'_>> {
        self.route(self.bare?, "")
    }

    fn route<'a>(
        &'a self,
        index: UpstreamIndex,
        own: impl Into<Cow<'a, str>>,
    ) -> Option<Route<'a>> {
        Some(Route {
            upstream: self.id(index)?,
            index,
            own: own.into(),
            public: None,
            renamed: None,
            ruled: None,
        })
    }

    /// The route to an entry that is listed.
    fn route_to<'a>(&'a self, found: Found<'a>) -> Option<Route<'a>> {
        let OfferedEntry {
            public, own, ruled, ..
        } = found.entry;
        let mut route = self.route(found.index, &**own)?;
        route.public = Some(public);
        if public != own {
            route.renamed = Some(own);
        }
        // Both are one text in memory unless the configuration gives the tool its name.
        if !Arc::ptr_eq(ruled, public) {
            route.ruled = Some(Cow::Borrowed(&**ruled));
        }
        Some(route)
    }

    fn resolve_name<'a>(
        &'a self,
        overrides: &'a Overrides,
        list: ListKind,
        name: &'a str,
    ) -> Option<Route<'a>> {
        if let Some(found) = self.listed(overrides, list, name) {
            return self.route_to(found);
        }
        if let Some(route) = self.unlisted(overrides, list, name) {
            return Some(route);
        }
        // No server lists it. The server without a prefix may have it and not list it.
        let bare = self.bare?;
        let naming = self.naming(bare)?;
        if naming.is_anothers(list, name) || name.len() > self.limits.name_bytes_max {
            return None;
        }
        // Of a tool with another name the server's own name leads nowhere.
        if naming.own.renames(list, name) || !naming.own.offers(list, name) {
            return None;
        }
        self.route(bare, name)
    }

    /// Whether a server lists to each caller what is its own.
    pub(crate) fn lists_to_each(&self, index: UpstreamIndex) -> bool {
        self.naming(index)
            .is_some_and(|naming| naming.own.own_lists)
    }

    /// The route of a name that no server lists to the server whose prefix it has, if the link's
    /// own lists there are not known.
    fn unlisted<'a>(
        &'a self,
        overrides: &Overrides,
        list: ListKind,
        name: &'a str,
    ) -> Option<Route<'a>> {
        if !self.has_own_lists || name.len() > self.limits.name_bytes_max {
            return None;
        }
        let under = self.under_prefix(name)?;
        let names = self.names(under.index)?;
        let own = names.original(list, under.rest);
        let is_renamed = names.renames(list, own);
        // Of a tool with another name the server's own name leads nowhere.
        if own == under.rest && is_renamed || !names.offers(list, own) {
            return None;
        }
        // By this name a caller gets an account there, whether or not its lists are known.
        let is_unknown = own == AUTHORIZE || !overrides.contains_key(&under.index);
        if !names.own_lists || !is_unknown {
            return None;
        }
        let mut route = self.route(under.index, own)?;
        if is_renamed {
            route.ruled = Some(names.ruled_name(own).into());
        }
        Some(route)
    }

    /// The server whose prefix a name has, and what follows the prefix and its `_`. Of several the
    /// one with the longest prefix counts.
    fn under_prefix<'a>(&self, name: &'a str) -> Option<Addressed<'a>> {
        let servers = self.upstreams.iter().enumerate();
        servers
            .filter(|(_, names)| !names.prefix.is_empty())
            .filter_map(|(at, names)| Addressed::read(at, name, &names.prefix, '_'))
            .min_by_key(|addressed| addressed.rest.len())
    }

    /// The public name of the tool that an app calls by its server's own name: that of the first of
    /// these servers that has such a tool, else that of the one server that has it. Public names,
    /// and those of the gateway's own tools, are no server's own.
    pub(crate) fn named_by_app<'a>(
        &'a self,
        overrides: &'a Overrides,
        read: &[UpstreamIndex],
        name: &str,
        looker: Looker<'_>,
    ) -> Option<&'a Arc<str>> {
        if BuiltinTool::of(name).is_some() {
            return None;
        }
        let route = self.resolve_name(overrides, ListKind::Tools, name);
        // The server without a prefix may have tools that it does not list.
        let is_perhaps_bare = match route {
            Some(route) if route.is_listed() || Some(route.index) != self.bare => return None,
            Some(_) => true,
            None => false,
        };
        for index in read {
            let Some(view) = overrides.get(index).or_else(|| self.shared(*index)) else {
                continue;
            };
            if let Some(entry) = view.list(ListKind::Tools).renamed(name) {
                // What its caller may not use is not looked for at other servers.
                return self.seen(looker, *index, entry);
            }
        }
        if is_perhaps_bare {
            return None;
        }
        let mut only = None;
        for server in self.each(overrides) {
            if server.names.builtin {
                continue;
            }
            let Some(entry) = server.view.list(ListKind::Tools).renamed(name) else {
                continue;
            };
            let Some(public) = self.seen(looker, server.index, entry) else {
                continue;
            };
            if only.is_some() {
                return None;
            }
            only = Some(public);
        }
        only
    }

    /// The public name of a tool, if a caller may use it.
    fn seen<'a>(
        &self,
        looker: Looker<'_>,
        index: UpstreamIndex,
        entry: &'a OfferedEntry,
    ) -> Option<&'a Arc<str>> {
        let server = self.id(index)?.as_str();
        looker.access(CALL_TOOL.name, &entry.ruled, server)?;
        Some(&entry.public)
    }

    /// The server that a public URI belongs to, and its own spelling of it.
    fn resolve_uri<'a>(&self, overrides: &Overrides, uri: &'a str) -> Option<OwnedUri<'a>> {
        let Some(Rewritten { scheme, rest }) = behind_rewriting(uri) else {
            return Some(OwnedUri {
                index: self.owner_of(overrides, uri)?,
                own: Cow::Borrowed(uri),
            });
        };
        let Addressed { index, rest } = self.under_id(rest)?;
        let own = if scheme.is_empty() {
            Cow::Borrowed(rest)
        } else {
            Cow::Owned(format!("{scheme}{rest}"))
        };
        Some(OwnedUri { index, own })
    }

    /// The server whose plain URI this is: the first that lists the resource, or a skill under it;
    /// else the first whose tools name it as an app; else the first with a template or a skill's
    /// directory for it; else the one that gets the rest.
    fn owner_of(&self, overrides: &Overrides, uri: &str) -> Option<UpstreamIndex> {
        for list in [ListKind::Resources, ListKind::Skills] {
            if let Some(found) = self.listed(overrides, list, uri) {
                return Some(found.index);
            }
        }
        self.owner_of_app(overrides, uri)
            .or_else(|| self.owner_of_pattern(overrides, uri))
            .or(self.rest)
    }

    /// The first server whose tools name this resource as their app.
    fn owner_of_app(&self, overrides: &Overrides, uri: &str) -> Option<UpstreamIndex> {
        if overrides.is_empty() {
            return self.apps.get(uri).copied();
        }
        let mut servers = self.each(overrides);
        let owner = servers.find(|server| server.view.apps.contains(uri))?;
        Some(owner.index)
    }

    /// The first server with a template, or a skill's directory, for this URI.
    fn owner_of_pattern(&self, overrides: &Overrides, uri: &str) -> Option<UpstreamIndex> {
        // The time of a match grows with the length.
        if uri.len() > self.limits.uri_bytes_max {
            return None;
        }
        let mut servers = self.each(overrides);
        let owner = servers.find(|server| {
            server.view.has_template_for(uri) || server.view.has_skill_around(uri)
        })?;
        Some(owner.index)
    }

    /// Reads `<id>/<rest>` behind the beginning of a rewritten URI. An id may hold a slash, so the
    /// longest that fits counts.
    fn under_id<'a>(&self, text: &'a str) -> Option<Addressed<'a>> {
        let servers = self.upstreams.iter().enumerate();
        servers
            .filter_map(|(at, names)| Addressed::read(at, text, names.id.as_str(), '/'))
            .min_by_key(|addressed| addressed.rest.len())
    }

    /// The public spelling of a server's URI if it differs from its own: whenever the plain
    /// spelling would lead to another server, or could be taken for a rewritten one.
    pub(crate) fn respelled(
        &self,
        overrides: &Overrides,
        index: UpstreamIndex,
        own: &str,
    ) -> Option<String> {
        let looks_rewritten = behind_rewriting(own).is_some();
        if !looks_rewritten {
            let owner = self.owner_of(overrides, own);
            if owner.is_none_or(|owner| owner == index) {
                return None;
            }
        }
        self.id(index).map(|id| public_uri(id, own))
    }

    /// The public spelling of a listed entry if it differs from [`OfferedEntry::public`]. A
    /// template is respelled if an earlier server's template can give the same URIs.
    pub(crate) fn respelled_entry(
        &self,
        overrides: &Overrides,
        index: UpstreamIndex,
        list: ListKind,
        entry: &OfferedEntry,
    ) -> Option<String> {
        if is_named(list) {
            return None;
        }
        let Some(template) = &entry.template else {
            return self.respelled(overrides, index, &entry.own);
        };
        let mut earlier = self
            .each(overrides)
            .take_while(|server| server.index < index);
        let is_taken = earlier.any(|server| collides_with(server.view, list, template));
        if !is_taken && behind_rewriting(&entry.own).is_none() {
            return None;
        }
        self.id(index).map(|id| public_uri(id, &entry.own))
    }
}

/// The server that a text begins with, and the rest of the text.
struct Addressed<'a> {
    index: UpstreamIndex,
    rest: &'a str,
}

impl<'a> Addressed<'a> {
    /// Reads a text as `<beginning><sign><rest>`; `None` if it is not such a text, or has no rest.
    fn read(at: usize, text: &'a str, beginning: &str, sign: char) -> Option<Self> {
        let rest = text.strip_prefix(beginning)?.strip_prefix(sign)?;
        if rest.is_empty() {
            return None;
        }
        Some(Self {
            index: UpstreamIndex(at),
            rest,
        })
    }
}

/// Whether a template of a view can give the same URI as this one.
fn collides_with(view: &UpstreamView, list: ListKind, template: &Template) -> bool {
    let templates = view.list(list).all.iter();
    templates
        .filter_map(|entry| entry.template.as_ref())
        .any(|other| collide(&other.shape, &template.shape))
}

/// The greatest product of two shapes' lengths that is compared in full: longer templates count as
/// colliding.
const COLLISION_WORK_MAX: usize = 16_384;

/// Whether two templates can give the same URI. Nearly always their beginnings or ends already
/// differ.
fn collide(left: &[Option<char>], right: &[Option<char>]) -> bool {
    if differ(left.iter(), right.iter()) || differ(left.iter().rev(), right.iter().rev()) {
        return false;
    }
    left.len().saturating_mul(right.len()) > COLLISION_WORK_MAX || overlap(left, right)
}

/// Whether two shapes differ in a character before the first star of either.
fn differ<'a>(
    left: impl Iterator<Item = &'a Option<char>>,
    right: impl Iterator<Item = &'a Option<char>>,
) -> bool {
    for (left, right) in left.zip(right) {
        if left.is_none() || right.is_none() {
            return false;
        }
        if left != right {
            return true;
        }
    }
    false
}
