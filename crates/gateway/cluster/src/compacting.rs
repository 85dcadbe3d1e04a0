//! Compaction of a journal: its home writes what is in force, and has what is before removed from
//! the log.

use crate::effect::{HomeEffect, NotStored};
use crate::history::Snapshot;
use crate::home::{Home, NextRecord, Purging};
use crate::homes::Homes;
use crate::queue::{Compacting, Queued};
use crate::record::{CommonEntry, HomeLine, HomeRecord, KeptState, StoredMessage};
use crate::shard::Shard;
use crate::timing::{GROUP_BYTES_MAX, PURGE_RETRY_MS};

impl<R: HomeLine> Homes<R> {
    /// A snapshot with these lines is to be written.
    pub(crate) fn compact(&mut self, shard: Shard, ticket: u64, lines: Vec<R>) {
        let why = match self.home(&shard) {
            None => Some(NotStored::NotHome),
            // They would come before it, and it does not have them.
            Some(home) if home.has_lines() => Some(NotStored::Busy),
            Some(home) => home.refusal(self.now_ms()),
        };
        if let Some(why) = why {
            return self.push(HomeEffect::NotStored { shard, ticket, why });
        }
        self.enqueue(&shard, Queued::Compaction { ticket, lines });
    }

    /// The beginning of a snapshot at the end of the journal. One that no message takes is refused.
    pub(crate) fn begin_compaction(
        &mut self,
        shard: &Shard,
        compacting: Compacting<R>,
    ) -> Option<NextRecord<R>> {
        let ticket = compacting.ticket;
        let kept = self.kept(shard, compacting.lines.len());
        let Some((kept, home)) = kept.zip(self.home_mut(shard)) else {
            let (shard, why) = (shard.clone(), NotStored::Unavailable);
            self.push(HomeEffect::NotStored { shard, ticket, why });
            return None;
        };
        home.compacting = Some(compacting);
        Some(NextRecord {
            record: HomeRecord::Kept(Box::new(kept)),
            tickets: Vec::new(),
        })
    }

    fn kept(&self, shard: &Shard, lines: usize) -> Option<KeptState> {
        let (home, history) = (self.home(shard)?, self.history(shard)?);
        let kept = match shard {
            Shard::Common => self.common.kept(self.common.flights.len() + lines),
            Shard::Topic(_) => history.kept(lines),
        };
        let fits = history.head == home.head && kept.bytes() <= GROUP_BYTES_MAX;
        fits.then_some(kept)
    }

    /// A message of this home is durable: the entries of a snapshot follow its beginning, and when
    /// the last of them is durable the snapshot is whole.
    pub(crate) fn compaction_stored(&mut self, shard: &Shard, stored: &StoredMessage<R>) {
        if let HomeRecord::Kept(_) = stored.message.record {
            self.queue_entries(shard, stored.sequence);
        }
        let whole = self.history(shard).and_then(|history| history.snapshot);
        let is_whole = |one: &mut Compacting<R>| {
            let sequence = whole.map(|whole| whole.sequence);
            one.sequence.is_some() && one.sequence == sequence
        };
        let home = self.home_mut(shard);
        if let Some(one) = home.and_then(|home| home.compacting.take_if(is_whole)) {
            let (shard, ticket) = (shard.clone(), one.ticket);
            self.push(HomeEffect::Stored { shard, ticket });
        }
        self.purge(shard);
    }

    /// Puts the entries of a snapshot before all that waits.
    fn queue_entries(&mut self, shard: &Shard, sequence: u64) {
        let uses = match shard {
            Shard::Common => self.common.uses(),
            Shard::Topic(_) => Vec::new(),
        };
        let Some(home) = self.home_mut(shard) else {
            return;
        };
        let Some(compacting) = &mut home.compacting else {
            return;
        };
        compacting.sequence = Some(sequence);
        let lines = std::mem::take(&mut compacting.lines);
        let lines: Vec<_> = lines.into_iter().map(CommonEntry::Line).collect();
        for entry in uses.into_iter().chain(lines).rev() {
            home.queue.push_front(Queued::silent(entry));
        }
    }

    /// Has what is before the latest snapshot removed, if that is due.
    pub(crate) fn purge(&mut self, shard: &Shard) {
        let now_ms = self.now_ms();
        let snapshot = self.history(shard).and_then(|history| history.snapshot);
        let home = self.home_mut(shard).filter(|home| home.is_serving());
        let (Some(snapshot), Some(home)) = (snapshot, home) else {
            return;
        };
        if !home.purging.is_due(&snapshot, now_ms) {
            return;
        }
        home.purging = Purging {
            before: snapshot.sequence,
            asked_ms: now_ms,
            is_done: false,
        };
        let effect = HomeEffect::Purge {
            shard: shard.clone(),
            epoch: home.epoch(),
            before: snapshot.sequence,
            end: snapshot.end,
            end_sequence: snapshot.end_sequence,
        };
        self.push(effect);
    }

    /// Notes that the messages before this sequence are removed.
    pub(crate) fn purged(&mut self, shard: &Shard, before: u64) {
        if let Some(home) = self.home_mut(shard) {
            home.purging.is_done |= home.purging.before == before;
        }
    }
}

impl<R: HomeLine> Home<R> {
    /// Whether lines are to be stored that have no answer yet.
    fn has_lines(&self) -> bool {
        let is_sending = self.sending.as_ref().is_some_and(|one| one.has_lines());
        is_sending || self.compacting.is_some() || self.queue.has_lines()
    }
}

impl Purging {
    fn is_due(&self, snapshot: &Snapshot, now_ms: u64) -> bool {
        let is_new = self.before != snapshot.sequence;
        is_new || !self.is_done && self.asked_ms + PURGE_RETRY_MS <= now_ms
    }
}
