//! Catalog of public names and URIs: each leads to a server and its own spelling.

use std::{collections::HashMap, sync::Arc};

use model::{ListKind, ParticipantId, overlap};

use crate::{
    config::{Limits, UPSTREAMS_MAX, UpstreamNames},
    event::Target,
    manifest::Manifest,
    names::{REWRITTEN, public_uri},
    view::{Naming, UpstreamView},
};

/// A server's place in the configured order. It changes only with [`Event::Configure`](crate::Event).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UpstreamIndex(pub u16);

/// The route of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route<'a> {
    /// The server, or the gateway itself.
    pub upstream: &'a ParticipantId,
    /// Its place in the configured order.
    pub index: UpstreamIndex,
    /// The server's own name or URI; empty if the target names nothing in it.
    pub own: &'a str,
    /// The public name as the catalog holds it, if it is listed under a name.
    pub(crate) public: Option<&'a Arc<str>>,
    /// The own name as the catalog holds it, if it is listed and differs from the public one.
    pub(crate) renamed: Option<&'a Arc<str>>,
}

impl Route<'_> {
    /// Whether it is listed under the name that was looked up; else it may be hidden, or a URI.
    pub fn is_listed(&self) -> bool {
        self.public.is_some()
    }
}

/// Views of one link that replace the shared ones. Links have few, so this is a plain list.
#[derive(Debug, Clone, Default)]
pub(crate) struct Overrides(Vec<(UpstreamIndex, Arc<UpstreamView>)>);

impl Overrides {
    /// No overrides, as nearly all links have.
    pub(crate) fn none() -> &'static Self {
        static NONE: Overrides = Overrides(Vec::new());
        &NONE
    }

    pub(crate) fn get(&self, index: UpstreamIndex) -> Option<&Arc<UpstreamView>> {
        self.0.iter().find(|(own, _)| *own == index).map(|(_, view)| view)
    }

    pub(crate) fn set(&mut self, index: UpstreamIndex, view: Arc<UpstreamView>) -> Option<Arc<UpstreamView>> {
        let older = self.remove(index);
        self.0.push((index, view));
        older
    }

    pub(crate) fn remove(&mut self, index: UpstreamIndex) -> Option<Arc<UpstreamView>> {
        let at = self.0.iter().position(|(own, _)| *own == index)?;
        Some(self.0.remove(at).1)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether two links see the same instead of the shared views.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let is_same = |((one, view), (other, seen)): (&(UpstreamIndex, _), &(UpstreamIndex, _))| {
            one == other && Arc::ptr_eq(view, seen)
        };
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(is_same)
    }

    /// Moves each view to its server's place in a new configuration; views of servers that are gone are dropped.
    pub(crate) fn moved(&mut self, to: &dyn Fn(UpstreamIndex) -> Option<UpstreamIndex>, catalog: &Catalog) {
        self.0 = std::mem::take(&mut self.0)
            .into_iter()
            .filter_map(|(index, view)| {
                let index = to(index)?;
                Some((index, catalog.view_of(index, view.manifest.clone())))
            })
            .collect();
    }
}

/// The target of a shared public name.
#[derive(Debug, Clone)]
struct Entry {
    index: UpstreamIndex,
    public: Arc<str>,
    own: Arc<str>,
}

/// All servers' names, in configuration order.
#[derive(Debug, Clone)]
pub(crate) struct Catalog {
    limits: Limits,
    upstreams: Vec<UpstreamNames>,
    views: Vec<Arc<UpstreamView>>,
    by_id: HashMap<ParticipantId, UpstreamIndex>,
    tools: HashMap<Arc<str>, Entry>,
    prompts: HashMap<Arc<str>, Entry>,
    /// Each listed URI and the first server that lists it.
    uris: HashMap<Arc<str>, UpstreamIndex>,
    builtin: Option<UpstreamIndex>,
    /// The one server whose names have no prefix.
    bare: Option<UpstreamIndex>,
    /// The server that gets URIs which no server lists.
    rest: Option<UpstreamIndex>,
}

