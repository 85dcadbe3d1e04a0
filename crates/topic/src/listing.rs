//! Changes of servers' lists: shared, for one link, and by a new configuration.

use std::sync::Arc;

use model::{LinkId, ListKind, ParticipantId};

use crate::{
    Handles, Manifest, Topic,
    catalog::{Catalog, UpstreamIndex},
    config::UpstreamNames,
    event::ListScope,
};

impl<H: Handles> Topic<H> {
    pub(crate) fn listed(
        &mut self,
        server: &ParticipantId,
        scope: ListScope,
        manifest: Manifest,
        changed: &[ListKind],
    ) {
        let Some(index) = self.catalog.index(server) else { return };
        if self.members.server(server).is_none() {
            return;
        }
        match scope {
            ListScope::Shared if self.catalog.builtin() == Some(index) => {
                self.listed_builtin(index, manifest);
            }
            ListScope::Shared => self.listed_shared(index, manifest, changed),
            // The gateway has the same lists for all callers, because its names win over all others.
            ListScope::Link(_) if self.catalog.builtin() == Some(index) => {}
            ListScope::Link(link) => self.listed_for(index, link, manifest, changed),
        }
    }

    fn listed_shared(&mut self, index: UpstreamIndex, manifest: Manifest, changed: &[ListKind]) {
        let newer = Arc::new(self.catalog.index_manifest(index, manifest));
        let catalog = Arc::make_mut(&mut self.catalog);
        let Some(older) = catalog.replace(index, newer.clone()) else { return };
        catalog.merge();
        self.notify_view(index, ListScope::Shared, &older, &newer, changed);
    }

    /// The gateway's own names win over all others, so every other view is indexed again.
    fn listed_builtin(&mut self, index: UpstreamIndex, manifest: Manifest) {
        let before = self.seen_by(&self.caller_links());
        let view = Arc::new(self.catalog.index_manifest(index, manifest));
        let catalog = Arc::make_mut(&mut self.catalog);
        catalog.replace(index, view);
        catalog.index_again();
        self.move_overrides(&|index| Some(index));
        self.notify_changes(before);
    }

    fn listed_for(&mut self, index: UpstreamIndex, link: LinkId, manifest: Manifest, changed: &[ListKind]) {
        if self.members.link(link).is_none() {
            return;
        }
        let newer = self.catalog.view_of(index, manifest);
        let Some(own) = self.members.link_mut(link) else { return };
        own.attach(index);
        let own = own.own_mut();
        let older =
            own.overrides.insert(index, newer.clone()).or_else(|| self.catalog.shared(index).cloned());
        if let Some(older) = older {
            self.notify_view(index, ListScope::Link(link), &older, &newer, changed);
        }
    }

    pub(crate) fn attach(&mut self, link: LinkId, server: &ParticipantId) {
        let index = self.catalog.index(server).filter(|_| self.members.server(server).is_some());
        if let (Some(index), Some(link)) = (index, self.members.link_mut(link)) {
            link.attach(index);
        }
    }

    pub(crate) fn detach(&mut self, link: LinkId, server: &ParticipantId) {
        let Some(index) = self.catalog.index(server) else { return };
        let Some(own) = self.members.link_mut(link).and_then(|link| link.own.as_mut()) else { return };
        own.attached.retain(|other| *other != index);
        let older = own.overrides.remove(&index);
        self.end_session_asks(link, server);
        if let (Some(older), Some(newer)) = (older, self.catalog.shared(index).cloned()) {
            self.notify_view(index, ListScope::Link(link), &older, &newer, &[]);
        }
    }

    /// A server is gone: its shared names and every view of one link. [`Topic::configure`] builds the catalog again afterwards,
    /// and notifies callers about the changes.
    pub(crate) fn forget_views(&mut self, server: &ParticipantId) {
        let Some(index) = self.catalog.index(server) else { return };
        for own in self.members.owns_mut() {
            own.attached.retain(|other| *other != index);
            own.overrides.remove(&index);
        }
        Arc::make_mut(&mut self.catalog).replace(index, Arc::default());
    }

    pub(crate) fn configure(&mut self, upstreams: &[UpstreamNames]) {
        let before = self.seen_by(&self.caller_links());
        let same = |one: &UpstreamNames, id: &ParticipantId| one.id == *id && one.serves == self.serves(id);
        let stays = |id: &ParticipantId| upstreams.iter().any(|upstream| same(upstream, id));
        let gone: Vec<ParticipantId> = self.catalog.ids().filter(|id| !stays(id)).cloned().collect();
        for id in &gone {
            self.dismiss(id);
        }
        let mut catalog = Catalog::new(upstreams, self.limits);
        catalog.take_views(&self.catalog);
        let older = std::mem::replace(&mut self.catalog, Arc::new(catalog));
        let moved: Vec<Option<UpstreamIndex>> = older.ids().map(|id| self.catalog.index(id)).collect();
        self.move_overrides(&|index| moved.get(index.0).copied().flatten());
        self.present = self.catalog.ids().map(|id| self.members.server(id)).collect();
        self.notify_changes(before);
    }

    /// Moves each link's own views to their servers' new places, after the catalog has changed.
    fn move_overrides(&mut self, to: &dyn Fn(UpstreamIndex) -> Option<UpstreamIndex>) {
        for own in self.members.owns_mut() {
            own.attached = own.attached.iter().filter_map(|index| to(*index)).collect();
            let views = std::mem::take(&mut own.overrides).into_iter();
            let moved = views.filter_map(|(index, view)| {
                let index = to(index)?;
                Some((index, self.catalog.view_of(index, view.manifest.clone())))
            });
            own.overrides = moved.collect();
        }
    }
}
