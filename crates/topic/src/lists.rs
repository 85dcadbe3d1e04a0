//! Owns what one caller sees of the lists: filtered by what it may do, in configuration order.
//! Must not know how a list is written, nor the entries' definitions.

use std::{borrow::Cow, sync::Arc};

use model::{Capabilities, LinkId, PROPOSAL, ParticipantId, REQUEST};

use crate::{
    admission::{Verdict, judge, proposes},
    catalog::{Overrides, UpstreamIndex},
    manifest::ListKind,
    topic::Topic,
    view::UpstreamView,
};

/// One entry of a list as a caller sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing<'a> {
    /// Whose entry it is.
    pub upstream: &'a ParticipantId,
    /// The upstream's place in the configured order.
    pub index: UpstreamIndex,
    /// The upstream's own name, URI or URI template.
    pub own: &'a Arc<str>,
    /// Its public spelling.
    pub public: Cow<'a, str>,
    /// Whether acting on it is held as a proposal; else it is done at once.
    pub held: bool,
}

impl Topic {
    /// What this link sees of a list, which is what it could do or have held as a proposal: configured order, then the upstream's own. Empty for a link that is
    /// not in the topic.
    pub fn list(&self, link: LinkId, list: ListKind) -> Vec<Listing<'_>> {
        let (Some(own), Some(member)) = (self.members.link(link), self.members.of_link(link)) else {
            return Vec::new();
        };
        let mut listings = Vec::new();
        for (index, names, view) in self.catalog.each(&own.overrides) {
            let promotes = own.promotes && !names.builtin;
            let (capabilities, overrides) = (&member.capabilities, &own.overrides);
            let seen = Seen { capabilities, overrides, index, promotes };
            self.entries(seen, &names.id, view, list, &mut listings);
        }
        listings
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
            listings.extend(held.map(|held| Listing { upstream, index, own, public, held }));
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

/// Who looks, and at which upstream.
#[derive(Clone, Copy)]
struct Seen<'a> {
    capabilities: &'a Capabilities,
    overrides: &'a Overrides,
    index: UpstreamIndex,
    /// Whether what is not admitted here may be held as a proposal.
    promotes: bool,
}

impl Seen<'_> {
    /// Whether an entry is seen, and then whether it is held.
    fn as_held(&self, list: ListKind, public: &str, upstream: &ParticipantId) -> Option<bool> {
        let (method, context, at) = (list.method(), Some(public), upstream.as_str());
        if judge(self.capabilities, method, context, at) == Verdict::Admit {
            return Some(false);
        }
        (self.promotes && proposes(self.capabilities, method, context, at)).then_some(true)
    }

    /// The same of a template: some of what it stands for is enough.
    fn some_as_held(&self, list: ListKind, shape: &[Option<char>], upstream: &ParticipantId) -> Option<bool> {
        let some = |head| self.capabilities.admits_some(head, list.method(), shape, &[upstream.as_str()]);
        if some(REQUEST) {
            return Some(false);
        }
        (self.promotes && some(PROPOSAL)).then_some(true)
    }
}

fn respelled(public: Option<String>, own: &Arc<str>) -> Cow<'_, str> {
    public.map_or(Cow::Borrowed(own), Cow::Owned)
}
