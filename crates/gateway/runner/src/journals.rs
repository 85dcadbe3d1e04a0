//! Journals of shards as subjects of the log, with sealed records.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cluster::{
    AppendId, AppendResult, HomeMessage, HomeRecord, JournalHead, LastMessage, NUMBER_MAX, Shard,
    ShardSubject, StoredMessage,
};
use fabric::{
    Append, Appended, ClusterKeys, ClusterSubjects, Log, LogError, MessageId, Page, Record,
    Sequence, SubjectError, SubjectName, SubjectPattern, token,
};
use platform::Mutex;
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;

use crate::encoding::{Content, read_message, write_message};
use crate::line::ShardLine;

/// An append as the rules want it.
#[derive(Debug)]
pub(crate) struct WantedAppend {
    pub(crate) subject: ShardSubject,
    pub(crate) expected: Sequence,
    pub(crate) id: AppendId,
    pub(crate) message: HomeMessage<ShardLine>,
}

/// A purge as the rules want it.
#[derive(Debug, Clone)]
pub(crate) struct WantedPurge {
    pub(crate) shard: Shard,
    /// The epoch of the home.
    pub(crate) epoch: u64,
    pub(crate) before: Sequence,
    /// The last message of the snapshot that stands for what is removed.
    pub(crate) end: JournalHead,
    pub(crate) end_sequence: Sequence,
}

/// The journals of a cluster.
pub(crate) struct Journals {
    log: Arc<dyn Log>,
    keys: ClusterKeys,
    /// The subject above all journals.
    root: SubjectName,
    /// Random for each start, so that no other life has the same names of appends, even one in a
    /// copy of this directory.
    start: [u8; 16],
    /// The latest epoch of each shard that was looked at.
    seen: Mutex<HashMap<Shard, u64>>,
    /// Readings of whole journals at a time.
    readings: Semaphore,
    /// The last record that was said not to be the cluster's.
    warned: AtomicU64,
}

/// The readings of topics' journals at a time: each has a whole journal in memory.
pub(crate) const READS_MAX: usize = 4;

/// The end of a journal, as far as it was looked at.
#[derive(Debug, Default)]
struct Ending {
    last: Option<LastMessage>,
}

/// The end of the highest epoch of some.
enum EpochEnd {
    Nothing,
    Last(LastMessage),
    /// A foreign record is the last one of an epoch.
    Foreign {
        epoch: u64,
        sequence: Sequence,
    },
}

/// A record of the log.
enum Opened {
    Message(StoredMessage<ShardLine>),
    /// It was not sealed with the cluster's keys, or makes no sense: it is none of a journal, but
    /// stands in the way of an append that does not expect it.
    Foreign,
}

impl Journals {
    /// The journals of a cluster.
    pub(crate) fn new(log: Arc<dyn Log>, keys: ClusterKeys, subjects: &ClusterSubjects) -> Self {
        Self {
            log,
            keys,
            root: subjects.journals().clone(),
            start: platform::random(),
            seen: Mutex::default(),
            readings: Semaphore::new(READS_MAX),
            warned: AtomicU64::new(0),
        }
    }

    /// Tries once to append.
    pub(crate) async fn append(&self, wanted: WantedAppend) -> AppendResult {
        let Ok(subject) = self.subject(&wanted.subject) else {
            return AppendResult::Unknown;
        };
        let id = message_id(&self.start, wanted.id);
        let content = write_message(&wanted.message);
        let append = Append {
            bytes: self.keys.seal_record(&subject, id, &content),
            subject,
            expected: wanted.expected,
            id,
        };
        match self.log.append(&append).await {
            Appended::At(sequence) => AppendResult::Acked { sequence },
            Appended::Fenced(Some(last)) | Appended::Lost(last) => AppendResult::Refused { last },
            Appended::Fenced(None) | Appended::Unknown(_) => AppendResult::Unknown,
            Appended::Refused(why) => {
                tracing::warn!(subject = %append.subject, why, "the log takes no record");
                AppendResult::NotTaken
            }
        }
    }

