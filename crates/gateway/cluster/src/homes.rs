//! State of a node: the other nodes, its copy of the common journal, and the part that it has in
//! each shard.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::TopicName;

use crate::common::Common;
use crate::effect::{Admission, HomeEffect, NoAdmission};
use crate::heartbeat::HomeLeft;
use crate::history::{History, KnownHeads};
use crate::home::Home;
use crate::node::{NodeId, NodeTime, Slot};
use crate::peers::Peers;
use crate::record::{AppendId, HomeLine, JournalHead};
use crate::shard::Shard;
use crate::taking::Taking;
use crate::timing::{CUT_OFF_MS, RENEWAL_MS, TOPICS_MAX};

/// The configuration of a node.
#[derive(Debug, Clone)]
pub struct HomesConfig {
    /// The node.
    pub node: NodeId,
    /// The shards that were at home in the life before, in the same data directory, when it ended.
    pub former_homes: Vec<Shard>,
    /// The places of [`HomeEffect::KeepHead`] of all lives before.
    pub heads: Vec<(Shard, JournalHead)>,
    /// The digest of the node's configuration.
    pub config: u64,
    /// The topics, at most [`TOPICS_MAX`]: others have no home here.
    pub topics: Vec<TopicName>,
    /// The time without contact after which a node admits nothing, milliseconds. All nodes have the
    /// same.
    pub cut_off_ms: u64,
    /// The time that a request with a refresh token takes at most, milliseconds. All nodes have the
    /// same.
    pub renewal_ms: u64,
}

impl HomesConfig {
    /// A node without a former life, with the usual times.
    #[must_use]
    pub fn new(node: NodeId, topics: Vec<TopicName>) -> Self {
        Self {
            node,
            former_homes: Vec::new(),
            heads: Vec::new(),
            config: 0,
            topics,
            cut_off_ms: CUT_OFF_MS,
            renewal_ms: RENEWAL_MS,
        }
    }
}

/// The part that a node has in a shard.
#[derive(Debug, Clone)]
pub(crate) enum Role<R> {
    /// None.
    Away,
    /// It is about to become the home.
    Taking(Box<Taking<R>>),
    /// It is the home.
    Home(Box<Home<R>>),
}

/// A shard at this node.
#[derive(Debug, Clone)]
pub(crate) struct ShardState<R> {
    pub(crate) role: Role<R>,
    /// The epoch that this node handed over last.
    pub(crate) left: Option<HomeLeft>,
    /// Until when this node does not take it: another has ended its epoch, and may live.
    pub(crate) rests_until_ms: u64,
    /// Since when no node says that it is the home, milliseconds.
    pub(crate) unclaimed_ms: Option<u64>,
}

impl<R> Default for ShardState<R> {
    fn default() -> Self {
        Self {
            role: Role::Away,
            left: None,
            rests_until_ms: 0,
            unclaimed_ms: None,
        }
    }
}

/// The rules of one node of a cluster: which shards it is the home of, what is durable, what is in
/// force on all nodes, and whether it may admit requests.
#[derive(Debug, Clone)]
pub struct Homes<R: HomeLine> {
    pub(crate) config: HomesConfig,
    pub(crate) me: NodeId,
    pub(crate) now: NodeTime,
    pub(crate) started_ms: Option<u64>,
    pub(crate) peers: Peers,
    pub(crate) common: Common,
    pub(crate) heads: KnownHeads,
    pub(crate) shards: BTreeMap<Shard, ShardState<R>>,
    pub(crate) admission: Admission,
    pub(crate) beat_ms: Option<u64>,
    pub(crate) is_beat_due: bool,
    pub(crate) is_draining: bool,
    /// Whether another process has this node's data directory.
    pub(crate) is_replaced: bool,
    next: u64,
    pub(crate) effects: Vec<HomeEffect<R>>,
}

impl<R: HomeLine> Homes<R> {
    /// A node that begins a life.
    #[must_use]
    pub fn new(config: HomesConfig) -> Self {
        let mut heads = KnownHeads::default();
        for (shard, head) in &config.heads {
            heads.learn(shard, head);
        }
        let topics = config.topics.iter().take(TOPICS_MAX).cloned();
        let topics = topics.map(Shard::Topic);
        let shards = [Shard::Common].into_iter().chain(topics);
        Self {
            me: config.node.clone(),
            now: NodeTime::default(),
            started_ms: None,
            peers: Peers::default(),
            common: Common::default(),
            heads,
            shards: shards.map(|shard| (shard, ShardState::default())).collect(),
            admission: Admission::No(NoAdmission::NotMember),
            beat_ms: None,
            is_beat_due: false,
            is_draining: false,
            is_replaced: false,
            next: 0,
            effects: Vec::new(),
            config,
        }
    }

