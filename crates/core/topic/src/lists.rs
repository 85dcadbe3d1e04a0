//! A caller's lists: the entries that it may use or propose, in configuration order; and changes of
//! servers' lists: shared, for one link, and by a new configuration.

use std::{borrow::Cow, sync::Arc};

use model::{Capabilities, LinkId, ListKind, Narrowing, PROPOSAL, ParticipantId};

use crate::{
    Handles, ServerLists, Topic,
    admission::{Access, Looker},
    catalog::{Catalog, Overrides, UpstreamIndex, Viewed},
    config::{TopicSettings, UpstreamNames},
    event::{Configure, ListScope, SharedLists},
    names::narrow_name,
    view::{OfferedEntry, is_named, method},
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
        let mut overrides = Overrides::new();
        if let Some(member) = self.members.of_id(who) {
            let links = member.links.iter();
            for link in links.filter_map(|link| self.members.link(*link)) {
                for (index, view) in link.overrides() {
                    if self.catalog.lists_to_each(*index) {
                        overrides.insert(*index, Arc::clone(view));
                    }
                }
            }
        }
        ListSnapshot {
            catalog: Arc::clone(&self.catalog),
            capabilities: Arc::clone(capabilities),
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
        let (link, member) = self.members.linked(link)?;
        // A client that can come back with another token sees what that would be good for.
        let narrowing = narrowing.filter(|narrowing| narrowing.step_up.is_none());
        Some(ListSnapshot {
            catalog: Arc::clone(&self.catalog),
            capabilities: link.granted(member, narrowing),
            overrides: link.overrides().clone(),
            promotes: link.promotes,
        })
    }
}

/// Whether two links have the same views of their own in memory.
fn are_same(one: &Overrides, other: &Overrides) -> bool {
    let one = one.iter().map(|(index, view)| (index, Arc::as_ptr(view)));
    one.eq(other.iter().map(|(index, view)| (index, Arc::as_ptr(view))))
}

impl ListSnapshot {
    /// Whether two snapshots are certain to give the same lists.
    pub fn is_same(&self, other: &Self) -> bool {
        self.is_concurrent(other)
            && are_same(&self.overrides, &other.overrides)
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
        // A caller that can propose nothing has no entry judged a second time.
        let promotes = self.promotes && capabilities.admits_head(PROPOSAL);
        for Viewed { index, names, view } in self.catalog.each(&self.overrides) {
            let looker = Looker {
                capabilities,
                // The gateway's own tools are never held.
                promotes: promotes && !names.builtin,
            };
            for entry in &view.list(list).all {
                let respelled = self
                    .catalog
                    .respelled_entry(&self.overrides, index, list, entry);
                let access = access_to(entry, respelled.as_deref(), looker, list, &names.id);
                let Some(access) = access else {
                    continue;
                };
                let has_given_name = !Arc::ptr_eq(&entry.ruled, &entry.public);
                listings.push(Listing {
                    upstream: &names.id,
                    own: &entry.own,
                    public: match respelled {
                        Some(public) => Cow::Owned(public),
                        None => Cow::Borrowed(&*entry.public),
                    },
                    ruled: has_given_name.then_some(&entry.ruled),
                    held: access == Access::Held,
                });
            }
        }
        listings
    }

    /// The public name of the tool that has this narrow one ([`narrow_name`](crate::narrow_name)),
    /// if no tool has it itself: one that the caller may use or propose, so that it learns of no
    /// other.
    pub fn tool_of_narrow(&self, narrow: &str) -> Option<String> {
        let mut servers = self.catalog.each(&self.overrides);
        if servers.any(|server| server.view.list(ListKind::Tools).get(narrow).is_some()) {
            return None;
        }
        let listings = self.list(ListKind::Tools).into_iter();
        listings
            .map(|listing| listing.public)
            .find(|public| narrow_name(public).as_deref() == Some(narrow))
            .map(Cow::into_owned)
    }

    /// The public spelling of a URI that a server wrote; `None` if it stays as it is.
    pub fn respelled_uri(&self, server: &ParticipantId, own: &str) -> Option<String> {
        self.catalog
            .respelled(&self.overrides, self.catalog.index(server)?, own)
    }
}

/// A caller's access to an entry of a server's list, which has another public spelling if
/// `respelled` is one.
fn access_to(
    entry: &OfferedEntry,
    respelled: Option<&str>,
    looker: Looker<'_>,
    list: ListKind,
    server: &ParticipantId,
) -> Option<Access> {
    let server = server.as_str();
    let method = method(list);
    let Some(template) = &entry.template else {
        let text = if is_named(list) {
            &*entry.ruled
        } else {
            respelled.unwrap_or(&entry.public)
        };
        return looker.access(method, text, server);
    };
    let Some(respelled) = respelled else {
        return looker.access_to_some(method, &template.shape, server);
    };
    // The public spelling only has a beginning more, which holds no expression.
    let beginning = respelled.strip_suffix(&*entry.own).unwrap_or_default();
    let shape: Vec<_> = beginning
        .chars()
        .map(Some)
        .chain(template.shape.iter().copied())
        .collect();
    looker.access_to_some(method, &shape, server)
}

