//! The audit log as the gateway writes it: a place is kept before anything is decided, and filled with what was decided.
//!
//! Owns what is refused while the log cannot be written. Must not know what decides, nor how entries are kept.

use model::{Refusal, RefusalCode};
use store::audit::{Audit, AuditPlace, Entry, Policy, REDACTED, Verdict};
use store::{StoreError, Writer};

use crate::config::Config;
use crate::ground::{random, unix_ms};

/// The kind under which the issue and the revocation of tokens are recorded.
pub const TOKENS: &str = "portmoot/tokens";

/// The same for what is granted and taken back.
pub const GRANTS: &str = "portmoot/grants";

/// The log of a gateway, if it keeps one; clones write the same log.
#[derive(Debug, Clone, Default)]
pub struct Recorder {
    log: Option<Audit>,
}

/// Room for one entry, given back when dropped. Without a log it takes nothing.
#[derive(Debug)]
pub struct Place(Option<AuditPlace>);

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
        Ok(Recorder { log: Some(log) })
    }

    /// Keeps room for one entry. Never waits.
    ///
    /// # Errors
    /// `log_unavailable` when there is no room or the log cannot be written: what must be recorded is not done then.
    pub fn reserve(&self) -> Result<Place, Refusal> {
        let Some(log) = &self.log else { return Ok(Place(None)) };
        let place = log.reserve().map_err(|error| {
            tracing::debug!(%error, "nothing can be recorded");
            let why = "this must be recorded, and the audit log cannot be written";
            Refusal::new(RefusalCode::LogUnavailable, why).hint("the gateway's log says why")
        })?;
        Ok(Place(Some(place)))
    }

    /// Keeps room for one entry about something that happens anyway; if there is none, the loss is logged.
    pub(crate) fn reserve_or_tell(&self) -> Place {
        self.reserve().unwrap_or_else(|_| {
            tracing::error!(trouble = self.trouble(), "an entry of the audit log is lost");
            Place(None)
        })
    }

    /// Whether what must be recorded can be, now.
    #[must_use]
    pub fn is_available(&self) -> bool {
        self.reserve().is_ok()
    }

    fn trouble(&self) -> Option<String> {
        self.log.as_ref().and_then(Audit::trouble)
    }

    /// Waits until all that was recorded is durable.
    pub async fn flush(&self) {
        let Some(log) = self.log.clone() else { return };
        match tokio::task::spawn_blocking(move || log.flush()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(%error, "the end of the audit log is not written"),
            Err(error) => tracing::error!(%error, "the end of the audit log may not be written"),
        }
    }
}

impl Place {
    /// Whether anything that is written here is kept.
    #[must_use]
    pub fn keeps(&self) -> bool {
        self.0.is_some()
    }

    /// Writes the entry, soon.
    pub fn write(self, entry: &Entry<'_>) {
        if let Some(place) = self.0 {
            place.write(entry);
        }
    }

    /// Writes what became of somebody's wish about a name of the gateway's own, a token or a grant: kind, name and topic.
    pub fn write_change<T>(
        self,
        (kind, name, topic): (&str, &str, Option<&str>),
        by: &str,
        what: &str,
        end: &Result<T, Refusal>,
    ) {
        let (verdict, why) = match end {
            Ok(_) => (Verdict::Admitted, what.to_owned()),
            Err(refusal) => (Verdict::Refused, format!("{}: {what}", refusal.code.as_str())),
        };
        self.write(&Entry { to: &[name], why: Some(&why), ..entry(topic, by, kind, verdict) });
    }
}

/// An entry of now that says no more than this.
#[must_use]
pub fn entry<'e>(topic: Option<&'e str>, from: &'e str, kind: &'e str, verdict: Verdict) -> Entry<'e> {
    Entry {
        at_ms: unix_ms(),
        topic,
        from,
        kind,
        own: None,
        to: &[],
        verdict,
        why: None,
        operation: None,
        digest: None,
        payload: None,
    }
}
