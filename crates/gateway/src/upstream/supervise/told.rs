//! What the operator reads in the log when a server's state changes. Must not know why it changes.

use super::super::session::lock;
use super::super::status::State;
use super::Upstream;

/// The log target of these lines, so that they can be wanted alone.
const TARGET: &str = "portmoot::servers";

impl Upstream {
    /// Writes one line if the state is another than that of the last line. Starting is no news: what comes of it is.
    pub(super) fn tell(&self) {
        let status = self.status();
        if status.state == State::Starting {
            return;
        }
        let now = (status.state, status.reason);
        let mut told = lock(&self.told);
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
