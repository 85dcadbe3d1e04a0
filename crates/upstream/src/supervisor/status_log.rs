//! Status of a server for listings and health checks, and its changes in the log.

use std::{sync::Arc, sync::atomic::Ordering, time::Instant};

use platform::millis;

use super::Upstream;
use crate::status::{State, Status};

/// The log target of status lines, so that a filter can select them alone.
const TARGET: &str = "portmoot::servers";

impl Upstream {
    /// The status now, for `servers ls` and `/readyz`.
    #[must_use]
    pub fn status(&self) -> Status {
        let book = self.book.lock();
        let sessions: Vec<_> = book.sessions().filter(|session| session.is_open()).collect();
        // Of two shared sessions the one in the first era counts: the supervisor keeps it open.
        let shared = sessions
            .iter()
            .filter(|session| !session.key().is_own())
            .max_by_key(|session| book.eras.first() == Some(&session.era()));
        let failure = shared.and_then(|session| session.failure()).or_else(|| book.incomplete.clone());
        let (state, reason) = match (shared, failure) {
            (Some(_), Some(failure)) => (State::Degraded, Some(failure)),
            (Some(_), None) => (State::Ready, None),
            (None, _) if self.is_away() => (State::Down, Some(self.away_refusal().message.into_owned())),
            (None, _) if book.starting > 0 => (State::Starting, book.backoff.reason.clone()),
            (None, _) if book.closed => (State::Down, Some("stopped".to_owned())),
            (None, _) if book.backoff.reason.is_some() => (State::Down, book.backoff.reason.clone()),
            (None, _) => (State::Starting, None),
        };
        let manifest = book.manifest();
        Status {
            name: Arc::from(self.spec.name()),
            state,
            reason,
            eras: book.eras.clone(),
            version: shared.map(|session| session.version().as_str().to_owned()),
            pid: shared.and_then(|session| session.link.get()?.pid()),
            sessions: sessions.len(),
            calls: sessions.iter().map(|session| session.calls()).sum(),
            listed: [&manifest.tools, &manifest.resources, &manifest.templates, &manifest.prompts]
                .map(|list| list.items.len()),
            quarantined: manifest.quarantined.clone(),
            restarts: self.restarts.load(Ordering::Relaxed),
            retry_after_ms: book.backoff.remaining(Instant::now()).map(millis),
        }
    }

    /// Logs the state if it differs from the last line. A start is not logged, only its outcome.
    pub(super) fn log_status(&self) {
        let status = self.status();
        if status.state == State::Starting {
            return;
        }
        let now = (status.state, status.reason);
        let mut logged = self.logged.lock();
        if logged.as_ref() == Some(&now) {
            return;
        }
        let (server, reason) = (self.spec.name(), now.1.as_deref().unwrap_or_default());
        match now.0 {
            State::Starting => {}
            State::Ready => tracing::info!(
                target: TARGET,
                server,
                revision = status.version.as_deref().unwrap_or_default(),
                tools = status.listed[0],
                "ready"
            ),
            State::Degraded => tracing::warn!(target: TARGET, server, reason, "degraded"),
            // The gateway itself has stopped it.
            State::Down if self.book.lock().closed => {}
            State::Down if self.is_away() => tracing::info!(target: TARGET, server, "not connected"),
            State::Down => {
                let cause = self.book.lock().cause.clone();
                tracing::warn!(target: TARGET, server, reason, cause, "down");
            }
        }
        *logged = Some(now);
    }
}
