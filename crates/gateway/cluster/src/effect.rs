//! Effects of [`Homes`](crate::Homes): the closed inventory.

use std::sync::Arc;

use crate::heartbeat::Heartbeat;
use crate::record::{AppendId, HomeMessage, JournalHead, StoredMessage};
use crate::shard::{Shard, ShardSubject};

/// An effect that the runner carries out, in order.
#[derive(Debug, Clone, strum::IntoStaticStr, strum::VariantNames)]
pub enum HomeEffect<R> {
    /// This heartbeat goes to all nodes.
    Publish(Arc<Heartbeat>),
    /// This message of the common journal goes to all nodes.
    Spread(StoredMessage<R>),
    /// The end of a shard's journal is asked for: the last message of its highest epoch. Any
    /// replica will do. Answered by [`HomeEvent::Looked`](crate::HomeEvent::Looked); without an
    /// answer it is asked again under its number.
    Look {
        /// The shard.
        shard: Shard,
        /// The number of the request.
        request: u64,
    },
    /// Messages of a shard's journal are asked for, of all epochs and in the log's order. Any
    /// replica will do. Answered by [`HomeEvent::Read`](crate::HomeEvent::Read); without an answer
    /// it is asked again under its number, however long the reading takes.
    Read {
        /// The shard.
        shard: Shard,
        /// The number of the request.
        request: u64,
        /// The sequence behind which they are.
        after: u64,
    },
    /// A message goes into the log if the last one of its subject is the expected one. Answered by
    /// [`HomeEvent::Appended`](crate::HomeEvent::Appended).
    Append {
        /// The subject.
        subject: ShardSubject,
        /// The sequence of the last message of the subject; 0 if it must have none.
        expected: u64,
        /// Its id: the log stores it once.
        id: AppendId,
        /// The message.
        message: HomeMessage<R>,
    },
    /// The messages of a shard before a snapshot are removed from the log, of all epochs. The runner
    /// looks first whether the last message of the snapshot is in its place, and no later epoch than
    /// the home's has begun: else it removes nothing. Answered by [`HomeEvent::Purged`](crate::HomeEvent::Purged) when they are removed;
    /// without an answer it is asked again.
    Purge {
        /// The shard.
        shard: Shard,
        /// The home's epoch.
        epoch: u64,
        /// The sequence of the first message of the snapshot: none from it on is removed.
        before: u64,
        /// The last message of the snapshot.
        end: JournalHead,
        /// The sequence of that.
        end_sequence: u64,
    },
    /// A place that is known to have been written is kept in the data directory, for
    /// [`HomesConfig::heads`](crate::HomesConfig::heads) of the next life: in place of the one with
    /// the same shard, epoch and beginning; the latest [`HEAD_EPOCHS_MAX`](crate::HEAD_EPOCHS_MAX) of
    /// a shard are enough.
    KeepHead {
        /// The shard.
        shard: Shard,
        /// The place.
        head: JournalHead,
    },
    /// Lines of the common journal count from now on at this node.
    Apply {
        /// Their place.
        revision: JournalHead,
        /// The lines.
        lines: Vec<R>,
    },
    /// The copy of the common journal begins anew with these lines, in place of all before: those of
    /// a snapshot; or none, as a person has accepted that messages were lost.
    Reset {
        /// Their place.
        revision: JournalHead,
        /// The lines.
        lines: Vec<R>,
    },
    /// This node is the home of a shard from now on. Of a topic: it is restored from these lines.
    BecomeHome {
        /// The shard.
        shard: Shard,
        /// The epoch.
        epoch: u64,
        /// All lines of a topic's journal from its latest snapshot on; none of the common one, which
        /// each node applies.
        lines: Vec<R>,
    },
    /// This node is the home no more. Tickets without an answer have none: their lines are stored
    /// or not.
    StepDown {
        /// The shard.
        shard: Shard,
        /// The epoch that is over.
        epoch: u64,
        /// The cause.
        why: StepDownCause,
    },
    /// Messages that were acknowledged are gone: nothing of the shard is carried out here until
    /// [`HomeEvent::Accept`](crate::HomeEvent::Accept). As after [`HomeEffect::StepDown`], tickets
    /// have no answer.
    StopTopic {
        /// The shard.
        shard: Shard,
        /// The place up to which messages are known to have been written.
        known: JournalHead,
    },
    /// A line is durable.
    Stored {
        /// The shard.
        shard: Shard,
        /// The runner's number.
        ticket: u64,
    },
    /// A line is not stored, and never will be.
    NotStored {
        /// The shard.
        shard: Shard,
        /// The runner's number.
        ticket: u64,
        /// The cause.
        why: NotStored,
    },
    /// A line of the common journal is in force on every node that admits anything.
    Confirmed {
        /// The runner's number.
        ticket: u64,
    },
    /// The time until which this node admits requests, or why it does not.
    Admit(Admission),
    /// A refresh token is used, once. The request is sent and over before this time on the clock of
    /// [`Homes::step`](crate::Homes::step), or not sent. Answered by
    /// [`HomeEvent::Renewed`](crate::HomeEvent::Renewed).
    Renew {
        /// The account that it is of.
        account: Arc<str>,
        /// The number of this use, which its result names.
        flight: u64,
        /// The end of the time for it, milliseconds.
        before_ms: u64,
    },
    /// A refresh token was used, and what came of it is stored; or nothing came of it in time, or a
    /// later use has begun. Each [`HomeEvent::Renewed`](crate::HomeEvent::Renewed) that is not given
    /// back with [`HomeEffect::NotRenewed`] is answered by this.
    RenewalOver {
        /// The account.
        account: Arc<str>,
        /// The number of the use.
        flight: u64,
        /// The runner's numbers of those that wait for it.
        tickets: Vec<u64>,
        /// Whether its result is stored.
        known: bool,
    },
    /// The result of a use of a refresh token is not stored here, or perhaps is not: it goes to the
    /// home of the common journal as [`HomeEvent::Renewed`](crate::HomeEvent::Renewed), until that
    /// answers it with [`HomeEffect::RenewalOver`].
    NotRenewed {
        /// The account.
        account: Arc<str>,
        /// The number of the use.
        flight: u64,
        /// The line with the new tokens.
        line: Option<R>,
    },
}

