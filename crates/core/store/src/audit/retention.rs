//! Retention: the oldest segments are removed, and the log keeps a proof of what they had.
//!
//! A removal has two steps. First an entry is written and synced for each segment, with the head of
//! the chain at its end; then the files are removed, the oldest first. So the log always begins where
//! an entry says, or at its first entry, whichever step a crash interrupts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use platform::unix_ms;

use super::chain::Chain;
use super::config::LogFiles;
use super::entry::RecordedEntry;
use super::files::{Files, name};
use super::look::newest_ms;
use super::removed::{self, RemovedPart, whole_lines};
use super::verify::Reading;
use crate::disk::on;
use crate::error::StoreError;

/// Segments that one step of retention removes at most.
pub const REMOVED_AT_ONCE: usize = 16;
/// The longest time between two looks at what is due.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// The shortest time between two looks at what is due.
const LOOK_MIN: Duration = Duration::from_millis(100);

/// Removes the oldest segments of one log.
#[derive(Debug)]
pub(super) struct Retention {
    files: Files,
    chain: Chain,
    keep: LogFiles,
    /// The part that is removed; `None` before it was looked for.
    removed: Option<RemovedPart>,
}

impl Retention {
    pub(super) fn new(files: Files, chain: Chain, keep: LogFiles) -> Self {
        Self {
            files,
            chain,
            keep,
            removed: None,
        }
    }

    /// Removes what is due, at most [`REMOVED_AT_ONCE`] segments. `write` makes the proofs durable.
    /// Returns whether more may be due.
    pub(super) fn step(
        &mut self,
        now_ms: u64,
        write: impl FnOnce(&[Vec<u8>]) -> Result<(), StoreError>,
    ) -> Result<bool, StoreError> {
        let firsts = self.files.firsts()?;
        let due = self.due(&firsts, now_ms)?.min(REMOVED_AT_ONCE);
        if due == 0 {
            return Ok(false);
        }
        let mut removed = match self.removed {
            Some(removed) => removed,
            None => removed::newest(&self.files, &self.chain)?.unwrap_or_default(),
        };
        let mut proofs = Vec::new();
        for (first, next) in firsts.iter().zip(firsts.iter().skip(1)).take(due) {
            // A crash may have left one that is proved already.
            if removed.head.seq.saturating_add(1) < *next {
                removed = self.without(removed, *first)?;
                proofs.push(removed.members(now_ms));
            }
        }
        if !proofs.is_empty() {
            write(&proofs)?;
        }
        self.removed = Some(removed);
        for first in firsts.iter().take(due) {
            let segments = &*self.files.segments;
            let name = name(*first);
            let gone = segments.unlink(&name);
            gone.map_err(on(segments, "remove", &name))?;
        }
        Ok(due == REMOVED_AT_ONCE)
    }

    /// The number of segments that are due, the oldest ones; never the last one.
    fn due(&self, firsts: &[u64], now_ms: u64) -> Result<usize, StoreError> {
        let closed = firsts.len().saturating_sub(1);
        let mut due = self.too_much(firsts)?;
        if let Some(age) = self.keep.keep_age {
            let age_ms = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
            for first in firsts.iter().take(closed).skip(due) {
                let newest = newest_ms(&self.files, *first)?;
                if newest.is_none_or(|newest| newest.saturating_add(age_ms) >= now_ms) {
                    break;
                }
                due += 1;
            }
        }
        Ok(due.min(closed))
    }

    /// The number of the oldest segments without which the log has as many bytes as it may.
    fn too_much(&self, firsts: &[u64]) -> Result<usize, StoreError> {
        let Some(bytes_max) = self.keep.keep_bytes else {
            return Ok(0);
        };
        let mut kept = 0_u64;
        for (at, first) in firsts.iter().enumerate().rev() {
            kept = kept.saturating_add(self.files.bytes(*first)?);
            if kept > bytes_max {
                return Ok(at + 1);
            }
        }
        Ok(0)
    }

    /// The removed part with this segment, which is verified before.
    fn without(&self, before: RemovedPart, first: u64) -> Result<RemovedPart, StoreError> {
        let text = self.files.segment(first)?;
        let mut reading = Reading::after(&self.chain, before.head);
        reading.segment(first, &text, false);
        let report = reading.report;
        let mut times = whole_lines(&text).filter_map(at_ms);
        let from_ms = times.next();
        let to_ms = times.last().or(from_ms).unwrap_or(before.to_ms);
        let from_ms = match before.entries {
            0 => from_ms.unwrap_or_default(),
            _ => before.from_ms,
        };
        Ok(RemovedPart {
            head: report.head,
            entries: before.entries + report.entries,
            from_ms,
            to_ms,
            findings: before.findings + report.findings_count,
        })
    }
}

fn at_ms(line: &[u8]) -> Option<u64> {
    let entry = serde_json::from_slice::<RecordedEntry<'_>>(line).ok()?;
    Some(entry.at_ms)
}

/// The thread that removes the oldest segments. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct RetentionThread {
    signal: OnSegment,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// The signal that the log has begun a segment.
#[derive(Debug, Clone)]
pub(super) struct OnSegment(SyncSender<()>);

impl OnSegment {
    /// A signal, and its other end.
    pub(super) fn new() -> (Self, Receiver<()>) {
        let (sender, receiver) = sync_channel(1);
        (Self(sender), receiver)
    }

    pub(super) fn signal(&self) {
        // One that waits already says as much.
        let _ = self.0.try_send(());
    }
}

/// Makes entries durable, each given by its members.
pub(super) type WriteMembers = Box<dyn Fn(&[Vec<u8>]) -> Result<(), StoreError> + Send>;

impl RetentionThread {
    /// Starts the thread.
    pub(super) fn start(
        retention: Retention,
        (signal, signals): (OnSegment, Receiver<()>),
        write: WriteMembers,
    ) -> std::io::Result<Self> {
        let ends = Arc::new(AtomicBool::new(false));
        let for_thread = Arc::clone(&ends);
        let thread = thread::Builder::new()
            .name("audit-keep".to_owned())
            .spawn(move || run(retention, &signals, &for_thread, &write))?;
        Ok(Self {
            signal,
            ends,
            thread: Some(thread),
        })
    }
}

impl Drop for RetentionThread {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Release);
        self.signal.signal();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(mut retention: Retention, signals: &Receiver<()>, ends: &AtomicBool, write: &WriteMembers) {
    let every = retention.keep.keep_age.map(|age| age / 8);
    let every = every.unwrap_or(LOOK_EVERY).clamp(LOOK_MIN, LOOK_EVERY);
    let mut fails = false;
    while !ends.load(Ordering::Acquire) {
        let more = match retention.step(unix_ms(), write) {
            Ok(more) => more,
            Err(error) => {
                if !fails {
                    tracing::error!(%error, "old files of the audit log cannot be removed");
                }
                fails = true;
                false
            }
        };
        let wait = if more { Duration::ZERO } else { every };
        if let Err(RecvTimeoutError::Disconnected) = signals.recv_timeout(wait) {
            return;
        }
    }
}
