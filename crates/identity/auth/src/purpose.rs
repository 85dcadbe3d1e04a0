//! Sealed texts: cursors, states and ids that clients keep, each for one participant, one purpose
//! and a limited time.

use model::ParticipantId;

use crate::Sealer;

/// Purpose of sealed texts, and the time that they are valid.
#[derive(Debug, Clone, Copy)]
pub struct Purpose {
    /// Its name. A text opens only for the purpose for which it was sealed.
    pub name: &'static str,
    /// Time that a text is valid, in milliseconds.
    pub valid_ms: u64,
}

impl Purpose {
    /// Seals a text for a participant, from this time on, in milliseconds since 1970; `nonce` is
    /// random.
    #[must_use]
    pub fn seal(
        &self,
        sealer: &Sealer,
        who: &ParticipantId,
        now_ms: u64,
        nonce: [u8; 24],
        text: &str,
    ) -> String {
        let until_ms = now_ms.saturating_add(self.valid_ms);
        sealer.seal(self.name, who.as_str(), until_ms, nonce, text.as_bytes())
    }

    /// The text that was sealed; `None` if it is another participant's, of another purpose, or too
    /// old.
    #[must_use]
    pub fn open(
        &self,
        sealer: &Sealer,
        who: &ParticipantId,
        now_ms: u64,
        sealed: &str,
    ) -> Option<String> {
        String::from_utf8(sealer.open(self.name, who.as_str(), now_ms, sealed).ok()?).ok()
    }
}
