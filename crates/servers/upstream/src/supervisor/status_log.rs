//! Status of a server for listings and health checks, and its changes in the log.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use platform::millis;

use super::book::{Book, Condition};
use super::{DOWN, TARGET, Upstream};
use crate::config::Transport;
use crate::session::Session;
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
    let rest = after.split_once(')').map_or("", |(_, rest)| rest);
    format!("{before}{rest}")
}

impl Upstream {
    /// The status now, for `servers ls` and `/readyz`.
    #[must_use]
    pub fn status(&self) -> ServerStatus {
        let book = self.book.lock();
        let sessions: Vec<&Arc<Session>> = book
            .sessions()
            .filter(|session| session.is_open())
            .collect();
        // Of two shared sessions the one in the first era counts: the supervisor keeps it open.
        let shared = sessions
            .iter()
            .filter(|session| !session.key().is_own())
            .max_by_key(|session| book.eras.first() == Some(&session.era()))
            .copied();
        let blocked = if book.closed {
            None
        } else {
            self.blocked(None)
        };
        let noise = book.noise();
        let condition = match &blocked {
            Some(fault) => {
                let reason = fault.refusal(self.spec.name()).to_string();
                Condition::new(ServerState::NeedsLogin, Some(reason))
            }
            None => self.condition(&book, shared, !sessions.is_empty(), noise.is_some()),
        };
        let state = condition.state;
        let has_failed = !state.is_ready() && !book.cause.is_empty();
        let remaining = book.backoff.remaining(Instant::now());
        let cause = match &blocked {
            Some(fault) => Some(fault.cause()),
            None if has_failed => {
                Some(without_number(&book.cause) + &self.tries(&book, state, remaining))
            }
            None => noise,
        };
        let last_words = if has_failed {
            book.last_words.clone()
        } else {
            Vec::new()
        };
        let manifest = book.manifest();
        ServerStatus {
            cause,
            hint: (has_failed && !book.hint.is_empty()).then_some(book.hint),
            last_words,
            name: Arc::from(self.spec.name()),
            state,
            reason: condition.reason,
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

    /// The condition of a server that waits for no person. The first that applies counts.
    fn condition(
        &self,
        book: &Book,
        shared: Option<&Arc<Session>>,
        has_sessions: bool,
        is_noisy: bool,
    ) -> Condition {
        if let Some(session) = shared {
            let failure = session.failure().or_else(|| book.incomplete.clone());
            return match failure {
                Some(failure) => Condition::new(ServerState::Degraded, Some(failure)),
                None => Condition::new(ServerState::Ready, None),
            };
        }
        // A caller's own session shows that it runs. Where all are callers' own, it is ready for
        // the first.
        if has_sessions || self.has_callers_accounts() && !book.closed {
            return Condition::new(ServerState::Ready, None);
        }
        if self.is_away() {
            let reason = self.away_refusal().message.into_owned();
            return Condition::new(ServerState::Down, Some(reason));
        }
        let failed = book.backoff.reason.clone();
        if book.starting > 0 {
            // One that fails again and again is not about to run.
            if !book.closed && book.backoff.failures() >= FAILING {
                return Condition::new(ServerState::Down, failed);
            }
            let silent = is_noisy.then(|| "it has not answered yet".to_owned());
            let reason = book.slow.clone().or(failed).or(silent);
            return Condition::new(ServerState::Starting, reason);
        }
        if book.queued > 0 && failed.is_none() {
            return Condition::new(ServerState::Starting, Some(QUEUED.to_owned()));
        }
        if book.closed {
            return Condition::new(ServerState::Down, Some("stopped".to_owned()));
        }
        if failed.is_some() {
            return Condition::new(ServerState::Down, failed);
        }
        if self.spec.config.is_on_demand() && !book.listed.is_empty() {
            return Condition::new(ServerState::Idle, None);
        }
        Condition::new(ServerState::Starting, None)
    }

    /// The failed tries of a server that is down and is started again, after the cause of the last
    /// one; empty for any other.
    fn tries(&self, book: &Book, state: ServerState, remaining: Option<Duration>) -> String {
        let tries = book.backoff.failures();
        let is_usable = !matches!(self.spec.config.transport, Transport::Unusable { .. });
        if !is_usable || tries < FAILING || state != ServerState::Down {
            return String::new();
        }
        match remaining.map(|left| left.as_secs()) {
            Some(left) if left > 0 => format!("; {tries} tries, the next in {left} s"),
            _ => format!("; {tries} tries"),
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
        if let Some(runs) = runs
            && logged.runs != Some(runs)
        {
            logged.runs = Some(runs);
            self.environment.events.available(self.spec.name(), runs);
        }
        if status.state == ServerState::Starting {
            return;
        }
        let condition = Condition::new(status.state, status.reason.clone());
        if logged.line.as_ref() == Some(&condition) {
            return;
        }
        self.log(&status);
        logged.line = Some(condition);
    }

    fn log(&self, status: &ServerStatus) {
        let server = self.spec.name();
        let reason = status.reason.as_deref().unwrap_or_default();
        match status.state {
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
                tracing::warn!(target: DOWN, server, reason, cause, hint, "down");
            }
        }
    }
}
