//! Liveness of a client's link: last sign of life, and end.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use platform::millis;

/// Time at which a link's client was seen last, and whether the link has ended.
#[derive(Debug, Default)]
pub(crate) struct Liveness {
    last_seen_ms: AtomicU64,
    /// It is about to end because its client was not seen for too long.
    expiring: AtomicBool,
    ended: AtomicBool,
    revoked: AtomicBool,
}

impl Liveness {
    /// A link whose client is seen now.
    pub(crate) fn new(now_ms: u64) -> Self {
        Self {
            last_seen_ms: AtomicU64::new(now_ms),
            ..Self::default()
        }
    }

    /// Notes a sign of life; false if the link has ended.
    pub(crate) fn touch(&self, now_ms: u64) -> bool {
        // In this order, against `expire`: one of the two sees the other.
        self.last_seen_ms.store(now_ms, Ordering::SeqCst);
        !self.expiring.load(Ordering::SeqCst) && !self.has_ended()
    }

    /// Time at which its client was seen last, in milliseconds.
    pub(crate) fn last_seen_ms(&self) -> u64 {
        self.last_seen_ms.load(Ordering::Relaxed)
    }

    /// Ends the link if its client was not seen for longer than `idle`; true if it did.
    pub(crate) fn expire(&self, now_ms: u64, idle: Duration) -> bool {
        let is_idle =
            || now_ms.saturating_sub(self.last_seen_ms.load(Ordering::SeqCst)) > millis(idle);
        if !is_idle() || self.expiring.swap(true, Ordering::SeqCst) {
            return false;
        }
        // Again, against `touch`: one of the two sees the other.
        let expired = is_idle();
        if !expired {
            self.expiring.store(false, Ordering::SeqCst);
        }
        expired
    }

    /// Notes that the link has ended; `revoked` if its participant may not be there any more.
    pub(crate) fn end(&self, revoked: bool) {
        self.revoked.fetch_or(revoked, Ordering::Relaxed);
        self.ended.store(true, Ordering::Release);
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Whether it was ended because its participant may not be there any more.
    pub(crate) fn was_revoked(&self) -> bool {
        self.has_ended() && self.revoked.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_expires_once_and_only_when_its_client_is_not_seen() {
        let link = Liveness::new(10);
        let idle = Duration::from_millis(5);
        assert!(!link.expire(15, idle) && link.touch(15));
        assert!(!link.expire(20, idle));
        assert!(link.expire(21, idle) && !link.expire(30, idle));
        assert!(!link.touch(31), "it is about to end");
    }

    #[test]
    fn a_link_that_has_ended_shows_no_life() {
        let link = Liveness::new(0);
        assert!(!link.has_ended() && !link.was_revoked());
        link.end(false);
        assert!(link.has_ended() && !link.was_revoked() && !link.touch(1));
        link.end(true);
        link.end(false);
        assert!(link.was_revoked());
    }
}