    /// The messages of a shard behind a sequence. A record of a later version ends the reading
    /// without an answer: this version must not take it for absent.
    pub(crate) async fn read(
        &self,
        shard: &Shard,
        after: Sequence,
    ) -> Result<Vec<StoredMessage<ShardLine>>, LogError> {
        let _turn = match shard {
            // All nodes follow it, also while topics are taken over.
            Shard::Common => None,
            Shard::Topic(_) => self.readings.acquire().await.ok(),
        };
        let mut messages = Vec::new();
        let mut from = after.saturating_add(1);
        loop {
            let page = self.page(shard, from).await?;
            if page.next <= from {
                return Ok(messages);
            }
            from = page.next;
            for record in &page.records {
                if let Opened::Message(stored) = self.open(shard, record)? {
                    messages.push(stored);
                }
            }
        }
    }

    /// Removes the messages of a shard before a snapshot. If the end of that is not in its place,
    /// nothing is removed: the log was set back, or the part of it that was asked lags. Nor is
    /// anything removed for a home that is deposed.
    pub(crate) async fn purge(&self, wanted: &WantedPurge) -> Result<(), LogError> {
        let WantedPurge {
            shard,
            epoch,
            before,
            end,
            end_sequence,
        } = wanted;
        let last = self.look(shard).await?;
        if last.is_none_or(|last| last.head.epoch > *epoch) {
            let why = format!("epoch {epoch} is not the latest");
            return Err(LogError::Unavailable(why));
        }
        let page = self.page(shard, *end_sequence).await?;
        let first = page.records.first().ok_or(LogError::Behind {
            read: end_sequence.saturating_sub(1),
            wanted: *end_sequence,
        })?;
        let is_end = |stored: &StoredMessage<ShardLine>| {
            (stored.head(), stored.sequence) == (*end, *end_sequence)
        };
        if !matches!(self.open(shard, first)?, Opened::Message(stored) if is_end(&stored)) {
            let why = format!("record {end_sequence} is not the end of the snapshot");
            return Err(LogError::Unavailable(why));
        }
        self.log.purge(&self.all_of(shard)?, *before).await
    }

    /// The last message of the highest epoch of a shard.
    pub(crate) async fn look(&self, shard: &Shard) -> Result<Option<LastMessage>, LogError> {
        let seen = self.seen.lock().get(shard).copied();
        let mut found = EpochEnd::Nothing;
        if let Some(epoch) = seen {
            found = self.end_from(shard, epoch).await?;
        }
        let last = match found {
            // A beginning may have come when its epoch, and the next ones, were purged already.
            EpochEnd::Last(last) if last.head.sum != last.head.begun => Some(last),
            // What was there is not at this replica, or is gone, or is behind a foreign record.
            _ => self.searched(shard).await?,
        };
        if let Some(last) = last {
            self.seen.lock().insert(shard.clone(), last.head.epoch);
        }
        Ok(last)
    }

    /// The last message of the highest epoch, from all records. A page does not have each foreign
    /// one, but an append behind it has to expect it.
    async fn searched(&self, shard: &Shard) -> Result<Option<LastMessage>, LogError> {
        let Some(mut last) = self.ending(shard).await? else {
            return Ok(None);
        };
        match self.end_from(shard, last.head.epoch).await? {
            EpochEnd::Last(later) if later.head > last.head => last = later,
            EpochEnd::Foreign { epoch, sequence } if epoch == last.head.epoch => {
                last.sequence = last.sequence.max(sequence);
            }
            _ => {}
        }
        Ok(Some(last))
    }

    /// The end of the highest epoch from this one on.
    async fn end_from(&self, shard: &Shard, epoch: u64) -> Result<EpochEnd, LogError> {
        let mut end = EpochEnd::Nothing;
        let mut subject = ShardSubject {
            shard: shard.clone(),
            epoch,
        };
        loop {
            let name = self.subject(&subject);
            let name = name.map_err(|why| LogError::Unreadable(why.to_string()))?;
            let Some(record) = self.log.last(&name).await? else {
                return Ok(end);
            };
            let (epoch, sequence) = (subject.epoch, record.sequence);
            let Opened::Message(stored) = self.open(shard, &record)? else {
                return Ok(EpochEnd::Foreign { epoch, sequence });
            };
            end = EpochEnd::Last(last_message(&stored, sequence));
            subject.epoch = subject.epoch.saturating_add(1);
        }
    }

