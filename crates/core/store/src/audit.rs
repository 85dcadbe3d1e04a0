//! Audit log: append-only segments of JSON lines in a keyed hash chain, with the head of the chain
//! in a file outside it.
//!
//! One thread writes entries in groups and the head after each group. Every process that can read
//! the directory can query and verify the log. The journal holds the key.

mod chain;
mod config;
mod entry;
mod files;
mod key;
mod link;
mod look;
mod query;
mod redact;
mod removed;
mod retention;
mod tail;
mod verify;
mod writer;

use std::{ops::ControlFlow, path::Path, sync::Arc, time::Duration};

use crate::group::{GroupCommit, OnDurable, QueueLimits, QueuePermit};
use crate::{error::StoreError, file::PeekedJournal, key::SealingKey, writer::JournalWriter};
use chain::{Chain, hex, parse_hex};
pub use chain::{ChainHead, ParseHeadError};
pub use config::{AuditConfig, LogFiles};
pub use entry::{
    AuditEntry, ENTRY_PAYLOAD_BYTES_MAX, ENTRY_TEXT_BYTES_MAX, EntryKind, EntryOrigin, Payloads,
    Policy, RecordedEntry, RecordedRemoval, RecordedVerdict,
};
pub use files::SEGMENT_BYTES_MAX;
use files::{Files, SegmentPart, segment_parts};
use key::{AuditKey, AuditRecord};
use platform::{Mutex, SHARE_OF_POOL, Share, Shares};
use retention::{OnSegment, Retention, RetentionThread};
use writer::{Bodies, LogWriter, Rotation};

pub use link::CallLink;
pub use look::{LOOK_BYTES_MAX, LogPlace, LookEnd, ParsePlaceError, SeenEntry, look_back, look_on};
pub use query::{EntryFilter, EntryQuery, EntryQueryError, FILTER_BYTES_MAX, KindPattern};
pub use redact::{REDACTED, Redaction};
pub use removed::RemovedPart;
pub use retention::REMOVED_AT_ONCE;
pub use tail::{LogTail, TAIL_BYTES_MAX, TAIL_ENTRIES_MAX, TailBatch};
pub use verify::{FINDINGS_MAX, Finding, Removal, Report};

/// Entries that wait for the disk at most, reserved permits included.
pub const AUDIT_PERMITS_MAX: usize = 131_072;

/// Bytes of entries that wait for the disk at most.
pub const AUDIT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The share of one participant in these bytes; of all guests together as well. Each entry counts
/// as [`ENTRY_BYTES`] at least, so that it is a share of the permits too. It is what a gateway at
/// full load writes in about a second, if the disk stalls.
pub const PARTICIPANT_AUDIT_BYTES_MAX: usize = AUDIT_BYTES_MAX / SHARE_OF_POOL;

/// Bytes that one permit counts on the account of its participant: its share of the queue.
pub const ENTRY_BYTES: usize = AUDIT_BYTES_MAX / AUDIT_PERMITS_MAX;

/// The longest time that entries of [`AuditPermit::write`] gather before they are written, in
/// milliseconds: each group costs two syncs, about half a millisecond of CPU time. The log writes
/// sooner at [`AUDIT_GATHER_BYTES`], or when half of the permits are in use.
pub const AUDIT_GATHER_MS: u64 = 50;

/// Bytes of entries at which the log writes at once: about as many as stay in a processor's cache.
pub const AUDIT_GATHER_BYTES: usize = 1024 * 1024;

/// The audit log of one data directory; clones share one log. Dropping the last clone writes all
/// entries.
#[derive(Debug, Clone)]
pub struct AuditLog {
    /// Before the queue: it ends first, and the queue writes what it has left.
    _retention: Option<Arc<RetentionThread>>,
    group: Arc<GroupCommit<Bodies>>,
    policy: Arc<Policy>,
    head: Arc<Mutex<ChainHead>>,
    accounts: Arc<Shares>,
}

/// Permit to write one entry, reserved before the act that the entry records. Released when
/// dropped.
#[derive(Debug)]
pub struct AuditPermit {
    permit: QueuePermit<Bodies>,
    policy: Arc<Policy>,
}

