//! A caller's lists: the entries that it may use or propose, in configuration order.

use std::{borrow::Cow, sync::Arc};

use model::{Capabilities, LinkId, ListKind, PROPOSAL, ParticipantId, REQUEST};

use crate::{
    Handles, Topic,
    admission::{admits, proposes},
    catalog::{Catalog, Overrides, UpstreamIndex},
    manifest::method,
    view::UpstreamView,
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
        let (own, member) = self.members.link(link).zip(self.members.of_link(link))?;
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
        self.is_concurrent(other)
            && self.overrides.is_same(&other.overrides)
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
        let promotes = self.promotes && self.capabilities.admits_head(PROPOSAL);
        for (index, names, view) in self.catalog.each(&self.overrides) {
            let promotes = promotes && !names.builtin;
            let (capabilities, overrides) = (&self.capabilities, &self.overrides);
            let seen = Seen { capabilities, overrides, index, promotes };
            self.entries(seen, &names.id, view, list, &mut listings);
        }
        listings
    }

    /// The public spelling of a URI that a server wrote; `None` if it stays as it is.
    pub fn respelled_uri(&self, server: &ParticipantId, own: &str) -> Option<String> {
        self.catalog.respelled(&self.overrides, self.catalog.index(server)?, own)
    }

    fn entries<'a>(
        &'a self,
        seen: Seen<'_>,
        upstream: &'a ParticipantId,
        view: &'a UpstreamView,
        list: ListKind,
        listings: &mut Vec<Listing<'a>>,
    ) {
        let Seen { overrides, index, .. } = seen;
        let mut push = |own: &'a Arc<str>, public: Cow<'a, str>, held: Option<bool>| {
            listings.extend(held.map(|held| Listing { upstream, own, public, held }));
        };
        if let Some(names) = view.named(list) {
            for name in &names.all {
                push(&name.own, Cow::Borrowed(&name.public), seen.as_held(list, &name.public, upstream));
            }
        } else if list == ListKind::Resources {
            for item in &view.resources {
                let public = respelled(self.catalog.respelled(overrides, index, &item.own), &item.own);
                let held = seen.as_held(list, &public, upstream);
                push(&item.own, public, held);
            }
        } else {
            for one in &view.templates {
                let own = &one.item.own;
                let public =
                    respelled(self.catalog.respelled_template(overrides, index, own, &one.shape), own);
                let shape = match &public {
                    Cow::Borrowed(_) => Cow::Borrowed(&one.shape),
                    Cow::Owned(text) => {
                        let added = text.strip_suffix(&**own).unwrap_or_default();
                        Cow::Owned(added.chars().map(Some).chain(one.shape.iter().copied()).collect())
                    }
                };
                push(own, public, seen.some_as_held(list, &shape, upstream));
            }
        }
    }
}

/// A caller, and the server at which it looks.
#[derive(Clone, Copy)]
struct Seen<'a> {
    capabilities: &'a Capabilities,
    overrides: &'a Overrides,
    index: UpstreamIndex,
    /// Whether calls that are not admitted here may be held as proposals.
    promotes: bool,
}

impl Seen<'_> {
    /// Whether an entry is seen, and then whether it is held.
    fn as_held(&self, list: ListKind, public: &str, upstream: &ParticipantId) -> Option<bool> {
        let (method, context, at) = (method(list), Some(public), upstream.as_str());
        if admits(self.capabilities, method, context, at) {
            return Some(false);
        }
        (self.promotes && proposes(self.capabilities, method, context, at)).then_some(true)
    }

    /// The same of a template: one possible URI is enough.
    fn some_as_held(&self, list: ListKind, shape: &[Option<char>], upstream: &ParticipantId) -> Option<bool> {
        let some = |head| self.capabilities.admits_some(head, method(list), shape, &[upstream.as_str()]);
        if some(REQUEST) {
            return Some(false);
        }
        (self.promotes && some(PROPOSAL)).then_some(true)
    }
}

fn respelled(public: Option<String>, own: &Arc<str>) -> Cow<'_, str> {
    public.map_or(Cow::Borrowed(own), Cow::Owned)
}
