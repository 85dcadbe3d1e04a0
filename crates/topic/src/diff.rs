//! Changes of callers' lists, and the notifications about them.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use model::{Capabilities, LinkId, ListKind, PROPOSAL, ParticipantId, REQUEST};

use crate::{
    Handles, Topic,
    admission::{admits, proposes},
    catalog::UpstreamIndex,
    effect::{Effect, Receiver},
    event::ListScope,
    manifest::method,
    members::Member,
    names::public_uri,
    view::UpstreamView,
};

/// More changed entries than this are not compared one by one: every caller that sees some of the list is notified.
const LOOKED_AT_MAX: usize = 256;

/// The lists that links saw before a change.
pub(crate) struct Seen(Vec<(Vec<LinkId>, ListKind, Vec<SeenEntry>)>);

/// One entry as one link saw it.
#[derive(PartialEq, Eq)]
struct SeenEntry {
    upstream: ParticipantId,
    own: Arc<str>,
    public: Box<str>,
    held: bool,
}

/// One entry that was added, removed or changed.
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

impl<H: Handles> Topic<H> {
    /// The lists that these links see now. Links that must see the same are looked at once.
    pub(crate) fn seen_by(&self, links: &[LinkId]) -> Seen {
        let mut groups: Vec<Vec<LinkId>> = Vec::new();
        let mut known: HashMap<_, usize> = HashMap::new();
        for link in links {
            let Some(own) = self.members.link(*link) else { continue };
            let alone = (!own.overrides().is_empty()).then_some(*link);
            let at = *known.entry((own.seat, own.promotes, alone)).or_insert(groups.len());
            match groups.get_mut(at) {
                Some(group) => group.push(*link),
                None => groups.push(vec![*link]),
            }
        }
        let lists = |group: &Vec<LinkId>| {
            ListKind::ALL.map(|list| (group.clone(), list, self.entries_of(group, list)))
        };
        Seen(groups.iter().flat_map(lists).collect())
    }

    fn entries_of(&self, group: &[LinkId], list: ListKind) -> Vec<SeenEntry> {
        let Some(snapshot) = group.first().and_then(|link| self.list_snapshot(*link)) else {
            return Vec::new();
        };
        let seen = snapshot.list(list).into_iter();
        seen.map(|one| SeenEntry {
            upstream: one.upstream.clone(),
            own: one.own.clone(),
            public: one.public.as_ref().into(),
            held: one.held,
        })
        .collect()
    }

    /// Every caller's link, by number.
    pub(crate) fn caller_links(&self) -> Vec<LinkId> {
        let callers = self.members.iter().filter(|(_, member)| member.is_caller());
        let mut links: Vec<LinkId> = callers.flat_map(|(_, member)| member.links.iter().copied()).collect();
        links.sort_unstable();
        links
    }

    /// Notifies the links whose lists have changed.
    pub(crate) fn notify_changes(&mut self, before: &Seen) {
        let mut changed = Vec::new();
        for (group, list, seen) in &before.0 {
            let here: Vec<LinkId> =
                group.iter().filter(|link| self.members.link(**link).is_some()).copied().collect();
            if !here.is_empty() && self.entries_of(&here, *list) != *seen {
                changed.extend(here.into_iter().map(|link| (*list, link)));
            }
        }
        self.notify(changed);
    }

    /// Notifies the links scope lists could have changed with one server's view.
    pub(crate) fn notify_view(
        &mut self,
        index: UpstreamIndex,
        scope: ListScope,
        older: &UpstreamView,
        newer: &UpstreamView,
        named: &[ListKind],
    ) {
        let mut all = Vec::new();
        for list in ListKind::ALL {
            let mut changed = changed(list, older, newer);
            if changed.is_empty() && named.contains(&list) {
                changed = entries(list, newer).into_iter().map(Changed::from).collect();
            }
            if changed.is_empty() {
                continue;
            }
            for (member, concerned) in self.concerned(index, scope) {
                let promotes =
                    concerned.iter().any(|link| self.members.link(*link).is_some_and(|own| own.promotes));
                let who = Looker { capabilities: &member.capabilities, promotes };
                if !concerned.is_empty() && self.could_see(who, index, list, &changed) {
                    all.extend(concerned.into_iter().map(|link| (list, link)));
                }
            }
        }
        self.notify(all);
    }

