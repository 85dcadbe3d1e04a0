//! History of a shard's journal: its chain up to here, where its epochs begin, and what was lost.

use std::collections::BTreeMap;

use crate::record::{HomeLine, HomeRecord, JournalHead, StoredMessage};
use crate::shard::Shard;

/// The most epochs of a shard of which a head is kept.
pub const HEAD_EPOCHS_MAX: usize = 4;

/// A message does not fit the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unfit {
    /// Messages are missing between.
    Gap,
    /// It was taken already.
    Old,
    /// Its chain is another one.
    Broken,
}

/// The beginning of an epoch.
#[derive(Debug, Clone, Copy)]
struct Begin {
    follows: JournalHead,
    sum: [u8; 8],
}

/// The chain of a journal up to a place.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    /// The place of the last message.
    pub(crate) head: JournalHead,
    /// Its sequence in the log.
    pub(crate) sequence: u64,
    /// The epochs that have begun, each with the place that it follows and the sum of its first
    /// message.
    begins: BTreeMap<u64, Begin>,
    /// Whether the last epoch is over.
    pub(crate) fenced: bool,
    /// The place up to which messages were lost, until a person has accepted it.
    pub(crate) lost: Option<JournalHead>,
    /// The last epoch in which a loss was accepted.
    pub(crate) accepted: u64,
    /// Before this epoch a broken chain is taken as it is: a person has accepted it.
    pub(crate) lenient_below: u64,
}

impl History {
    /// An empty history that takes what stands before this epoch as it is.
    pub(crate) fn lenient(below: u64) -> Self {
        Self {
            lenient_below: below,
            ..Self::default()
        }
    }

    /// Takes the next message.
    pub(crate) fn take<R: HomeLine>(&mut self, stored: &StoredMessage<R>) -> Result<(), Unfit> {
        let is_lenient = stored.subject.epoch < self.lenient_below;
        if !is_lenient {
            self.check(stored)?;
        }
        let head = stored.head();
        match &stored.message.record {
            HomeRecord::Begun { follows, .. } => {
                let (follows, sum) = (*follows, head.sum);
                self.begins.insert(head.epoch, Begin { follows, sum });
                self.fenced = false;
            }
            HomeRecord::Fenced { .. } => self.fenced = true,
            HomeRecord::Lost { known } => self.lost = Some(*known),
            HomeRecord::Accepted => {
                self.lost = None;
                self.accepted = head.epoch;
            }
            HomeRecord::Lines(_) => {}
        }
        (self.head, self.sequence) = (head, stored.sequence);
        Ok(())
    }

    fn check<R: HomeLine>(&self, stored: &StoredMessage<R>) -> Result<(), Unfit> {
        let head = stored.head();
        if head.epoch <= self.head.epoch && head.number <= self.head.number {
            return Err(Unfit::Old);
        }
        if head.number > self.head.number + 1 {
            return Err(Unfit::Gap);
        }
        let record = &stored.message.record;
        let fits = match record {
            HomeRecord::Begun { follows, .. } => {
                let may_begin = self.fenced || self.head.number == 0;
                head.epoch == self.head.epoch + 1 && may_begin && *follows == self.head
            }
            _ => head.epoch == self.head.epoch && !self.fenced,
        };
        let is_next = self.head.next(&stored.subject, record) == head;
        // Behind an accepted break the sums begin anew.
        let resumes = self.head.epoch < self.lenient_below;
        if resumes || fits && is_next {
            Ok(())
        } else {
            Err(Unfit::Broken)
        }
    }

    /// Whether a place that was written cannot be in this journal any more: a later epoch follows
    /// another one.
    pub(crate) fn contradicts(&self, known: &JournalHead) -> bool {
        if known.epoch < self.accepted.max(self.lenient_below) {
            return false;
        }
        if (known.epoch, known.number) == (self.head.epoch, self.head.number) {
            return known.sum != self.head.sum;
        }
        let own = self.begins.get(&known.epoch);
        if own.is_some_and(|own| own.sum != known.begun) {
            return true;
        }
        let mut later = self.begins.range(known.epoch + 1..);
        let Some((_, Begin { follows, .. })) = later.next() else {
            return false;
        };
        let is_beyond = (known.epoch, known.number) > (follows.epoch, follows.number);
        let is_last = (known.epoch, known.number) == (follows.epoch, follows.number);
        is_beyond || is_last && known.sum != follows.sum
    }
}

/// The epoch of a place, and the sum of its first message: a log that is set back far enough has
/// several epochs under one number.
type EpochKey = (u64, [u8; 8]);

/// The highest places of journals that are known to have been written, by shard and epoch.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownHeads(BTreeMap<Shard, BTreeMap<EpochKey, JournalHead>>);

impl KnownHeads {
    /// Learns of a place; whether it is new.
    pub(crate) fn learn(&mut self, shard: &Shard, head: &JournalHead) -> bool {
        if head.number == 0 {
            return false;
        }
        if !self.0.contains_key(shard) {
            self.0.insert(shard.clone(), BTreeMap::new());
        }
        let Some(epochs) = self.0.get_mut(shard) else {
            return false;
        };
        let key = (head.epoch, head.begun);
        if epochs
            .get(&key)
            .is_some_and(|known| known.number >= head.number)
        {
            return false;
        }
        epochs.insert(key, *head);
        let removed = (epochs.len() > HEAD_EPOCHS_MAX).then(|| epochs.pop_first());
        removed.flatten().is_none_or(|(removed, _)| removed != key)
    }

    /// The places of a shard, by epoch.
    pub(crate) fn of<'k>(&'k self, shard: &Shard) -> impl Iterator<Item = &'k JournalHead> {
        self.0.get(shard).into_iter().flat_map(BTreeMap::values)
    }

    /// All places.
    pub(crate) fn all(&self) -> Vec<(Shard, Vec<JournalHead>)> {
        let all = self.0.iter();
        all.map(|(shard, epochs)| (shard.clone(), epochs.values().copied().collect()))
            .collect()
    }
}