impl AuditLog {
    /// Opens the log beside this journal. `random` becomes its key if it has none yet. Blocks on
    /// the disk.
    ///
    /// A log that does not match its stored head opens too: it receives an entry with
    /// [`RecordedVerdict::Broken`], which every later [`verify`] reports.
    ///
    /// # Errors
    /// [`StoreError::Io`] when a read or write fails, or the key in the journal is malformed.
    pub fn open(
        journal: &JournalWriter,
        random: &[u8; 32],
        now_ms: u64,
        policy: Policy,
        keep: LogFiles,
    ) -> Result<AuditLog, StoreError> {
        let dir = journal.path().ok_or(StoreError::Stopped)?;
        let ledger = journal.ledger::<AuditKey>()?;
        let known = ledger.state(|audit| audit.key.clone());
        let key = known.as_ref().map_or(Ok(*random), |key| parse(dir, key))?;
        let (begun, signals) = OnSegment::new();
        let rotation = Rotation::new(&keep, begun.clone());
        let chain = Chain::new(&key);
        let log = LogWriter::open(Files::at(dir), chain, known.is_some(), now_ms, rotation)?;
        if known.is_none() {
            // Only now: a key in the journal implies that the file of the head exists.
            let key = SealingKey {
                key: hex(&key),
                created_ms: now_ms,
            };
            ledger.append(&[AuditRecord::AuditKey(key)])?;
        }
        let no_thread = |cause| StoreError::io("start a thread for", dir, cause);
        let mut log = AuditLog::on(log, policy).map_err(no_thread)?;
        if keep.removes() {
            let retention = Retention::new(Files::at(dir), Chain::new(&key), keep);
            let write = log.writer_of_members();
            let thread = RetentionThread::start(retention, (begun, signals), write);
            log._retention = Some(Arc::new(thread.map_err(no_thread)?));
        }
        Ok(log)
    }

    /// Writes entries by their members, and waits until they are durable. It does not keep the log
    /// open.
    fn writer_of_members(&self) -> retention::WriteMembers {
        let group = Arc::downgrade(&self.group);
        Box::new(move |entries| {
            let group = group.upgrade().ok_or(StoreError::Stopped)?;
            for members in entries {
                let permit = group.reserve_beyond_limits();
                permit.fill(None, |bodies| bodies.add_members(members));
            }
            group.flush()
        })
    }

    fn on(log: LogWriter, policy: Policy) -> std::io::Result<AuditLog> {
        let head = Arc::clone(&log.durable_head);
        let limits = QueueLimits {
            permits_max: AUDIT_PERMITS_MAX,
            bytes_max: AUDIT_BYTES_MAX,
            gather: Duration::from_millis(AUDIT_GATHER_MS),
            gather_bytes: AUDIT_GATHER_BYTES,
        };
        let group = Arc::new(GroupCommit::start("audit", log, limits)?);
        // All together are bounded by the queue itself.
        let accounts = Shares::new(usize::MAX, PARTICIPANT_AUDIT_BYTES_MAX);
        Ok(AuditLog {
            _retention: None,
            group,
            policy: Arc::new(policy),
            head,
            accounts,
        })
    }

    /// The account of a participant: its share of what waits for the disk.
    #[must_use]
    pub fn account(&self, holder: &str) -> Arc<Share> {
        self.accounts.of(holder)
    }

    /// Reserves a permit for one entry on the account of the participant that acts.
    ///
    /// # Errors
    /// [`StoreError::Share`] when its share is full, else as [`AuditLog::reserve`].
    pub fn reserve_on(&self, account: &Arc<Share>) -> Result<AuditPermit, StoreError> {
        let taken = account.take(ENTRY_BYTES).map_err(|_| StoreError::Share)?;
        let permit = self.group.reserve()?.on(taken, ENTRY_BYTES);
        Ok(AuditPermit {
            permit,
            policy: Arc::clone(&self.policy),
        })
    }

    /// Reserves a permit for one entry.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when [`AUDIT_PERMITS_MAX`] or [`AUDIT_BYTES_MAX`] is reached,
    /// [`StoreError::Stopped`] after a failed write, [`StoreError::Paused`] while a file cannot be
    /// opened.
    pub fn reserve(&self) -> Result<AuditPermit, StoreError> {
        Ok(AuditPermit {
            permit: self.group.reserve()?,
            policy: Arc::clone(&self.policy),
        })
    }

