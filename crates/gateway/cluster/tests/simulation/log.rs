//! Log of the simulation: one stream with subjects, compare-and-set appends, ids that are stored
//! once, replicas that lag, and an operator who sets it back to an older state.

use std::collections::{BTreeMap, BTreeSet};

use cluster::{
    AppendId, AppendResult, CommonEntry, HomeMessage, HomeRecord, LastMessage, NodeLife, Shard,
    ShardSubject, StoredMessage,
};

use crate::line::{Line, Meaning};
use crate::node::TokenUse;

pub(crate) type Stored = StoredMessage<Line>;

#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) stream: Vec<Stored>,
    /// The process that appended each message.
    pub(crate) authors: Vec<AppendId>,
    /// Sequences of records that are none of the cluster's.
    foreign: BTreeSet<u64>,
    lasts: BTreeMap<ShardSubject, u64>,
    ids: BTreeMap<AppendId, u64>,
}

impl Log {
    /// Whether an append is stored.
    pub(crate) fn has_id(&self, id: AppendId) -> bool {
        self.ids.contains_key(&id)
    }

    /// Appends if the last message of the subject is the expected one; an id that was stored
    /// already comes first.
    pub(crate) fn append(
        &mut self,
        subject: ShardSubject,
        expected: Option<u64>,
        id: AppendId,
        message: HomeMessage<Line>,
    ) -> AppendResult {
        if let Some(sequence) = self.ids.get(&id) {
            return AppendResult::Acked {
                sequence: *sequence,
            };
        }
        let last = self.lasts.get(&subject).copied().unwrap_or_default();
        if expected.is_some_and(|expected| expected != last) {
            return AppendResult::Refused { last };
        }
        let sequence = self.stream.len() as u64 + 1;
        self.lasts.insert(subject.clone(), sequence);
        self.ids.insert(id, sequence);
        self.authors.push(id);
        self.stream.push(StoredMessage {
            subject,
            sequence,
            message,
        });
        AppendResult::Acked { sequence }
    }

    /// The subjects that have records.
    pub(crate) fn subjects(&self) -> Vec<ShardSubject> {
        self.lasts.keys().cloned().collect()
    }

    /// Appends another user's record behind the last one of a subject.
    pub(crate) fn pollute(&mut self, subject: ShardSubject) {
        let sequence = self.stream.len() as u64 + 1;
        self.lasts.insert(subject.clone(), sequence);
        self.foreign.insert(sequence);
        let incarnation = NodeLife {
            directory: u64::MAX,
            life: 0,
        };
        self.authors.push(AppendId {
            incarnation,
            number: sequence,
        });
        self.stream.push(StoredMessage {
            subject,
            sequence,
            message: HomeMessage {
                number: 0,
                sum: [0; 8],
                begun: [0; 8],
                record: HomeRecord::Lines(Vec::new()),
            },
        });
    }

    fn is_own(&self, stored: &Stored) -> bool {
        !self.foreign.contains(&stored.sequence)
    }

    /// The messages of a shard behind a sequence, at a replica that has so many messages less.
    pub(crate) fn read(&self, shard: &Shard, after: u64, lag: usize) -> Vec<Stored> {
        let known = self.stream.len().saturating_sub(lag);
        let from = (after as usize).min(known);
        let messages = self.stream[from..known].iter();
        messages
            .filter(|one| one.subject.shard == *shard && self.is_own(one))
            .cloned()
            .collect()
    }

    /// The last message of the highest epoch of a shard.
    pub(crate) fn last(&self, shard: &Shard, lag: usize) -> Option<LastMessage> {
        let known = self.stream.len().saturating_sub(lag);
        let messages = self.stream[..known].iter();
        let messages = messages.filter(|one| one.subject.shard == *shard);
        let own = messages.clone().filter(|one| self.is_own(one));
        let last = own.max_by_key(|one| (one.subject.epoch, one.sequence))?;
        let of_subject = messages.filter(|one| one.subject == last.subject);
        Some(LastMessage {
            head: last.head(),
            sequence: of_subject.map(|one| one.sequence).max()?,
            fenced: matches!(last.message.record, HomeRecord::Fenced { .. }),
        })
    }

    /// Whether the numbers of a shard's messages follow each other, so that a reader misses none.
    pub(crate) fn is_whole(&self, shard: &Shard) -> bool {
        let messages = self.stream.iter().filter(|one| one.subject.shard == *shard);
        let messages = messages.filter(|one| self.is_own(one));
        let numbers = messages.map(|one| one.message.number);
        numbers
            .zip(1..)
            .all(|(number, expected)| number == expected)
    }

    /// Whether a later use of the refresh token than this one was recorded.
    pub(crate) fn has_flight_after(&self, renewal: &TokenUse) -> bool {
        self.stream.iter().any(|one| match &one.message.record {
            HomeRecord::Lines(entries) => {
                let begins =
                    |entry: &CommonEntry<Line>| matches!(entry, CommonEntry::Renewing { account } if **account == *renewal.account);
                one.message.number > renewal.flight && entries.iter().any(begins)
            }
            _ => false,
        })
    }

    /// Whether a line stands in the stream.
    pub(crate) fn has(&self, meaning: Meaning) -> bool {
        self.stream.iter().any(|one| match &one.message.record {
            HomeRecord::Lines(entries) => entries
                .iter()
                .any(|entry| matches!(entry, CommonEntry::Line(line) if line.meaning == meaning)),
            _ => false,
        })
    }

    /// Sets the stream back by so many messages, and returns them.
    pub(crate) fn lose(&mut self, messages: usize) -> Vec<Stored> {
        let kept = self.stream.len().saturating_sub(messages);
        let lost = self.stream.split_off(kept);
        self.authors.truncate(kept);
        let foreign = std::mem::take(&mut self.foreign);
        let (foreign, gone) = foreign
            .into_iter()
            .partition(|sequence| *sequence as usize <= kept);
        self.foreign = foreign;
        let lost: Vec<Stored> = lost.into_iter().filter(|one| !is_in(&gone, one)).collect();
        self.ids.retain(|_, sequence| *sequence as usize <= kept);
        self.lasts.clear();
        for one in &self.stream {
            self.lasts.insert(one.subject.clone(), one.sequence);
        }
        lost
    }
}

fn is_in(sequences: &BTreeSet<u64>, stored: &Stored) -> bool {
    sequences.contains(&stored.sequence)
}
