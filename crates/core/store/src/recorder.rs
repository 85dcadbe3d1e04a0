//! Audit recorder: a permit is reserved before the topic decides, and filled with its verdict.

mod flood;
mod gate;
mod permit;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{sync::Arc, time::Duration};

use model::{ParticipantId, Refusal, RefusalCode, account};
use platform::{Share, random, unix_ms};

use crate::audit::{
    AuditEntry, AuditLog, EntryOrigin, LogFiles, Policy, RecordedVerdict, Redaction,
};
use crate::{JournalWriter, StoreError};
use flood::Floods;
pub use flood::{FLOOD, FLOOD_ENTRIES_MAX, FLOOD_WINDOW, FLOODS_MAX};
pub use gate::{Gate, SHUT};
pub use permit::{RecordPermit, entry};

/// The kind under which connections are recorded: opened, rejected, ended.
pub const CONNECTION: &str = "portmoot/connection";
/// The name under which a rejected connection without a valid token is recorded. No participant can
/// have it.
pub const UNKNOWN_PARTICIPANT: &str = "system:nobody";

/// Shortest time between two lines about it in the gateway's own log.
const REPORT_EVERY: Duration = Duration::from_secs(60);

/// The log of a gateway, if it keeps one. Clones write the same log.
#[derive(Debug, Clone, Default)]
pub struct Recorder {
    log: Option<AuditLog>,
    /// The data directory of the log.
    dir: Option<Arc<Path>>,
    floods: Floods,
    redaction: Arc<Redaction>,
    /// Without one acts may always happen.
    gate: Option<Gate>,
    /// Acts that were refused because they could not be recorded.
    refused: Arc<Missed>,
    /// Acts that happened and could not be recorded.
    lost: Arc<Missed>,
}

/// The load of the log.
#[derive(Debug, Clone, Copy)]
pub struct AuditLoad {
    /// Entries that wait for the disk.
    pub waiting: usize,
    /// Acts that were refused because they could not be recorded.
    pub refused: u64,
    /// Entries that were lost.
    pub lost: u64,
}

impl Recorder {
    /// Opens the log beside a journal, if there is a policy for one. Blocks on the disk.
    ///
    /// # Errors
    /// When the log cannot be used.
    pub fn open(
        policy: Option<Policy>,
        journal: Option<&JournalWriter>,
        files: LogFiles,
    ) -> Result<Self, StoreError> {
        let Some((policy, journal)) = policy.zip(journal) else {
            return Ok(Self::default());
        };
        let log = AuditLog::open(journal, &random(), unix_ms(), policy, files)?;
        Ok(Self {
            log: Some(log),
            dir: journal.path().map(Arc::from),
            ..Self::default()
        })
    }

    /// The recorder of a gateway that keeps the values of no members with these names, also beside
    /// its log.
    #[must_use]
    pub fn redacting(self, redaction: Redaction) -> Self {
        Self {
            redaction: Arc::new(redaction),
            ..self
        }
    }

    /// A recorder of the same log that refuses what is to happen while the gate is shut.
    #[must_use]
    pub fn gated_by(&self, gate: Gate) -> Self {
        Self {
            gate: Some(gate),
            ..self.clone()
        }
    }

    /// Whether acts may happen at this moment: there is no [gate](Gate), or it is open.
    #[must_use]
    pub fn may_act(&self) -> bool {
        self.gate.as_ref().is_none_or(Gate::is_open)
    }

    /// The members whose values are not kept.
    #[must_use]
    pub fn redaction(&self) -> &Redaction {
        &self.redaction
    }

    /// The data directory of the log, if there is a log: for [`crate::audit::look_back`] and
    /// [`crate::audit::verify`], which read what is on disk, and wait for no writer.
    #[must_use]
    pub fn dir(&self) -> Option<&Arc<Path>> {
        self.dir.as_ref()
    }

    /// Reserves room for one entry. Never waits.
    ///
    /// # Errors
    /// `log_unavailable` when there is no room or the log cannot be written: an act that must be
    /// recorded is refused then, and while the [gate](Gate) is shut.
    pub fn reserve(&self) -> Result<RecordPermit, Refusal> {
        self.reserve_on(None)
    }

    /// Reserves room for one entry on the account of the participant that acts, if it has one: see
    /// [`Recorder::account`].
    ///
    /// # Errors
    /// As [`Recorder::reserve`]; `overloaded` when its share of the log's queue is full.
    pub fn reserve_on(&self, account: Option<&Arc<Share>>) -> Result<RecordPermit, Refusal> {
        if !self.may_act() {
            return Err(Refusal::new(RefusalCode::LogUnavailable, SHUT).hint("send it again"));
        }
        let permit = self.try_reserve(
            account,
            &self.refused,
            "the audit log takes no entries: requests are refused",
        );
        permit.map_err(|error| match error {
            StoreError::Share => {
                let why = "this must be recorded, and too many of your acts wait to be recorded";
                Refusal::new(RefusalCode::Overloaded, why).hint("send them more slowly")
            }
            _ => {
                let why = "this must be recorded, and the audit log cannot be written";
                Refusal::new(RefusalCode::LogUnavailable, why).hint("the gateway's log says why")
            }
        })
    }

