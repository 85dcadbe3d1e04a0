//! A caller's lists: the entries that it may use or propose, in configuration order; and changes of
//! servers' lists: shared, for one link, and by a new configuration.

use std::{borrow::Cow, sync::Arc};

use model::{Capabilities, LinkId, ListKind, Narrowing, PROPOSAL, ParticipantId};

use crate::{
    Handles, ServerLists, Topic,
    admission::Looker,
    catalog::{Catalog, Overrides, UpstreamIndex},
    config::UpstreamNames,
    event::{Configure, ListScope, SharedLists},
    names::narrow_name,
    view::{is_named, method},
};

/// One entry of a list as a caller sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing<'a> {
    /// The server whose entry it is.
    pub upstream: &'a ParticipantId,
    /// The server's own name, URI or URI template.
    pub own: &'a Arc<str>,
    /// Its public spelling.
    pub public: Cow<'a, str>,
    /// The name by which capabilities judge it, if that is not the public one.
    pub ruled: Option<&'a Arc<str>>,
    /// Whether a call of it is held as a proposal instead of running at once.
    pub held: bool,
}

/// The data that a caller's lists depend on, at one moment: the shell builds the lists outside of
/// the topic's lock.
#[derive(Debug, Clone)]
pub struct ListSnapshot {
    catalog: Arc<Catalog>,
    capabilities: Arc<Capabilities>,
    overrides: Overrides,
    promotes: bool,
}

impl<H: Handles> Topic<H> {
    /// The snapshot for a participant with these capabilities, as if it had a link that promotes.
    /// Of servers that list to each caller what is its own it has what its links have.
    pub fn list_snapshot_of(
        &self,
        who: &ParticipantId,
        capabilities: &Arc<Capabilities>,
    ) -> ListSnapshot {
        let links = self
            .members
            .of_id(who)
            .map_or(&[][..], |member| &member.links);
        let own = links
            .iter()
            .filter_map(|link| self.members.link(*link))
            .flat_map(|link| link.overrides());
        let own = own.filter(|(index, _)| self.catalog.lists_to_each(**index));
        let overrides = own
            .map(|(index, view)| (*index, Arc::clone(view)))
            .collect();
        let catalog = Arc::clone(&self.catalog);
        let capabilities = Arc::clone(capabilities);
        ListSnapshot {
            catalog,
            capabilities,
            overrides,
            promotes: true,
        }
    }

    /// The snapshot for this link, for a request with an access token that narrows its
    /// participant's capabilities to this.
    pub fn list_snapshot(
        &self,
        link: LinkId,
        narrowing: Option<&Narrowing>,
    ) -> Option<ListSnapshot> {
        let (own, member) = self.members.linked(link)?;
        // A client that can come back with another token sees what that would be good for.
        let narrowing = narrowing.filter(|narrowing| narrowing.step_up.is_none());
        Some(ListSnapshot {
            catalog: Arc::clone(&self.catalog),
            capabilities: own.granted(member, narrowing),
            overrides: own.overrides().clone(),
            promotes: own.promotes,
        })
    }
}

impl ListSnapshot {
    /// Whether two snapshots are certain to give the same lists.
    pub fn is_same(&self, other: &Self) -> bool {
        let own = |of: &Self| {
            of.overrides
                .iter()
                .map(|(at, view)| (*at, Arc::as_ptr(view)))
                .collect::<Vec<_>>()
        };
        self.is_concurrent(other)
            && own(self) == own(other)
            && self.promotes == other.promotes
            && (Arc::ptr_eq(&self.capabilities, &other.capabilities)
                || self.capabilities == other.capabilities)
    }

