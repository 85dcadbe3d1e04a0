//! Places for streams of the console: in all, of a participant, of a session.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use platform::{Mutex, Shares, Taken, default_share};

/// The most streams of all sessions.
pub const FEEDS_MAX: usize = 256;
/// The most streams of a session: a further one ends its oldest.
pub const SESSION_FEEDS_MAX: usize = 4;
/// Streams that are open.
pub(crate) struct Places {
    next: AtomicU64,
    open: Arc<Shares>,
}

impl Default for Places {
    fn default() -> Self {
        Self {
            next: AtomicU64::new(1),
            open: Shares::new(FEEDS_MAX, default_share(FEEDS_MAX)),
        }
    }
}

/// A place of a stream, which is free again when it is dropped.
pub(crate) struct Place {
    number: u64,
    _taken: Taken,
}

impl Places {
    /// A place for a further stream of a session, whose streams have these numbers; `None` if there
    /// is none for its participant.
    pub(crate) fn take(&self, participant: &str, session: &Mutex<Vec<u64>>) -> Option<Place> {
        let taken = self.open.of(participant).take(1).ok()?;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        enter(&mut session.lock(), number);
        Some(Place {
            number,
            _taken: taken,
        })
    }
}

impl Place {
    /// Whether a session still has its place.
    pub(crate) fn is_in(&self, session: &Mutex<Vec<u64>>) -> bool {
        session.lock().contains(&self.number)
    }

    /// Takes its place out of a session.
    pub(crate) fn leave(&self, session: &Mutex<Vec<u64>>) {
        session.lock().retain(|one| *one != self.number);
    }
}

/// Notes a further stream of a session; the oldest one beyond the most ends.
fn enter(open: &mut Vec<u64>, number: u64) {
    open.push(number);
    if open.len() > SESSION_FEEDS_MAX {
        open.remove(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_further_stream_of_a_session_ends_its_oldest() {
        let mut open = Vec::new();
        (1..=SESSION_FEEDS_MAX as u64 + 1).for_each(|number| enter(&mut open, number));
        assert_eq!(open.len(), SESSION_FEEDS_MAX);
        assert!(!open.contains(&1));
    }

    #[test]
    fn streams_are_bounded_and_shared() {
        let feeds = Places::default();
        let share = feeds.open.share();
        let taken: Vec<Taken> = (0..share)
            .map(|_| feeds.open.of("ann").take(1).unwrap())
            .collect();
        assert!(feeds.open.of("ann").take(1).is_err());
        assert!(feeds.open.of("bob").take(1).is_ok());
        assert_eq!(taken.len(), share);
    }
}
