//! Placement: which node should be the home of a shard, and when one takes it over.

use std::sync::Arc;

use crate::homes::{Homes, Role};
use crate::members::majority;
use crate::node::NodeId;
use crate::peers::Peer;
use crate::record::HomeLine;
use crate::shard::{Shard, weight};
use crate::taking::Taking;
use crate::timing::{RETURN_MS, SILENCE_MS};

impl<R: HomeLine> Homes<R> {
    /// The time of silence after which no majority is needed, milliseconds.
    pub(crate) fn limit_ms(&self) -> u64 {
        self.config.cut_off_ms.saturating_add(SILENCE_MS)
    }

    /// Whether any member is there, this node or another.
    fn has_live_members(&self) -> bool {
        let members = &self.common.members;
        let mut live = self.peers.live(self.now_ms());
        members.has(&self.me.name) || live.any(|(node, _)| members.has(&node.name))
    }

    /// The node that should be the home: of the members that are there, the one with the highest
    /// weight. Nodes that are no members yet count if no member is there.
    pub(crate) fn best(&self, shard: &Shard) -> Option<Arc<str>> {
        let members = &self.common.members;
        let by_members = self.has_live_members();
        let counts = |name: &Arc<str>| !by_members || members.has(name);
        let live = self.peers.live(self.now_ms());
        let live = live
            .filter(|(_, peer)| !peer.beat.draining)
            .map(|(node, _)| &node.name);
        let own = (!self.is_draining).then_some(&self.me.name);
        live.chain(own)
            .filter(|name| counts(name))
            .max_by_key(|name| (weight(shard, name), Arc::clone(name)))
            .cloned()
    }

    /// Whether a majority of the members hears nothing of a node.
    fn is_silent_to_majority(&self, node: &NodeId) -> bool {
        let members = &self.common.members;
        if members.len() <= 2 {
            return true;
        }
        let live = self.peers.live(self.now_ms());
        let others = live
            .filter(|(peer, _)| members.has(&peer.name))
            .filter(|(_, peer)| peer.misses(node, SILENCE_MS))
            .count();
        let own = usize::from(members.has(&self.me.name));
        others + own >= majority(members.len())
    }

    /// Whether a majority of the members is here, and hears no node that this one does not hear: if
    /// one of those were a home, its claim would be known.
    fn sees_all_claims(&self) -> bool {
        let now_ms = self.now_ms();
        let members = &self.common.members;
        let hears = |node: &NodeId| *node == self.me || self.peers.is_live(node, now_ms);
        let sees_no_other = |peer: &Peer| {
            let mut others = peer.beat.hears.iter();
            others.all(|one| one.age_ms >= SILENCE_MS || hears(&one.node))
        };
        let live = self.peers.live(now_ms);
        let others = live
            .filter(|(node, peer)| members.has(&node.name) && sees_no_other(peer))
            .count();
        let own = usize::from(members.has(&self.me.name));
        others + own >= majority(members.len())
    }

    /// Whether the home of a shard handed it to this node.
    fn is_handed(&self, shard: &Shard, claimed: u64) -> bool {
        let live = self.peers.live(self.now_ms());
        let mut left = live.flat_map(|(_, peer)| &peer.beat.left);
        left.any(|left| {
            let is_mine = left.next.as_ref() == Some(&self.me.name);
            left.shard == *shard && is_mine && left.epoch >= claimed
        })
    }

    /// Whether this node had the shard in its former life, which is over, and no other has it, as a
    /// majority shows.
    fn is_back(&self, shard: &Shard) -> bool {
        let claimed = self.peers.claimed(shard);
        let is_own = |node: &NodeId| {
            node.name == self.me.name && node.incarnation.is_before(self.me.incarnation)
        };
        let is_free = claimed.is_none_or(|(node, _, _)| is_own(node));
        let had = self.config.former_homes.contains(shard);
        let is_member = self.common.members.has(&self.me.name);
        let is_time = is_member && self.up_ms() >= RETURN_MS;
        had && is_free && is_time && self.sees_all_claims()
    }

    /// Whether this node should take a shard over.
    pub(crate) fn should_take(&self, shard: &Shard) -> bool {
        if self.is_draining || self.is_replaced || !self.common.is_read {
            return false;
        }
        let claimed = self.peers.claimed(shard);
        let epoch = claimed.map_or(0, |(_, _, claim)| claim.epoch);
        if self.is_handed(shard, epoch) || self.is_back(shard) {
            return true;
        }
        let now_ms = self.now_ms();
        let limit_ms = self.limit_ms();
        let state = self.shards.get(shard);
        if state.is_some_and(|state| now_ms < state.rests_until_ms) {
            return false;
        }
        let unclaimed_ms = state.and_then(|state| state.unclaimed_ms);
        let (silent_ms, by_majority) = match claimed {
            Some((node, peer, _)) => {
                let silent_ms = now_ms.saturating_sub(peer.received_ms);
                (silent_ms, self.is_silent_to_majority(node))
            }
            None => {
                let silent_ms = now_ms.saturating_sub(unclaimed_ms.unwrap_or(now_ms));
                let is_small = self.common.members.len() <= 2;
                (silent_ms, is_small || self.sees_all_claims())
            }
        };
        let is_stranger = self.common.members.len() > 0 && !self.has_live_members();
        let needed_ms = if by_majority && !is_stranger {
            SILENCE_MS
        } else {
            limit_ms
        };
        if silent_ms < needed_ms {
            return false;
        }
        // Copies of the common journal may differ in the members, so that each node takes another
        // one for the best: after a while any will do.
        silent_ms >= limit_ms.saturating_add(SILENCE_MS)
            || self.best(shard).as_ref() == Some(&self.me.name)
    }

    /// Begins take-overs that are due, and ends those that another node's claim makes needless.
    pub(crate) fn place(&mut self, shard: &Shard) {
        let now_ms = self.now_ms();
        let claimed = self.peers.claimed(shard);
        let is_claimed = claimed.is_some();
        let is_alive = claimed.is_some_and(|(_, peer, _)| peer.is_live(now_ms));
        let Some(state) = self.shards.get_mut(shard) else {
            return;
        };
        match &state.role {
            Role::Home(_) => {}
            Role::Taking(taking) => {
                if is_alive && taking.may_end() && !self.should_take(shard) {
                    self.set_role(shard, Role::Away);
                }
            }
            Role::Away => {
                if is_claimed {
                    state.unclaimed_ms = None;
                } else {
                    state.unclaimed_ms.get_or_insert(now_ms);
                }
                if self.should_take(shard) {
                    self.take(shard, Taking::new(false));
                }
            }
        }
    }
}
