//! How a server is doing, as the operator is told: asked for, and in the log when its state changes. Must not know why it
//! changes.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::super::session::Session;
use super::super::sink::SessionKey;
use super::super::status::{State, Status};
use super::Upstream;
use platform::millis;

/// The log target of these lines, so that they can be wanted alone.
const TARGET: &str = "portmoot::servers";

impl Upstream {
    /// How it is doing, for `servers ls` and `/readyz`.
    #[must_use]
    pub fn status(&self) -> Status {
        let book = self.book();
        let sessions: Vec<Arc<Session>> = book
            .slots
            .values()
            .filter_map(|slot| slot.session.lock().clone())
            .chain(book.once.iter().cloned())
            .filter(|session| session.is_open())
            .collect();
        // Of two shared sessions the one in the first era counts: it is the one that is kept.
        let shared = sessions
            .iter()
            .filter(|session| *session.key() == SessionKey::Shared)
            .max_by_key(|session| book.eras.first() == Some(&session.era()));
        let trouble = shared.and_then(|session| session.trouble()).or_else(|| book.incomplete.clone());
        let (state, reason) = match (shared, trouble) {
            (Some(_), Some(trouble)) => (State::Degraded, Some(trouble)),
            (Some(_), None) => (State::Ready, None),
            (None, _) if self.is_away() => (State::Down, Some(self.not_here().message.into_owned())),
            (None, _) if book.starting > 0 => (State::Starting, book.backoff.reason()),
            (None, _) if book.closed => (State::Down, Some("stopped".to_owned())),
            (None, _) if book.backoff.reason().is_some() => (State::Down, book.backoff.reason()),
            (None, _) => (State::Starting, None),
        };
        let manifest = book.manifest();
        Status {
            name: Arc::from(self.spec.name()),
            state,
            reason,
            eras: book.eras.clone(),
            version: shared.map(|session| session.version().as_str().to_owned()),
            pid: shared.and_then(|session| session.link()?.pid()),
            sessions: sessions.len(),
            calls: sessions.iter().map(|session| session.calls()).sum(),
            listed: [&manifest.tools, &manifest.resources, &manifest.templates, &manifest.prompts]
                .map(|list| list.items.len()),
            quarantined: manifest.quarantined.clone(),
            restarts: self.restarts.load(Ordering::Relaxed),
            retry_after_ms: book.backoff.remaining(Instant::now()).map(millis),
        }
    }

    /// Writes one line if the state is another than that of the last line. Starting is no news: what comes of it is.
    pub(super) fn tell(&self) {
        let status = self.status();
        if status.state == State::Starting {
            return;
        }
        let now = (status.state, status.reason);
        let mut told = self.told.lock();
        if told.as_ref() == Some(&now) {
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
            State::Down if self.is_away() => tracing::info!(target: TARGET, server, "not here"),
            State::Down => {
                let cause = self.book().cause.clone();
                tracing::warn!(target: TARGET, server, reason, cause, "down");
            }
        }
        *told = Some(now);
    }
}
