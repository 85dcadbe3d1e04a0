//! Places of envelopes that pause or resume, while they wait for the journal.

use std::sync::Arc;

use platform::{Shares, default_share};

/// The most envelopes of one topic that pause or resume and wait for the journal; of one participant
/// a quarter.
pub const BRAKES_ASKED_MAX: usize = 64;

/// The places of such envelopes.
pub(crate) fn braking_places() -> Arc<Shares> {
    Shares::new(BRAKES_ASKED_MAX, default_share(BRAKES_ASKED_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_participant_has_a_quarter_of_the_places_of_pauses() {
        let places = braking_places();
        let quarter = BRAKES_ASKED_MAX / 4;
        let mut taken = Vec::new();
        for who in ["ann", "bo", "cid", "dee"] {
            let share = places.of(who);
            taken.extend((0..quarter).map(|_| share.take(1).unwrap()));
            assert!(share.take(1).is_err(), "{who}");
        }
        assert_eq!(places.taken(), BRAKES_ASKED_MAX);
        assert!(places.of("eve").take(1).is_err());
        drop(taken);
        assert!(places.of("eve").take(1).is_ok());
    }
}
