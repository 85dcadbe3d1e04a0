//! History of a shard's journal: its chain up to here, where its epochs begin, and what was lost.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use crate::record::{HomeLine, HomeRecord, JournalHead, StoredMessage};
use crate::shard::Shard;
use crate::timing::{HEADS_OF_BEAT_MAX, TOPICS_MAX};

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
pub struct KnownHeads {
    all: BTreeMap<Shard, BTreeMap<EpochKey, JournalHead>>,
    /// The shards with places that no heartbeat has said yet.
    new: BTreeSet<Shard>,
    /// The shard whose turn it was last.
    turn: Option<Shard>,
}

impl KnownHeads {
    /// Learns of a place; returns whether it is new. The latest [`HEAD_EPOCHS_MAX`] epochs of a
    /// shard stay.
    pub fn learn(&mut self, shard: &Shard, head: &JournalHead) -> bool {
        if head.number == 0 {
            return false;
        }
        let epochs = self.all.entry(shard.clone()).or_default();
        let key = (head.epoch, head.begun);
        if epochs
            .get(&key)
            .is_some_and(|known| known.number >= head.number)
        {
            return false;
        }
        epochs.insert(key, *head);
        let removed = (epochs.len() > HEAD_EPOCHS_MAX).then(|| epochs.pop_first());
        let is_kept = removed.flatten().is_none_or(|(removed, _)| removed != key);
        if is_kept {
            self.new.insert(shard.clone());
        }
        is_kept
    }

    /// Whether a shard is one of these, or there is room for it.
    pub(crate) fn takes(&self, shard: &Shard) -> bool {
        self.all.len() < TOPICS_MAX || self.all.contains_key(shard)
    }

    /// The places of a shard, by epoch.
    pub(crate) fn of<'k>(&'k self, shard: &Shard) -> impl Iterator<Item = &'k JournalHead> {
        self.all.get(shard).into_iter().flat_map(BTreeMap::values)
    }

    /// All places, by shard and epoch.
    pub fn all(&self) -> impl Iterator<Item = (&Shard, &JournalHead)> {
        let all = self.all.iter();
        all.flat_map(|(shard, epochs)| epochs.values().map(move |head| (shard, head)))
    }

    /// The places that the next heartbeat says: new ones, and those of the next shards in turn.
    pub(crate) fn for_beat(&mut self) -> Vec<(Shard, Vec<JournalHead>)> {
        let mut shards = BTreeSet::new();
        while shards.len() < HEADS_OF_BEAT_MAX
            && let Some(shard) = self.new.pop_first()
        {
            shards.insert(shard);
        }
        let after = self.turn.take().map_or(Bound::Unbounded, Bound::Excluded);
        let later = self.all.range((after.as_ref(), Bound::Unbounded));
        let in_turn: Vec<Shard> = later
            .map(|(shard, _)| shard.clone())
            .take(HEADS_OF_BEAT_MAX)
            .collect();
        // After the last one it begins anew.
        self.turn = (in_turn.len() == HEADS_OF_BEAT_MAX)
            .then(|| in_turn.last().cloned())
            .flatten();
        shards.extend(in_turn);
        let heads = shards.into_iter().map(|shard| {
            let heads = self.of(&shard).copied().collect();
            (shard, heads)
        });
        heads.collect()
    }
}
