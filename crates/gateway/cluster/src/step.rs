//! Step of a node: one event in, all its effects out.

use std::collections::BTreeSet;

use model::TopicName;

use crate::effect::{HomeEffect, StepDownCause};
use crate::event::HomeEvent;
use crate::homes::Homes;
use crate::node::NodeTime;
use crate::record::HomeLine;
use crate::shard::Shard;
use crate::timing::TOPICS_MAX;

impl<R: HomeLine> Homes<R> {
    /// Takes one step. Pure: the same state, time and event give the same effects, in the same
    /// order.
    pub fn step(&mut self, now: NodeTime, event: HomeEvent<R>) -> Vec<HomeEffect<R>> {
        self.now.steady_ms = self.now.steady_ms.max(now.steady_ms);
        self.now.wall_ms = now.wall_ms;
        self.started_ms.get_or_insert(self.now.steady_ms);
        // A process may have been stopped for a while: before anything else it ends what it may not
        // be any more.
        self.end_leases();
        match event {
            HomeEvent::Tick => self.tick(),
            HomeEvent::Beat(beat) => self.received(&beat),
            HomeEvent::Topics(topics) => self.configure(topics),
            HomeEvent::Spread(stored) => self.spread(&stored),
            HomeEvent::Looked {
                shard,
                request,
                last,
            } => self.looked(&shard, request, last),
            HomeEvent::Read {
                shard,
                request,
                messages,
            } => self.read(&shard, request, &messages),
            HomeEvent::Appended { shard, id, result } => self.appended(&shard, id, result),
            HomeEvent::Store {
                shard,
                ticket,
                line,
            } => self.store(shard, ticket, line),
            HomeEvent::Compact {
                shard,
                ticket,
                lines,
            } => self.compact(shard, ticket, lines),
            HomeEvent::Purged { shard, before } => self.purged(&shard, before),
            HomeEvent::Renew { account, ticket } => self.renew(account, ticket),
            HomeEvent::Renewed {
                account,
                flight,
                line,
            } => self.renewed(account, flight, line),
            HomeEvent::Drain => self.drain(),
            HomeEvent::Accept { shard } => self.accept(&shard),
            HomeEvent::Remove { name } => self.remove(name),
        }
        if self.is_beat_due {
            self.beat_if_due();
        }
        self.review_admission();
        std::mem::take(&mut self.effects)
    }

    fn tick(&mut self) {
        self.peers.forget(self.now_ms());
        self.follow();
        let shards: Vec<Shard> = self.shards.keys().cloned().collect();
        for shard in &shards {
            self.place(shard);
            self.tend_taking(shard);
            self.tend_home(shard);
            self.purge(shard);
        }
        self.join_self();
        self.join_live();
        self.drop_silent();
        self.end_renewals();
        self.confirm();
        self.beat_if_due();
    }

    /// Takes live nodes in that are no members yet.
    fn join_live(&mut self) {
        if self.home(&Shard::Common).is_none() {
            return;
        }
        let live = self.peers.live(self.now_ms());
        let strangers = live.filter(|(node, _)| !self.common.members.has(&node.name));
        let beats: Vec<_> = strangers
            .map(|(_, peer)| (peer.received_ms, peer.beat.clone()))
            .collect();
        for (received_ms, beat) in beats {
            let mut beat = (*beat).clone();
            let age_ms = self.now_ms().saturating_sub(received_ms);
            beat.wall_ms = beat.wall_ms.saturating_add(age_ms);
            self.join_node(&beat);
        }
    }

    /// Takes the list of topics. A topic that is configured no more has no home here.
    fn configure(&mut self, topics: Vec<TopicName>) {
        let topics = topics.into_iter().take(TOPICS_MAX);
        let kept: BTreeSet<Shard> = topics.map(Shard::Topic).collect();
        for shard in self.own_shards() {
            if shard != Shard::Common && !kept.contains(&shard) {
                self.step_down(&shard, StepDownCause::Moved { next: None });
            }
        }
        self.shards
            .retain(|shard, _| *shard == Shard::Common || kept.contains(shard));
        for shard in kept {
            self.shards.entry(shard).or_default();
        }
    }
}