    async fn ending(&self, shard: &Shard) -> Result<Option<LastMessage>, LogError> {
        let mut ending = Ending::default();
        let mut from = 1;
        loop {
            let page = self.page(shard, from).await?;
            if page.next <= from {
                return Ok(ending.last);
            }
            from = page.next;
            for record in &page.records {
                let opened = self.open(shard, record)?;
                ending.take(record, self.epoch_of(shard, record), opened);
            }
        }
    }

    async fn page(&self, shard: &Shard, from: Sequence) -> Result<Page, LogError> {
        self.log.read(&self.all_of(shard)?, from).await
    }

    /// The subjects of all epochs of a shard.
    fn all_of(&self, shard: &Shard) -> Result<SubjectPattern, LogError> {
        let subject = self.root.with_name(shard.as_str());
        let subject = subject.map_err(|why| LogError::Unreadable(why.to_string()))?;
        Ok(subject.all_below())
    }

    fn subject(&self, subject: &ShardSubject) -> Result<SubjectName, SubjectError> {
        let shard = token(subject.shard.as_str());
        format!("{}.{shard}.{}", self.root, subject.epoch).parse()
    }

    /// The message of a record.
    fn open(&self, shard: &Shard, record: &Record) -> Result<Opened, LogError> {
        let sequence = record.sequence;
        match self.opened(shard, record) {
            Some(Content::Read(stored)) => return Ok(Opened::Message(stored)),
            Some(Content::Later) => {
                let why = format!("record {sequence} was written by a later version of Portmoot");
                return Err(LogError::Unreadable(why));
            }
            Some(Content::Damaged) | None => {}
        }
        // Journals are read again and again.
        if self.warned.fetch_max(sequence, Ordering::Relaxed) < sequence {
            let subject = record.subject.as_str();
            tracing::warn!(
                subject,
                sequence,
                "a record of the log is not the cluster's"
            );
        }
        Ok(Opened::Foreign)
    }

    fn opened(&self, shard: &Shard, record: &Record) -> Option<Content<StoredMessage<ShardLine>>> {
        let subject = ShardSubject {
            shard: shard.clone(),
            epoch: self.epoch_of(shard, record)?,
        };
        let content = self.keys.open_record(record)?;
        let stored = |message| StoredMessage {
            subject,
            sequence: record.sequence,
            message,
        };
        Some(read_message(&content.into()).map(stored))
    }

    /// The epoch that the subject of a record names.
    fn epoch_of(&self, shard: &Shard, record: &Record) -> Option<u64> {
        let (_, epoch) = record.subject.as_str().rsplit_once('.')?;
        let epoch: u64 = epoch.parse().ok()?;
        let subject = ShardSubject {
            shard: shard.clone(),
            epoch,
        };
        let is_named = self.subject(&subject).ok()? == record.subject;
        (is_named && epoch <= NUMBER_MAX).then_some(epoch)
    }
}

fn last_message(stored: &StoredMessage<ShardLine>, sequence: Sequence) -> LastMessage {
    LastMessage {
        head: stored.head(),
        sequence,
        fenced: matches!(stored.message.record, HomeRecord::Fenced { .. }),
    }
}

impl Ending {
    fn take(&mut self, record: &Record, epoch: Option<u64>, opened: Opened) {
        match (opened, &mut self.last) {
            (Opened::Message(stored), last) => {
                let epoch = stored.subject.epoch;
                if last.is_none_or(|last| last.head.epoch <= epoch) {
                    *last = Some(last_message(&stored, record.sequence));
                }
            }
            // An append behind it has to expect it.
            (Opened::Foreign, Some(last)) if epoch == Some(last.head.epoch) => {
                last.sequence = record.sequence;
            }
            (Opened::Foreign, _) => {}
        }
    }
}

impl std::fmt::Debug for Journals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Journals({})", self.root)
    }
}

/// The name of an append in the log.
fn message_id(start: &[u8; 16], id: AppendId) -> MessageId {
    let hash = Sha256::new()
        .chain_update("portmoot append 2")
        .chain_update(start)
        .chain_update(id.incarnation.directory.to_le_bytes())
        .chain_update(id.incarnation.life.to_le_bytes())
        .chain_update(id.number.to_le_bytes())
        .finalize();
    let mut name = [0; 16];
    name.iter_mut().zip(hash).for_each(|(to, from)| *to = from);
    MessageId(name)
}
