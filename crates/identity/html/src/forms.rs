//! Form tokens: states that a page seals into its form, for the browser that was shown it.

use auth::Sealer;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Time that a form is good, in milliseconds.
pub const FORM_MS: u64 = 600_000;

/// Tokens of the forms of one purpose.
#[derive(Debug, Clone, Copy)]
pub struct Forms<'f> {
    sealer: &'f Sealer,
    purpose: &'static str,
}

impl<'f> Forms<'f> {
    /// Tokens that only forms of this purpose bring back.
    #[must_use]
    pub fn new(sealer: &'f Sealer, purpose: &'static str) -> Self {
        Self { sealer, purpose }
    }

    /// The token with a state, for [`FORM_MS`]. `holder` is the browser that is shown the form, with
    /// all else that the token is bound to. `nonce` is 24 fresh random bytes.
    #[must_use]
    pub fn token(
        self,
        holder: &str,
        state: &impl Serialize,
        nonce: [u8; 24],
        now_ms: u64,
    ) -> String {
        let state = serde_json::to_vec(state).unwrap_or_default();
        let until_ms = now_ms.saturating_add(FORM_MS);
        self.sealer
            .seal(self.purpose, holder, until_ms, nonce, &state)
    }

    /// The state of a token; `None` if it was not made for this purpose and holder, or is too old.
    #[must_use]
    pub fn open<T: DeserializeOwned>(self, holder: &str, token: &str, now_ms: u64) -> Option<T> {
        let state = self.sealer.open(self.purpose, holder, now_ms, token).ok()?;
        serde_json::from_slice(&state).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_in_its_browser_and_form_for_a_while() {
        let sealer = Sealer::new(&[1; 32], None);
        let forms = Forms::new(&sealer, "consent");
        let token = forms.token("browser", &7_u8, [3; 24], 0);
        assert_eq!(forms.open("browser", &token, FORM_MS - 1), Some(7_u8));
        assert_eq!(forms.open::<u8>("browser", &token, FORM_MS), None);
        assert_eq!(forms.open::<u8>("other", &token, 1), None);
        assert_eq!(forms.open::<u8>("browser", "forged", 1), None);
        let others = Forms::new(&sealer, "sign-in");
        assert_eq!(others.open::<u8>("browser", &token, 1), None);
    }
}
