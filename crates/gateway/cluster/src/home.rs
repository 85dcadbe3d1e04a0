//! Home of a shard: what waits for the log, what the log has, and what is to be confirmed.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::effect::{HomeEffect, NotStored};
use crate::event::AppendResult;
use crate::heartbeat::HomeClaim;
use crate::history::History;
use crate::members::Members;
use crate::node::NodeId;
use crate::queue::{Compacting, Queue, Queued};
use crate::record::{
    AppendId, CommonEntry, HomeLine, HomeMessage, HomeRecord, JournalHead, StoredMessage,
};
use crate::renewal::Renewals;
use crate::shard::{Shard, ShardSubject};
use crate::timing::{APPEND_OPEN_MS, GROUP_BYTES_MAX, GROUP_LINES_MAX, LOG_RETRY_MS};

/// The number of appends of which a second acknowledgement is compared.
const ACKED_MAX: usize = 16;

/// An append that has no answer yet.
#[derive(Debug, Clone)]
pub(crate) struct Sending<R> {
    pub(crate) id: AppendId,
    pub(crate) subject: ShardSubject,
    pub(crate) expected: u64,
    pub(crate) message: HomeMessage<R>,
    /// The time at which it was sent first, milliseconds.
    pub(crate) first_ms: u64,
    /// The time at which it was sent last, or at which the log said that its fate is unknown,
    /// milliseconds.
    pub(crate) asked_ms: u64,
    /// The number of its tries.
    tries: u32,
    /// The runner's numbers, one for each of its entries.
    pub(crate) tickets: Vec<Option<u64>>,
}

/// The end of a journal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JournalEnd {
    pub(crate) head: JournalHead,
    /// The sequence that an append behind it expects.
    pub(crate) sequence: u64,
}

impl<R: HomeLine> Sending<R> {
    /// The append of a record behind a place.
    pub(crate) fn new(
        id: AppendId,
        subject: ShardSubject,
        after: JournalEnd,
        record: HomeRecord<R>,
        now_ms: u64,
    ) -> Self {
        let JournalEnd { head, sequence } = after;
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
            expected: sequence,
            message,
            first_ms: now_ms,
            asked_ms: now_ms,
            tries: 1,
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

    /// Sends it once more, if the time for that has come.
    pub(crate) fn again(&mut self, now_ms: u64) -> Option<HomeEffect<R>> {
        if self.asked_ms + LOG_RETRY_MS > now_ms {
            return None;
        }
        self.asked_ms = now_ms;
        self.tries = self.tries.saturating_add(1);
        Some(self.effect())
    }

    /// Whether no try but one was made, so that the answer to it is the whole truth.
    pub(crate) fn is_first_try(&self) -> bool {
        self.tries == 1
    }

    /// Whether it changes the members.
    pub(crate) fn changes_members(&self) -> bool {
        self.has_entry(CommonEntry::changes_members)
    }

    /// Whether it has lines.
    pub(crate) fn has_lines(&self) -> bool {
        self.has_entry(|entry| entry.line().is_some())
    }

    fn has_entry(&self, is_one: impl Fn(&CommonEntry<R>) -> bool) -> bool {
        let HomeRecord::Lines(entries) = &self.message.record else {
            return false;
        };
        entries.iter().any(is_one)
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

/// Whether a home takes lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HomeState {
    Serving,
    /// It hands the shard over.
    Moving,
    /// Messages were lost; the place up to which they are known.
    Stopped(JournalHead),
}

/// The latest purge that a home has asked for.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Purging {
    /// The sequence below which messages are removed.
    pub(crate) before: u64,
    pub(crate) asked_ms: u64,
    pub(crate) is_done: bool,
}

/// A message of the common journal that is not in force everywhere yet.
#[derive(Debug, Clone)]
pub(crate) struct Unconfirmed {
    pub(crate) number: u64,
    pub(crate) tickets: Vec<u64>,
    /// The members from here on, if it changes them.
    pub(crate) members: Option<Members>,
}

/// The beginning of an epoch that this node has written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Beginning {
    /// The place of the beginning.
    pub(crate) begun: JournalHead,
    /// The place that it follows.
    pub(crate) follows: JournalHead,
    /// The sequence of the beginning; 0 as long as the log has not said it.
    pub(crate) sequence: u64,
    /// The time at which it was sent first, milliseconds.
    pub(crate) sent_ms: u64,
}

/// The next record of a home, with the runner's numbers of its entries.
#[derive(Debug)]
pub(crate) struct NextRecord<R> {
    pub(crate) record: HomeRecord<R>,
    pub(crate) tickets: Vec<Option<u64>>,
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
    pub(crate) queue: Queue<R>,
    /// The time until which nothing is sent, because the log took nothing, milliseconds.
    pub(crate) waits_until_ms: u64,
    pub(crate) sending: Option<Sending<R>>,
    /// The latest appends that were acknowledged, each with its sequence.
    pub(crate) acked: VecDeque<(AppendId, u64)>,
    /// The time at which the latest append that was acknowledged was sent, milliseconds.
    pub(crate) acked_ms: u64,
    /// The time at which this node became the home, milliseconds.
    pub(crate) became_ms: u64,
    pub(crate) state: HomeState,
    /// Whether the log has lost messages of this epoch, so that nothing can be appended to it.
    pub(crate) is_broken: bool,
    /// The time since which a former home cannot take itself for the home any more, milliseconds.
    pub(crate) settled_ms: Option<u64>,
    pub(crate) unconfirmed: VecDeque<Unconfirmed>,
    /// The members that the confirmed messages name.
    pub(crate) confirmed: Members,
    /// Members that a person has taken out, each with the time of that, milliseconds.
    pub(crate) removed: BTreeMap<Arc<str>, u64>,
    pub(crate) renewals: Renewals<R>,
    pub(crate) compacting: Option<Compacting<R>>,
    pub(crate) purging: Purging,
}

