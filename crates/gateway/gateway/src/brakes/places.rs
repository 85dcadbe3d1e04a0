//! Places of pauses and resumptions, while they wait for the journal.

use std::sync::Arc;

use model::{PAUSE, ParticipantId, Refusal, RefusalCode};
use platform::{Shares, Taken, default_share};

/// The most pauses of one topic that wait for the journal, and the most resumptions; of one
/// participant a quarter.
pub const BRAKES_ASKED_MAX: usize = 64;

/// The places of pauses, and those of resumptions: these wait for the disk before they count, and
/// must not keep pauses from it.
pub(crate) struct BrakingPlaces {
    pauses: Arc<Shares>,
    resumptions: Arc<Shares>,
}

impl BrakingPlaces {
    /// All of them free.
    pub(crate) fn new() -> Self {
        let places = || Shares::new(BRAKES_ASKED_MAX, default_share(BRAKES_ASKED_MAX));
        Self {
            pauses: places(),
            resumptions: places(),
        }
    }

    /// A place for a pause or a resumption (`kind`) by a participant.
    ///
    /// # Errors
    /// If too many wait.
    pub(crate) fn take(&self, kind: &str, by: &ParticipantId) -> Result<Taken, Refusal> {
        let places = if kind == PAUSE {
            &self.pauses
        } else {
            &self.resumptions
        };
        places.of(by.account()).take(1).map_err(|_| {
            let why = "too many pauses wait to be written down";
            Refusal::new(RefusalCode::Overloaded, why)
        })
    }
}

#[cfg(test)]
mod tests {
    use model::RESUME;

    use super::*;

    #[test]
    fn a_participant_has_a_quarter_of_the_places_of_pauses() {
        let places = BrakingPlaces::new();
        let quarter = BRAKES_ASKED_MAX / 4;
        let id = |who| ParticipantId::new(who).unwrap();
        let mut taken = Vec::new();
        for who in ["ann", "bo", "cid", "dee"] {
            let by = id(who);
            taken.extend((0..quarter).map(|_| places.take(PAUSE, &by).unwrap()));
            let refusal = places.take(PAUSE, &by).unwrap_err();
            assert_eq!(refusal.code, RefusalCode::Overloaded, "{who}");
        }
        assert_eq!(places.pauses.taken(), BRAKES_ASKED_MAX);
        let eve = id("eve");
        assert!(places.take(PAUSE, &eve).is_err());
        // Resumptions have places of their own.
        assert!(places.take(RESUME, &eve).is_ok());
        drop(taken);
        assert!(places.take(PAUSE, &eve).is_ok());
    }
}
