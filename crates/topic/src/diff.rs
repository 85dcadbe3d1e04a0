//! Owns the question whose lists could have changed, and what is told about it.
//! Must not know why they changed.

use std::{collections::HashSet, sync::Arc};

use model::{Capabilities, LinkId, PROPOSAL, ParticipantId, REQUEST};

use crate::{
    admission::{Verdict, judge, proposes},
    catalog::UpstreamIndex,
    effect::{Effect, Effects},
    event::Role,
    manifest::ListKind,
    names::public_uri,
    topic::Topic,
    view::UpstreamView,
};

/// More changed entries than this are not looked at one by one: whoever sees anything of the list is told.
const LOOKED_AT_MAX: usize = 256;

/// What links saw of each list before something changed.
pub(crate) struct Sights(Vec<(LinkId, ListKind, Vec<Sight>)>);

/// One entry as one link saw it.
#[derive(PartialEq, Eq)]
struct Sight {
    upstream: ParticipantId,
    own: Arc<str>,
    public: Box<str>,
    held: bool,
}

/// One entry that came, went or changed.
struct Changed<'a> {
    /// The public name, or the own URI or template.
    text: &'a str,
    /// A template's shape.
    shape: Option<&'a [Option<char>]>,
}

impl<'a> From<Entry<'a>> for Changed<'a> {
    fn from((text, _, shape): Entry<'a>) -> Self {
        Self { text, shape }
    }
}

/// For whom a view changed.
#[derive(Clone, Copy)]
pub(crate) enum Whose {
    /// Every caller without a view of its own.
    Shared,
    /// One link.
    Link(LinkId),
}

impl Topic {
    /// What these links see now. Links of one participant that see the same are looked at once.
    pub(crate) fn sights(&self, links: &[LinkId]) -> Sights {
        let see = |link: LinkId, list: ListKind| {
            let seen = self.list(link, list).into_iter();
            seen.map(|one| Sight {
                upstream: one.upstream.clone(),
                own: one.own.clone(),
                public: one.public.as_ref().into(),
                held: one.held,
            })
            .collect()
        };
        let each = links.iter().flat_map(|link| ListKind::ALL.map(|list| (*link, list, see(*link, list))));
        Sights(each.collect())
    }

    /// Every caller's link, by number.
    pub(crate) fn callers(&self) -> Vec<LinkId> {
        let callers = self.members.iter().filter(|(_, member)| member.role == Role::Caller);
        let mut links: Vec<LinkId> = callers.flat_map(|(_, member)| member.links.iter().copied()).collect();
        links.sort_unstable();
        links
    }

    /// Tells the links that see something else than before.
    pub(crate) fn tell_changes(&self, effects: &mut Effects, before: &Sights) {
        for list in ListKind::ALL {
            let mut links = Vec::new();
            for (link, _, seen) in before.0.iter().filter(|(_, of, _)| *of == list) {
                let now = self.list(*link, list);
                let same = now.len() == seen.len()
                    && now.iter().zip(seen).all(|(now, seen)| {
                        *now.upstream == seen.upstream
                            && *now.own == seen.own
                            && *now.public == *seen.public
                            && now.held == seen.held
                    });
                if !same && self.members.link(*link).is_some() {
                    links.push(*link);
                }
            }
            tell(effects, list, links);
        }
    }

    /// Tells the links whose lists could have changed with one upstream's view.
    pub(crate) fn tell_view(
        &self,
        effects: &mut Effects,
        index: UpstreamIndex,
        whose: Whose,
        older: &UpstreamView,
        newer: &UpstreamView,
        told: &[ListKind],
    ) {
        for list in ListKind::ALL {
            let mut changed = changed(list, older, newer);
            if changed.is_empty() && told.contains(&list) {
                changed = entries(list, newer).into_iter().map(Changed::from).collect();
            }
            if changed.is_empty() {
                continue;
            }
            let mut links = Vec::new();
            for (_, member) in self.members.iter().filter(|(_, member)| member.role == Role::Caller) {
                let concerned: Vec<LinkId> = member
                    .links
                    .iter()
                    .filter(|link| self.is_concerned(**link, index, whose))
                    .copied()
                    .collect();
                let promotes =
                    concerned.iter().any(|link| self.members.link(*link).is_some_and(|own| own.promotes));
                let who = Looker { capabilities: &member.capabilities, promotes };
                if !concerned.is_empty() && self.could_see(who, index, list, &changed) {
                    links.extend(concerned);
                }
            }
            tell(effects, list, links);
        }
    }

