//! Catalog of public names and URIs: each leads to a server and its own spelling.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use model::{ListKind, MethodFacts, ParticipantId, overlap};

use crate::{
    BuiltinTool,
    config::{AUTHORIZE, Limits, UPSTREAMS_MAX, UpstreamNames},
    event::PublicTarget,
    names::{behind_rewriting, public_name, public_uri},
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
}

/// Views of one link that replace the shared ones; nearly all links have none.
pub(crate) type Overrides = BTreeMap<UpstreamIndex, Arc<UpstreamView>>;

/// All servers' names, in configuration order.
#[derive(Debug, Clone)]
pub(crate) struct Catalog {
    limits: Limits,
    upstreams: Vec<UpstreamNames>,
    views: Vec<Arc<UpstreamView>>,
    by_id: HashMap<ParticipantId, UpstreamIndex>,
    /// Each public name or URI that a server lists: the first server that does, and the entry's
    /// place in its shared list.
    listed: PerList<HashMap<Arc<str>, (UpstreamIndex, usize)>>,
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
        let find = |wanted: &dyn Fn(&UpstreamNames) -> bool| {
            upstreams.iter().position(wanted).map(UpstreamIndex)
        };
        let builtin = find(&|upstream| upstream.builtin);
        let bare = find(&|upstream| !upstream.builtin && upstream.prefix.is_empty());
        let only = match upstreams
            .iter()
            .filter(|upstream| !upstream.builtin)
            .count()
        {
            1 => find(&|upstream| !upstream.builtin),
            _ => None,
        };
        let places = upstreams.iter().enumerate().rev();
        let by_id = places
            .map(|(at, upstream)| (upstream.id.clone(), UpstreamIndex(at)))
            .collect();
        let views = upstreams.iter().map(|_| Arc::default()).collect();
        let (listed, apps) = <_>::default();
        let has_own_lists = upstreams.iter().any(|upstream| upstream.own_lists);
        Self {
            has_own_lists,
            limits,
            upstreams,
            views,
            by_id,
            listed,
            apps,
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
        let Some(names) = self.names(index).filter(|names| !names.builtin) else {
            return ClientName::None;
        };
        let Some(list) = MethodFacts::of(method).names_in() else {
            let respelled = self.respelled(&Overrides::default(), index, own);
            return ClientName::Public(respelled.unwrap_or_else(|| own.to_owned()));
        };
        let naming = self.naming(index).filter(|_| names.prefix.is_empty());
        if naming.is_some_and(|naming| naming.is_anothers(list, own)) {
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

    /// The names and the configuration of a server.
    pub(crate) fn names_of(&self, id: &ParticipantId) -> Option<&UpstreamNames> {
        self.names(self.index(id)?)
    }

    /// All servers in configuration order, each with the view that counts for the link.
    pub(crate) fn each<'a>(
        &'a self,
        overrides: &'a Overrides,
    ) -> impl Iterator<Item = (UpstreamIndex, &'a UpstreamNames, &'a Arc<UpstreamView>)> {
        let all = self.upstreams.iter().zip(&self.views).enumerate();
        all.map(|(at, (names, shared))| {
            let index = UpstreamIndex(at);
            (index, names, overrides.get(&index).unwrap_or(shared))
        })
    }

    /// Indexes a manifest for look-up, under this server's prefix.
    pub(crate) fn index_manifest(
        &self,
        index: UpstreamIndex,
        manifest: ServerLists,
    ) -> UpstreamView {
        self.naming(index)
            .map(|naming| UpstreamView::new(manifest, naming))
            .unwrap_or_default()
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
        let known = |id| {
            older
                .shared(older.index(id)?)
                .map(|view| view.manifest.clone())
        };
        let manifests = self.ids().map(|id| known(id).unwrap_or_default()).collect();
        self.index_all(manifests);
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
                for (place, entry) in view.list(list).all.iter().enumerate() {
                    listed
                        .entry(entry.public.clone())
                        .or_insert((UpstreamIndex(at), place));
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
    ) -> Option<(UpstreamIndex, &'a OfferedEntry)> {
        let shared = self.listed.list(list).get(public).copied();
        // No two servers have one name, but they may list one URI.
        let counts =
            |index| overrides.is_empty() || is_named(list) && overrides.get(&index).is_none();
        match shared {
            Some((index, place)) if counts(index) => {
                Some((index, self.shared(index)?.list(list).all.get(place)?))
            }
            _ if overrides.is_empty() => None,
            _ => self
                .each(overrides)
                .find_map(|(index, _, view)| Some((index, view.list(list).get(public)?))),
        }
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
                let (index, own) = self.resolve_uri(overrides, uri)?;
                self.route(index, own)
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
        !MethodFacts::of(method).calls_tool()
            || self
                .names_of(server)
                .is_none_or(|names| names.offers(ListKind::Tools, own))
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
        let upstream = self.id(index)?;
        let own = own.into();
        Some(Route {
            upstream,
            index,
            own,
            public: None,
            renamed: None,
            ruled: None,
        })
    }

    fn resolve_name<'a>(
        &'a self,
        overrides: &'a Overrides,
        list: ListKind,
        name: &'a str,
    ) -> Option<Route<'a>> {
        if let Some((
            index,
            OfferedEntry {
                public, own, ruled, ..
            },
        )) = self.listed(overrides, list, name)
        {
            let renamed = (public != own).then_some(own);
            let own = Cow::Borrowed(&**own);
            let ruled = (!Arc::ptr_eq(ruled, public)).then(|| Cow::Borrowed(&**ruled));
            let upstream = self.id(index)?;
            let public = Some(public);
            return Some(Route {
                upstream,
                index,
                own,
                public,
                renamed,
                ruled,
            });
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
        let own = |names: &UpstreamNames| {
            name.strip_prefix(&names.prefix)?
                .strip_prefix('_')
                .filter(|own| !own.is_empty())
        };
        let all = self.upstreams.iter().enumerate();
        let under = all.filter(|(_, names)| !names.prefix.is_empty());
        let under = under.filter_map(|(at, names)| Some((at, names, own(names)?)));
        let (at, names, given) = under.min_by_key(|(.., own)| own.len())?;
        let index = UpstreamIndex(at);
        let own = names.original(list, given);
        // Of a tool with another name the server's own name leads nowhere.
        if own == given && names.renames(list, own) || !names.offers(list, own) {
            return None;
        }
        let is_unknown = names.own_lists && (own == AUTHORIZE || !overrides.contains_key(&index));
        let ruled = names
            .renames(list, own)
            .then(|| names.ruled_name(own).into());
        let route = || {
            Some(Route {
                ruled,
                ..self.route(index, own)?
            })
        };
        if is_unknown { route() } else { None }
    }

    /// The public name of the tool that an app calls by its server's own name: that of the first of
    /// these servers that has such a tool, else that of the one server that has it. Public names,
    /// and those of the gateway's own tools, are no server's own.
    pub(crate) fn named_by_app<'a>(
        &'a self,
        overrides: &'a Overrides,
        read: &[UpstreamIndex],
        name: &str,
        sees: &dyn Fn(&ParticipantId, &OfferedEntry) -> bool,
    ) -> Option<&'a Arc<str>> {
        let route = self.resolve_name(overrides, ListKind::Tools, name);
        // The server without a prefix may have tools that it does not list.
        let unlisted = route
            .as_ref()
            .is_some_and(|route| !route.is_listed() && Some(route.index) == self.bare);
        if (route.is_some() && !unlisted) || BuiltinTool::of(name).is_some() {
            return None;
        }
        let of = |view: &'a UpstreamView| view.list(ListKind::Tools).renamed(name);
        let seen = |names: &UpstreamNames, entry: &'a OfferedEntry| {
            sees(&names.id, entry).then_some(&entry.public)
        };
        let read = read.iter().find_map(|index| {
            let view = overrides.get(index).or_else(|| self.shared(*index))?;
            Some((self.names(*index)?, of(view)?))
        });
        if let Some((names, entry)) = read {
            // What its caller may not use is not looked for at other servers.
            return seen(names, entry);
        }
        if unlisted {
            return None;
        }
        let servers = self.each(overrides).filter(|(_, names, _)| !names.builtin);
        let mut all = servers.filter_map(|(_, names, view)| seen(names, of(view)?));
        let first = all.next();
        first.filter(|_| all.next().is_none())
    }

    /// The server that a public URI belongs to, and its own spelling of it.
    fn resolve_uri<'a>(
        &self,
        overrides: &Overrides,
        uri: &'a str,
    ) -> Option<(UpstreamIndex, Cow<'a, str>)> {
        if let Some((scheme, rest)) = behind_rewriting(uri) {
            let (index, rest) = self.rewritten(rest)?;
            let own = if scheme.is_empty() {
                Cow::Borrowed(rest)
            } else {
                format!("{scheme}{rest}").into()
            };
            return Some((index, own));
        }
        self.owner_of(overrides, uri)
            .map(|index| (index, Cow::Borrowed(uri)))
    }

    /// The server whose plain URI this is: the first that lists the resource, or a skill under it;
    /// else the first whose tools name it as an app; else the first with a template or a skill's
    /// directory for it; else the one that gets the rest.
    fn owner_of(&self, overrides: &Overrides, uri: &str) -> Option<UpstreamIndex> {
        let listed = |list| self.listed(overrides, list, uri).map(|(index, _)| index);
        let app = || {
            if overrides.is_empty() {
                self.apps.get(uri).copied()
            } else {
                self.each(overrides)
                    .find(|(.., view)| view.apps.contains(uri))
                    .map(|(index, ..)| index)
            }
        };
        let templated = || {
            let fits = |entry: &OfferedEntry| {
                *entry.own == *uri
                    || entry
                        .template
                        .as_ref()
                        .is_some_and(|template| template.matches(uri))
            };
            let fits = |view: &UpstreamView| {
                view.list(ListKind::Templates).all.iter().any(fits) || view.has_skill_around(uri)
            };
            let short = uri.len() <= self.limits.uri_bytes_max;
            self.each(overrides)
                .find(|(_, _, view)| short && fits(view))
                .map(|(index, _, _)| index)
        };
        let listed = listed(ListKind::Resources).or_else(|| listed(ListKind::Skills));
        listed.or_else(app).or_else(templated).or(self.rest)
    }

    /// Reads `<id>/<rest>` behind the beginning of a rewritten URI. An id may hold a slash, so the
    /// longest that fits counts.
    fn rewritten<'a>(&self, rest: &'a str) -> Option<(UpstreamIndex, &'a str)> {
        let fits = |id: &str| {
            rest.strip_prefix(id)?
                .strip_prefix('/')
                .filter(|own| !own.is_empty())
        };
        let found = self.upstreams.iter().enumerate();
        let found = found
            .filter_map(|(at, upstream)| Some((UpstreamIndex(at), fits(upstream.id.as_str())?)));
        found.min_by_key(|(_, own)| own.len())
    }

    /// The server's own spelling of a target, if it differs from the requested one and is not
    /// listed under a name.
    pub(crate) fn respelled_own<'a>(route: &'a Route<'_>, asked: Option<&str>) -> Option<&'a str> {
        let own = &*route.own;
        (!own.is_empty() && route.public.is_none() && asked != Some(own)).then_some(own)
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
        let mine = || {
            self.owner_of(overrides, own)
                .is_none_or(|owner| owner == index)
        };
        if !looks_rewritten && mine() {
            return None;
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
        let Some(template) = &entry.template else {
            return if is_named(list) {
                None
            } else {
                self.respelled(overrides, index, &entry.own)
            };
        };
        let mut earlier = self
            .each(overrides)
            .take_while(|(other, _, _)| *other < index);
        let collides = |other: &OfferedEntry| {
            other
                .template
                .as_ref()
                .is_some_and(|other| collide(&other.shape, &template.shape))
        };
        let taken = earlier.any(|(_, _, view)| view.list(list).all.iter().any(collides));
        if !taken && behind_rewriting(&entry.own).is_none() {
            return None;
        }
        self.id(index).map(|id| public_uri(id, &entry.own))
    }
}

/// The greatest product of two shapes' lengths that is compared in full: longer templates count as
/// colliding.
const COLLISION_WORK_MAX: usize = 16_384;

/// Whether two templates can give the same URI. Nearly always their beginnings or ends already
/// differ.
fn collide(left: &[Option<char>], right: &[Option<char>]) -> bool {
    fn parts<'a>(mut pairs: impl Iterator<Item = (&'a Option<char>, &'a Option<char>)>) -> bool {
        let first = pairs.find(|(left, right)| left != right || left.is_none());
        first.is_some_and(|(left, right)| left.is_some() && right.is_some())
    }
    if parts(left.iter().zip(right)) || parts(left.iter().rev().zip(right.iter().rev())) {
        return false;
    }
    left.len().saturating_mul(right.len()) > COLLISION_WORK_MAX || overlap(left, right)
}
