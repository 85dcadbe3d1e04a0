//! Changes of callers' lists, and the notifications about them.

use std::collections::{HashMap, HashSet};

use model::{LinkId, ListKind, ParticipantId};

use crate::{
    Handles, Topic,
    admission::Looker,
    catalog::UpstreamIndex,
    effect::{Effect, Receiver},
    event::ListScope,
    lists::ListSnapshot,
    names::public_uri,
    view::{OfferedEntry, UpstreamView, is_named, method},
};

/// More changed entries than this are not compared one by one: every caller that sees some of the
/// list is notified.
const LOOKED_AT_MAX: usize = 256;

/// The lists that links saw before a change; links that must see the same are together.
pub(crate) type ListsBefore = Vec<(Vec<LinkId>, ListSnapshot)>;

impl<H: Handles> Topic<H> {
    /// The lists that these links see now.
    pub(crate) fn seen_by(&self, links: &[LinkId]) -> ListsBefore {
        let mut groups = ListsBefore::new();
        let mut known: HashMap<_, usize> = HashMap::new();
        for link in links {
            let Some(own) = self.members.link(*link) else {
                continue;
            };
            let alone = (!own.overrides().is_empty()).then_some(*link);
            let at = *known
                .entry((own.seat, own.promotes, alone))
                .or_insert(groups.len());
            match groups.get_mut(at) {
                Some((group, _)) => group.push(*link),
                None => groups.extend(
                    self.list_snapshot(*link, None)
                        .map(|snapshot| (vec![*link], snapshot)),
                ),
            }
        }
        groups
    }

    /// Every caller's link, by number.
    pub(crate) fn caller_links(&self) -> Vec<LinkId> {
        let mut links: Vec<LinkId> = self
            .members
            .callers()
            .flat_map(|member| member.links.iter().copied())
            .collect();
        links.sort_unstable();
        links
    }

    /// Notifies the links whose lists have changed, and all links of the lists that are named: what
    /// is shown of them has changed.
    pub(crate) fn notify_changes(&mut self, before: ListsBefore, named: &[ListKind]) {
        let mut changed = Vec::new();
        for (mut group, before) in before {
            group.retain(|link| self.members.link(*link).is_some());
            let Some(now) = group
                .first()
                .and_then(|link| self.list_snapshot(*link, None))
            else {
                continue;
            };
            for list in ListKind::ALL {
                if named.contains(&list) || before.list(list) != now.list(list) {
                    changed.extend(group.iter().map(|link| (list, *link)));
                }
            }
        }
        self.notify(changed);
    }

    /// Notifies the links whose lists could have changed with one server's view.
    pub(crate) fn notify_view(
        &mut self,
        index: UpstreamIndex,
        scope: ListScope,
        older: &UpstreamView,
        newer: &UpstreamView,
        named: &[ListKind],
    ) {
        let links = self.concerned(index, scope);
        let mut all = Vec::new();
        for list in ListKind::ALL {
            let mut changed = changed(list, older, newer);
            if changed.is_empty() && named.contains(&list) {
                changed = newer.list(list).all.iter().collect();
            }
            if changed.is_empty() {
                continue;
            }
            let mut judged = HashMap::new();
            for link in &links {
                let Some((own, member)) = self.members.linked(*link) else {
                    continue;
                };
                let looker = Looker {
                    capabilities: &member.capabilities,
                    promotes: own.promotes,
                };
                let judge = || self.could_see(looker, index, list, &changed);
                // What an access token on the link is good for does not count: the next one may be
                // good for more.
                if *judged.entry((own.seat, own.promotes)).or_insert_with(judge) {
                    all.push((list, *link));
                }
            }
        }
        self.notify(all);
    }

    /// One notification for each link and each list that clients are notified of, links by number.
    fn notify(&mut self, changed: Vec<(ListKind, LinkId)>) {
        let mut changed: Vec<_> = changed
            .into_iter()
            .map(|(list, link)| (list.notified(), link))
            .collect();
        changed.sort_unstable();
        changed.dedup();
        for list in [ListKind::Tools, ListKind::Prompts, ListKind::Resources] {
            let links = changed.iter().filter(|(of, _)| *of == list);
            let to: Vec<Receiver<H>> = links
                .flat_map(|(_, link)| self.receivers(*link, list))
                .collect();
            for to in to {
                self.effects.push(Effect::ListChanged { list, to });
            }
        }
    }

