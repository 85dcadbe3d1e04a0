//! Other nodes as their heartbeats show them: when each was received last, and which of this node's
//! heartbeats it has echoed.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::heartbeat::{HeardNode, Heartbeat, HomeClaim};
use crate::node::NodeId;
use crate::record::JournalHead;
use crate::shard::Shard;
use crate::timing::{FORGOTTEN_MS, HEARD_MAX, SILENCE_MS};

/// Another node.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    /// Its latest heartbeat.
    pub(crate) beat: Arc<Heartbeat>,
    /// When that came, milliseconds.
    pub(crate) received_ms: u64,
    /// When this node sent the latest of its own heartbeats that the peer has echoed. All that the
    /// peer says of itself is at least as new: unlike the time at which a heartbeat comes, this
    /// holds however long it was on its way.
    pub(crate) echoed_ms: Option<u64>,
    /// As `echoed_ms`, of the latest of its heartbeats that counted when the next one came.
    counted_ms: Option<u64>,
    /// As `counted_ms`, of those in which it is the home of the common journal.
    home_ms: Option<u64>,
}

impl Peer {
    /// Whether its latest heartbeat counts as contact for a node that is at this place of the
    /// common journal: it was as new as a home itself, and this node is as new as it.
    fn counts(&self, own: &JournalHead) -> bool {
        let revision = &self.beat.revision;
        self.beat.has_met_home && (revision.epoch, revision.number) <= (own.epoch, own.number)
    }

    /// The time since which this node has contact with it. A heartbeat that does not count leaves
    /// the contact of those before it.
    pub(crate) fn contact_ms(&self, own: &JournalHead) -> Option<u64> {
        if self.counts(own) {
            self.echoed_ms
        } else {
            self.counted_ms
        }
    }

    /// The time since which this node has contact with it as the home of the common journal.
    pub(crate) fn home_contact_ms(&self, own: &JournalHead) -> Option<u64> {
        if self.counts(own) && self.claim(&Shard::Common).is_some() {
            self.echoed_ms
        } else {
            self.home_ms
        }
    }

    pub(crate) fn is_live(&self, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.received_ms) < SILENCE_MS
    }

    /// Its word about a shard, if it has one.
    pub(crate) fn claim(&self, shard: &Shard) -> Option<&HomeClaim> {
        self.beat.homes.iter().find(|claim| claim.shard == *shard)
    }

    /// Whether it says that it has not received a heartbeat of this life for so long.
    pub(crate) fn misses(&self, node: &NodeId, age_ms: u64) -> bool {
        let mut hears = self.beat.hears.iter();
        hears
            .find(|one| one.node == *node)
            .is_none_or(|one| one.age_ms >= age_ms)
    }
}

/// All other nodes, and this node's own heartbeats.
#[derive(Debug, Clone, Default)]
pub(crate) struct Peers {
    all: BTreeMap<NodeId, Peer>,
    /// When the latest own heartbeats were sent, with the number of the first of them.
    sent: VecDeque<u64>,
    first: u64,
}

impl Peers {
    /// The next heartbeat of this node is sent; returns its number.
    pub(crate) fn sends(&mut self, now_ms: u64, kept_ms: u64) -> u64 {
        while self.sent.front().is_some_and(|at| at + kept_ms < now_ms) {
            self.sent.pop_front();
            self.first += 1;
        }
        self.sent.push_back(now_ms);
        self.first + self.sent.len() as u64
    }

    fn sent_at(&self, beat: u64) -> Option<u64> {
        let at = usize::try_from(beat.checked_sub(self.first + 1)?).ok()?;
        self.sent.get(at).copied()
    }