impl<R: HomeLine> Home<R> {
    /// A home whose epoch has begun.
    pub(crate) fn new(shard: &Shard, beginning: Beginning, history: History, now_ms: u64) -> Self {
        let begun = beginning.begun;
        Self {
            subject: ShardSubject {
                shard: shard.clone(),
                epoch: begun.epoch,
            },
            history,
            begun,
            follows: beginning.follows,
            head: begun,
            sequence: beginning.sequence,
            queue: Queue::new(),
            waits_until_ms: 0,
            sending: None,
            acked: VecDeque::new(),
            acked_ms: beginning.sent_ms,
            became_ms: now_ms,
            state: HomeState::Serving,
            is_broken: false,
            settled_ms: None,
            unconfirmed: VecDeque::new(),
            confirmed: Members::default(),
            removed: BTreeMap::new(),
            renewals: Renewals::default(),
            compacting: None,
            purging: Purging::default(),
        }
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.subject.epoch
    }

    pub(crate) fn is_serving(&self) -> bool {
        self.state == HomeState::Serving
    }

    pub(crate) fn is_stopped(&self) -> bool {
        matches!(self.state, HomeState::Stopped(_))
    }

    /// The cause for which it takes nothing of callers.
    pub(crate) fn refusal(&self, now_ms: u64) -> Option<NotStored> {
        let sending = self.sending.as_ref();
        let is_open = sending.is_some_and(|one| one.first_ms + APPEND_OPEN_MS <= now_ms);
        match self.state {
            HomeState::Moving => Some(NotStored::Moving),
            HomeState::Stopped(_) => Some(NotStored::Lost),
            HomeState::Serving if is_open => Some(NotStored::Unavailable),
            HomeState::Serving if self.queue.is_full() => Some(NotStored::Busy),
            HomeState::Serving => None,
        }
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
            stopped: self.is_stopped(),
        }
    }

    /// The next record of the queue, lines as one group.
    pub(crate) fn take_next(&mut self, me: &NodeId) -> Option<NextRecord<R>> {
        let record = match self.queue.pop_front()? {
            Queued::Entry { entry, ticket } => return Some(self.take_group(entry, ticket)),
            Queued::Fence { next } => HomeRecord::Fenced {
                by: me.clone(),
                next,
            },
            Queued::Lost { known } => HomeRecord::Lost { known },
            Queued::Accepted => HomeRecord::Accepted,
            // It is taken before, with what else it says.
            Queued::Compaction { .. } => return None,
            Queued::Alive => HomeRecord::Lines(Vec::new()),
        };
        Some(NextRecord {
            record,
            tickets: Vec::new(),
        })
    }

    fn take_group(&mut self, first: CommonEntry<R>, ticket: Option<u64>) -> NextRecord<R> {
        let mut bytes = first.bytes();
        let mut entries = vec![first];
        let mut tickets = vec![ticket];
        while let Some(Queued::Entry { entry, .. }) = self.queue.front() {
            bytes += entry.bytes();
            if entries.len() >= GROUP_LINES_MAX || bytes > GROUP_BYTES_MAX {
                break;
            }
            if let Some(Queued::Entry { entry, ticket }) = self.queue.pop_front() {
                entries.push(entry);
                tickets.push(ticket);
            }
        }
        NextRecord {
            record: HomeRecord::Lines(entries),
            tickets,
        }
    }

    /// Takes back an append that the log has certainly not stored: its records wait again, but for
    /// the lines of callers. Returns the runner's numbers of those.
    pub(crate) fn take_back(&mut self, now_ms: u64) -> Vec<u64> {
        self.waits_until_ms = now_ms + LOG_RETRY_MS;
        let Some(sending) = self.sending.take() else {
            return Vec::new();
        };
        let queued = match sending.message.record {
            HomeRecord::Lines(entries) => return self.take_entries_back(entries, sending.tickets),
            HomeRecord::Fenced { next, .. } => Queued::Fence { next },
            HomeRecord::Lost { known } => Queued::Lost { known },
            HomeRecord::Kept(_) => {
                let refused = self.compacting.take();
                return refused.into_iter().map(|one| one.ticket).collect();
            }
            HomeRecord::Accepted | HomeRecord::Begun { .. } => Queued::Accepted,
        };
        self.queue.push_front(queued);
        Vec::new()
    }

    fn take_entries_back(
        &mut self,
        entries: Vec<CommonEntry<R>>,
        tickets: Vec<Option<u64>>,
    ) -> Vec<u64> {
        let mut full = Vec::new();
        for (entry, ticket) in entries.into_iter().zip(tickets).rev() {
            match ticket {
                Some(ticket) => full.push(ticket),
                None if self.is_stopped() => {}
                None => self.queue.push_front(Queued::silent(entry)),
            }
        }
        full.reverse();
        full
    }
}