impl<H: Handles> Topic<H> {
    /// Takes over lists of a server.
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
        let Some(at_link) = self.members.link_mut(link) else {
            return;
        };
        at_link.attach(index);
        let overrides = &mut at_link.holdings_mut().overrides;
        // Until now the link saw the shared lists, unless it had some of its own.
        let older = match overrides.insert(index, newer.clone()) {
            Some(older) => Some(older),
            None => self.catalog.shared(index).cloned(),
        };
        if let Some(older) = older {
            self.notify_view(index, ListScope::Link(link), &older, &newer, changed);
        }
    }

    pub(crate) fn attach(&mut self, link: LinkId, server: &ParticipantId) {
        let Some(index) = self.catalog.index(server) else {
            return;
        };
        if self.members.server(server).is_none() {
            return;
        }
        if let Some(link) = self.members.link_mut(link) {
            link.attach(index);
        }
    }

    pub(crate) fn detach(&mut self, link: LinkId, server: &ParticipantId, keeps_lists: bool) {
        let Some(index) = self.catalog.index(server) else {
            return;
        };
        let Some(at_link) = self.members.link_mut(link) else {
            return;
        };
        let Some(holdings) = &mut at_link.holdings else {
            return;
        };
        holdings.attached.retain(|other| *other != index);
        let mut older = None;
        if !keeps_lists {
            older = holdings.overrides.remove(&index);
        }
        self.end_session_asks(link, server);
        if let Some(older) = older
            && let Some(newer) = self.catalog.shared(index).cloned()
        {
            self.notify_view(index, ListScope::Link(link), &older, &newer, &[]);
        }
    }

    /// A server is gone: its shared names and every view of one link. [`Topic::configure`] builds
    /// the catalog again afterwards, and notifies callers about the changes.
    pub(crate) fn forget_views(&mut self, server: &ParticipantId) {
        let Some(index) = self.catalog.index(server) else {
            return;
        };
        for holdings in self.members.all_holdings_mut() {
            holdings.attached.retain(|other| *other != index);
            holdings.apps.retain(|other| *other != index);
            holdings.overrides.remove(&index);
        }
        Arc::make_mut(&mut self.catalog).replace(index, Arc::default());
    }

    /// Takes over a configuration: names first, which seats and lists are under.
    pub(crate) fn configure(&mut self, configure: Configure<'_, H>) {
        let Configure {
            upstreams,
            seats,
            lists,
            changed,
            settings,
        } = configure;
        let before = self.seen_by(&self.caller_links());
        if let Some(settings) = settings {
            self.set(*settings);
        }
        self.set_servers(upstreams);
        for seating in seats {
            self.serve(seating);
        }
        self.list_shared(lists);
        self.notify_changes(before, changed);
    }

    /// Takes over settings.
    fn set(&mut self, settings: TopicSettings) {
        let TopicSettings {
            limits,
            mirrors,
            kept,
            is_branch,
        } = settings;
        self.limits = limits;
        self.mirrors = mirrors;
        self.is_branch = is_branch;
        self.ring.keep(kept);
    }

    /// Takes over the names of servers. Servers that are not named leave.
    fn set_servers(&mut self, upstreams: &[UpstreamNames]) {
        let mut gone: Vec<ParticipantId> = Vec::new();
        for id in self.catalog.ids() {
            let serves = self.serves(id);
            // A name under which another kind of participant serves from now on is another server.
            let stays = upstreams
                .iter()
                .any(|upstream| upstream.id == *id && upstream.serves == serves);
            if !stays {
                gone.push(id.clone());
            }
        }
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
            let Some(index) = catalog.index(server) else {
                continue;
            };
            if self.members.server(server).is_some() {
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
        for holdings in self.members.all_holdings_mut() {
            holdings.attached = moved(&holdings.attached, to);
            holdings.apps = moved(&holdings.apps, to);
            for (index, view) in std::mem::take(&mut holdings.overrides) {
                if let Some(index) = to(index) {
                    // Which of its names count depends on the other servers' names.
                    let view = self.catalog.view_of(index, view.manifest.clone());
                    holdings.overrides.insert(index, view);
                }
            }
        }
    }
}

/// The new places of servers, of those that have one.
fn moved(
    places: &[UpstreamIndex],
    to: &dyn Fn(UpstreamIndex) -> Option<UpstreamIndex>,
) -> Vec<UpstreamIndex> {
    places.iter().filter_map(|index| to(*index)).collect()
}
