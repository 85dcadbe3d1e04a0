//! Log of the simulation: one stream with subjects, compare-and-set appends, ids that are stored
//! once, purges, replicas that lag, and an operator who sets it back to an older state.

use std::collections::{BTreeMap, BTreeSet};

use cluster::{
    AppendId, AppendResult, CommonEntry, HomeMessage, HomeRecord, JournalHead, LastMessage,
    NodeLife, Shard, ShardSubject, StoredMessage,
};

use crate::line::{Line, Meaning};
use crate::node::{TokenUse, topic};

pub(crate) type Stored = StoredMessage<Line>;

/// The messages of a shard before a sequence were removed when the stream had so many.
#[derive(Debug)]
struct Purge {
    at: usize,
    shard: Shard,
    from: u64,
}

/// A purge as a home asks for it.
#[derive(Debug, Clone)]
pub(crate) struct WantedPurge {
    pub(crate) shard: Shard,
    pub(crate) epoch: u64,
    pub(crate) before: u64,
    pub(crate) end: JournalHead,
    pub(crate) end_sequence: u64,
}

/// Two pages of a reading: how many messages each replica has less, and how many messages the first
/// page has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pages {
    pub(crate) lags: [usize; 2],
    pub(crate) length: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Log {
    /// All messages that were appended, also those that are removed.
    pub(crate) stream: Vec<Stored>,
    purges: Vec<Purge>,
    /// The sequence below which a server has removed a part of a shard's messages, as it crashed.
    purged_in_part: BTreeMap<Shard, u64>,
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

    /// The sequence from which on the messages of a shard are there, at a replica that has had so
    /// many messages of the stream.
    fn from(&self, shard: &Shard, known: usize) -> u64 {
        let purges = self.purges.iter();
        let purges = purges.filter(|purge| purge.at <= known && purge.shard == *shard);
        purges.map(|purge| purge.from).max().unwrap_or(1)
    }

    /// The messages of a shard at a replica that has had so many messages of the stream.
    fn of(&self, shard: &Shard, known: usize) -> impl Iterator<Item = &Stored> {
        let from = self.from(shard, known) as usize;
        let messages = self.stream[..known].iter().skip(from - 1);
        messages.filter(move |one| one.subject.shard == *shard)
    }

    /// The messages of a shard that are there.
    fn here(&self, shard: &Shard) -> impl Iterator<Item = &Stored> {
        self.of(shard, self.stream.len())
    }

    /// The messages of a shard behind a sequence, each page of them at another replica.
    pub(crate) fn read(&self, shard: &Shard, after: u64, pages: Pages) -> Vec<Stored> {
        let [first, second] = pages.lags.map(|lag| self.stream.len().saturating_sub(lag));
        let behind = |known: usize, after: u64| {
            let all = self.of(shard, known);
            all.filter(move |one| one.sequence > after).cloned()
        };
        let mut read: Vec<Stored> = behind(first, after).take(pages.length).collect();
        if let Some(last) = read.last().map(|last| last.sequence) {
            read.extend(behind(second, last));
        }
        read.retain(|one| self.is_own(one));
        read
    }

    /// Whether the end of a snapshot is in its place, and no later epoch than that of the home has
    /// begun.
    pub(crate) fn has_end(&self, wanted: &WantedPurge) -> bool {
        let end = self.stream.get(wanted.end_sequence as usize - 1);
        let is_there = |end: &Stored| end.head() == wanted.end && end.subject.shard == wanted.shard;
        let own = self.here(&wanted.shard).filter(|one| self.is_own(one));
        let latest = own.map(|one| one.subject.epoch).max();
        end.is_some_and(is_there) && latest <= Some(wanted.epoch)
    }

    /// Whether a snapshot that is whole stands behind all that was ever removed of a shard.
    pub(crate) fn is_covered(&self, shard: &Shard) -> bool {
        let from = self.from(shard, self.stream.len());
        let mut removed = self.stream.iter().take(from as usize - 1);
        let own = self.here(shard).filter(|one| self.is_own(one));
        let own: Vec<&Stored> = own.collect();
        !removed.any(|one| one.subject.shard == *shard && self.is_own(one))
            || (0..own.len()).any(|at| is_snapshot(&own[at..]))
    }

    /// Removes the messages of a shard before a snapshot; but those alone before `from` if a server
    /// crashes there. Returns the subjects that have none any more.
    pub(crate) fn purge(&mut self, wanted: &WantedPurge, from: u64) -> Vec<ShardSubject> {
        let subjects = self.subjects();
        self.purges.push(Purge {
            at: self.stream.len(),
            shard: wanted.shard.clone(),
            from,
        });
        let in_part = self.purged_in_part.get(&wanted.shard).copied();
        if from < wanted.before {
            let before = in_part.max(Some(wanted.before)).unwrap_or_default();
            self.purged_in_part.insert(wanted.shard.clone(), before);
        } else if in_part <= Some(wanted.before) {
            self.purged_in_part.remove(&wanted.shard);
        }
        self.find_lasts();
        let emptied = subjects
            .into_iter()
            .filter(|subject| !self.lasts.contains_key(subject));
        emptied.collect()
    }

    /// Whether a part of a shard's messages was removed by a server that crashed.
    pub(crate) fn is_purged_in_part(&self, shard: &Shard) -> bool {
        self.purged_in_part.contains_key(shard)
    }

    /// Finds the last message of each subject anew.
    fn find_lasts(&mut self) {
        let mut lasts = BTreeMap::new();
        for shard in [Shard::Common, topic()] {
            lasts.extend(
                self.here(&shard)
                    .map(|one| (one.subject.clone(), one.sequence)),
            );
        }
        self.lasts = lasts;
    }

    /// The last message of the highest epoch of a shard.
    pub(crate) fn last(&self, shard: &Shard, lag: usize) -> Option<LastMessage> {
        let known = self.stream.len().saturating_sub(lag);
        let own = self.of(shard, known).filter(|one| self.is_own(one));
        let last = own.max_by_key(|one| (one.subject.epoch, one.sequence))?;
        let of_subject = self
            .of(shard, known)
            .filter(|one| one.subject == last.subject);
        Some(LastMessage {
            head: last.head(),
            sequence: of_subject.map(|one| one.sequence).max()?,
            fenced: matches!(last.message.record, HomeRecord::Fenced { .. }),
        })
    }

    /// Whether the numbers of a shard's messages follow each other, from the first one or from the
    /// latest snapshot on, so that a reader misses none.
    pub(crate) fn is_whole(&self, shard: &Shard) -> bool {
        let own = self.here(shard).filter(|one| self.is_own(one));
        let mut messages: Vec<&Stored> = own.collect();
        // A beginning that came too late is none.
        let mut latest = 0;
        messages.retain(|one| {
            let is_next = one.message.number > latest;
            latest = latest.max(one.message.number);
            is_next
        });
        let starts = (0..messages.len()).rev();
        let mut whole = starts.filter(|at| is_snapshot(&messages[*at..]));
        let from = whole.next();
        let first = from.map_or(1, |at| messages[at].message.number);
        let numbers = messages[from.unwrap_or_default()..].iter();
        let numbers = numbers.map(|one| one.message.number);
        numbers
            .zip(first..)
            .all(|(number, expected)| number == expected)
    }

    /// Whether a later use of the refresh token than this one was recorded.
    pub(crate) fn has_flight_after(&self, renewal: &TokenUse) -> bool {
        self.here(&Shard::Common).any(|one| {
            let HomeRecord::Lines(entries) = &one.message.record else {
                return false;
            };
            entries.iter().any(|entry| match entry {
                CommonEntry::Renewing { account } => {
                    **account == *renewal.account && one.message.number > renewal.flight
                }
                CommonEntry::Used {
                    account, flight, ..
                } => **account == *renewal.account && *flight > renewal.flight,
                _ => false,
            })
        })
    }

    /// Whether a line stands in the stream, and is not removed.
    pub(crate) fn has(&self, meaning: Meaning) -> bool {
        let shards = [Shard::Common, topic()];
        let mut here = shards.iter().flat_map(|shard| self.here(shard));
        here.any(|one| match &one.message.record {
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
        self.purges.retain(|purge| purge.at <= kept);
        self.find_lasts();
        lost
    }
}

/// Whether these messages begin with a snapshot that is whole.
fn is_snapshot(messages: &[&Stored]) -> bool {
    let HomeRecord::Kept(kept) = &messages[0].message.record else {
        return false;
    };
    let follow = messages.iter().zip(messages[0].message.number..);
    let follow = follow
        .skip(1)
        .map_while(|(one, number)| match &one.message.record {
            HomeRecord::Lines(entries)
                if one.message.number == number && one.subject == messages[0].subject =>
            {
                Some(entries.len() as u64)
            }
            _ => None,
        });
    follow.sum::<u64>() >= kept.entries
}

fn is_in(sequences: &BTreeSet<u64>, stored: &Stored) -> bool {
    sequences.contains(&stored.sequence)
}
