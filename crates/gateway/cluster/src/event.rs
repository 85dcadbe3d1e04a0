//! Events of [`Homes`](crate::Homes): the closed inventory.

use std::sync::Arc;

use model::TopicName;

use crate::heartbeat::Heartbeat;
use crate::record::{AppendId, JournalHead, StoredMessage};
use crate::shard::Shard;

/// An event that the runner hands in.
#[derive(Debug, Clone, strum::IntoStaticStr, strum::VariantNames)]
pub enum HomeEvent<R> {
    /// Time passes. The runner sends it at least each [`TICK_MS`](crate::TICK_MS), and first of
    /// all.
    Tick,
    /// A heartbeat of another node.
    Beat(Arc<Heartbeat>),
    /// The topics that are configured, whole.
    Topics(Vec<TopicName>),
    /// A message of the common journal that its home published.
    Spread(StoredMessage<R>),
    /// The end of a shard's journal, as far as the replica that was asked has it.
    Looked {
        /// The shard.
        shard: Shard,
        /// The number of the request.
        request: u64,
        /// The last message; `None` if there is none.
        last: Option<LastMessage>,
    },
    /// Messages of a shard's journal, in the log's order.
    Read {
        /// The shard.
        shard: Shard,
        /// The number of the request.
        request: u64,
        /// The messages behind the sequence that was asked for, as far as the replica has them.
        messages: Vec<StoredMessage<R>>,
    },
    /// The log's answer to an append.
    Appended {
        /// The shard.
        shard: Shard,
        /// The append.
        id: AppendId,
        /// The answer.
        result: AppendResult,
    },
    /// A line is to be stored in a shard that is at home here.
    Store {
        /// The shard.
        shard: Shard,
        /// The runner's number for the answer.
        ticket: u64,
        /// The line.
        line: R,
    },
    /// These lines are in force in a shard that is at home here, in place of all lines before: a
    /// snapshot is to be written. The runner makes them when each of its lines has an answer and it
    /// has carried out all effects; a home that has lines to store yet refuses the snapshot, as
    /// [`NotStored::Busy`](crate::NotStored::Busy). When the snapshot is whole it is
    /// [`HomeEffect::Stored`](crate::HomeEffect::Stored).
    Compact {
        /// The shard.
        shard: Shard,
        /// The runner's number for the answer.
        ticket: u64,
        /// The lines.
        lines: Vec<R>,
    },
    /// The messages of a shard before this sequence are removed from the log.
    Purged {
        /// The shard.
        shard: Shard,
        /// The sequence.
        before: u64,
    },
    /// A refresh token is to be used; for the home of the common journal.
    Renew {
        /// The account that it is of.
        account: Arc<str>,
        /// The runner's number for the answer.
        ticket: u64,
    },
    /// The request of [`HomeEffect::Renew`](crate::HomeEffect::Renew) is over, here or at the home
    /// before this one.
    Renewed {
        /// The account.
        account: Arc<str>,
        /// The number of the use.
        flight: u64,
        /// The line with the new tokens; `None` if there are none.
        line: Option<R>,
    },
    /// The node is about to stop: it hands its shards over.
    Drain,
    /// A person has looked at a shard that has stopped, and has it go on.
    Accept {
        /// The shard.
        shard: Shard,
    },
    /// A person says that the process of a member does not run any more, and takes it out; for the
    /// home of the common journal.
    Remove {
        /// The member's name.
        name: Arc<str>,
    },
}

/// The end of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastMessage {
    /// Its place.
    pub head: JournalHead,
    /// The sequence of the last record of its subject, which an append behind it expects: its own,
    /// or that of a record of another user of the log.
    pub sequence: u64,
    /// Whether it ends its epoch.
    pub fenced: bool,
}

/// The log's answer to an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppendResult {
    /// The message is durable.
    Acked {
        /// Its sequence.
        sequence: u64,
    },
    /// Another message is the last one of the subject. Nothing was stored.
    Refused {
        /// The sequence of that one; 0 if the subject has none.
        last: u64,
    },
    /// The log takes no such message, or none now, and has not stored it by this try.
    NotTaken,
    /// The message may be stored or not.
    Unknown,
}
