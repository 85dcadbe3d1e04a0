//! A caller's lists: the entries that it may use or propose, in configuration order.

use std::{borrow::Cow, sync::Arc};

use model::{Capabilities, LinkId, ListKind, PROPOSAL, ParticipantId};

use crate::{
    Handles, Topic,
    admission::Looker,
    catalog::{Catalog, Overrides},
    manifest::method,
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
    /// Whether a call of it is held as a proposal instead of running at once.
    pub held: bool,
}

/// The data that a caller's lists depend on, at one moment: the shell builds the lists outside of the topic's lock.
#[derive(Debug, Clone)]
pub struct ListSnapshot {
    catalog: Arc<Catalog>,
    capabilities: Arc<Capabilities>,
    overrides: Overrides,
    promotes: bool,
}

impl<H: Handles> Topic<H> {
    /// The snapshot for a caller with these capabilities, as if it had a link that promotes.
    pub fn list_snapshot_of(&self, capabilities: &Arc<Capabilities>) -> ListSnapshot {
        let (catalog, capabilities) = (Arc::clone(&self.catalog), Arc::clone(capabilities));
        ListSnapshot { catalog, capabilities, overrides: Overrides::default(), promotes: true }
    }

    /// The snapshot for this link.
    pub fn list_snapshot(&self, link: LinkId) -> Option<ListSnapshot> {
        let (own, member) = self.members.linked(link)?;
        Some(ListSnapshot {
            catalog: Arc::clone(&self.catalog),
            capabilities: Arc::clone(&member.capabilities),
            overrides: own.overrides().clone(),
            promotes: own.promotes,
        })
    }
}

impl ListSnapshot {
    /// Whether two snapshots are certain to give the same lists.
    pub fn is_same(&self, other: &Self) -> bool {
        let own =
            |of: &Self| of.overrides.iter().map(|(at, view)| (*at, Arc::as_ptr(view))).collect::<Vec<_>>();
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

    /// The entries of a list that the caller may use or propose: in configuration order, then in the server's own.
    pub fn list(&self, list: ListKind) -> Vec<Listing<'_>> {
        let mut listings = Vec::new();
        let (capabilities, method) = (&*self.capabilities, method(list));
        let promotes = self.promotes && capabilities.admits_head(PROPOSAL);
        for (index, names, view) in self.catalog.each(&self.overrides) {
            let (upstream, at) = (&names.id, names.id.as_str());
            let looker = Looker { capabilities, promotes: promotes && !names.builtin };
            for entry in &view.list(list).all {
                let public = match self.catalog.respelled_entry(&self.overrides, index, list, entry) {
                    Some(public) => Cow::Owned(public),
                    None => Cow::Borrowed(&*entry.public),
                };
                let holds = match (&entry.template, &public) {
                    (None, _) => looker.holds(method, &public, at),
                    (Some(template), Cow::Borrowed(_)) => looker.holds_some(method, &template.shape, at),
                    (Some(template), Cow::Owned(text)) => {
                        let added = text.strip_suffix(&*entry.own).unwrap_or_default();
                        let shape: Vec<_> =
                            added.chars().map(Some).chain(template.shape.iter().copied()).collect();
                        looker.holds_some(method, &shape, at)
                    }
                };
                let own = &entry.own;
                listings.extend(holds.map(|held| Listing { upstream, own, public, held }));
            }
        }
        listings
    }

    /// The public spelling of a URI that a server wrote; `None` if it stays as it is.
    pub fn respelled_uri(&self, server: &ParticipantId, own: &str) -> Option<String> {
        self.catalog.respelled(&self.overrides, self.catalog.index(server)?, own)
    }
}
