//! Log of the simulation: one stream with subjects, compare-and-set appends, ids that are stored
//! once, replicas that lag, and an operator who sets it back to an older state.

use std::collections::BTreeMap;

use cluster::{
    AppendId, AppendResult, CommonEntry, HomeMessage, HomeRecord, LastMessage, Shard, ShardSubject,
    StoredMessage,
};

use crate::line::{Line, Meaning};

pub(crate) type Stored = StoredMessage<Line>;

#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) stream: Vec<Stored>,
    /// The process that appended each message.
    pub(crate) authors: Vec<AppendId>,
    lasts: BTreeMap<ShardSubject, u64>,
    ids: BTreeMap<AppendId, u64>,
}

impl Log {
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

    /// The messages of a shard behind a sequence, at a replica that has so many messages less.
    pub(crate) fn read(&self, shard: &Shard, after: u64, lag: usize) -> Vec<Stored> {
        let known = self.stream.len().saturating_sub(lag);
        let from = (after as usize).min(known);
        let messages = self.stream[from..known].iter();
        messages
            .filter(|one| one.subject.shard == *shard)
            .cloned()
            .collect()
    }

    /// The last message of the highest epoch of a shard.
    pub(crate) fn last(&self, shard: &Shard, lag: usize) -> Option<LastMessage> {
        let known = self.stream.len().saturating_sub(lag);
        let messages = self.stream[..known].iter();
        let messages = messages.filter(|one| one.subject.shard == *shard);
        let last = messages.max_by_key(|one| (one.subject.epoch, one.sequence))?;
        Some(LastMessage {
            head: last.head(),
            sequence: last.sequence,
            fenced: matches!(last.message.record, HomeRecord::Fenced { .. }),
        })
    }

    /// Whether the numbers of a shard's messages follow each other, so that a reader misses none.
    pub(crate) fn is_whole(&self, shard: &Shard) -> bool {
        let messages = self.stream.iter().filter(|one| one.subject.shard == *shard);
        let numbers = messages.map(|one| one.message.number);
        numbers
            .zip(1..)
            .all(|(number, expected)| number == expected)
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
        self.ids.retain(|_, sequence| *sequence as usize <= kept);
        self.lasts.clear();
        for one in &self.stream {
            self.lasts.insert(one.subject.clone(), one.sequence);
        }
        lost
    }
}
