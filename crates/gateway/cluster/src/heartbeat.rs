//! Heartbeats: what each node says of itself, of the homes it has and of the nodes it hears.

use std::sync::Arc;

use crate::node::{NodeId, Slot};
use crate::record::JournalHead;
use crate::shard::Shard;

/// A heartbeat. A node publishes one at least each [`HEARTBEAT_MS`](crate::HEARTBEAT_MS).
#[derive(Debug, Clone)]
pub struct Heartbeat {
    /// The node.
    pub node: NodeId,
    /// Its slot, once it is a member.
    pub slot: Option<Slot>,
    /// The number of the heartbeat in this life, from 1.
    pub beat: u64,
    /// The time since this life began, milliseconds.
    pub up_ms: u64,
    /// Its wall clock, milliseconds.
    pub wall_ms: u64,
    /// The digest of its configuration.
    pub config: u64,
    /// The place of the common journal up to which it has applied all.
    pub revision: JournalHead,
    /// Whether it was as new as a home of the common journal in this life. Before, what it has may
    /// come from a replica that lags, and is older than what its life before knew.
    pub has_met_home: bool,
    /// The last epoch in which it knows a loss of the common journal to be accepted, if its copy
    /// has messages that the journal has not.
    pub lost: Option<u64>,
    /// The shards that it is the home of.
    pub homes: Vec<HomeClaim>,
    /// The shards that it handed over, until it learns of their next home.
    pub left: Vec<HomeLeft>,
    /// The highest places of journals that it knows of, by shard: those that are new, and some of
    /// the others in turn.
    pub heads: Vec<(Shard, Vec<JournalHead>)>,
    /// The latest heartbeats of others that it has received.
    pub hears: Vec<HeardNode>,
    /// Whether it is about to stop, and takes no homes.
    pub draining: bool,
}

/// A node's word that it is the home of a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HomeClaim {
    /// The shard.
    pub shard: Shard,
    /// Its epoch.
    pub epoch: u64,
    /// The last message that was acknowledged.
    pub head: JournalHead,
    /// The place that the epoch follows.
    pub follows: JournalHead,
    /// The last epoch in which a loss was accepted; 0 if none was.
    pub accepted: u64,
    /// Whether the shard has stopped, because messages were lost.
    pub stopped: bool,
}

/// A shard that its home has handed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HomeLeft {
    /// The shard.
    pub shard: Shard,
    /// The epoch that is over.
    pub epoch: u64,
    /// The name of the successor.
    pub next: Option<Arc<str>>,
}

/// A node's latest heartbeat at another node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeardNode {
    /// The node.
    pub node: NodeId,
    /// The number of its latest heartbeat.
    pub beat: u64,
    /// The time since that heartbeat came, milliseconds.
    pub age_ms: u64,
}
