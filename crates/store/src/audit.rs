//! The audit log, for people: append-only segments of JSON lines in a keyed hash chain, whose head is also kept outside it.
//!
//! Written by one thread in groups, a head after each group; read by anybody who may read the directory. The key is in the
//! journal. Must not know what an entry means.

mod chain;
mod entry;
mod files;
mod log;
mod query;
mod redact;
mod verify;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use crate::disk::{Disk, Folder};
use crate::error::StoreError;
use crate::group::{Bounds, Group, Place, Told};
use crate::journal::Journal;
use crate::record::{Record, SealingKey};
use crate::writer::Writer;
use chain::{Chain, hex, unhex};
use files::{FOLDER, Files, Piece, on, pieces};
use log::{Bodies, Log};
use platform::Mutex;

pub use chain::{Head, NoHead};
pub use entry::{
    ENTRY_PAYLOAD_BYTES_MAX, ENTRY_TEXT_BYTES_MAX, Entry, Payloads, Policy, Recorded, Verdict, What,
};
pub use log::SEGMENT_BYTES_MAX;
pub use query::{Filter, Kinds};
pub use redact::REDACTED;
pub use verify::{FINDINGS_MAX, Finding, Report};

/// Entries that may wait for the disk, reserved places included.
pub const AUDIT_PLACES_MAX: usize = 65_536;

/// Bytes of entries that may wait for the disk.
pub const AUDIT_BYTES_MAX: usize = 32 * 1024 * 1024;

/// How long entries that nobody waits for gather before they are written, milliseconds: each group costs two syncs, about
/// half a millisecond of CPU time. They are written sooner at [`AUDIT_GATHER_BYTES`], or when half of the places are taken.
pub const AUDIT_GATHER_MS: u64 = 50;

/// So many bytes of entries gather no longer: about what stays in a processor's cache.
pub const AUDIT_GATHER_BYTES: usize = 1024 * 1024;

/// The audit log of one data directory; clones are the same log. What waits is written when the last one is dropped.
#[derive(Debug, Clone)]
pub struct Audit {
    group: Arc<Group<Bodies>>,
    policy: Arc<Policy>,
    head: Arc<Mutex<Head>>,
}

/// A place in the audit log's queue, kept free before a step. Given back when dropped.
pub struct AuditPlace {
    place: Place<Bodies>,
    policy: Arc<Policy>,
}

impl Audit {
    /// Opens the log beside this journal. `random` becomes its key where it has none yet. Blocks on the disk.
    ///
    /// What does not fit the head that was kept does not stop it: it is written into the log, and every later
    /// [`verify`] tells it.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the disk refuses, [`StoreError::Damaged`] when the journal's key is no key.
    pub fn open(
        journal: &Writer,
        random: &[u8; 32],
        now_ms: u64,
        policy: Policy,
    ) -> Result<Audit, StoreError> {
        let dir = journal.path().ok_or(StoreError::Stopped)?;
        let known = journal.state(|state| state.audit_key().cloned());
        let key = known.as_ref().map_or(Ok(*random), |key| parse(dir, key))?;
        let log = Log::open(at(dir), Chain::new(&key), known.is_some(), now_ms, SEGMENT_BYTES_MAX)?;
        if known.is_none() {
            // After the head is there: a key in the journal says that there must be one.
            let key = SealingKey { key: hex(&key), created_ms: now_ms };
            journal.append(&[Record::AuditKey(key)])?;
        }
        Audit::on(log, policy).map_err(|cause| crate::directory::io("start a thread for", dir, cause))
    }

    fn on(log: Log, policy: Policy) -> std::io::Result<Audit> {
        let head = log.shown();
        let bounds = Bounds {
            places_max: AUDIT_PLACES_MAX,
            bytes_max: AUDIT_BYTES_MAX,
            gather: Duration::from_millis(AUDIT_GATHER_MS),
            gather_bytes: AUDIT_GATHER_BYTES,
        };
        let group = Arc::new(Group::start("audit", log, bounds)?);
        Ok(Audit { group, policy: Arc::new(policy), head })
    }