    /// Whether no server's shared lists changed between two snapshots of one topic.
    pub fn is_concurrent(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.catalog, &other.catalog)
    }

    /// The entries of a list that the caller may use or propose: in configuration order, then in
    /// the server's own.
    pub fn list(&self, list: ListKind) -> Vec<Listing<'_>> {
        let mut listings = Vec::new();
        let capabilities = &*self.capabilities;
        let method = method(list);
        let promotes = self.promotes && capabilities.admits_head(PROPOSAL);
        for (index, names, view) in self.catalog.each(&self.overrides) {
            let upstream = &names.id;
            let at = names.id.as_str();
            let looker = Looker {
                capabilities,
                promotes: promotes && !names.builtin,
            };
            for entry in &view.list(list).all {
                let public = match self
                    .catalog
                    .respelled_entry(&self.overrides, index, list, entry)
                {
                    Some(public) => Cow::Owned(public),
                    None => Cow::Borrowed(&*entry.public),
                };
                let holds = match (&entry.template, &public) {
                    (None, _) if is_named(list) => looker.holds(method, &entry.ruled, at),
                    (None, _) => looker.holds(method, &public, at),
                    (Some(template), Cow::Borrowed(_)) => {
                        looker.holds_some(method, &template.shape, at)
                    }
                    (Some(template), Cow::Owned(text)) => {
                        let added = text.strip_suffix(&*entry.own).unwrap_or_default();
                        let shape: Vec<_> = added
                            .chars()
                            .map(Some)
                            .chain(template.shape.iter().copied())
                            .collect();
                        looker.holds_some(method, &shape, at)
                    }
                };
                let own = &entry.own;
                let ruled = (!Arc::ptr_eq(&entry.ruled, &entry.public)).then_some(&entry.ruled);
                listings.extend(holds.map(|held| Listing {
                    upstream,
                    own,
                    public,
                    ruled,
                    held,
                }));
            }
        }
        listings
    }

    /// The public name of the tool that has this narrow one ([`narrow_name`](crate::narrow_name)),
    /// if no tool has it itself: one that the caller may use or propose, so that it learns of no
    /// other.
    pub fn tool_of_narrow(&self, narrow: &str) -> Option<String> {
        let mut views = self
            .catalog
            .each(&self.overrides)
            .map(|(.., view)| view.list(ListKind::Tools));
        if views.any(|entries| entries.get(narrow).is_some()) {
            return None;
        }
        let is_it =
            |listing: &Listing<'_>| narrow_name(&listing.public).is_some_and(|name| name == narrow);
        self.list(ListKind::Tools)
            .into_iter()
            .find(is_it)
            .map(|listing| listing.public.into_owned())
    }

    /// The public spelling of a URI that a server wrote; `None` if it stays as it is.
    pub fn respelled_uri(&self, server: &ParticipantId, own: &str) -> Option<String> {
        self.catalog
            .respelled(&self.overrides, self.catalog.index(server)?, own)
    }
}

impl<H: Handles> Topic<H> {
    pub(crate) fn listed(
        &mut self,
        server: &ParticipantId,
        scope: ListScope,
        manifest: ServerLists,
        changed: &[ListKind],
    ) {
        let Some(index) = self.catalog.index(server) else {
            return;
        };
        if self.members.server(server).is_none() {
            return;
        }
        match scope {
            ListScope::Shared if self.catalog.builtin() == Some(index) => {
                self.listed_builtin(index, manifest, changed);
            }
            ListScope::Shared => self.listed_shared(index, manifest, changed),
            // The gateway has the same lists for all callers, because its names win over all
            // others.
            ListScope::Link(_) if self.catalog.builtin() == Some(index) => {}
            ListScope::Link(link) => self.listed_for(index, link, manifest, changed),
        }
    }

    fn listed_shared(&mut self, index: UpstreamIndex, manifest: ServerLists, changed: &[ListKind]) {
        let newer = Arc::new(self.catalog.index_manifest(index, manifest));
        let catalog = Arc::make_mut(&mut self.catalog);
        let Some(older) = catalog.replace(index, newer.clone()) else {
            return;
        };
        catalog.merge();
        self.notify_view(index, ListScope::Shared, &older, &newer, changed);
    }

    /// The gateway's own names win over all others, so every other view is indexed again.
    fn listed_builtin(
        &mut self,
        index: UpstreamIndex,
        manifest: ServerLists,
        changed: &[ListKind],
    ) {
        let before = self.seen_by(&self.caller_links());
        let view = Arc::new(self.catalog.index_manifest(index, manifest));
        let catalog = Arc::make_mut(&mut self.catalog);
        catalog.replace(index, view);
        catalog.index_again();
        self.move_overrides(&|index| Some(index));
        self.notify_changes(before, changed);
    }

    fn listed_for(
        &mut self,
        index: UpstreamIndex,
        link: LinkId,
        manifest: ServerLists,
        changed: &[ListKind],
    ) {
        if self.members.link(link).is_none() {
            return;
        }
        let newer = self.catalog.view_of(index, manifest);
        let Some(own) = self.members.link_mut(link) else {
            return;
        };
        own.attach(index);
        let own = own.own_mut();
        let older = own
            .overrides
            .insert(index, newer.clone())
            .or_else(|| self.catalog.shared(index).cloned());
        if let Some(older) = older {
            self.notify_view(index, ListScope::Link(link), &older, &newer, changed);
        }
    }