impl Catalog {
    pub(crate) fn new(upstreams: &[UpstreamNames], limits: Limits) -> Self {
        // The gateway's own names are taken first.
        let mut upstreams: Vec<UpstreamNames> = upstreams.iter().take(UPSTREAMS_MAX).cloned().collect();
        upstreams.sort_by_key(|upstream| !upstream.builtin);
        let place = |at: usize| UpstreamIndex(u16::try_from(at).unwrap_or(u16::MAX));
        let find = |wanted: &dyn Fn(&UpstreamNames) -> bool| upstreams.iter().position(wanted).map(place);
        let builtin = find(&|upstream| upstream.builtin);
        let bare = find(&|upstream| !upstream.builtin && upstream.prefix.is_empty());
        let only = match upstreams.iter().filter(|upstream| !upstream.builtin).count() {
            1 => find(&|upstream| !upstream.builtin),
            _ => None,
        };
        let by_id = upstreams.iter().enumerate().rev().map(|(at, up)| (up.id.clone(), place(at))).collect();
        let views = upstreams.iter().map(|_| Arc::default()).collect();
        let (tools, prompts, uris) = <_>::default();
        Self { limits, upstreams, views, by_id, tools, prompts, uris, builtin, bare, rest: bare.or(only) }
    }

    pub(crate) fn index(&self, id: &ParticipantId) -> Option<UpstreamIndex> {
        self.by_id.get(id).copied()
    }

    pub(crate) fn builtin(&self) -> Option<UpstreamIndex> {
        self.builtin
    }

    pub(crate) fn names(&self, index: UpstreamIndex) -> Option<&UpstreamNames> {
        self.upstreams.get(usize::from(index.0))
    }

    pub(crate) fn id(&self, index: UpstreamIndex) -> Option<&ParticipantId> {
        self.names(index).map(|names| &names.id)
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = &ParticipantId> {
        self.upstreams.iter().map(|upstream| &upstream.id)
    }

    pub(crate) fn shared(&self, index: UpstreamIndex) -> Option<&Arc<UpstreamView>> {
        self.views.get(usize::from(index.0))
    }

    /// All servers in configuration order, each with the view that counts for the link.
    pub(crate) fn each<'a>(
        &'a self,
        overrides: &'a Overrides,
    ) -> impl Iterator<Item = (UpstreamIndex, &'a UpstreamNames, &'a Arc<UpstreamView>)> {
        let places = (0..u16::MAX).map(UpstreamIndex);
        places
            .zip(self.upstreams.iter().zip(&self.views))
            .map(|(index, (names, shared))| (index, names, overrides.get(index).unwrap_or(shared)))
    }

    /// Indexes a manifest for look-up, under this server's prefix.
    pub(crate) fn index_manifest(&self, index: UpstreamIndex, manifest: Manifest) -> UpstreamView {
        let Some(own) = self.names(index) else { return UpstreamView::default() };
        let builtin = self.builtin.and_then(|builtin| self.shared(builtin)).map(Arc::as_ref);
        UpstreamView::new(manifest, Naming { own, all: &self.upstreams, builtin, limits: &self.limits })
    }

    /// The same; the shared view itself, if its manifest is equal.
    pub(crate) fn view_of(&self, index: UpstreamIndex, manifest: Manifest) -> Arc<UpstreamView> {
        match self.shared(index) {
            Some(shared) if shared.manifest == manifest => shared.clone(),
            _ => Arc::new(self.index_manifest(index, manifest)),
        }
    }

    /// Indexes every view again, after the gateway's own names have changed.
    pub(crate) fn index_again(&mut self) {
        let places: Vec<UpstreamIndex> = self.ids().filter_map(|id| self.index(id)).collect();
        let builtin = self.builtin;
        for index in places.into_iter().filter(|index| Some(*index) != builtin) {
            let manifest = self.shared(index).map(|view| view.manifest.clone()).unwrap_or_default();
            let view = Arc::new(self.index_manifest(index, manifest));
            self.replace(index, view);
        }
        self.merge();
    }

