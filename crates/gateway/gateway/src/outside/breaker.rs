//! Breaker: a service that does not answer is not asked for a while.

use std::time::Duration;

use platform::Mutex;
use tokio::time::Instant;

/// Failures in a row after which a service is not asked for [`APPROVER_PAUSE`].
const APPROVER_FAILURES_MAX: u32 = 5;
/// Time for which a service that fails is not asked.
const APPROVER_PAUSE: Duration = Duration::from_secs(60);

/// Counts failures in a row.
#[derive(Debug, Default)]
pub(crate) struct Breaker(Mutex<BreakerState>);

#[derive(Debug, Default)]
struct BreakerState {
    failures: u32,
    paused_until: Option<Instant>,
}

impl Breaker {
    /// Whether the service may be asked.
    pub(crate) fn is_closed(&self) -> bool {
        self.paused_until().is_none()
    }

    /// The end of the pause in which the service is not asked, if there is one.
    pub(crate) fn paused_until(&self) -> Option<Instant> {
        let until = self.0.lock().paused_until;
        until.filter(|until| *until > Instant::now())
    }

    /// Whether the service has failed, and has not answered since.
    pub(crate) fn is_on_trial(&self) -> bool {
        self.0.lock().failures >= APPROVER_FAILURES_MAX
    }

    /// Notes an answer, or that there was none.
    pub(crate) fn note(&self, is_answered: bool) {
        let mut state = self.0.lock();
        if is_answered {
            *state = BreakerState::default();
            return;
        }
        state.failures = state.failures.saturating_add(1);
        if state.failures >= APPROVER_FAILURES_MAX {
            state.paused_until = Some(Instant::now() + APPROVER_PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_service_that_fails_is_left_alone_for_a_while() {
        let breaker = Breaker::default();
        for _ in 1..APPROVER_FAILURES_MAX {
            breaker.note(false);
        }
        breaker.note(true);
        for _ in 0..APPROVER_FAILURES_MAX {
            assert!(breaker.is_closed());
            breaker.note(false);
        }
        assert!(!breaker.is_closed());
        tokio::time::advance(APPROVER_PAUSE).await;
        assert!(breaker.is_closed() && breaker.is_on_trial());
        // One more failure is enough now, and one answer.
        breaker.note(false);
        assert!(!breaker.is_closed());
        breaker.note(true);
        assert!(breaker.is_closed() && !breaker.is_on_trial());
    }
}