    pub(crate) fn attach(&mut self, link: LinkId, server: &ParticipantId) {
        let index = self
            .catalog
            .index(server)
            .filter(|_| self.members.server(server).is_some());
        if let (Some(index), Some(link)) = (index, self.members.link_mut(link)) {
            link.attach(index);
        }
    }

    pub(crate) fn detach(&mut self, link: LinkId, server: &ParticipantId, keeps_lists: bool) {
        let Some(index) = self.catalog.index(server) else {
            return;
        };
        let Some(own) = self
            .members
            .link_mut(link)
            .and_then(|link| link.own.as_mut())
        else {
            return;
        };
        own.attached.retain(|other| *other != index);
        let older = if keeps_lists {
            None
        } else {
            own.overrides.remove(&index)
        };
        self.end_session_asks(link, server);
        if let (Some(older), Some(newer)) = (older, self.catalog.shared(index).cloned()) {
            self.notify_view(index, ListScope::Link(link), &older, &newer, &[]);
        }
    }

    /// A server is gone: its shared names and every view of one link. [`Topic::configure`] builds
    /// the catalog again afterwards, and notifies callers about the changes.
    pub(crate) fn forget_views(&mut self, server: &ParticipantId) {
        let Some(index) = self.catalog.index(server) else {
            return;
        };
        for own in self.members.owns_mut() {
            own.attached.retain(|other| *other != index);
            own.apps.retain(|other| *other != index);
            own.overrides.remove(&index);
        }
        Arc::make_mut(&mut self.catalog).replace(index, Arc::default());
    }

    pub(crate) fn configure(&mut self, configure: Configure<'_, H>) {
        let Configure {
            upstreams,
            seats,
            lists,
            changed,
            kept,
        } = configure;
        let before = self.seen_by(&self.caller_links());
        if let Some(kept) = kept {
            self.ring.keep(kept);
        }
        self.set_servers(upstreams);
        for seating in seats {
            self.serve(seating);
        }
        self.list_shared(lists);
        self.notify_changes(before, changed);
    }

    /// Takes over the names of servers. Servers that are not named leave.
    fn set_servers(&mut self, upstreams: &[UpstreamNames]) {
        let same = |one: &UpstreamNames, id: &ParticipantId| {
            one.id == *id && one.serves == self.serves(id)
        };
        let stays = |id: &ParticipantId| upstreams.iter().any(|upstream| same(upstream, id));
        let gone: Vec<ParticipantId> = self
            .catalog
            .ids()
            .filter(|id| !stays(id))
            .cloned()
            .collect();
        for id in &gone {
            self.dismiss(id);
        }
        let mut catalog = Catalog::new(upstreams, self.limits);
        catalog.take_views(&self.catalog);
        let older = std::mem::replace(&mut self.catalog, Arc::new(catalog));
        let moved: Vec<Option<UpstreamIndex>> =
            older.ids().map(|id| self.catalog.index(id)).collect();
        self.move_overrides(&|index| moved.get(index.0).copied().flatten());
        self.present = self
            .catalog
            .ids()
            .map(|id| self.members.server(id))
            .collect();
    }

    /// Takes over the shared lists of several servers at once.
    fn list_shared(&mut self, lists: Vec<SharedLists<'_>>) {
        if lists.is_empty() {
            return;
        }
        let catalog = Arc::make_mut(&mut self.catalog);
        for SharedLists { server, manifest } in lists {
            let index = catalog.index(server);
            let seated = index.filter(|_| self.members.server(server).is_some());
            if let Some(index) = seated {
                let view = catalog.index_manifest(index, manifest);
                catalog.replace(index, Arc::new(view));
            }
        }
        // The gateway's own names win over all others, wherever they are configured.
        catalog.index_again();
        self.move_overrides(&|index| Some(index));
    }

    /// Moves each link's own views to their servers' new places, after the catalog has changed.
    fn move_overrides(&mut self, to: &dyn Fn(UpstreamIndex) -> Option<UpstreamIndex>) {
        for own in self.members.owns_mut() {
            own.attached = own.attached.iter().filter_map(|index| to(*index)).collect();
            own.apps = own.apps.iter().filter_map(|index| to(*index)).collect();
            let views = std::mem::take(&mut own.overrides).into_iter();
            let moved = views.filter_map(|(index, view)| {
                let index = to(index)?;
                Some((index, self.catalog.view_of(index, view.manifest.clone())))
            });
            own.overrides = moved.collect();
        }
    }
}