    /// One notification for each link and each list that clients are notified of, links by number.
    fn notify(&mut self, changed: Vec<(ListKind, LinkId)>) {
        let mut changed: Vec<_> = changed.into_iter().map(|(list, link)| (list.notified(), link)).collect();
        changed.sort_unstable();
        changed.dedup();
        for list in [ListKind::Tools, ListKind::Prompts, ListKind::Resources] {
            let links = changed.iter().filter(|(of, _)| *of == list);
            let to: Vec<Receiver<H>> = links.flat_map(|(_, link)| self.receivers(*link, list)).collect();
            if !to.is_empty() {
                self.effects.push(Effect::ListChanged { list, to });
            }
        }
    }

    /// The receivers of a changed list at one link: the link itself if it takes notifications outside of its requests, and its
    /// listen requests.
    fn receivers(&self, link: LinkId, list: ListKind) -> Vec<Receiver<H>> {
        let Some(own) = self.members.link(link) else { return Vec::new() };
        let home = own.handle.clone().filter(|_| own.notified).map(Receiver::Link);
        let listens = own.own.iter().flat_map(|own| &own.listens);
        let listens =
            listens.filter(|id| self.listening(**id).is_some_and(|filter| filter.lists.contains(&list)));
        let calls =
            listens.filter_map(|id| self.operations.get(*id)?.handle.call().cloned().map(Receiver::Call));
        home.into_iter().chain(calls).collect()
    }

    /// The callers that see a view, each with its links that do.
    fn concerned(&self, index: UpstreamIndex, scope: ListScope) -> Vec<(&Member<H>, Vec<LinkId>)> {
        let sees =
            |link: &LinkId| self.members.link(*link).is_some_and(|own| own.overrides().get(index).is_none());
        match scope {
            ListScope::Link(link) => {
                let member = self.members.of_link(link).filter(|member| member.is_caller());
                member.map(|member| (member, vec![link])).into_iter().collect()
            }
            ListScope::Shared => {
                let callers =
                    self.members.iter().map(|(_, member)| member).filter(|member| member.is_caller());
                let links =
                    |member: &Member<H>| member.links.iter().filter(|link| sees(link)).copied().collect();
                callers.map(|member| (member, links(member))).collect()
            }
        }
    }

    fn could_see(
        &self,
        who: Looker<'_>,
        index: UpstreamIndex,
        list: ListKind,
        changed: &[Changed<'_>],
    ) -> bool {
        let method = method(list);
        let sees = |id: &ParticipantId, text: &str| who.sees(method, text, id);
        // A URI that one server lists decides how others' equal ones are spelled: callers that see those count.
        let of_any = |seen: &dyn Fn(&ParticipantId) -> bool| self.catalog.ids().any(seen);
        if changed.len() > LOOKED_AT_MAX {
            return of_any(&|id| who.sees_some(method, &[None], id));
        }
        changed.iter().any(|one| match (list, one.shape) {
            (ListKind::Tools | ListKind::Prompts, _) => {
                self.catalog.id(index).is_some_and(|id| sees(id, one.text))
            }
            (ListKind::Resources, _) | (ListKind::Templates, None) => {
                of_any(&|id| sees(id, one.text) || sees(id, &public_uri(id, one.text)))
            }
            // Templates that overlap are respelled as well, so nothing narrower than this is certain.
            (ListKind::Templates, Some(shape)) => {
                of_any(&|id| who.sees_some(method, shape, id) || who.sees_some(method, &[None], id))
            }
        })
    }
}

/// A caller that may have to be notified. An unneeded notification does no harm, so built-in entries are judged like all others.
#[derive(Clone, Copy)]
struct Looker<'a> {
    capabilities: &'a Capabilities,
    promotes: bool,
}

impl Looker<'_> {
    fn sees(self, method: &str, text: &str, id: &ParticipantId) -> bool {
        admits(self.capabilities, method, Some(text), id.as_str())
            || self.promotes && proposes(self.capabilities, method, Some(text), id.as_str())
    }

    fn sees_some(self, method: &str, shape: &[Option<char>], id: &ParticipantId) -> bool {
        self.capabilities.admits_some(REQUEST, method, shape, &[id.as_str()])
            || self.promotes && self.capabilities.admits_some(PROPOSAL, method, shape, &[id.as_str()])
    }
}

/// The entries in which two views of one server differ; all of them if the common entries change their order.
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
