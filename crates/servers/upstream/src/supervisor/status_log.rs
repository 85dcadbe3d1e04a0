//! Status of a server for listings and health checks, and its changes in the log.

use std::{sync::Arc, sync::atomic::Ordering, time::Instant};

use platform::millis;

use super::{TARGET, Upstream};
use crate::config::Transport;
use crate::status::{ServerState, ServerStatus};

/// Failures in a row after which a server that is being started again is down.
const FAILING: u32 = 2;
/// Why a server has not been started yet.
const QUEUED: &str = "waits for its turn: other servers are being started (`starts_at_once`)";

/// A cause without the operating system's number of the error, which the log has.
fn without_number(cause: &str) -> String {
    let Some((before, after)) = cause.split_once(" (os error") else {
        return cause.to_owned();
    };
    format!(
        "{before}{}",
        after.split_once(')').map_or("", |(_, rest)| rest)
    )
}

impl Upstream {
    /// The status now, for `servers ls` and `/readyz`.
    #[must_use]
    pub fn status(&self) -> ServerStatus {
        let book = self.book.lock();
        let sessions: Vec<_> = book
            .sessions()
            .filter(|session| session.is_open())
            .collect();
        // Of two shared sessions the one in the first era counts: the supervisor keeps it open.
        let shared = sessions
            .iter()
            .filter(|session| !session.key().is_own())
            .max_by_key(|session| book.eras.first() == Some(&session.era()));
        let failure = shared
            .and_then(|session| session.failure())
            .or_else(|| book.incomplete.clone());
        let noise = book
            .opening
            .upgrade()
            .filter(|_| book.starting > 0)
            .and_then(|opening| opening.noise());
        let blocked = (!book.closed).then(|| self.blocked(None)).flatten();
        let (state, reason) = match (shared, failure) {
            _ if blocked.is_some() => {
                let reason = blocked
                    .as_ref()
                    .map(|fault| fault.refusal(self.spec.name()).to_string());
                (ServerState::NeedsLogin, reason)
            }
            (None, _) if self.has_callers_accounts() && !book.closed => (ServerState::Ready, None),
            (Some(_), Some(failure)) => (ServerState::Degraded, Some(failure)),
            (Some(_), None) => (ServerState::Ready, None),
            // A caller's own session shows that it runs.
            (None, _) if !sessions.is_empty() => (ServerState::Ready, None),
            (None, _) if self.is_away() => (
                ServerState::Down,
                Some(self.away_refusal().message.into_owned()),
            ),
            // One that fails again and again is not about to run.
            (None, _)
                if book.starting > 0 && !book.closed && book.backoff.failures() >= FAILING =>
            {
                (ServerState::Down, book.backoff.reason.clone())
            }
            (None, _) if book.starting == 0 && book.queued > 0 && book.backoff.reason.is_none() => {
                (ServerState::Starting, Some(QUEUED.to_owned()))
            }
            (None, _) if book.starting > 0 => {
                let noisy = noise.as_ref().map(|_| "it has not answered yet".to_owned());
                (
                    ServerState::Starting,
                    book.slow
                        .clone()
                        .or_else(|| book.backoff.reason.clone())
                        .or(noisy),
                )
            }
            (None, _) if book.closed => (ServerState::Down, Some("stopped".to_owned())),
            (None, _) if book.backoff.reason.is_some() => {
                (ServerState::Down, book.backoff.reason.clone())
            }
            (None, _) if self.spec.config.is_on_demand() && !book.listed.is_empty() => {
                (ServerState::Idle, None)
            }
            (None, _) => (ServerState::Starting, None),
        };
        let manifest = book.manifest();
        let failed = !state.is_ready() && !book.cause.is_empty();
        let remaining = book.backoff.remaining(Instant::now());
        let tries = match (
            book.backoff.failures(),
            remaining.map(|left| left.as_secs()),
        ) {
            _ if matches!(self.spec.config.transport, Transport::Unusable { .. }) => String::new(),
            (tries, _) if tries < FAILING || state != ServerState::Down => String::new(),
            (tries, Some(left)) if left > 0 => format!("; {tries} tries, the next in {left} s"),
            (tries, _) => format!("; {tries} tries"),
        };
        ServerStatus {
            cause: match &blocked {
                Some(fault) => Some(fault.cause()),
                None => failed
                    .then(|| without_number(&book.cause) + &tries)
                    .or(noise),
            },
            hint: (failed && !book.hint.is_empty()).then_some(book.hint),
            last_words: if failed {
                book.last_words.clone()
            } else {
                Vec::new()
            },
            name: Arc::from(self.spec.name()),
            state,
            reason,
            reachable: shared.is_none_or(|session| session.is_reachable()),
            eras: book.eras.clone(),
            version: shared.map(|session| session.version().as_str().to_owned()),
            pid: shared.and_then(|session| session.link.get()?.pid()),
            sessions: sessions.len(),
            own_sessions: sessions
                .iter()
                .filter(|session| session.key().is_own())
                .count(),
            processes: sessions
                .iter()
                .filter_map(|session| session.process())
                .collect(),
            users: book.users(),
            single: book.single.clone(),
            own_cause: (!book.own_cause.is_empty()).then(|| without_number(&book.own_cause)),
            calls: sessions.iter().map(|session| session.calls()).sum(),
            listed: [
                &manifest.tools,
                &manifest.resources,
                &manifest.templates,
                &manifest.prompts,
            ]
            .map(|list| list.items.len()),
            quarantined: manifest.quarantined.clone(),
            untyped: manifest.untyped.clone(),
            hidden: manifest.hidden.clone(),
            notes: manifest.notes.clone(),
            restarts: self.restarts.load(Ordering::Relaxed),
            retry_after_ms: remaining.map(millis),
        }
    }