    /// Blocks until all earlier entries are durable.
    ///
    /// # Errors
    /// [`StoreError::Io`] when a write fails, [`StoreError::Stopped`] after that,
    /// [`StoreError::Paused`] while a file cannot be opened.
    pub fn flush(&self) -> Result<(), StoreError> {
        self.group.flush()
    }

    /// Head of the chain after the last durable entry.
    #[must_use]
    pub fn head(&self) -> ChainHead {
        *self.head.lock()
    }

    /// Entries that wait for the disk, reserved permits included.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.group.permits()
    }

    /// The error that stopped the log; `None` while it works. For readiness checks and logs: it can
    /// name paths.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        self.group.failure()
    }
}

impl AuditPermit {
    /// Whether the log has anything of payloads.
    pub(crate) fn keeps_payloads(&self) -> bool {
        self.policy.keeps_payloads()
    }

    /// Writes an entry within [`AUDIT_GATHER_MS`].
    pub fn write(self, entry: &AuditEntry<'_>) {
        self.fill(None, entry);
    }

    /// Writes an entry at once. `on_durable` runs on the writing thread when the entry is durable
    /// or its write has failed; it must be short and must not block.
    pub fn write_then(
        self,
        entry: &AuditEntry<'_>,
        on_durable: impl FnOnce(Result<(), StoreError>) + Send + 'static,
    ) {
        self.fill(Some(Box::new(on_durable)), entry);
    }

    fn fill(self, on_durable: Option<OnDurable>, entry: &AuditEntry<'_>) {
        let payload = self.policy.apply(entry.payload);
        self.permit
            .fill(on_durable, |bodies| bodies.add(entry, &payload));
    }
}

/// Verifies the whole log of a data directory, also while a gateway writes it. `expected` is an
/// earlier head that the operator kept elsewhere. Returns `None` when the directory never had a
/// log.
///
/// # Errors
/// [`StoreError::Io`] when the log cannot be read, [`StoreError::Damaged`] when the journal cannot
/// be read.
pub fn verify(dir: &Path, expected: Option<ChainHead>) -> Result<Option<Report>, StoreError> {
    let files = Files::at(dir);
    let known = PeekedJournal::read(dir)?.fold::<AuditKey>()?.key;
    let key = match known {
        Some(key) => parse(dir, &key)?,
        None if files.firsts()?.is_empty() => return Ok(None),
        // The key is lost: no segment can be verified.
        None => [0; 32],
    };
    verify::verify(&files, &Chain::new(&key), true, expected).map(Some)
}

/// The bytes of all segments of the log of a data directory.
///
/// # Errors
/// [`StoreError::Io`] when the log cannot be read.
pub fn log_bytes(dir: &Path) -> Result<u64, StoreError> {
    let files = Files::at(dir);
    let firsts = files.firsts()?;
    firsts.into_iter().map(|first| files.bytes(first)).sum()
}

/// Calls `each` with every entry that matches the filter and with its line, oldest first, until it
/// returns `Break`. Skips lines that are not entries; [`verify`] reports them.
///
/// # Errors
/// [`StoreError::Io`] when the log cannot be read.
pub fn query(
    dir: &Path,
    filter: &EntryFilter,
    mut each: impl FnMut(&RecordedEntry<'_>, &str) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    let files = Files::at(dir);
    for first in files.firsts()? {
        let text = files.segment(first)?;
        for part in segment_parts(&text) {
            let SegmentPart::Whole(line) = part else {
                continue;
            };
            let Ok(line) = std::str::from_utf8(line) else {
                continue;
            };
            let Ok(entry) = serde_json::from_str::<RecordedEntry<'_>>(line) else {
                continue;
            };
            if filter.matches(&entry) && each(&entry, line).is_break() {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn parse(dir: &Path, key: &SealingKey) -> Result<[u8; 32], StoreError> {
    let no_key = || {
        StoreError::io(
            "use the audit key in",
            dir,
            std::io::ErrorKind::InvalidData.into(),
        )
    };
    parse_hex(key.key.as_bytes()).ok_or_else(no_key)
}

#[cfg(test)]
mod tests;
