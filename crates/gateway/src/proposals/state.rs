//! Sealed state with which the caller of a parked call comes back.

use model::OperationId;
use platform::unix_ms;

use crate::{dispatch::Dispatch, link::Link, sealed::Purpose};

/// How long a state may be used, in milliseconds: a day.
pub const STATE_MS: u64 = 24 * 3600 * 1000;
const HELD: Purpose = Purpose { name: "held", valid_ms: STATE_MS };

/// The state of a parked call; only its participant can use it.
pub(crate) fn seal(dispatch: &Dispatch, link: &Link, proposal: OperationId) -> String {
    HELD.seal(&dispatch.context.sealer, &link.participant.id, unix_ms(), &proposal.to_string())
}

/// The proposal of a state that was sealed for this participant.
pub(crate) fn open(dispatch: &Dispatch, link: &Link, state: &str) -> Option<OperationId> {
    HELD.open(&dispatch.context.sealer, &link.participant.id, unix_ms(), state)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use auth::Sealer;
    use model::ParticipantId;

    use super::*;

    #[test]
    fn a_state_serves_its_participant_for_a_day() {
        let sealer = Sealer::new(&[1; 32], None);
        let id = |name: &str| ParticipantId::new(name).unwrap();
        let sealed = HELD.seal(&sealer, &id("scout"), 1_000, &OperationId(7).to_string());
        let opens = |who: &str, now_ms| HELD.open(&sealer, &id(who), now_ms, &sealed);
        assert_eq!(opens("scout", STATE_MS), Some(OperationId(7).to_string()));
        assert_eq!(opens("boss", 1_000), None, "another participant cannot use it");
        assert_eq!(opens("scout", STATE_MS + 2_000), None, "its time is over");
        assert_eq!(HELD.open(&sealer, &id("scout"), 1_000, "a server's own state"), None);
        let other = sealer.seal("task", "scout", u64::MAX, [9; 24], OperationId(7).to_string().as_bytes());
        assert_eq!(
            HELD.open(&sealer, &id("scout"), 1_000, &other),
            None,
            "it was sealed for another purpose"
        );
    }
}