    /// Takes over the shared manifests of an older catalog, for servers that are still configured.
    pub(crate) fn take_views(&mut self, older: &Self) {
        let builtin_first: Vec<UpstreamIndex> = self.ids().filter_map(|id| self.index(id)).collect();
        for index in builtin_first {
            let known = self.id(index).and_then(|id| older.shared(older.index(id)?)).cloned();
            let manifest = known.map(|view| view.manifest.clone()).unwrap_or_default();
            let view = Arc::new(self.index_manifest(index, manifest));
            self.replace(index, view);
        }
        self.merge();
    }

    /// Replaces a shared view and returns the older one. The caller calls [`Catalog::merge`] afterwards.
    pub(crate) fn replace(
        &mut self,
        index: UpstreamIndex,
        view: Arc<UpstreamView>,
    ) -> Option<Arc<UpstreamView>> {
        let slot = self.views.get_mut(usize::from(index.0))?;
        Some(std::mem::replace(slot, view))
    }

    /// Builds the merged indexes again: servers that are configured earlier win.
    pub(crate) fn merge(&mut self) {
        let (mut tools, mut prompts, mut uris) = (HashMap::new(), HashMap::new(), HashMap::new());
        for (place, view) in (0..u16::MAX).zip(&self.views) {
            let index = UpstreamIndex(place);
            for (merged, names) in [(&mut tools, &view.tools), (&mut prompts, &view.prompts)] {
                for name in &names.all {
                    let entry = || Entry { index, public: name.public.clone(), own: name.own.clone() };
                    merged.entry(name.public.clone()).or_insert_with(entry);
                }
            }
            for item in &view.resources {
                uris.entry(item.own.clone()).or_insert(index);
            }
        }
        (self.tools, self.prompts, self.uris) = (tools, prompts, uris);
    }

