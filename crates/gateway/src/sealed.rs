//! Sealed texts: cursors, states and ids that clients keep, each for one participant, one purpose and a limited time.

use auth::Sealer;
use model::{ParticipantId, Refusal, RefusalCode};
use platform::random;

/// Seals a text for a participant until this time, in milliseconds since 1970.
pub(crate) fn seal(sealer: &Sealer, purpose: &str, who: &ParticipantId, until_ms: u64, text: &str) -> String {
    sealer.seal(purpose, who.as_str(), until_ms, random(), text.as_bytes())
}

/// The text that was sealed; `None` if it is another participant's, of another purpose, or too old.
pub(crate) fn open(
    sealer: &Sealer,
    purpose: &str,
    who: &ParticipantId,
    now_ms: u64,
    sealed: &str,
) -> Option<String> {
    String::from_utf8(sealer.open(purpose, who.as_str(), now_ms, sealed).ok()?).ok()
}

/// The refusal of a cursor that does not open.
pub(crate) fn bad_cursor() -> Refusal {
    Refusal::new(RefusalCode::Malformed, "this cursor is not known here")
        .hint("list again from the beginning")
}