    /// The receivers of a changed list at one link: the link itself if it takes notifications
    /// outside of its requests, and its listen requests.
    fn receivers(&self, link: LinkId, list: ListKind) -> Vec<Receiver<H>> {
        let Some(own) = self.members.link(link) else {
            return Vec::new();
        };
        let listens = own.own.iter().flat_map(|own| &own.listens);
        let listens = listens.filter(|id| {
            self.listening(**id)
                .is_some_and(|filter| filter.lists.contains(&list))
        });
        let home = own.notified.then_some(None);
        let ways = home.into_iter().chain(listens.map(|listen| Some(*listen)));
        ways.filter_map(|way| self.receiver(link, way)).collect()
    }

    /// The links of callers that see a view.
    fn concerned(&self, index: UpstreamIndex, scope: ListScope) -> Vec<LinkId> {
        let has_own = |link| {
            self.members
                .link(link)
                .is_some_and(|own| own.overrides().contains_key(&index))
        };
        match scope {
            ListScope::Link(link) => vec![link],
            ListScope::Shared => self
                .caller_links()
                .into_iter()
                .filter(|link| !has_own(*link))
                .collect(),
        }
    }

    /// Whether a caller could see one of these entries. An unneeded notification does no harm, so
    /// built-in entries are judged like all others.
    fn could_see(
        &self,
        looker: Looker<'_>,
        index: UpstreamIndex,
        list: ListKind,
        changed: &[&OfferedEntry],
    ) -> bool {
        // A listed resource decides how another server's equal skill is spelled.
        let methods = match list {
            ListKind::Resources => &[method(list), method(ListKind::Skills)][..],
            _ => &[method(list)],
        };
        let sees = |id: &ParticipantId, text: &str| {
            methods
                .iter()
                .any(|method| looker.holds(method, text, id.as_str()).is_some())
        };
        let sees_some = |id: &ParticipantId, shape: &[Option<char>]| {
            methods
                .iter()
                .any(|method| looker.holds_some(method, shape, id.as_str()).is_some())
        };
        // A URI that one server lists decides how others' equal ones are spelled: callers that see
        // those count.
        let of_any = |seen: &dyn Fn(&ParticipantId) -> bool| self.catalog.ids().any(seen);
        if changed.len() > LOOKED_AT_MAX {
            return of_any(&|id| sees_some(id, &[None]));
        }
        changed.iter().any(|one| match &one.template {
            _ if is_named(list) => self
                .catalog
                .id(index)
                .is_some_and(|id| sees(id, &one.public)),
            None => of_any(&|id| sees(id, &one.own) || sees(id, &public_uri(id, &one.own))),
            // Templates that overlap are respelled as well, so nothing narrower than this is
            // certain.
            Some(template) => {
                of_any(&|id| sees_some(id, &template.shape) || sees_some(id, &[None]))
            }
        })
    }
}

/// The entries in which two views of one server differ; all of them if the common entries change
/// their order.
fn changed<'a>(
    list: ListKind,
    older: &'a UpstreamView,
    newer: &'a UpstreamView,
) -> Vec<&'a OfferedEntry> {
    let left = &older.list(list).all;
    let right = &newer.list(list).all;
    let keys = |all: &'a [OfferedEntry]| -> HashSet<(&'a str, &'a str, u64)> {
        all.iter().map(key).collect()
    };
    let before = keys(left);
    let after = keys(right);
    let stays = left.iter().map(key).filter(|key| after.contains(key));
    let stayed = right.iter().map(key).filter(|key| before.contains(key));
    let in_place = stays.eq(stayed);
    let went = left
        .iter()
        .filter(|one| !in_place || !after.contains(&key(one)));
    let came = right.iter().filter(|one| !before.contains(&key(one)));
    went.chain(came).collect()
}

/// Another own name may take over a public one.
fn key(entry: &OfferedEntry) -> (&str, &str, u64) {
    (&entry.public, &entry.own, entry.digest)
}
