//! Home of a shard: what waits for the log, what the log has, and what is to be confirmed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::effect::HomeEffect;
use crate::event::AppendResult;
use crate::heartbeat::HomeClaim;
use crate::history::History;
use crate::members::Members;
use crate::node::NodeId;
use crate::record::{
    AppendId, CommonEntry, HomeLine, HomeMessage, HomeRecord, JournalHead, StoredMessage,
};
use crate::shard::{Shard, ShardSubject};
use crate::timing::{GROUP_BYTES_MAX, GROUP_LINES_MAX};

/// The number of appends of which a second acknowledgement is compared.
const ACKED_MAX: usize = 16;

/// An append that has no answer yet.
#[derive(Debug, Clone)]
pub(crate) struct Sending<R> {
    pub(crate) id: AppendId,
    pub(crate) subject: ShardSubject,
    pub(crate) expected: u64,
    pub(crate) message: HomeMessage<R>,
    /// When it was sent first, milliseconds.
    pub(crate) first_ms: u64,
    /// When it was sent last; 0 if it is to be sent again.
    pub(crate) asked_ms: u64,
    /// The runner's numbers of its lines.
    pub(crate) tickets: Vec<u64>,
}

impl<R: HomeLine> Sending<R> {
    /// The append of a record behind a place.
    pub(crate) fn new(
        id: AppendId,
        subject: ShardSubject,
        after: (JournalHead, u64),
        record: HomeRecord<R>,
        now_ms: u64,
    ) -> Self {
        let (head, expected) = after;
        let next = head.next(&subject, &record);
        let message = HomeMessage {
            number: next.number,
            sum: next.sum,
            begun: next.begun,
            record,
        };
        Self {
            id,
            subject,
            expected,
            message,
            first_ms: now_ms,
            asked_ms: now_ms,
            tickets: Vec::new(),
        }
    }

    /// The place of its message.
    pub(crate) fn head(&self) -> JournalHead {
        JournalHead {
            epoch: self.subject.epoch,
            number: self.message.number,
            sum: self.message.sum,
            begun: self.message.begun,
        }
    }

    pub(crate) fn effect(&self) -> HomeEffect<R> {
        HomeEffect::Append {
            subject: self.subject.clone(),
            expected: self.expected,
            id: self.id,
            message: self.message.clone(),
        }
    }

    /// Its message, with the sequence that the log gave it.
    pub(crate) fn stored(self, sequence: u64) -> StoredMessage<R> {
        StoredMessage {
            subject: self.subject,
            sequence,
            message: self.message,
        }
    }
}

/// A record that waits for the log.
#[derive(Debug, Clone)]
pub(crate) enum Queued<R> {
    Entry {
        entry: CommonEntry<R>,
        ticket: Option<u64>,
    },
    Fence {
        next: Option<Arc<str>>,
    },
    Lost {
        known: JournalHead,
    },
    Accepted,
    /// An empty group.
    Alive,
}

/// Whether a home takes lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HomeState {
    Serving,
    /// It hands the shard over.
    Moving,
    /// Messages were lost; the place up to which they are known.
    Stopped(JournalHead),
}

/// A message of the common journal that is not in force everywhere yet.
#[derive(Debug, Clone)]
pub(crate) struct Unconfirmed {
    pub(crate) number: u64,
    pub(crate) tickets: Vec<u64>,
    /// The members from here on, if it changes them.
    pub(crate) members: Option<Members>,
}

/// The use of a refresh token.
#[derive(Debug, Clone)]
pub(crate) enum Renewal {
    /// The intent is not durable yet.
    Recording,
    /// The request is sent, here or at a former home, and over by then.
    Flying { until_ms: u64 },
    /// It is over, which is not durable yet.
    Ending { known: bool },
}

