//! The audit log as the gateway writes it: a place is kept before anything is decided, and filled with what was decided.
//!
//! Owns what is refused while the log cannot be written. Must not know what decides, nor how entries are kept.

mod flood;
mod missed;
mod place;

use std::sync::Arc;

use model::{Refusal, RefusalCode};
use store::audit::{Audit, Entry, Policy, REDACTED, Verdict};
use store::{StoreError, Writer};

use crate::config::Config;
use flood::Floods;
pub use flood::{FLOOD, FLOOD_ENTRIES_MAX, FLOOD_WINDOW, FLOODS_MAX};
use missed::Missed;
pub use place::{Place, entry};
use platform::{random, unix_ms};

/// The kind under which the issue and the revocation of tokens are recorded.
pub const TOKENS: &str = "portmoot/tokens";

/// The same for what is granted and taken back.
pub const GRANTS: &str = "portmoot/grants";

/// The same for connections: who comes in, who is not let in, and how a connection ends.
pub const CONNECTION: &str = "portmoot/connection";

/// Under whose name it is recorded that somebody without a good token was not let in. Nobody can have this name.
pub const NOBODY: &str = "system:nobody";

/// The log of a gateway, if it keeps one; clones write the same log.
#[derive(Debug, Clone, Default)]
pub struct Recorder {
    log: Option<Audit>,
    floods: Floods,
    /// What was refused because it could not be recorded.
    refused: Arc<Missed>,
    /// What happened and could not be recorded.
    lost: Arc<Missed>,
}

/// How the log does, in numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    /// Entries that wait for the disk.
    pub(crate) waiting: usize,
    /// Acts that were refused because they could not be recorded.
    pub(crate) refused: u64,
    /// Entries that were lost.
    pub(crate) lost: u64,
}

impl Recorder {
    /// Opens the log beside a journal, if the configuration wants one. Blocks on the disk.
    ///
    /// # Errors
    /// When it cannot be used.
    pub fn open(config: &Config, journal: Option<&Writer>) -> Result<Recorder, StoreError> {
        let Some(journal) = journal.filter(|_| config.audit.enabled) else { return Ok(Recorder::default()) };
        let more = config.audit.redact.iter().map(String::as_str);
        let redact: Vec<&str> = REDACTED.into_iter().chain(more).collect();
        let policy = Policy::new(config.audit.payloads, &redact);
        let log = Audit::open(journal, &random(), unix_ms(), policy)?;
        Ok(Recorder { log: Some(log), ..Recorder::default() })
    }

    /// Keeps room for one entry. Never waits.
    ///
    /// # Errors
    /// `log_unavailable` when there is no room or the log cannot be written: what must be recorded is not done then.
    pub fn reserve(&self) -> Result<Place, Refusal> {
        let Some(log) = &self.log else { return Ok(Place::none()) };
        let place = log.reserve().map_err(|error| {
            if let Some(count) = self.refused.one(unix_ms()) {
                let trouble = log.trouble();
                tracing::error!(%error, trouble, count, "what must be recorded is refused: the audit log takes nothing");
            }
            let why = "this must be recorded, and the audit log cannot be written";
            Refusal::new(RefusalCode::LogUnavailable, why).hint("the gateway's log says why")
        })?;
        Ok(Place::of(place))
    }

    /// Keeps room for one entry about something that happens anyway; if there is none, the loss is counted and logged.
    pub(crate) fn reserve_or_tell(&self) -> Place {
        let Some(log) = &self.log else { return Place::none() };
        log.reserve().map_or_else(
            |error| {
                if let Some(count) = self.lost.one(unix_ms()) {
                    let trouble = log.trouble();
                    tracing::error!(%error, trouble, count, "entries of the audit log are lost");
                }
                Place::none()
            },
            Place::of,
        )
    }

    /// Writes an entry about what costs its sender little: of a flood of them only the first are written out, then a count.
    pub(crate) fn write_counted(&self, place: Place, entry: &Entry<'_>) {
        if place.keeps() {
            self.floods.write(place, entry);
        }
    }

    /// Writes what becomes of a connection.
    pub(crate) fn write_connection(&self, topic: Option<&str>, from: &str, verdict: Verdict, why: &str) {
        let place = self.reserve_or_tell();
        self.write_counted(place, &Entry { why: Some(why), ..entry(topic, from, CONNECTION, verdict) });
    }

    /// Whether what must be recorded can be, now.
    #[must_use]
    pub fn is_available(&self) -> bool {
        self.log.as_ref().is_none_or(|log| log.reserve().is_ok())
    }

    /// How the log does; nothing where there is none.
    pub(crate) fn load(&self) -> Option<Load> {
        let waiting = self.log.as_ref()?.waiting();
        Some(Load { waiting, refused: self.refused.count(), lost: self.lost.count() })
    }

    /// Waits until all that was recorded is durable.
    pub async fn flush(&self) {
        let Some(log) = self.log.clone() else { return };
        self.floods.settle_all();
        match tokio::task::spawn_blocking(move || log.flush()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(%error, "the end of the audit log is not written"),
            Err(error) => tracing::error!(%error, "the end of the audit log may not be written"),
        }
    }
}
