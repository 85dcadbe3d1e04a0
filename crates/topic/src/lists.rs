//! Owns what one caller sees of the lists: filtered by what it may do, in configuration order.
//! Must not know how a list is written, nor the entries' definitions.

use std::{borrow::Cow, sync::Arc};

use model::{Capabilities, LinkId, ParticipantId, REQUEST};

use crate::{
    admission::{Verdict, judge},
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
}

impl Topic {
    /// What this link sees of a list: configured order, then the upstream's own. Empty for a link that is
    /// not in the topic.
    pub fn list(&self, link: LinkId, list: ListKind) -> Vec<Listing<'_>> {
        let (Some(own), Some(member)) = (self.members.link(link), self.members.of_link(link)) else {
            return Vec::new();
        };
        let mut listings = Vec::new();
        for (index, names, view) in self.catalog.each(&own.overrides) {
            let seen = Seen { capabilities: &member.capabilities, overrides: &own.overrides, index };
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
        let Seen { capabilities, overrides, index } = seen;
        let admits = |public: &str| {
            judge(capabilities, list.method(), Some(public), upstream.as_str()) == Verdict::Admit
        };
        let mut push = |own: &'a Arc<str>, public: Cow<'a, str>| {
            listings.push(Listing { upstream, index, own, public });
        };
        if let Some(names) = view.named(list) {
            for name in names.all.iter().filter(|name| admits(&name.public)) {
                push(&name.own, Cow::Borrowed(&name.public));
            }
        } else if list == ListKind::Resources {
            for item in &view.resources {
                let public = respelled(self.catalog.respelled(overrides, index, &item.own), &item.own);
                if admits(&public) {
                    push(&item.own, public);
                }
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
                if capabilities.admits_some(REQUEST, list.method(), &shape, &[upstream.as_str()]) {
                    push(own, public);
                }
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
}

fn respelled(public: Option<String>, own: &Arc<str>) -> Cow<'_, str> {
    public.map_or(Cow::Borrowed(own), Cow::Owned)
}
