//! Ids of envelopes whose proposals were rejected when they arrived.

use foldhash::{HashMap, HashMapExt};
use model::{Latest, ParticipantId};

use crate::members::account;

/// The most rejected proposals whose envelope ids the topic remembers. Beyond it the participant
/// that has most loses its oldest; all guests count as one.
pub const REJECTED_PROPOSALS_MAX: usize = 4096;

/// Digests of these ids, each with the participant that used it.
#[derive(Debug)]
pub(crate) struct RejectedIds {
    all: HashMap<u128, ParticipantId>,
    order: Latest<u128>,
    /// The beginning of guests' ids.
    guests: &'static str,
}

impl RejectedIds {
    /// None. Ids that begin with `guests` are those of guests.
    pub(crate) fn new(guests: &'static str) -> Self {
        Self {
            all: HashMap::new(),
            order: Latest::default(),
            guests,
        }
    }

    /// Remembers an id, for the participant that used it first.
    pub(crate) fn add(&mut self, digest: u128, by: &ParticipantId) {
        if self.all.contains_key(&digest) {
            return;
        }
        self.all.insert(digest, by.clone());
        self.order.push(account(by, self.guests), 1, digest);
        for oldest in self.order.shrink(REJECTED_PROPOSALS_MAX, usize::MAX) {
            self.all.remove(&oldest);
        }
    }

    /// The participant whose proposal of this id was rejected.
    pub(crate) fn by(&self, digest: u128) -> Option<&ParticipantId> {
        self.all.get(&digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_most_loses_its_oldest() {
        let [ann, bob] = ["ann", "bob"].map(|name| ParticipantId::new(name).unwrap());
        let mut rejected = RejectedIds::new("");
        rejected.add(0, &bob);
        rejected.add(0, &ann);
        assert_eq!(rejected.by(0), Some(&bob), "the first of an id counts");
        (1..=REJECTED_PROPOSALS_MAX as u128).for_each(|digest| rejected.add(digest, &ann));
        assert_eq!(
            (rejected.by(0), rejected.by(1), rejected.by(2)),
            (Some(&bob), None, Some(&ann))
        );
        assert_eq!(rejected.all.len(), REJECTED_PROPOSALS_MAX);
    }
}