    /// Takes a heartbeat; whether it is newer than those before it.
    pub(crate) fn receive(
        &mut self,
        me: &NodeId,
        now_ms: u64,
        own: &JournalHead,
        beat: &Arc<Heartbeat>,
    ) -> bool {
        let known = self.all.get(&beat.node);
        let is_over =
            |(node, _): (&NodeId, &Peer)| beat.node.incarnation.is_before(node.incarnation);
        let is_over = self.of_name(&beat.node.name).any(is_over);
        if is_over || known.is_some_and(|peer| peer.beat.beat >= beat.beat) {
            return false;
        }
        if known.is_none() && !self.has_room(now_ms) {
            return false;
        }
        let known = self.all.get(&beat.node);
        let mut hears = beat.hears.iter();
        let echo = hears
            .find(|one| one.node == *me)
            .and_then(|one| self.sent_at(one.beat));
        let peer = Peer {
            beat: Arc::clone(beat),
            received_ms: now_ms,
            echoed_ms: echo.max(known.and_then(|peer| peer.echoed_ms)),
            counted_ms: known.and_then(|peer| peer.contact_ms(own)),
            home_ms: known.and_then(|peer| peer.home_contact_ms(own)),
        };
        self.all.retain(|node, _| {
            let is_namesake = node.name == beat.node.name;
            !is_namesake || !node.incarnation.is_before(beat.node.incarnation)
        });
        self.all.insert(beat.node.clone(), peer);
        true
    }

    /// Whether there is room for one more; the one that is silent for the longest time makes it.
    fn has_room(&mut self, now_ms: u64) -> bool {
        if self.all.len() < HEARD_MAX {
            return true;
        }
        let oldest = self.all.iter().min_by_key(|(_, peer)| peer.received_ms);
        let silent = oldest.filter(|(_, peer)| !peer.is_live(now_ms));
        let silent = silent.map(|(node, _)| node.clone());
        silent.is_some_and(|node| self.all.remove(&node).is_some())
    }

    /// Forgets contacts that counted for an older copy of the common journal.
    pub(crate) fn forget_contacts(&mut self) {
        for peer in self.all.values_mut() {
            (peer.counted_ms, peer.home_ms) = (None, None);
        }
    }

    pub(crate) fn forget(&mut self, now_ms: u64) {
        self.all
            .retain(|_, peer| now_ms.saturating_sub(peer.received_ms) < FORGOTTEN_MS);
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (&NodeId, &Peer)> {
        self.all.iter()
    }

    pub(crate) fn live(&self, now_ms: u64) -> impl Iterator<Item = (&NodeId, &Peer)> {
        self.all
            .iter()
            .filter(move |(_, peer)| peer.is_live(now_ms))
    }

    /// Whether a heartbeat of this life of a node came lately.
    pub(crate) fn is_live(&self, node: &NodeId, now_ms: u64) -> bool {
        self.all.get(node).is_some_and(|peer| peer.is_live(now_ms))
    }

    /// All lives of a node that are known.
    pub(crate) fn of_name<'p>(
        &'p self,
        name: &'p str,
    ) -> impl Iterator<Item = (&'p NodeId, &'p Peer)> {
        self.all.iter().filter(move |(node, _)| *node.name == *name)
    }

    /// The latest heartbeats, for this node's own.
    pub(crate) fn hears(&self, now_ms: u64) -> Vec<HeardNode> {
        let all = self.all.iter();
        all.map(|(node, peer)| HeardNode {
            node: node.clone(),
            beat: peer.beat.beat,
            age_ms: now_ms.saturating_sub(peer.received_ms),
        })
        .collect()
    }

    /// The claim of the highest epoch, with the node that makes it.
    pub(crate) fn claimed(&self, shard: &Shard) -> Option<(&NodeId, &Peer, &HomeClaim)> {
        let all = self.all.iter();
        all.filter_map(|(node, peer)| peer.claim(shard).map(|claim| (node, peer, claim)))
            .max_by_key(|(_, _, claim)| claim.epoch)
    }

    /// The time since which this node has contact with so many others of these: the oldest of the
    /// latest contacts.
    pub(crate) fn contact_ms<'n>(
        &self,
        names: impl Iterator<Item = &'n Arc<str>>,
        others: usize,
        own: Option<JournalHead>,
    ) -> Option<u64> {
        let contact_ms = |peer: &Peer| match &own {
            Some(own) => peer.contact_ms(own),
            None => peer.echoed_ms,
        };
        let latest = |name: &Arc<str>| {
            self.of_name(name)
                .filter_map(|(_, peer)| contact_ms(peer))
                .max()
        };
        let mut contacts: Vec<u64> = names.filter_map(latest).collect();
        contacts.sort_unstable_by(|one, other| other.cmp(one));
        contacts.get(others.checked_sub(1)?).copied()
    }
}