/// The home of a shard.
#[derive(Debug, Clone)]
pub(crate) struct Home<R> {
    pub(crate) subject: ShardSubject,
    /// The journal of a topic; of the common one each node has a copy.
    pub(crate) history: History,
    pub(crate) begun: JournalHead,
    pub(crate) follows: JournalHead,
    pub(crate) head: JournalHead,
    pub(crate) sequence: u64,
    pub(crate) queue: VecDeque<Queued<R>>,
    pub(crate) sending: Option<Sending<R>>,
    /// The latest appends that were acknowledged, each with its sequence.
    pub(crate) acked: VecDeque<(AppendId, u64)>,
    /// When the latest append that was acknowledged was sent, milliseconds.
    pub(crate) acked_ms: u64,
    pub(crate) state: HomeState,
    /// Whether the log has lost messages of this epoch, so that nothing can be appended to it.
    pub(crate) is_broken: bool,
    /// Since when a former home cannot take itself for the home any more, milliseconds.
    pub(crate) settled_ms: Option<u64>,
    pub(crate) unconfirmed: VecDeque<Unconfirmed>,
    /// The members that the confirmed messages name.
    pub(crate) confirmed: Members,
    /// Members that a person has taken out.
    pub(crate) removed: BTreeSet<Arc<str>>,
    pub(crate) renewals: BTreeMap<Arc<str>, (Renewal, Vec<u64>)>,
}

impl<R: HomeLine> Home<R> {
    /// A home whose epoch has begun at this place; with the sequence of its beginning, and when
    /// that was sent.
    pub(crate) fn new(
        shard: &Shard,
        begun: JournalHead,
        appended: (u64, u64),
        history: History,
    ) -> Self {
        let (sequence, acked_ms) = appended;
        Self {
            subject: ShardSubject {
                shard: shard.clone(),
                epoch: begun.epoch,
            },
            history,
            begun,
            follows: JournalHead::default(),
            head: begun,
            sequence,
            queue: VecDeque::new(),
            sending: None,
            acked: VecDeque::new(),
            acked_ms,
            state: HomeState::Serving,
            is_broken: false,
            settled_ms: None,
            unconfirmed: VecDeque::new(),
            confirmed: Members::default(),
            removed: BTreeSet::new(),
            renewals: BTreeMap::new(),
        }
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.subject.epoch
    }

    pub(crate) fn is_serving(&self) -> bool {
        self.state == HomeState::Serving
    }

    /// Notes an append that was acknowledged.
    pub(crate) fn note_acked(&mut self, id: AppendId, sequence: u64) {
        self.acked.push_back((id, sequence));
        if self.acked.len() > ACKED_MAX {
            self.acked.pop_front();
        }
    }

    /// Whether an append was acknowledged under another sequence before: a log that was set back has
    /// stored a repeated one anew.
    pub(crate) fn was_elsewhere(&self, id: AppendId, result: AppendResult) -> bool {
        let AppendResult::Acked { sequence } = result else {
            return false;
        };
        let mut acked = self.acked.iter();
        acked.any(|(known, at)| *known == id && *at != sequence)
    }

    pub(crate) fn claim(&self, shard: &Shard, accepted: u64) -> HomeClaim {
        HomeClaim {
            shard: shard.clone(),
            epoch: self.epoch(),
            head: self.head,
            follows: self.follows,
            accepted,
            stopped: matches!(self.state, HomeState::Stopped(_)),
        }
    }

    /// The next record of the queue, lines as one group, and the tickets of its lines.
    pub(crate) fn take_next(&mut self, me: &NodeId) -> Option<(HomeRecord<R>, Vec<u64>)> {
        let record = match self.queue.pop_front()? {
            Queued::Entry { entry, ticket } => return Some(self.take_group(entry, ticket)),
            Queued::Fence { next } => HomeRecord::Fenced {
                by: me.clone(),
                next,
            },
            Queued::Lost { known } => HomeRecord::Lost { known },
            Queued::Accepted => HomeRecord::Accepted,
            Queued::Alive => HomeRecord::Lines(Vec::new()),
        };
        Some((record, Vec::new()))
    }

    fn take_group(
        &mut self,
        first: CommonEntry<R>,
        ticket: Option<u64>,
    ) -> (HomeRecord<R>, Vec<u64>) {
        let mut bytes = first.bytes();
        let mut entries = vec![first];
        let mut tickets: Vec<u64> = ticket.into_iter().collect();
        while let Some(Queued::Entry { entry, .. }) = self.queue.front() {
            bytes += entry.bytes();
            if entries.len() >= GROUP_LINES_MAX || bytes > GROUP_BYTES_MAX {
                break;
            }
            if let Some(Queued::Entry { entry, ticket }) = self.queue.pop_front() {
                entries.push(entry);
                tickets.extend(ticket);
            }
        }
        (HomeRecord::Lines(entries), tickets)
    }
}