    /// Reports whether the server runs, unless that is not known yet; no change is reported
    /// meanwhile.
    pub fn report_available(&self, report: impl FnOnce(bool)) {
        let _logged = self.logged.lock();
        if let Some(runs) = self.runs(&self.status()) {
            report(runs);
        }
    }

    /// Whether a server with this status runs; `None` before the outcome of its first start, and
    /// once the gateway has stopped it: then another one may run under its name.
    fn runs(&self, status: &ServerStatus) -> Option<bool> {
        match status.state {
            _ if self.book.lock().closed => None,
            ServerState::Ready | ServerState::Degraded => Some(status.reachable),
            // A call starts it.
            ServerState::Idle => Some(true),
            ServerState::Down | ServerState::NeedsLogin => Some(false),
            ServerState::Starting => self.has_settled().then_some(false),
        }
    }

    /// Logs the state if it differs from the last line, and reports whether the server runs if that
    /// differs from the last report. A start is not logged, only its outcome.
    pub(super) fn log_status(&self) {
        let mut logged = self.logged.lock();
        let status = self.status();
        let runs = self.runs(&status);
        if let Some(runs) = runs.filter(|_| runs != logged.runs) {
            logged.runs = Some(runs);
            self.environment.events.available(self.spec.name(), runs);
        }
        if status.state == ServerState::Starting {
            return;
        }
        let now = (status.state, status.reason);
        if logged.line.as_ref() == Some(&now) {
            return;
        }
        let server = self.spec.name();
        let reason = now.1.as_deref().unwrap_or_default();
        match now.0 {
            ServerState::Starting => {}
            ServerState::Ready => tracing::info!(
                target: TARGET,
                server,
                revision = status.version.as_deref().unwrap_or_default(),
                tools = status.listed[0],
                "ready"
            ),
            ServerState::Degraded => tracing::warn!(target: TARGET, server, reason, "degraded"),
            ServerState::NeedsLogin => {
                tracing::warn!(target: TARGET, server, reason, "needs a sign-in")
            }
            ServerState::Idle => tracing::info!(
                target: TARGET,
                server,
                tools = status.listed[0],
                "idle: it is listed, and starts at its first use"
            ),
            // The gateway itself has stopped it.
            ServerState::Down if self.book.lock().closed => {}
            ServerState::Down if self.is_away() => {
                tracing::info!(target: TARGET, server, "not connected")
            }
            ServerState::Down => {
                let cause = self.book.lock().cause.clone();
                // What it wrote before it ended is not for every log.
                let logs = status
                    .last_words
                    .first()
                    .map(|_| format!("see: portmoot logs {server}"));
                let hint = status.hint.map(str::to_owned).or(logs);
                tracing::warn!(target: TARGET, server, reason, cause, hint, "down");
            }
        }
        logged.line = Some(now);
    }
}
