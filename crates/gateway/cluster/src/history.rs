//! History of a shard's journal: its chain up to here, where its epochs begin, and what was lost.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use crate::record::{HomeLine, HomeRecord, JournalHead, KeptEpoch, KeptState, StoredMessage};
use crate::shard::Shard;
use crate::timing::{EPOCHS_KEPT_MAX, HEADS_OF_BEAT_MAX, TOPICS_MAX};

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

/// A snapshot that is whole: a reader may begin at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Snapshot {
    /// The sequence of its first message. No message before it is needed.
    pub(crate) sequence: u64,
    /// The number of that message.
    pub(crate) number: u64,
    /// The place of its last message, and the sequence of that.
    pub(crate) end: JournalHead,
    pub(crate) end_sequence: u64,
}

/// A snapshot of which entries are missing yet.
#[derive(Debug, Clone, Copy)]
struct PartialSnapshot {
    sequence: u64,
    number: u64,
    /// The number of the entries that are missing.
    missing: u64,
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
    /// The latest snapshot that is whole.
    pub(crate) snapshot: Option<Snapshot>,
    partial: Option<PartialSnapshot>,
}

impl History {
    /// An empty history that takes what stands before this epoch as it is.
    pub(crate) fn lenient(below: u64) -> Self {
        Self {
            lenient_below: below,
            ..Self::default()
        }
    }

    /// The history from the beginning of a snapshot on.
    pub(crate) fn begun_at<R: HomeLine>(
        stored: &StoredMessage<R>,
        kept: &KeptState,
        lenient_below: u64,
    ) -> Self {
        let mut history = Self::lenient(lenient_below);
        history.take_kept(kept);
        history.note_snapshot(stored);
        (history.head, history.sequence) = (stored.head(), stored.sequence);
        history
    }

    /// The beginning of a snapshot at this place, with so many entries.
    pub(crate) fn kept(&self, entries: usize) -> KeptState {
        KeptState {
            epochs: self.epochs(),
            accepted: self.accepted,
            entries: entries as u64,
            ..KeptState::default()
        }
    }

    fn epochs(&self) -> Vec<KeptEpoch> {
        let more = self.begins.len().saturating_sub(EPOCHS_KEPT_MAX);
        let latest = self.begins.iter().skip(more);
        let epochs = latest.map(|(epoch, begin)| KeptEpoch {
            epoch: *epoch,
            follows: begin.follows,
            sum: begin.sum,
        });
        epochs.collect()
    }

    /// The number of messages since the latest snapshot that is whole.
    pub(crate) fn uncompacted(&self) -> u64 {
        let number = self.snapshot.map_or(0, |snapshot| snapshot.number);
        self.head.number.saturating_sub(number)
    }

    /// Whether a snapshot has begun whose entries are not all here.
    pub(crate) fn is_partial(&self) -> bool {
        self.partial.is_some()
    }

    /// Takes the next message.
    pub(crate) fn take<R: HomeLine>(&mut self, stored: &StoredMessage<R>) -> Result<(), Unfit> {
        let head = stored.head();
        // A beginning that came too late, when the subject of its epoch was purged already.
        if head.epoch < self.head.epoch {
            return Err(Unfit::Old);
        }
        let is_lenient = head.epoch < self.lenient_below;
        if !is_lenient {
            self.check(stored)?;
        }
        self.note_snapshot(stored);
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
            HomeRecord::Kept(kept) => self.take_kept(kept),
        }
        (self.head, self.sequence) = (head, stored.sequence);
        Ok(())
    }

    fn take_kept(&mut self, kept: &KeptState) {
        let begin = |one: &KeptEpoch| {
            let (follows, sum) = (one.follows, one.sum);
            (one.epoch, Begin { follows, sum })
        };
        self.begins = kept.epochs.iter().map(begin).collect();
        self.accepted = self.accepted.max(kept.accepted);
    }

    /// Notes where a snapshot begins, and where it is whole: the messages of an epoch that follow
    /// each other have all its entries.
    fn note_snapshot<R: HomeLine>(&mut self, stored: &StoredMessage<R>) {
        let head = stored.head();
        let follows = (head.epoch, head.number) == (self.head.epoch, self.head.number + 1);
        let partial = match (&stored.message.record, self.partial.take()) {
            (HomeRecord::Kept(kept), _) => Some(PartialSnapshot {
                sequence: stored.sequence,
                number: head.number,
                missing: kept.entries,
            }),
            (HomeRecord::Lines(entries), Some(partial)) if follows => Some(PartialSnapshot {
                missing: partial.missing.saturating_sub(entries.len() as u64),
                ..partial
            }),
            _ => None,
        };
        self.partial = partial.filter(|partial| partial.missing > 0);
        if let Some(whole) = partial.filter(|partial| partial.missing == 0) {
            self.snapshot = Some(Snapshot {
                sequence: whole.sequence,
                number: whole.number,
                end: head,
                end_sequence: stored.sequence,
            });
        }
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
