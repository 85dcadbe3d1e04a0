//! Readings of a journal of which a part may have been purged: where a reader begins.

use crate::history::{History, Unfit};
use crate::record::{CommonEntry, HomeLine, HomeRecord, StoredMessage};

/// The place in a reading at which a reader begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadingStart {
    /// Its first message.
    First,
    /// The first message of a snapshot that is whole.
    Snapshot {
        /// The index of that message.
        at: usize,
        /// The number of the snapshot's messages.
        messages: usize,
    },
    /// None: the end of a snapshot is not there yet, at the replica that was read.
    Nowhere,
}

/// The extent of a snapshot in a reading.
enum Extent {
    Whole(usize),
    /// The reading ends within it.
    Cut,
    /// It never was whole.
    Abandoned,
}

impl ReadingStart {
    /// The start for a reader with this history. One that has nothing begins at the latest snapshot
    /// that is whole; so does one for which messages are missing: those before a snapshot that is
    /// whole may be purged. Anything else that does not fit is found by those who take the messages.
    pub(crate) fn of<R: HomeLine>(history: &History, messages: &[StoredMessage<R>]) -> Self {
        let has_gap = has_gap(history.clone(), messages);
        if !has_gap && history.head.number > 0 {
            return Self::First;
        }
        // Sealed messages can be appended once more by one who cannot write others: the latest
        // snapshot is the one with the highest place, where that stands first.
        let mut latest = (history.head.epoch, history.head.number);
        let mut start = Self::First;
        for (at, stored) in messages.iter().enumerate() {
            let place = (stored.subject.epoch, stored.message.number);
            if place <= latest {
                continue;
            }
            match extent(messages.get(at..).unwrap_or_default()) {
                Some(Extent::Whole(messages)) => {
                    (latest, start) = (place, Self::Snapshot { at, messages });
                }
                Some(Extent::Cut) if has_gap && start == Self::First => start = Self::Nowhere,
                _ => {}
            }
        }
        start
    }
}

/// Whether the first of these messages that does not fit does so because others are missing.
fn has_gap<R: HomeLine>(mut history: History, messages: &[StoredMessage<R>]) -> bool {
    let mut unfit = messages.iter().filter_map(|one| history.take(one).err());
    unfit.find(|unfit| *unfit != Unfit::Old) == Some(Unfit::Gap)
}

/// The extent of the snapshot that begins with the first of these messages, if one does.
fn extent<R: HomeLine>(messages: &[StoredMessage<R>]) -> Option<Extent> {
    let (first, rest) = messages.split_first()?;
    let HomeRecord::Kept(kept) = &first.message.record else {
        return None;
    };
    let mut history = History::begun_at(first, kept, 0);
    let mut count = 1;
    for stored in rest {
        if !history.is_partial() {
            break;
        }
        match history.take(stored) {
            Ok(()) | Err(Unfit::Old) => count += 1,
            Err(Unfit::Gap | Unfit::Broken) => return Some(Extent::Abandoned),
        }
    }
    Some(match history.snapshot {
        Some(_) => Extent::Whole(count),
        None if history.is_partial() => Extent::Cut,
        None => Extent::Abandoned,
    })
}

/// A topic's journal as a reading has it.
#[derive(Debug)]
pub(crate) struct TopicReading<R> {
    pub(crate) history: History,
    /// Its lines, from the latest snapshot on.
    pub(crate) lines: Vec<R>,
    /// Whether messages are missing, or do not fit each other.
    pub(crate) is_broken: bool,
}

impl<R: HomeLine> TopicReading<R> {
    /// The reading of a whole journal; what stands before this epoch is taken as it is.
    pub(crate) fn of(lenient_below: u64, messages: &[StoredMessage<R>]) -> Self {
        let mut read = Self {
            history: History::lenient(lenient_below),
            lines: Vec::new(),
            is_broken: false,
        };
        let start = ReadingStart::of(&read.history, messages);
        let rest = match start {
            ReadingStart::First => messages,
            ReadingStart::Snapshot { at, .. } => messages.get(at..).unwrap_or_default(),
            ReadingStart::Nowhere => &[],
        };
        for (index, stored) in rest.iter().enumerate() {
            match &stored.message.record {
                HomeRecord::Kept(kept) if index == 0 && start != ReadingStart::First => {
                    read.history = History::begun_at(stored, kept, lenient_below);
                }
                _ => read.take(stored),
            }
        }
        read
    }

    fn take(&mut self, stored: &StoredMessage<R>) {
        let taken = self.history.take(stored);
        let is_late = taken == Err(Unfit::Old) && stored.subject.epoch < self.history.head.epoch;
        self.is_broken |= taken.is_err() && !is_late;
        if let (Ok(()), HomeRecord::Lines(entries)) = (taken, &stored.message.record) {
            let lines = entries.iter().filter_map(CommonEntry::line);
            self.lines.extend(lines.cloned());
        }
    }
}
