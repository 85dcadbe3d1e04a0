//! Order of eviction: keys of sessions, longest unused first.

use std::collections::VecDeque;

use super::session::Key;

/// Sessions looked at, at most, for one that is idle.
const LOOKS_MAX: usize = 64;
/// Keys of sessions that are gone, kept at most beside as many as there are sessions.
const STALE_MAX: usize = 64;

/// Knowledge about a session in the order.
pub(super) enum SessionState {
    /// It is gone.
    Gone,
    /// It has something open.
    Busy,
    /// It is idle since this time.
    Idle(u64),
}

/// Keys in the order in which the sessions began or were last passed over.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// Each with the time at which it was queued.
    queue: VecDeque<(Key, u64)>,
}

impl Order {
    pub(super) fn push(&mut self, key: Key, now_ms: u64) {
        self.queue.push_back((key, now_ms));
    }

    /// Takes the key of a session to evict: the first that is idle and was not used since it was
    /// queued, or else the longest idle of those looked at. The others that were looked at go to
    /// the back.
    pub(super) fn pop(&mut self, now_ms: u64, look: impl Fn(Key) -> SessionState) -> Option<Key> {
        let mut best: Option<(u64, Key)> = None;
        for _ in 0..self.queue.len().min(LOOKS_MAX) {
            let (key, queued_ms) = self.queue.pop_front()?;
            match look(key) {
                SessionState::Gone => {}
                SessionState::Busy => self.queue.push_back((key, now_ms)),
                SessionState::Idle(since_ms) if since_ms <= queued_ms => return Some(key),
                SessionState::Idle(since_ms) => {
                    self.queue.push_back((key, now_ms));
                    if best.is_none_or(|(other_ms, _)| since_ms < other_ms) {
                        best = Some((since_ms, key));
                    }
                }
            }
        }
        // Its key stays behind, of a session that is gone.
        best.map(|(_, key)| key)
    }

    /// Drops keys of sessions that are gone, when there are many of them. `len` is how many
    /// sessions there are.
    pub(super) fn tidy(&mut self, len: usize, is_there: impl Fn(Key) -> bool) {
        if self.queue.len() > 2 * len + STALE_MAX {
            self.queue.retain(|(key, _)| is_there(*key));
        }
    }

    pub(super) fn clear(&mut self) {
        self.queue.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u64) -> Key {
        [number, 0]
    }

    #[test]
    fn an_unused_session_goes_first_and_no_busy_one() {
        let mut order = Order::default();
        (0..4).for_each(|number| order.push(key(number), 10));
        let look = |[number, _]: Key| match number {
            0 => SessionState::Busy,
            1 => SessionState::Idle(20),
            2 => SessionState::Idle(10),
            _ => SessionState::Idle(15),
        };
        assert_eq!(
            order.pop(30, look),
            Some(key(2)),
            "not used since it was queued"
        );
        let look = |one: Key| {
            if one == key(2) {
                SessionState::Gone
            } else {
                look(one)
            }
        };
        assert_eq!(
            order.pop(30, look),
            Some(key(1)),
            "passed over once, and not used since"
        );
        let look = |one: Key| {
            if one == key(1) {
                SessionState::Gone
            } else {
                look(one)
            }
        };
        assert_eq!(order.pop(30, look), Some(key(3)));
        let look = |one: Key| {
            if one == key(3) {
                SessionState::Gone
            } else {
                look(one)
            }
        };
        assert_eq!(order.pop(30, look), None, "the only one left is busy");
    }

    #[test]
    fn of_sessions_that_were_all_used_the_longest_idle_goes() {
        let mut order = Order::default();
        (0..3).for_each(|number| order.push(key(number), 10));
        let look =
            |[number, _]: Key| SessionState::Idle([30, 20, 25][usize::try_from(number).unwrap()]);
        assert_eq!(order.pop(40, look), Some(key(1)));
    }

    #[test]
    fn keys_of_sessions_that_are_gone_do_not_pile_up() {
        let mut order = Order::default();
        for number in 0..10_000 {
            order.push(key(number), 0);
            order.tidy(1, |known| known == key(number));
        }
        assert!(order.queue.len() <= 2 + STALE_MAX);
    }
}
