//! Timer of a connection that is kept for the next time: the runtime's own is seldom set anew.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use platform::Mutex;
use tokio::time::{Sleep, sleep_until};

/// The timer of what a connection does again and again with the same patience: reading heads, waiting for answers.
#[derive(Default)]
pub(crate) struct SpareTimer(Mutex<Option<Pin<Box<Sleep>>>>);

impl SpareTimer {
    /// A time-out at `due`, which is no earlier than those before it.
    pub(crate) fn until(self: &Arc<Self>, due: Instant) -> Timeout {
        let due = due.into();
        let sleep = self.0.lock().take().unwrap_or_else(|| Box::pin(sleep_until(due)));
        Timeout { spare: Arc::clone(self), sleep: Some(sleep), due }
    }

    /// Drops the timer.
    pub(crate) fn clear(&self) {
        *self.0.lock() = None;
    }
}

/// One time-out. Dropped early, it leaves its timer for the next.
pub(crate) struct Timeout {
    spare: Arc<SpareTimer>,
    sleep: Option<Pin<Box<Sleep>>>,
    due: tokio::time::Instant,
}

impl Future for Timeout {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let due = self.due;
        while let Some(sleep) = &mut self.sleep {
            if sleep.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            // It may be the time of an earlier time-out.
            if sleep.deadline() >= due {
                self.sleep = None;
            } else {
                sleep.as_mut().reset(due);
            }
        }
        Poll::Ready(())
    }
}

impl Drop for Timeout {
    fn drop(&mut self) {
        if let Some(sleep) = self.sleep.take() {
            *self.spare.0.lock() = Some(sleep);
        }
    }
}

/// The timer with which hyper reads the heads of one connection.
#[derive(Default)]
pub(crate) struct HeadTimer(Arc<SpareTimer>);

impl hyper::rt::Timer for HeadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn hyper::rt::Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(self.0.until(deadline))
    }

    fn now(&self) -> Instant {
        tokio::time::Instant::now().into()
    }
}

impl hyper::rt::Sleep for Timeout {}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_timer_that_is_used_again_is_not_early() {
        let (spare, began) = (Arc::<SpareTimer>::default(), Instant::now());
        let after = |ms| began + Duration::from_millis(ms);
        drop(spare.until(after(20)));
        let again = spare.until(after(60));
        assert!(spare.0.lock().is_none(), "it has the timer of the first");
        again.await;
        assert!(began.elapsed().as_millis() >= 60);
        spare.until(after(80)).await;
        assert!(began.elapsed().as_millis() >= 80);
    }
}
