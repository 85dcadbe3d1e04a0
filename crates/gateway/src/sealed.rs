//! Sealed texts: cursors, states and ids that clients keep, each for one participant, one purpose and a limited time.

use auth::Sealer;
use model::{ParticipantId, Refusal, RefusalCode};
use platform::random;

/// What sealed texts are for, and how long they are valid.
pub(crate) struct Purpose {
    /// Its name. A text opens only for the purpose for which it was sealed.
    pub(crate) name: &'static str,
    /// How long a text is valid, in milliseconds.
    pub(crate) valid_ms: u64,
}

impl Purpose {
    /// Seals a text for a participant, from this time on, in milliseconds since 1970.
    pub(crate) fn seal(&self, sealer: &Sealer, who: &ParticipantId, now_ms: u64, text: &str) -> String {
        let until_ms = now_ms.saturating_add(self.valid_ms);
        sealer.seal(self.name, who.as_str(), until_ms, random(), text.as_bytes())
    }

    /// The text that was sealed; `None` if it is another participant's, of another purpose, or too old.
    pub(crate) fn open(
        &self,
        sealer: &Sealer,
        who: &ParticipantId,
        now_ms: u64,
        sealed: &str,
    ) -> Option<String> {
        String::from_utf8(sealer.open(self.name, who.as_str(), now_ms, sealed).ok()?).ok()
    }
}

/// The refusal of a cursor that does not open.
pub(crate) fn bad_cursor() -> Refusal {
    Refusal::new(RefusalCode::Malformed, "this cursor is not known here")
        .hint("list again from the beginning")
}
