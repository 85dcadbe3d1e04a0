//! Deadlines of a connection without locks: each is set again and again, and one timer of the
//! connection's task watches it.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// The value of a deadline that is not set.
const UNSET: u64 = u64::MAX;

/// A deadline that one task sets, clears and watches with an [`Alarm`].
#[derive(Debug)]
pub(crate) struct Deadline {
    since: Instant,
    due_ns: AtomicU64,
    passed: AtomicBool,
}

impl Default for Deadline {
    fn default() -> Self {
        Self {
            since: Instant::now(),
            due_ns: AtomicU64::new(UNSET),
            passed: AtomicBool::new(false),
        }
    }
}

impl Deadline {
    /// Sets the deadline, whether it has passed before or not.
    pub(crate) fn set(&self, due: Instant) {
        let after = due.saturating_duration_since(self.since).as_nanos();
        self.passed.store(false, Ordering::Relaxed);
        self.due_ns
            .store(u64::try_from(after).unwrap_or(UNSET), Ordering::Relaxed);
    }

    /// Clears the deadline.
    pub(crate) fn clear(&self) {
        self.due_ns.store(UNSET, Ordering::Relaxed);
    }

    /// Whether the deadline that was set last has passed.
    pub(crate) fn has_passed(&self) -> bool {
        self.passed.load(Ordering::Relaxed)
    }

    fn due(&self) -> Option<Instant> {
        let after = self.due_ns.load(Ordering::Relaxed);
        (after != UNSET).then(|| self.since + Duration::from_nanos(after))
    }

    fn pass(&self) {
        self.clear();
        self.passed.store(true, Ordering::Relaxed);
    }
}

/// The timer of one deadline. It is kept when the deadline is cleared, and set anew only when it
/// rings too early.
pub(crate) struct Alarm {
    deadline: Arc<Deadline>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Alarm {
    /// The alarm of a deadline.
    pub(crate) fn new(deadline: &Arc<Deadline>) -> Self {
        Self {
            deadline: Arc::clone(deadline),
            sleep: None,
        }
    }

    /// Returns whether the deadline passed just now. Otherwise the task wakes by then.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(due) = self.deadline.due() else {
            return false;
        };
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(due)));
        if sleep.deadline() > due {
            sleep.as_mut().reset(due);
        }
        while sleep.as_mut().poll(cx).is_ready() {
            if sleep.deadline() >= due {
                self.sleep = None;
                self.deadline.pass();
                return true;
            }
            sleep.as_mut().reset(due);
        }
        false
    }
}

/// The timer with which hyper reads the heads of one connection: it sets the connection's deadline.
pub(crate) struct HeadTimer(pub(crate) Arc<Deadline>);

/// A wait for the deadline of heads. The connection's task polls it again once its alarm has rung.
struct HeadTimeout(Arc<Deadline>);

impl hyper::rt::Timer for HeadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn hyper::rt::Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: std::time::Instant) -> Pin<Box<dyn hyper::rt::Sleep>> {
        self.0.set(deadline.into());
        Box::pin(HeadTimeout(Arc::clone(&self.0)))
    }

    fn reset(&self, _sleep: &mut Pin<Box<dyn hyper::rt::Sleep>>, deadline: std::time::Instant) {
        self.0.set(deadline.into());
    }

    fn now(&self) -> std::time::Instant {
        Instant::now().into()
    }
}

impl hyper::rt::Sleep for HeadTimeout {}

impl Future for HeadTimeout {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<()> {
        if self.0.has_passed() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

impl Drop for HeadTimeout {
    fn drop(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    async fn rings(alarm: &mut Alarm) {
        poll_fn(|cx| {
            if alarm.poll(cx) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn an_alarm_that_is_used_again_is_neither_early_nor_late() {
        let began = Instant::now();
        let after = |ms| began + Duration::from_millis(ms);
        let deadline = Arc::<Deadline>::default();
        let mut alarm = Alarm::new(&deadline);
        deadline.set(after(20));
        assert!(!poll_fn(|cx| Poll::Ready(alarm.poll(cx))).await);
        for (due, at) in [(60, 60), (50, 60), (80, 80)] {
            deadline.clear();
            deadline.set(after(due));
            assert!(!deadline.has_passed());
            rings(&mut alarm).await;
            assert_eq!(
                (began.elapsed(), deadline.has_passed()),
                (Duration::from_millis(at), true)
            );
        }
        deadline.set(after(200));
        assert!(!poll_fn(|cx| Poll::Ready(alarm.poll(cx))).await);
        deadline.set(after(100));
        rings(&mut alarm).await;
        assert_eq!(
            began.elapsed(),
            Duration::from_millis(100),
            "an earlier deadline is not missed"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_cleared_deadline_never_passes() {
        let deadline = Arc::<Deadline>::default();
        let mut alarm = Alarm::new(&deadline);
        deadline.set(Instant::now() + Duration::from_secs(1));
        deadline.clear();
        let rang = tokio::time::timeout(Duration::from_secs(60), rings(&mut alarm)).await;
        assert!(rang.is_err() && !deadline.has_passed());
    }
}