    /// Keeps room for one entry.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when [`AUDIT_PLACES_MAX`] or [`AUDIT_BYTES_MAX`] is reached, [`StoreError::Stopped`] when the
    /// log cannot be written any more.
    pub fn reserve(&self) -> Result<AuditPlace, StoreError> {
        Ok(AuditPlace { place: self.group.reserve()?, policy: Arc::clone(&self.policy) })
    }

    /// Waits until all that was written before is durable. Blocks the thread.
    ///
    /// # Errors
    /// As [`AuditPlace::write_then`].
    pub fn flush(&self) -> Result<(), StoreError> {
        let (tell, told) = mpsc::sync_channel(1);
        self.group.place().fill(Some(Box::new(move |result| _ = tell.send(result))), |_| {});
        told.recv().unwrap_or(Err(StoreError::Stopped))
    }

    /// How far the log reaches durably.
    #[must_use]
    pub fn head(&self) -> Head {
        *self.head.lock()
    }

    /// Entries that wait for the disk, reserved places included.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.group.places()
    }

    /// Why nothing can be written any more; `None` while all is well. For readiness and logs, not for strangers.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.group.trouble()
    }
}

impl AuditPlace {
    /// Writes an entry, soon.
    pub fn write(self, entry: &Entry<'_>) {
        self.fill(None, entry);
    }

    /// Writes an entry at once; `told` runs on the log's thread when it is durable, or cannot be. It must be short.
    pub fn write_then(self, entry: &Entry<'_>, told: impl FnOnce(Result<(), StoreError>) + Send + 'static) {
        self.fill(Some(Box::new(told)), entry);
    }

    fn fill(self, told: Option<Told>, entry: &Entry<'_>) {
        let payload = self.policy.written(entry.payload);
        self.place.fill(told, |bodies| bodies.add(entry, &payload));
    }
}

impl std::fmt::Debug for AuditPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AuditPlace")
    }
}

/// Checks the whole log of a data directory, also while a gateway writes it. `expected` is a head that was noted down
/// earlier and kept elsewhere. `None` where there never was a log.
///
/// # Errors
/// [`StoreError::Io`] when it cannot be read, [`StoreError::Damaged`] when the journal cannot.
pub fn verify(dir: &Path, expected: Option<Head>) -> Result<Option<Report>, StoreError> {
    let files = at(dir);
    let state = Journal::peek(dir)?;
    match state.audit_key() {
        Some(key) => verify::verify(&files, &Chain::new(&parse(dir, key)?), true, expected).map(Some),
        // Without the key nothing that is there can be ours.
        None if files.firsts()?.is_empty() => Ok(None),
        None => verify::verify(&files, &Chain::new(&[0; 32]), true, expected).map(Some),
    }
}

/// Gives every entry that is asked for, oldest first, with the line that it is written in, until told to stop. Lines that
/// are no entries are passed over: [`verify`] tells of them.
///
/// # Errors
/// [`StoreError::Io`] when the log cannot be read.
pub fn query(
    dir: &Path,
    filter: &Filter,
    mut each: impl FnMut(&Recorded<'_>, &str) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    let files = at(dir);
    for first in files.firsts()? {
        let text = files.segment(first)?;
        for piece in pieces(&text) {
            let Piece::Whole(line) = piece else { continue };
            let Ok(line) = std::str::from_utf8(line) else { continue };
            let Ok(entry) = serde_json::from_str::<Recorded<'_>>(line) else { continue };
            if filter.matches(&entry) && each(&entry, line).is_break() {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn at(dir: &Path) -> Files {
    let folder = |path| -> Arc<dyn Disk> { Arc::new(Folder::new(path)) };
    Files { segments: folder(dir.join(FOLDER)), heads: folder(dir.to_owned()) }
}

fn parse(dir: &Path, key: &SealingKey) -> Result<[u8; 32], StoreError> {
    let no_key = || {
        on(&Folder::new(dir.to_owned()), "use the audit key in", "")(std::io::ErrorKind::InvalidData.into())
    };
    unhex(key.key.as_bytes()).ok_or_else(no_key)
}

#[cfg(test)]
mod tests;
