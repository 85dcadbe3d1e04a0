//! Changes of callers' lists, and the notifications about them.

use std::collections::{HashMap, HashSet};

use model::{LinkId, ListKind, ParticipantId};

use crate::{
    Handles, Topic,
    admission::Looker,
    asks::Way,
    catalog::UpstreamIndex,
    effect::{Effect, Receiver},
    event::ListScope,
    lists::ListSnapshot,
    members::{Link, Seat},
    names::public_uri,
    view::{OfferedEntry, UpstreamView, is_named, method},
};

/// More changed entries than this are not compared one by one: every caller that sees some of the
/// list is notified.
const LOOKED_AT_MAX: usize = 256;

/// The lists that links saw before a change.
pub(crate) type ListsBefore = Vec<SeenLists>;

/// The lists that some links see: all of them must see the same.
pub(crate) struct SeenLists {
    links: Vec<LinkId>,
    snapshot: ListSnapshot,
}

/// All that a link's lists depend on, beside what it has of its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Viewpoint {
    seat: Seat,
    promotes: bool,
}

impl Viewpoint {
    fn of<H: Handles>(link: &Link<H>) -> Self {
        Self {
            seat: link.seat,
            promotes: link.promotes,
        }
    }
}

/// A list of a caller that has changed.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Changed {
    list: ListKind,
    link: LinkId,
}

impl<H: Handles> Topic<H> {
    /// The lists that these links see now.
    pub(crate) fn seen_by(&self, links: &[LinkId]) -> ListsBefore {
        let mut groups = ListsBefore::new();
        let mut known: HashMap<Viewpoint, usize> = HashMap::new();
        for link in links {
            let Some(at_link) = self.members.link(*link) else {
                continue;
            };
            let mut number = groups.len();
            // A link with lists of its own sees what no other one does.
            if at_link.overrides().is_empty() {
                number = *known.entry(Viewpoint::of(at_link)).or_insert(number);
            }
            if let Some(group) = groups.get_mut(number) {
                group.links.push(*link);
            } else if let Some(snapshot) = self.list_snapshot(*link, None) {
                groups.push(SeenLists {
                    links: vec![*link],
                    snapshot,
                });
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
        for mut group in before {
            // Some may have ended with the change.
            group
                .links
                .retain(|link| self.members.link(*link).is_some());
            let Some(first) = group.links.first() else {
                continue;
            };
            let Some(now) = self.list_snapshot(*first, None) else {
                continue;
            };
            for list in ListKind::ALL {
                if named.contains(&list) || group.snapshot.list(list) != now.list(list) {
                    let links = group.links.iter();
                    changed.extend(links.map(|link| Changed { list, link: *link }));
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
                let Some((at_link, member)) = self.members.linked(*link) else {
                    continue;
                };
                // What an access token on the link is good for does not count: the next one may be
                // good for more.
                let looker = Looker {
                    capabilities: &member.capabilities,
                    promotes: at_link.promotes,
                };
                let sees = judged
                    .entry(Viewpoint::of(at_link))
                    .or_insert_with(|| self.could_see(looker, index, list, &changed));
                if *sees {
                    all.push(Changed { list, link: *link });
                }
            }
        }
        self.notify(all);
    }

    /// One notification for each link and each list that clients are notified of, links by number.
    fn notify(&mut self, mut changed: Vec<Changed>) {
        // Clients are notified of several lists as of one.
        for one in &mut changed {
            one.list = one.list.notified();
        }
        changed.sort_unstable();
        changed.dedup();
        for list in [ListKind::Tools, ListKind::Prompts, ListKind::Resources] {
            for one in changed.iter().filter(|one| one.list == list) {
                for to in self.receivers(one.link, list) {
                    self.effects.push(Effect::ListChanged { list, to });
                }
            }
        }
    }

    /// The receivers of a changed list at one link: the link itself if it takes notifications
    /// outside of its requests, and its listen requests.
    fn receivers(&self, link: LinkId, list: ListKind) -> Vec<Receiver<H>> {
        let Some(at_link) = self.members.link(link) else {
            return Vec::new();
        };
        let mut receivers = Vec::new();
        if at_link.notified {
            receivers.extend(self.receiver(Way { link, call: None }));
        }
        let Some(holdings) = &at_link.holdings else {
            return receivers;
        };
        for listen in &holdings.listens {
            let names_list = self
                .listening(*listen)
                .is_some_and(|filter| filter.lists.contains(&list));
            if names_list {
                let call = Some(*listen);
                receivers.extend(self.receiver(Way { link, call }));
            }
        }
        receivers
    }

    /// The links of callers that see a view.
    fn concerned(&self, index: UpstreamIndex, scope: ListScope) -> Vec<LinkId> {
        if let ListScope::Link(link) = scope {
            return vec![link];
        }
        let mut links = self.caller_links();
        // The shared lists of a server are hidden from a link with lists of its own there.
        links.retain(|link| {
            let at_link = self.members.link(*link);
            at_link.is_none_or(|at_link| !at_link.overrides().contains_key(&index))
        });
        links
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
        let sight = Sight { looker, methods };
        if changed.len() > LOOKED_AT_MAX {
            return self.catalog.ids().any(|id| sight.sees_some(id, &[None]));
        }
        if is_named(list) {
            let Some(id) = self.catalog.id(index) else {
                return false;
            };
            return changed.iter().any(|entry| sight.sees(id, &entry.ruled));
        }
        // A URI that one server lists decides how others' equal ones are spelled: callers that see
        // those count.
        changed
            .iter()
            .any(|entry| self.catalog.ids().any(|id| sight.could_see(id, entry)))
    }
}

/// A caller, with the methods by which it may use the entries of one list.
struct Sight<'a> {
    looker: Looker<'a>,
    methods: &'a [&'static str],
}

impl Sight<'_> {
    /// Whether the caller may use what this text names at a server.
    fn sees(&self, server: &ParticipantId, text: &str) -> bool {
        let server = server.as_str();
        let mut methods = self.methods.iter();
        methods.any(|method| self.looker.access(method, text, server).is_some())
    }

