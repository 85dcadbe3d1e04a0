//! Participants that have left lately: they may be away for a moment, as after a restart of theirs
//! or of the gateway.

use std::collections::HashMap;

use model::{Latest, ParticipantId};

use crate::members::account;

/// The most departures that the topic remembers. Beyond it the participant that has most loses its
/// oldest; all guests count as one.
pub const DEPARTURES_MAX: usize = 4096;

/// The times at which participants left.
#[derive(Debug)]
pub(crate) struct Departures {
    /// The time of the topic's first step: until then no participant could be there.
    began_ms: Option<u64>,
    left_ms: HashMap<ParticipantId, u64>,
    order: Latest<(ParticipantId, u64)>,
    /// The beginning of guests' ids.
    guests: &'static str,
}

impl Departures {
    /// None. Ids that begin with `guests` are those of guests.
    pub(crate) fn new(guests: &'static str) -> Self {
        Self {
            began_ms: None,
            left_ms: HashMap::new(),
            order: Latest::default(),
            guests,
        }
    }

    /// Notes the time of the topic's first step.
    pub(crate) fn begin(&mut self, now_ms: u64) {
        self.began_ms.get_or_insert(now_ms);
    }

    /// Notes that a participant has left.
    pub(crate) fn note(&mut self, participant: &ParticipantId, now_ms: u64) {
        self.left_ms.insert(participant.clone(), now_ms);
        self.order.push(
            account(participant, self.guests),
            1,
            (participant.clone(), now_ms),
        );
        for (oldest, left_ms) in self.order.shrink(DEPARTURES_MAX, usize::MAX) {
            // It may have left once more since.
            if self.left_ms.get(&oldest) == Some(&left_ms) {
                self.left_ms.remove(&oldest);
            }
        }
    }

    /// Forgets a participant that may not come back.
    pub(crate) fn forget(&mut self, participant: &ParticipantId) {
        self.left_ms.remove(participant);
    }

    /// Whether a participant that is not there left within this time, or could have been there
    /// before the topic began.
    pub(crate) fn is_recent(&self, participant: &ParticipantId, now_ms: u64, away_ms: u64) -> bool {
        let left_ms = self.left_ms.get(participant).copied();
        [self.began_ms, left_ms]
            .into_iter()
            .flatten()
            .any(|at_ms| now_ms.saturating_sub(at_ms) < away_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_departure_is_recent_for_a_while_and_pushes_out_no_others() {
        let [ann, bob, cid] = ["ann", "bob", "cid"].map(|name| ParticipantId::new(name).unwrap());
        let mut departures = Departures::new("");
        departures.begin(5);
        departures.begin(500);
        assert!(
            departures.is_recent(&ann, 14, 10),
            "before the topic began it may have been there"
        );
        assert!(!departures.is_recent(&ann, 15, 10));
        departures.note(&ann, 20);
        assert!(departures.is_recent(&ann, 29, 10) && !departures.is_recent(&ann, 30, 10));
        assert!(!departures.is_recent(&bob, 29, 10));
        (0..=DEPARTURES_MAX as u64).for_each(|at_ms| departures.note(&cid, at_ms));
        assert!(
            departures.is_recent(&ann, 29, 10),
            "it pushed out no other's"
        );
        assert_eq!(departures.left_ms.len(), 2);
        departures.forget(&ann);
        assert!(!departures.is_recent(&ann, 29, 10));
    }
}