/// The cause for which a node is the home of a shard no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepDownCause {
    /// Another node has ended its epoch, or begun a later one.
    Fenced,
    /// The log acknowledged nothing, and no majority echoed a heartbeat, for
    /// [`ALONE_MS`](crate::ALONE_MS).
    Alone,
    /// It handed the shard over.
    Moved {
        /// The name of the successor.
        next: Option<Arc<str>>,
    },
}

/// The cause for which a line is not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotStored {
    /// The shard's home is elsewhere.
    NotHome,
    /// The home is about to hand the shard over.
    Moving,
    /// The shard has stopped, because messages were lost.
    Lost,
    /// Too many lines wait already.
    Busy,
    /// The log takes no message, or has not answered for [`APPEND_OPEN_MS`](crate::APPEND_OPEN_MS).
    Unavailable,
}

/// Whether a node admits requests. It is compared with the clock when a request comes in, so that a
/// process that was stopped for a while admits nothing when it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It does before this time on the clock of [`Homes::step`](crate::Homes::step), milliseconds.
    Until(u64),
    /// It does not.
    No(NoAdmission),
}

impl Admission {
    /// Whether the node admits requests at this time.
    #[must_use]
    pub fn admits(self, steady_ms: u64) -> bool {
        matches!(self, Self::Until(until_ms) if steady_ms < until_ms)
    }
}

/// The cause for which a node admits no requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoAdmission {
    /// It is no member yet.
    NotMember,
    /// Its clock is apart from those of other nodes, so that it does not join.
    ClockApart,
    /// It has no contact with the home of the common journal, nor with a majority.
    CutOff,
    /// Another node has a later revision of the common journal.
    Behind,
    /// Messages of the common journal are lost.
    Lost,
    /// Another process has the node's data directory.
    Replaced,
}