    /// Reserves room for one entry on the account of this participant.
    ///
    /// # Errors
    /// As [`Recorder::reserve_on`].
    pub fn reserve_of(&self, id: &ParticipantId) -> Result<RecordPermit, Refusal> {
        self.reserve_on(self.account(id).as_ref())
    }

    /// The account of a participant in the log, if there is a log.
    pub fn account(&self, id: &ParticipantId) -> Option<Arc<Share>> {
        Some(self.log.as_ref()?.account(account(id.as_str())))
    }

    /// Reserves room for one entry about an act that happens anyway. Without room the loss is
    /// counted and logged.
    pub fn reserve_or_count(&self) -> RecordPermit {
        let permit = self.try_reserve(None, &self.lost, "entries of the audit log are lost");
        permit.unwrap_or_else(|_| RecordPermit::none())
    }

    fn try_reserve(
        &self,
        account: Option<&Arc<Share>>,
        missed: &Missed,
        what: &str,
    ) -> Result<RecordPermit, StoreError> {
        let Some(log) = &self.log else {
            return Ok(RecordPermit::none());
        };
        let permit = account.map_or_else(|| log.reserve(), |account| log.reserve_on(account));
        let permit = permit.inspect_err(|error| {
            if let Some(count) = missed.one(unix_ms()) {
                let failure = log.failure();
                tracing::error!(%error, failure, count, "{what}");
            }
        });
        permit.map(RecordPermit::from)
    }

    /// Writes an entry about an act that costs its sender little: of a flood only the first entries
    /// are written, then a count.
    pub fn write_counted(&self, permit: RecordPermit, entry: &AuditEntry<'_>) {
        if permit.keeps() {
            self.floods.write(permit, entry);
        }
    }

    /// Writes that a connection was opened or rejected, or has ended.
    pub fn write_connection(
        &self,
        topic: Option<&str>,
        (from, origin): (&str, EntryOrigin<'_>),
        verdict: RecordedVerdict,
        why: &str,
    ) {
        let permit = self.reserve_or_count();
        self.write_counted(
            permit,
            &AuditEntry {
                origin,
                why: Some(why),
                ..entry(topic, from, CONNECTION, verdict)
            },
        );
    }

    /// Whether the log takes entries now.
    #[must_use]
    pub fn is_available(&self) -> bool {
        self.log.as_ref().is_none_or(|log| log.reserve().is_ok())
    }

    /// The load of the log, if there is one.
    pub fn load(&self) -> Option<AuditLoad> {
        let waiting = self.log.as_ref()?.queued();
        Some(AuditLoad {
            waiting,
            refused: self.refused.count(),
            lost: self.lost.count(),
        })
    }

    /// Number of the last durable entry, if there is a log.
    #[must_use]
    pub fn durable_seq(&self) -> Option<u64> {
        Some(self.log.as_ref()?.head().seq)
    }

    /// Waits until every entry is durable. Blocks on the disk.
    pub fn flush(&self) {
        let Some(log) = &self.log else { return };
        self.floods.settle_all();
        if let Err(error) = log.flush() {
            tracing::error!(%error, "the end of the audit log is not written");
        }
    }
}

/// Number of entries that could not be recorded.
#[derive(Debug, Default)]
struct Missed {
    count: AtomicU64,
    /// When it was reported last, in Unix milliseconds.
    reported_ms: AtomicU64,
}

impl Missed {
    /// Counts one more; returns the count when it is time to report it.
    fn one(&self, now_ms: u64) -> Option<u64> {
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let reported = self.reported_ms.load(Ordering::Relaxed);
        let is_due = u128::from(now_ms.saturating_sub(reported)) >= REPORT_EVERY.as_millis();
        let claims = || {
            self.reported_ms
                .compare_exchange(reported, now_ms, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
        };
        (is_due && claims()).then_some(count)
    }

    /// The count.
    fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_to_happen_while_the_gate_is_shut() {
        let is_open = Arc::new(std::sync::atomic::AtomicBool::new(true));
        let asked = Arc::clone(&is_open);
        let recorder =
            Recorder::default().gated_by(Gate::new(move || asked.load(Ordering::SeqCst)));
        assert!(recorder.reserve().is_ok());
        is_open.store(false, Ordering::SeqCst);
        let refused = recorder.reserve().unwrap_err();
        assert_eq!(refused.code, RefusalCode::LogUnavailable);
        // What has happened is written all the same.
        let _ = recorder.reserve_or_count();
        assert_eq!(recorder.lost.count(), 0);
    }

    #[test]
    fn the_count_is_reported_once_a_minute() {
        let missed = Missed::default();
        let start = 1_700_000_000_000;
        let minute = u64::try_from(REPORT_EVERY.as_millis()).unwrap();
        let reported: Vec<_> = [0, 1, minute - 1, minute, minute + 1, 3 * minute]
            .map(|after| missed.one(start + after))
            .into_iter()
            .collect();
        assert_eq!(reported, [Some(1), None, None, Some(4), None, Some(6)]);
        assert_eq!(missed.count(), 6);
    }
}