    /// The life of this node.
    #[must_use]
    pub fn node(&self) -> &NodeId {
        &self.me
    }

    /// The slot of this node, once it is a member.
    #[must_use]
    pub fn slot(&self) -> Option<Slot> {
        self.common.members.slot(&self.me.name)
    }

    /// The member that has this slot.
    #[must_use]
    pub fn member_of(&self, slot: Slot) -> Option<&Arc<str>> {
        self.common.members.of_slot(slot)
    }

    /// The slots of the other members.
    pub fn other_slots(&self) -> impl Iterator<Item = Slot> {
        let own = self.slot();
        let all = self.common.members.names();
        let slots = all.filter_map(|name| self.common.members.slot(name));
        slots.filter(move |slot| Some(*slot) != own)
    }

    /// The names of all members, as far as this node knows.
    pub fn members(&self) -> impl Iterator<Item = &Arc<str>> {
        self.common.members.names()
    }

    /// The number of messages of the common journal since its latest snapshot.
    #[must_use]
    pub fn uncompacted(&self) -> u64 {
        self.common.history.uncompacted()
    }

    /// The place of the common journal up to which this node has applied all.
    #[must_use]
    pub fn revision(&self) -> JournalHead {
        self.common.history.head
    }

    /// The node that says that it is the home of a shard, with its epoch.
    #[must_use]
    pub fn home_of(&self, shard: &Shard) -> Option<(&NodeId, u64)> {
        if let Some(home) = self.home(shard) {
            return Some((&self.me, home.epoch()));
        }
        let claimed = self.peers.claimed(shard);
        claimed.map(|(node, _, claim)| (node, claim.epoch))
    }

    /// The last millisecond in which this node is the home of a shard and serves it, on the clock of
    /// [`Homes::step`](crate::Homes::step), unless a later step says otherwise; `None` if it is not.
    /// To be compared with the clock of the moment: a process that was stopped for a while is the
    /// home no more.
    #[must_use]
    pub fn leads_until_ms(&self, shard: &Shard) -> Option<u64> {
        let serves = self.home(shard).is_some_and(Home::is_serving);
        self.lease_ms(shard).filter(|_| serves)
    }

    /// The latest word about the admission of requests.
    #[must_use]
    pub fn admission(&self) -> Admission {
        self.admission
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.now.steady_ms
    }

    /// The time since this life began, milliseconds.
    pub(crate) fn up_ms(&self) -> u64 {
        let started = self.started_ms.unwrap_or(self.now.steady_ms);
        self.now.steady_ms - started
    }

    pub(crate) fn home(&self, shard: &Shard) -> Option<&Home<R>> {
        match self.shards.get(shard).map(|state| &state.role) {
            Some(Role::Home(home)) => Some(home),
            _ => None,
        }
    }

    pub(crate) fn home_mut(&mut self, shard: &Shard) -> Option<&mut Home<R>> {
        match self.shards.get_mut(shard).map(|state| &mut state.role) {
            Some(Role::Home(home)) => Some(home),
            _ => None,
        }
    }

    /// The history of a shard that is at home here.
    pub(crate) fn history(&self, shard: &Shard) -> Option<&History> {
        let home = self.home(shard)?;
        Some(match shard {
            Shard::Common => &self.common.history,
            Shard::Topic(_) => &home.history,
        })
    }

    pub(crate) fn set_role(&mut self, shard: &Shard, role: Role<R>) {
        if let Some(state) = self.shards.get_mut(shard) {
            state.role = role;
            state.unclaimed_ms = None;
        }
    }

    /// The shards that this node is the home of.
    pub(crate) fn own_shards(&self) -> Vec<Shard> {
        let own = |(_, state): &(&Shard, &ShardState<R>)| matches!(state.role, Role::Home(_));
        let own = self.shards.iter().filter(own);
        own.map(|(shard, _)| shard.clone()).collect()
    }

    pub(crate) fn next_number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    pub(crate) fn append_id(&mut self) -> AppendId {
        AppendId {
            incarnation: self.me.incarnation,
            number: self.next_number(),
        }
    }

    pub(crate) fn push(&mut self, effect: HomeEffect<R>) {
        self.effects.push(effect);
    }

    /// Learns of a place of a journal, and keeps it.
    pub(crate) fn learn(&mut self, shard: &Shard, head: &JournalHead) {
        // A shard that is not configured here is taken as long as there are few.
        let may_learn = self.shards.contains_key(shard) || self.heads.takes(shard);
        if may_learn && self.heads.learn(shard, head) {
            self.push(HomeEffect::KeepHead {
                shard: shard.clone(),
                head: *head,
            });
        }
    }
}
