//! Owns the change of what upstreams list: shared, for one link, and by a new configuration.
//! Must not know how names are made.

use std::sync::Arc;

use model::{LinkId, ParticipantId};

use crate::{
    catalog::{Catalog, UpstreamIndex},
    config::UpstreamNames,
    diff::Whose,
    effect::Effects,
    event::View,
    manifest::{ListKind, Manifest},
    topic::Topic,
};

impl Topic {
    pub(crate) fn listed(
        &mut self,
        effects: &mut Effects,
        upstream: &ParticipantId,
        view: View,
        manifest: Manifest,
        told: &[ListKind],
    ) {
        let Some(index) = self.catalog.index(upstream) else { return };
        if self.members.server(upstream).is_none() {
            return;
        }
        match view {
            View::Shared if self.catalog.builtin() == Some(index) => {
                self.listed_builtin(effects, index, manifest);
            }
            View::Shared => self.listed_shared(effects, index, manifest, told),
            // The gateway lists the same to all: its names are taken first for everybody.
            View::Link(_) if self.catalog.builtin() == Some(index) => {}
            View::Link(link) => self.listed_for(effects, index, link, manifest, told),
        }
    }

    fn listed_shared(
        &mut self,
        effects: &mut Effects,
        index: UpstreamIndex,
        manifest: Manifest,
        told: &[ListKind],
    ) {
        let newer = Arc::new(self.catalog.index_manifest(index, manifest));
        let Some(older) = self.catalog.replace(index, newer.clone()) else { return };
        self.catalog.merge();
        self.tell_view(effects, index, Whose::Shared, &older, &newer, told);
    }

    /// The gateway's own names are taken first, so every other view is made anew.
    fn listed_builtin(&mut self, effects: &mut Effects, index: UpstreamIndex, manifest: Manifest) {
        let before = self.sights(&self.callers());
        let view = Arc::new(self.catalog.index_manifest(index, manifest));
        self.catalog.replace(index, view);
        self.catalog.index_again();
        self.move_overrides(&|index| Some(index));
        self.tell_changes(effects, &before);
    }

    fn listed_for(
        &mut self,
        effects: &mut Effects,
        index: UpstreamIndex,
        link: LinkId,
        manifest: Manifest,
        told: &[ListKind],
    ) {
        if self.members.link(link).is_none() {
            return;
        }
        let newer = self.catalog.view_of(index, manifest);
        let Some(own) = self.members.link_mut(link) else { return };
        if !own.attached.contains(&index) {
            own.attached.push(index);
        }
        let older = own.overrides.set(index, newer.clone()).or_else(|| self.catalog.shared(index).cloned());
        if let Some(older) = older {
            self.tell_view(effects, index, Whose::Link(link), &older, &newer, told);
        }
    }

    pub(crate) fn attach(&mut self, link: LinkId, upstream: &ParticipantId) {
        let index = self.catalog.index(upstream).filter(|_| self.members.server(upstream).is_some());
        if let (Some(index), Some(own)) = (index, self.members.link_mut(link))
            && !own.attached.contains(&index)
        {
            own.attached.push(index);
        }
    }

    pub(crate) fn detach(&mut self, effects: &mut Effects, link: LinkId, upstream: &ParticipantId) {
        let Some(index) = self.catalog.index(upstream) else { return };
        let Some(own) = self.members.link_mut(link) else { return };
        own.attached.retain(|other| *other != index);
        let older = own.overrides.remove(index);
        self.end_session_asks(effects, link, upstream);
        if let (Some(older), Some(newer)) = (older, self.catalog.shared(index).cloned()) {
            self.tell_view(effects, index, Whose::Link(link), &older, &newer, &[]);
        }
    }

    /// An upstream is gone: its shared names and every view of one link.
    pub(crate) fn forget_views(&mut self, effects: &mut Effects, upstream: &ParticipantId) {
        let Some(index) = self.catalog.index(upstream) else { return };
        let mut own_views = Vec::new();
        for (link, own) in self.members.links_mut() {
            own.attached.retain(|other| *other != index);
            own_views.extend(own.overrides.remove(index).map(|view| (link, view)));
        }
        own_views.sort_unstable_by_key(|(link, _)| *link);
        self.listed_shared(effects, index, Manifest::default(), &[]);
        let none = self.catalog.shared(index).cloned().unwrap_or_default();
        for (link, older) in own_views {
            self.tell_view(effects, index, Whose::Link(link), &older, &none, &[]);
        }
    }

    pub(crate) fn configure(&mut self, effects: &mut Effects, upstreams: &[UpstreamNames]) {
        let before = self.sights(&self.callers());
        let same = |one: &UpstreamNames, id: &ParticipantId| one.id == *id && one.serves == self.serves(id);
        let stays = |id: &ParticipantId| upstreams.iter().any(|upstream| same(upstream, id));
        let gone: Vec<ParticipantId> = self.catalog.ids().filter(|id| !stays(id)).cloned().collect();
        let mut last_words = Effects::new();
        for id in &gone {
            self.dismiss(&mut last_words, id);
        }
        // What is told about lists is told once, below, when everything is in place.
        effects.extend(last_words.into_iter().filter(|effect| !effect.is_list_changed()));
        let older = std::mem::replace(&mut self.catalog, Catalog::new(upstreams, self.limits));
        self.catalog.take_views(&older);
        let moved: Vec<Option<UpstreamIndex>> = older.ids().map(|id| self.catalog.index(id)).collect();
        self.move_overrides(&|index| moved.get(usize::from(index.0)).copied().flatten());
        self.present = self.catalog.ids().map(|id| self.members.server(id)).collect();
        self.tell_changes(effects, &before);
    }

    /// After the catalog has changed: each link's own views, at their upstreams' new places.
    fn move_overrides(&mut self, to: &dyn Fn(UpstreamIndex) -> Option<UpstreamIndex>) {
        for (_, own) in self.members.links_mut() {
            own.attached = own.attached.iter().filter_map(|index| to(*index)).collect();
            own.overrides.moved(to, &self.catalog);
        }
    }
}
