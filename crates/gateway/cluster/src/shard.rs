//! Shards: what has one home at a time, and the subjects of its journal.

use std::sync::Arc;

use model::TopicName;
use sha2::{Digest, Sha256};

/// A part of the cluster's state that has one home at a time, and a journal of its own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Shard {
    /// The common journal: members, tokens, grants, accounts. Each node has a copy of its state.
    Common,
    /// The shared part of a topic: its proposals, its room, its built-in tools.
    Topic(TopicName),
}

impl Shard {
    /// Its name; that of the common journal is none of a topic.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Common => "@common",
            Self::Topic(topic) => topic.as_str(),
        }
    }
}

/// The subject of the log that one epoch of a home writes to. Besides its home only the node that
/// ends the epoch appends to it, once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardSubject {
    /// The shard.
    pub shard: Shard,
    /// The epoch, from 1.
    pub epoch: u64,
}

/// The weight of a node for a shard: of several nodes the one with the highest weight is chosen, so
/// that a node that leaves moves its own shards alone (rendezvous hashing; Thaler and Ravishankar,
/// 1998).
pub(crate) fn weight(shard: &Shard, name: &Arc<str>) -> u64 {
    let text = shard.as_str();
    let hash = Sha256::new()
        .chain_update(text)
        .chain_update([0])
        .chain_update(name.as_bytes())
        .finalize();
    let mut first = [0; 8];
    first.iter_mut().zip(hash).for_each(|(to, from)| *to = from);
    u64::from_le_bytes(first)
}
