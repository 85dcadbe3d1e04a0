//! States that leave the house sealed: session ids, cursors, request states. A state opens only for the purpose and the
//! principal it was sealed for, before it expires, with the current key or the one before it.
//!
//! Must not know what is in a state. Cipher: XChaCha20-Poly1305, whose 24-byte nonces may be random.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};

const FORM: u8 = 1;
const NONCE_BYTES: usize = 24;
const TIME_BYTES: usize = 8;

/// A sealing key: 32 random bytes.
pub type SealKey = [u8; 32];

/// Seals and opens states.
#[derive(Clone)]
pub struct Sealer {
    current: XChaCha20Poly1305,
    previous: Option<XChaCha20Poly1305>,
}

/// Why a sealed state does not open. What is told outside is the same for all of them: unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// It is not of our making: wrong form, changed, of another key, another purpose or another principal.
    #[error("the sealed state is not ours or not theirs")]
    Foreign,
    /// It was good, and its time is over.
    #[error("the sealed state has expired")]
    Expired,
}

impl Sealer {
    /// Seals with `current`; opens with `previous` too, so that a change of keys breaks nothing at once.
    #[must_use]
    pub fn new(current: &SealKey, previous: Option<&SealKey>) -> Sealer {
        let cipher = |key: &SealKey| XChaCha20Poly1305::new(&Key::from(*key));
        Sealer { current: cipher(current), previous: previous.map(cipher) }
    }

    /// Seals `state` for one purpose (`"session"`, `"cursor"`, ...) and one principal, until `expires_ms` (Unix
    /// milliseconds). `nonce` is 24 fresh random bytes. The text is URL-safe base64 without padding, about 4/3 of the
    /// state and 76 characters more.
    #[must_use]
    pub fn seal(
        &self,
        purpose: &str,
        principal: &str,
        expires_ms: u64,
        nonce: [u8; 24],
        state: &[u8],
    ) -> String {
        let mut plain = Vec::with_capacity(TIME_BYTES + state.len());
        plain.extend_from_slice(&expires_ms.to_be_bytes());
        plain.extend_from_slice(state);
        let bound = bound(purpose, principal);
        let payload = Payload { msg: &plain, aad: &bound };
        // Encryption fails only beyond 256 GiB; an empty text then opens as foreign.
        let Ok(sealed) = self.current.encrypt(&XNonce::from(nonce), payload) else { return String::new() };
        let mut bytes = Vec::with_capacity(1 + NONCE_BYTES + sealed.len());
        bytes.push(FORM);
        bytes.extend_from_slice(&nonce);
        bytes.extend_from_slice(&sealed);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Opens what [`Sealer::seal`] gave, for the same purpose and principal.
    ///
    /// # Errors
    /// [`SealError::Foreign`] when it is not ours or not theirs, [`SealError::Expired`] when `now_ms` has reached its end.
    pub fn open(
        &self,
        purpose: &str,
        principal: &str,
        now_ms: u64,
        sealed: &str,
    ) -> Result<Vec<u8>, SealError> {
        let bytes = URL_SAFE_NO_PAD.decode(sealed).map_err(|_| SealError::Foreign)?;
        let (form, rest) = bytes.split_first().ok_or(SealError::Foreign)?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_BYTES>().ok_or(SealError::Foreign)?;
        if *form != FORM {
            return Err(SealError::Foreign);
        }
        let (nonce, bound) = (XNonce::from(*nonce), bound(purpose, principal));
        let open =
            |cipher: &XChaCha20Poly1305| cipher.decrypt(&nonce, Payload { msg: sealed, aad: &bound }).ok();
        let plain = open(&self.current)
            .or_else(|| self.previous.as_ref().and_then(open))
            .ok_or(SealError::Foreign)?;
        let (expires, state) = plain.split_first_chunk::<TIME_BYTES>().ok_or(SealError::Foreign)?;
        if now_ms >= u64::from_be_bytes(*expires) { Err(SealError::Expired) } else { Ok(state.to_vec()) }
    }
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sealer(..)")
    }
}

/// The associated data: lengths go before the texts, so that no two pairs are spelled alike.
fn bound(purpose: &str, principal: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(16 + purpose.len() + principal.len());
    for part in [purpose, principal] {
        bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
        bytes.extend_from_slice(part.as_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OLD: SealKey = [1; 32];
    const NEW: SealKey = [2; 32];

    #[test]
    fn opens_only_for_its_purpose_principal_time_and_key() {
        let sealed = Sealer::new(&OLD, None).seal("session", "scout", 100, [7; 24], b"state");
        let old = Sealer::new(&OLD, None);
        let turned = Sealer::new(&NEW, Some(&OLD));
        let gone = Sealer::new(&NEW, Some(&[3; 32]));
        for (sealer, purpose, principal, now, expect) in [
            (&old, "session", "scout", 99, Ok(b"state".to_vec())),
            (&turned, "session", "scout", 99, Ok(b"state".to_vec())),
            (&gone, "session", "scout", 99, Err(SealError::Foreign)),
            (&old, "cursor", "scout", 99, Err(SealError::Foreign)),
            (&old, "session", "ci", 99, Err(SealError::Foreign)),
            (&old, "sessions", "cout", 99, Err(SealError::Foreign)),
            (&old, "session", "scout", 100, Err(SealError::Expired)),
        ] {
            assert_eq!(sealer.open(purpose, principal, now, &sealed), expect, "{purpose} {principal} {now}");
        }
    }

    #[test]
    fn a_sealed_state_has_golden_bytes() {
        let golden = "AQcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHB50siOi9ykgQeZ0RbclOYoFp2c4XKiHD9ZOHObH7";
        let sealer = Sealer::new(&OLD, None);
        assert_eq!(sealer.seal("session", "scout", 100, [7; 24], b"state"), golden);
        assert_eq!(sealer.open("session", "scout", 99, golden), Ok(b"state".to_vec()));
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        let sealer = Sealer::new(&OLD, None);
        let sealed = sealer.seal("session", "scout", 100, [7; 24], b"state");
        let bytes = URL_SAFE_NO_PAD.decode(&sealed).unwrap();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            let text = URL_SAFE_NO_PAD.encode(changed);
            assert_eq!(sealer.open("session", "scout", 1, &text), Err(SealError::Foreign), "byte {at}");
        }
    }

    proptest! {
        #[test]
        fn any_state_comes_back(state: Vec<u8>, nonce: [u8; 24], purpose: String, principal: String) {
            let sealer = Sealer::new(&NEW, Some(&OLD));
            let sealed = sealer.seal(&purpose, &principal, 10, nonce, &state);
            prop_assert_eq!(sealer.open(&purpose, &principal, 9, &sealed), Ok(state));
        }

        #[test]
        fn no_text_opens_by_chance_or_panics(text: String) {
            prop_assert_eq!(Sealer::new(&NEW, None).open("a", "b", 0, &text), Err(SealError::Foreign));
        }
    }
}