    /// Whether the caller may use some URI of this shape at a server.
    fn sees_some(&self, server: &ParticipantId, shape: &[Option<char>]) -> bool {
        let server = server.as_str();
        let mut methods = self.methods.iter();
        methods.any(|method| self.looker.access_to_some(method, shape, server).is_some())
    }

    /// Whether the caller may use what has the URI or template of an entry at a server, in any of
    /// its spellings.
    fn could_see(&self, server: &ParticipantId, entry: &OfferedEntry) -> bool {
        let Some(template) = &entry.template else {
            return self.sees(server, &entry.own)
                || self.sees(server, &public_uri(server, &entry.own));
        };
        // Templates that overlap are respelled as well, so nothing narrower than this is certain.
        self.sees_some(server, &template.shape) || self.sees_some(server, &[None])
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
    let before: HashSet<Key<'_>> = left.iter().map(Key::of).collect();
    let after: HashSet<Key<'_>> = right.iter().map(Key::of).collect();
    let common_before = left.iter().map(Key::of).filter(|key| after.contains(key));
    let common_after = right.iter().map(Key::of).filter(|key| before.contains(key));
    let in_order = common_before.eq(common_after);
    let went = left
        .iter()
        .filter(|entry| !in_order || !after.contains(&Key::of(entry)));
    let came = right
        .iter()
        .filter(|entry| !before.contains(&Key::of(entry)));
    went.chain(came).collect()
}

/// All of an entry that callers see. The own name counts as well, because another one may take over
/// a public name.
#[derive(PartialEq, Eq, Hash)]
struct Key<'a> {
    public: &'a str,
    own: &'a str,
    digest: u64,
}

impl<'a> Key<'a> {
    fn of(entry: &'a OfferedEntry) -> Self {
        Self {
            public: &entry.public,
            own: &entry.own,
            digest: entry.digest,
        }
    }
}