    fn is_concerned(&self, link: LinkId, index: UpstreamIndex, whose: Whose) -> bool {
        match whose {
            Whose::Link(only) => only == link,
            Whose::Shared => self.members.link(link).is_some_and(|own| own.overrides.get(index).is_none()),
        }
    }

    fn could_see(
        &self,
        who: Looker<'_>,
        index: UpstreamIndex,
        list: ListKind,
        changed: &[Changed<'_>],
    ) -> bool {
        let method = list.method();
        let admits = |id: &ParticipantId, text: &str| who.sees(method, text, id);
        // A URI that one upstream lists decides how others' equal ones are spelled: whoever sees those counts.
        let of_any = |seen: &dyn Fn(&ParticipantId) -> bool| self.catalog.ids().any(seen);
        if changed.len() > LOOKED_AT_MAX {
            return of_any(&|id| who.sees_some(method, &[None], id));
        }
        changed.iter().any(|one| match (list, one.shape) {
            (ListKind::Tools | ListKind::Prompts, _) => {
                self.catalog.id(index).is_some_and(|id| admits(id, one.text))
            }
            (ListKind::Resources, _) | (ListKind::Templates, None) => {
                of_any(&|id| admits(id, one.text) || admits(id, &public_uri(id, one.text)))
            }
            // Templates that overlap are respelled as well, so nothing narrower than this is certain.
            (ListKind::Templates, Some(shape)) => {
                of_any(&|id| who.sees_some(method, shape, id) || who.sees_some(method, &[None], id))
            }
        })
    }
}

/// Whoever may have to be told: more often than needed is allowed, so the gateway's own entries are not set apart.
#[derive(Clone, Copy)]
struct Looker<'a> {
    capabilities: &'a Capabilities,
    promotes: bool,
}

impl Looker<'_> {
    fn sees(self, method: &str, text: &str, id: &ParticipantId) -> bool {
        judge(self.capabilities, method, Some(text), id.as_str()) == Verdict::Admit
            || self.promotes && proposes(self.capabilities, method, Some(text), id.as_str())
    }

    fn sees_some(self, method: &str, shape: &[Option<char>], id: &ParticipantId) -> bool {
        self.capabilities.admits_some(REQUEST, method, shape, &[id.as_str()])
            || self.promotes && self.capabilities.admits_some(PROPOSAL, method, shape, &[id.as_str()])
    }
}

/// The entries in which two views of one upstream differ; all of them if those that stay change places.
fn changed<'a>(list: ListKind, older: &'a UpstreamView, newer: &'a UpstreamView) -> Vec<Changed<'a>> {
    let (left, right) = (entries(list, older), entries(list, newer));
    let keys = |all: &[Entry<'a>]| -> HashSet<(&'a str, u64)> { all.iter().map(key).collect() };
    let (before, after) = (keys(&left), keys(&right));
    let stays = left.iter().map(key).filter(|key| after.contains(key));
    let stayed = right.iter().map(key).filter(|key| before.contains(key));
    let in_place = stays.eq(stayed);
    let went = left.iter().filter(|one| !in_place || !after.contains(&key(one)));
    let came = right.iter().filter(|one| !before.contains(&key(one)));
    went.chain(came).copied().map(Changed::from).collect()
}

fn key<'a>(entry: &Entry<'a>) -> (&'a str, u64) {
    (entry.0, entry.1)
}

/// Text, digest and, of a template, its shape.
type Entry<'a> = (&'a str, u64, Option<&'a [Option<char>]>);

fn entries(list: ListKind, view: &UpstreamView) -> Vec<Entry<'_>> {
    match (view.named(list), list) {
        (Some(names), _) => names.all.iter().map(|one| (&*one.public, one.digest, None)).collect(),
        (None, ListKind::Templates) => {
            view.templates.iter().map(|one| (&*one.item.own, one.item.digest, Some(&*one.shape))).collect()
        }
        (None, _) => view.resources.iter().map(|one| (&*one.own, one.digest, None)).collect(),
    }
}

fn tell(effects: &mut Effects, list: ListKind, mut links: Vec<LinkId>) {
    if !links.is_empty() {
        links.sort_unstable();
        effects.push(Effect::ListChanged { list, links });
    }
}