    /// The route of a target, for a link with these views of its own.
    pub(crate) fn resolve<'a>(
        &'a self,
        overrides: &'a Overrides,
        target: Option<Target<'a>>,
    ) -> Option<Route<'a>> {
        match target {
            None => self.route(self.builtin?, ""),
            Some(Target::Tool(name)) => self.resolve_name(overrides, ListKind::Tools, &self.tools, name),
            Some(Target::Prompt(name)) => {
                self.resolve_name(overrides, ListKind::Prompts, &self.prompts, name)
            }
            Some(Target::Uri(uri)) => {
                let (index, own) = self.resolve_uri(overrides, uri)?;
                self.route(index, own)
            }
            Some(Target::Upstream(id)) => {
                let place = self.upstreams.iter().position(|upstream| upstream.id.as_str() == id)?;
                self.route(UpstreamIndex(u16::try_from(place).ok()?), "")
            }
        }
    }

    /// The route to the one server whose prefix is empty, if there is one.
    pub(crate) fn bare_route(&self) -> Option<Route<'_>> {
        self.route(self.bare?, "")
    }

    fn route<'a>(&'a self, index: UpstreamIndex, own: &'a str) -> Option<Route<'a>> {
        Some(Route { upstream: self.id(index)?, index, own, public: None, renamed: None })
    }

    fn resolve_name<'a>(
        &'a self,
        overrides: &'a Overrides,
        list: ListKind,
        merged: &'a HashMap<Arc<str>, Entry>,
        name: &'a str,
    ) -> Option<Route<'a>> {
        let listed = merged.get(name).map(|entry| (entry.index, &entry.public, &entry.own));
        let listed = match listed {
            Some(listed) if overrides.get(listed.0).is_none() => Some(listed),
            _ if overrides.is_empty() => None,
            _ => self.each(overrides).find_map(|(index, _, view)| {
                view.named(list)?.get(name).map(|named| (index, &named.public, &named.own))
            }),
        };
        if let Some((index, public, own)) = listed {
            let renamed = (public != own).then_some(own);
            return Some(Route { upstream: self.id(index)?, index, own, public: Some(public), renamed });
        }
        // No server lists it. The server without a prefix may have it and not list it.
        let bare = self.bare?;
        let builtin = self.builtin.and_then(|builtin| self.shared(builtin)).map(Arc::as_ref);
        let naming = Naming { own: self.names(bare)?, all: &self.upstreams, builtin, limits: &self.limits };
        if naming.is_anothers(list, name) || name.len() > self.limits.name_bytes_max {
            return None;
        }
        self.route(bare, name)
    }

    /// The server that a public URI belongs to, and its own spelling of it.
    fn resolve_uri<'a>(&self, overrides: &Overrides, uri: &'a str) -> Option<(UpstreamIndex, &'a str)> {
        if let Some(rest) = uri.strip_prefix(REWRITTEN) {
            return self.rewritten(rest);
        }
        let listed = if overrides.is_empty() {
            self.uris.get(uri).copied()
        } else {
            self.each(overrides).find(|(_, _, view)| view.lists_uri(uri)).map(|(index, _, _)| index)
        };
        let templated = || {
            let fits = |view: &UpstreamView| {
                view.templates.iter().any(|one| &*one.item.own == uri || one.template.matches(uri))
            };
            let short = uri.len() <= self.limits.uri_bytes_max;
            self.each(overrides).find(|(_, _, view)| short && fits(view)).map(|(index, _, _)| index)
        };
        listed.or_else(templated).or(self.rest).map(|index| (index, uri))
    }

    /// Reads `<id>/<own>` behind [`REWRITTEN`]. An id may hold a slash, so the longest that fits counts.
    fn rewritten<'a>(&self, rest: &'a str) -> Option<(UpstreamIndex, &'a str)> {
        let fits = |id: &str| rest.strip_prefix(id)?.strip_prefix('/').filter(|own| !own.is_empty());
        let found = self.upstreams.iter().enumerate().filter_map(|(at, upstream)| {
            let own = fits(upstream.id.as_str())?;
            Some((UpstreamIndex(u16::try_from(at).ok()?), own))
        });
        found.min_by_key(|(_, own)| own.len())
    }

    /// The server's own spelling of a target, if it differs from the requested one and is not listed under a name.
    pub(crate) fn respelled_own<'a>(route: &Route<'a>, asked: Option<&str>) -> Option<&'a str> {
        (!route.own.is_empty() && route.public.is_none() && asked != Some(route.own)).then_some(route.own)
    }

    /// The public spelling of a server's URI if it differs from its own: whenever the plain spelling would lead to another
    /// server, or could be taken for a rewritten one.
    pub(crate) fn respelled(&self, overrides: &Overrides, index: UpstreamIndex, own: &str) -> Option<String> {
        let owner = self.resolve_uri(overrides, own);
        let mine = owner.is_none_or(|(owner, same)| owner == index && same.len() == own.len());
        if mine && !own.starts_with(REWRITTEN) {
            return None;
        }
        self.id(index).map(|id| public_uri(id, own))
    }

    /// The same for a template: it is respelled if an earlier server's template can give the same URIs.
    pub(crate) fn respelled_template(
        &self,
        overrides: &Overrides,
        index: UpstreamIndex,
        own: &str,
        shape: &[Option<char>],
    ) -> Option<String> {
        let mut earlier = self.each(overrides).take_while(|(other, _, _)| *other < index);
        let taken = earlier.any(|(_, _, view)| view.templates.iter().any(|one| collide(&one.shape, shape)));
        if !taken && !own.starts_with(REWRITTEN) {
            return None;
        }
        self.id(index).map(|id| public_uri(id, own))
    }
}

/// The greatest product of two shapes' lengths that is compared in full: longer templates count as colliding.
const COLLISION_WORK_MAX: usize = 16_384;

/// Whether two templates can give the same URI. Nearly always their beginnings or ends already differ.
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
