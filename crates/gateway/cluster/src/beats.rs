//! Heartbeats, out and in.

use std::sync::Arc;

use crate::effect::{HomeEffect, StepDownCause};
use crate::heartbeat::{Heartbeat, HomeClaim};
use crate::homes::Homes;
use crate::record::{HomeLine, JournalHead};
use crate::shard::Shard;
use crate::timing::{HEARTBEAT_GAP_MS, HEARTBEAT_MS};

impl<R: HomeLine> Homes<R> {
    /// Publishes a heartbeat, if one is due.
    pub(crate) fn beat_if_due(&mut self) {
        let since = self.beat_ms.map(|at| self.now_ms() - at);
        let gap_ms = if self.is_beat_due {
            HEARTBEAT_GAP_MS
        } else {
            HEARTBEAT_MS
        };
        if since.is_none_or(|since| since >= gap_ms) {
            self.beat();
        }
    }

    /// Publishes a heartbeat.
    pub(crate) fn beat(&mut self) {
        let now_ms = self.now_ms();
        (self.beat_ms, self.is_beat_due) = (Some(now_ms), false);
        let beat = self.peers.sends(now_ms, self.limit_ms().saturating_mul(2));
        let homes = self
            .shards
            .keys()
            .filter_map(|shard| self.claim(shard))
            .collect();
        let left = self.shards.values().filter_map(|state| state.left.clone());
        let heartbeat = Heartbeat {
            node: self.me.clone(),
            slot: self.slot(),
            beat,
            up_ms: self.up_ms(),
            wall_ms: self.now.wall_ms,
            config: self.config.config,
            revision: self.common.history.head,
            has_met_home: self.common.has_met_home,
            lost: self.common.is_lost.then_some(self.common.history.accepted),
            homes,
            left: left.collect(),
            heads: self.heads.for_beat(),
            hears: self.peers.hears(now_ms),
            draining: self.is_draining,
        };
        self.push(HomeEffect::Publish(Arc::new(heartbeat)));
    }

    fn claim(&self, shard: &Shard) -> Option<HomeClaim> {
        let home = self.home(shard)?;
        let accepted = match shard {
            Shard::Common => self.common.history.accepted,
            Shard::Topic(_) => home.history.accepted,
        };
        Some(home.claim(shard, accepted))
    }

    /// A heartbeat of another node.
    pub(crate) fn received(&mut self, beat: &Arc<Heartbeat>) {
        if beat.node == self.me {
            return;
        }
        let is_namesake = beat.node.name == self.me.name;
        if is_namesake && beat.node.incarnation.is_before(self.me.incarnation) {
            return;
        }
        if is_namesake && self.me.incarnation.is_before(beat.node.incarnation) {
            return self.replaced();
        }
        let own = self.common.history.head;
        if !self.peers.receive(&self.me, self.now_ms(), &own, beat) {
            return;
        }
        for claim in &beat.homes {
            self.claimed(claim);
        }
        self.learn(&Shard::Common, &beat.revision);
        self.note_head(&Shard::Common, &beat.revision);
        for (shard, heads) in &beat.heads {
            for head in heads {
                self.learn(shard, head);
                self.note_head(shard, head);
            }
        }
        if beat
            .lost
            .is_some_and(|accepted| accepted >= self.common.history.accepted)
        {
            self.stop(&Shard::Common, beat.revision);
        }
        self.join_node(beat);
        self.confirm();
        self.follow();
    }

    /// Another process has locked the data directory: this one is over.
    fn replaced(&mut self) {
        self.is_replaced = true;
        self.end_takings();
        for shard in self.own_shards() {
            self.step_down(&shard, StepDownCause::Fenced);
        }
    }

    /// Another node is the home of a shard, in this epoch.
    fn claimed(&mut self, claim: &HomeClaim) {
        let shard = &claim.shard;
        if self
            .home(shard)
            .is_some_and(|home| home.epoch() < claim.epoch)
        {
            self.step_down(shard, StepDownCause::Fenced);
        }
        if let Some(state) = self.shards.get_mut(shard)
            && state
                .left
                .as_ref()
                .is_some_and(|left| left.epoch < claim.epoch)
        {
            state.left = None;
        }
        self.learn(shard, &claim.head);
        self.note_head(shard, &claim.head);
        if *shard == Shard::Common {
            self.common_claimed(claim);
        }
    }

    /// The home of the common journal says where its epoch begins: what this copy has beyond that
    /// is lost, unless a person has accepted it.
    fn common_claimed(&mut self, claim: &HomeClaim) {
        let own = self.common.history.head;
        let follows = &claim.follows;
        let is_later = claim.epoch > own.epoch;
        let is_beyond = (own.epoch, own.number) > (follows.epoch, follows.number);
        let is_same = (own.epoch, own.number) == (follows.epoch, follows.number);
        self.common.is_lost |= is_later && (is_beyond || is_same && own.sum != follows.sum);
        if self.common.is_lost && claim.accepted > self.common.history.accepted {
            self.reset(claim.accepted);
            self.follow();
        }
    }

    /// A place of a journal is known to have been written.
    fn note_head(&mut self, shard: &Shard, head: &JournalHead) {
        if *shard == Shard::Common && self.common.history.contradicts(head) {
            self.common.is_lost = true;
        }
        let Some(home) = self.home(shard) else {
            return;
        };
        if home.epoch() < head.epoch {
            // Another home was there after this one. If the log has lost its epoch, the next take-over
            // notices.
            return self.step_down(shard, StepDownCause::Fenced);
        }
        let is_lost = match shard {
            Shard::Common => self.common.is_lost,
            Shard::Topic(_) => home.history.contradicts(head),
        };
        if is_lost {
            self.stop(shard, *head);
        }
    }
}
