//! Journals of shards as subjects of the log, with sealed records.

use std::collections::HashMap;
use std::sync::Arc;

use cluster::{
    AppendId, AppendResult, HomeMessage, HomeRecord, LastMessage, Shard, ShardSubject,
    StoredMessage,
};
use fabric::{
    Append, Appended, ClusterKeys, Log, LogError, MessageId, Record, Sequence, SubjectError,
    SubjectName, token,
};
use platform::Mutex;
use sha2::{Digest as _, Sha256};

use crate::encoding::{read_message, write_message};
use crate::line::ShardLine;

/// An append as the rules want it.
#[derive(Debug)]
pub(crate) struct WantedAppend {
    pub(crate) subject: ShardSubject,
    pub(crate) expected: Sequence,
    pub(crate) id: AppendId,
    pub(crate) message: HomeMessage<ShardLine>,
}

/// The journals of a cluster.
pub(crate) struct Journals {
    log: Arc<dyn Log>,
    keys: ClusterKeys,
    /// The subject above all journals.
    root: SubjectName,
    /// The place of the last record of each shard that was looked at: the next look begins there.
    seen: Mutex<HashMap<Shard, Sequence>>,
}

/// The end of a journal, as far as it was looked at.
#[derive(Debug, Default)]
struct Ending {
    last: Option<LastMessage>,
    /// The last record, of whatever content.
    reach: Sequence,
}

impl Journals {
    /// The journals below `root`.`j`.
    pub(crate) fn new(
        log: Arc<dyn Log>,
        keys: ClusterKeys,
        root: &SubjectName,
    ) -> Result<Self, SubjectError> {
        Ok(Self {
            log,
            keys,
            root: format!("{root}.j").parse()?,
            seen: Mutex::default(),
        })
    }

    /// Tries once to append.
    pub(crate) async fn append(&self, wanted: WantedAppend) -> AppendResult {
        let Ok(subject) = self.subject(&wanted.subject) else {
            return AppendResult::Unknown;
        };
        let id = message_id(wanted.id);
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

    /// The messages of a shard behind a sequence.
    pub(crate) async fn read(
        &self,
        shard: &Shard,
        after: Sequence,
    ) -> Result<Vec<StoredMessage<ShardLine>>, LogError> {
        let mut messages = Vec::new();
        let mut from = after + 1;
        loop {
            let records = self.page(shard, from).await?;
            let Some(last) = records.last() else {
                return Ok(messages);
            };
            from = last.sequence + 1;
            messages.extend(records.iter().filter_map(|record| self.open(shard, record)));
        }
    }

    /// The last message of the highest epoch of a shard.
    pub(crate) async fn look(&self, shard: &Shard) -> Result<Option<LastMessage>, LogError> {
        let seen = self.seen.lock().get(shard).copied();
        let mut ending = Ending::default();
        if let Some(seen) = seen {
            ending = self.ending(shard, seen).await?;
        }
        // What was there is not at this replica, or is gone.
        if ending.last.is_none() {
            ending = self.ending(shard, 1).await?;
        }
        self.seen.lock().insert(shard.clone(), ending.reach.max(1));
        Ok(ending.last)
    }

    async fn ending(&self, shard: &Shard, from: Sequence) -> Result<Ending, LogError> {
        let mut ending = Ending::default();
        let mut from = from;
        loop {
            let records = self.page(shard, from).await?;
            let Some(last) = records.last() else {
                return Ok(ending);
            };
            from = last.sequence + 1;
            records
                .iter()
                .for_each(|record| ending.take(record.sequence, self.open(shard, record)));
        }
    }

    async fn page(&self, shard: &Shard, from: Sequence) -> Result<Vec<Record>, LogError> {
        let subject = self.root.with_name(shard.as_str());
        let subject = subject.map_err(|why| LogError::Unreadable(why.to_string()))?;
        let page = self.log.read(&subject.all_below(), from).await?;
        Ok(page.records)
    }

    fn subject(&self, subject: &ShardSubject) -> Result<SubjectName, SubjectError> {
        let shard = token(subject.shard.as_str());
        format!("{}.{shard}.{}", self.root, subject.epoch).parse()
    }

    /// The message of a record; `None` for one that was not sealed with the cluster's key.
    fn open(&self, shard: &Shard, record: &Record) -> Option<StoredMessage<ShardLine>> {
        let opened = self.opened(shard, record);
        if opened.is_none() {
            let (subject, sequence) = (record.subject.as_str(), record.sequence);
            tracing::warn!(
                subject,
                sequence,
                "a record of the log is not the cluster's"
            );
        }
        opened
    }

    fn opened(&self, shard: &Shard, record: &Record) -> Option<StoredMessage<ShardLine>> {
        let (_, epoch) = record.subject.as_str().rsplit_once('.')?;
        let subject = ShardSubject {
            shard: shard.clone(),
            epoch: epoch.parse().ok()?,
        };
        let is_named = self.subject(&subject).ok()? == record.subject;
        let content = self.keys.open_record(record).filter(|_| is_named)?;
        Some(StoredMessage {
            subject,
            sequence: record.sequence,
            message: read_message(&content.into())?,
        })
    }
}

impl Ending {
    fn take(&mut self, sequence: Sequence, stored: Option<StoredMessage<ShardLine>>) {
        self.reach = self.reach.max(sequence);
        let Some(stored) = stored else {
            return;
        };
        let head = stored.head();
        if self.last.is_none_or(|last| last.head.epoch <= head.epoch) {
            self.last = Some(LastMessage {
                head,
                sequence,
                fenced: matches!(stored.message.record, HomeRecord::Fenced { .. }),
            });
        }
    }
}

impl std::fmt::Debug for Journals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Journals({})", self.root)
    }
}

/// The name of an append in the log.
pub(crate) fn message_id(id: AppendId) -> MessageId {
    let hash = Sha256::new()
        .chain_update("portmoot append 1")
        .chain_update(id.incarnation.directory.to_le_bytes())
        .chain_update(id.incarnation.life.to_le_bytes())
        .chain_update(id.number.to_le_bytes())
        .finalize();
    let mut name = [0; 16];
    name.iter_mut().zip(hash).for_each(|(to, from)| *to = from);
    MessageId(name)
}
