//! Sealed states that clients hold: session ids, cursors, request states.
//!
//! A state opens only for its purpose and principal, before its expiry, with the current key or the
//! previous one. Cipher: XChaCha20-Poly1305, whose 24-byte nonces may be random.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};

const FORMAT: u8 = 1;
const NONCE_BYTES: usize = 24;
const TIME_BYTES: usize = 8;

/// A sealing key: 32 random bytes.
pub type SealKey = [u8; 32];

/// Seals and opens states.
#[derive(Clone)]
pub struct Sealer {
    current: XChaCha20Poly1305,
    previous: Option<XChaCha20Poly1305>,
    incarnations: Arc<Incarnations>,
}

/// Incarnations of names: the present bearer of each. What was sealed for a name is sealed for its
/// bearer: the next one cannot open it.
#[derive(Debug, Default)]
pub struct Incarnations {
    by_name: RwLock<HashMap<String, String>>,
    /// Most gateways have none, and look at nothing else.
    has_some: AtomicBool,
}

impl Incarnations {
    /// Takes over the incarnations of all names that have one.
    pub fn set(&self, by_name: HashMap<String, String>) {
        let mut known = self.by_name.write().unwrap_or_else(PoisonError::into_inner);
        self.has_some.store(!by_name.is_empty(), Ordering::Release);
        *known = by_name;
    }

    /// The incarnation of a name, if it has one.
    #[must_use]
    pub fn of(&self, name: &str) -> Option<String> {
        let known = self.by_name.read().unwrap_or_else(PoisonError::into_inner);
        known.get(name).cloned()
    }

    /// Whether a name has this incarnation; `None` is for none.
    #[must_use]
    pub fn is(&self, name: &str, incarnation: Option<&str>) -> bool {
        if !self.has_some.load(Ordering::Acquire) {
            return incarnation.is_none();
        }
        let known = self.by_name.read().unwrap_or_else(PoisonError::into_inner);
        known.get(name).map(String::as_str) == incarnation
    }

    /// When the present bearer of a name got its first token, in Unix milliseconds, if its
    /// incarnation says so.
    #[must_use]
    pub fn since_ms(&self, name: &str) -> Option<u64> {
        let known = self.by_name.read().unwrap_or_else(PoisonError::into_inner);
        known.get(name)?.split_once('.')?.1.parse().ok()
    }

    /// A principal with its incarnation: what no two bearers of a name have in common.
    #[must_use]
    pub fn bearer<'p>(&self, principal: &'p str) -> Cow<'p, str> {
        if !self.has_some.load(Ordering::Acquire) {
            return principal.into();
        }
        match self
            .by_name
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(principal)
        {
            Some(incarnation) => format!("{principal}\n{incarnation}").into(),
            None => principal.into(),
        }
    }
}

/// A sealed state does not open. Clients receive the same answer, unknown, for every cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// Its format is wrong, it was changed, or it has another key, purpose or principal.
    #[error("the sealed state is not valid")]
    Invalid,
    /// It is authentic but has expired.
    #[error("the sealed state has expired")]
    Expired,
}

impl Sealer {
    /// Seals with `current`; opens with `previous` too, so that sealed states survive one change of
    /// keys.
    #[must_use]
    pub fn new(current: &SealKey, previous: Option<&SealKey>) -> Sealer {
        let cipher = |key: &SealKey| XChaCha20Poly1305::new(&Key::from(*key));
        Sealer {
            current: cipher(current),
            previous: previous.map(cipher),
            incarnations: Arc::default(),
        }
    }

    /// Incarnations of names, as this sealer and its copies know them.
    #[must_use]
    pub fn incarnations(&self) -> &Incarnations {
        &self.incarnations
    }

    /// Seals `state` for one purpose (`"session"`, `"cursor"`, ...) and one principal, until
    /// `expires_ms` (Unix milliseconds). `nonce` is 24 fresh random bytes. The text is URL-safe
    /// base64 without padding, about 4/3 of the state and 76 characters more.
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
        let associated = associated_data(purpose, &self.incarnations.bearer(principal));
        let payload = Payload {
            msg: &plain,
            aad: &associated,
        };
        // Encryption fails only beyond 256 GiB; the empty text then does not open.
        let Ok(sealed) = self.current.encrypt(&XNonce::from(nonce), payload) else {
            return String::new();
        };
        let mut bytes = Vec::with_capacity(1 + NONCE_BYTES + sealed.len());
        bytes.push(FORMAT);
        bytes.extend_from_slice(&nonce);
        bytes.extend_from_slice(&sealed);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Opens a text that [`Sealer::seal`] returned for the same purpose and principal.
    ///
    /// # Errors
    /// [`SealError::Invalid`] when the text is not authentic for these, [`SealError::Expired`] when
    /// `now_ms` has reached its expiry.
    pub fn open(
        &self,
        purpose: &str,
        principal: &str,
        now_ms: u64,
        sealed: &str,
    ) -> Result<Vec<u8>, SealError> {
        let bytes = URL_SAFE_NO_PAD
            .decode(sealed)
            .map_err(|_| SealError::Invalid)?;
        let (format, rest) = bytes.split_first().ok_or(SealError::Invalid)?;
        let (nonce, sealed) = rest
            .split_first_chunk::<NONCE_BYTES>()
            .ok_or(SealError::Invalid)?;
        if *format != FORMAT {
            return Err(SealError::Invalid);
        }
        let nonce = XNonce::from(*nonce);
        let associated = associated_data(purpose, &self.incarnations.bearer(principal));
        let mut plain = None;
        // Sealed texts outlive one change of the key.
        for cipher in [Some(&self.current), self.previous.as_ref()]
            .into_iter()
            .flatten()
        {
            let payload = Payload {
                msg: sealed,
                aad: &associated,
            };
            plain = cipher.decrypt(&nonce, payload).ok();
            if plain.is_some() {
                break;
            }
        }
        let plain = plain.ok_or(SealError::Invalid)?;
        let (expires, state) = plain
            .split_first_chunk::<TIME_BYTES>()
            .ok_or(SealError::Invalid)?;
        if now_ms >= u64::from_be_bytes(*expires) {
            Err(SealError::Expired)
        } else {
            Ok(state.to_vec())
        }
    }
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sealer(..)")
    }
}

/// Associated data: each text after its length, so that no two pairs have the same bytes.
fn associated_data(purpose: &str, principal: &str) -> Vec<u8> {
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

    #[test]
    fn what_was_sealed_for_a_bearer_of_a_name_does_not_open_for_the_next() {
        let sealer = Sealer::new(&OLD, None);
        let named = |incarnation: &str| {
            let all = [("tmp".to_owned(), incarnation.to_owned())];
            sealer
                .incarnations()
                .set(all.into_iter().filter(|(_, one)| !one.is_empty()).collect());
        };
        let seal = |who: &str| sealer.seal("task", who, 100, [7; 24], b"state");
        let opens = |who: &str, sealed: &str| sealer.clone().open("task", who, 1, sealed).is_ok();
        let before = seal("tmp");
        let anns = seal("ann");
        named("first");
        let first = seal("tmp");
        assert!(opens("tmp", &first) && opens("ann", &anns) && !opens("tmp", &before));
        named("second");
        assert!(!opens("tmp", &first) && opens("tmp", &seal("tmp")) && opens("ann", &anns));
        named("");
        assert!(!opens("tmp", &first) && opens("tmp", &before));
        // No other name stands for a bearer.
        assert!(!opens("tmp\nfirst", &before));
    }

    const OLD: SealKey = [1; 32];
    const NEW: SealKey = [2; 32];

    #[test]
    fn opens_only_for_its_purpose_principal_time_and_key() {
        let sealed = Sealer::new(&OLD, None).seal("session", "scout", 100, [7; 24], b"state");
        let old = Sealer::new(&OLD, None);
        let rotated = Sealer::new(&NEW, Some(&OLD));
        let gone = Sealer::new(&NEW, Some(&[3; 32]));
        for (sealer, purpose, principal, now, expect) in [
            (&old, "session", "scout", 99, Ok(b"state".to_vec())),
            (&rotated, "session", "scout", 99, Ok(b"state".to_vec())),
            (&gone, "session", "scout", 99, Err(SealError::Invalid)),
            (&old, "cursor", "scout", 99, Err(SealError::Invalid)),
            (&old, "session", "ci", 99, Err(SealError::Invalid)),
            (&old, "sessions", "cout", 99, Err(SealError::Invalid)),
            (&old, "session", "scout", 100, Err(SealError::Expired)),
        ] {
            assert_eq!(
                sealer.open(purpose, principal, now, &sealed),
                expect,
                "{purpose} {principal} {now}"
            );
        }
    }

    #[test]
    fn a_sealed_state_has_golden_bytes() {
        let golden = "AQcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHB50siOi9ykgQeZ0RbclOYoFp2c4XKiHD9ZOHObH7";
        let sealer = Sealer::new(&OLD, None);
        assert_eq!(
            sealer.seal("session", "scout", 100, [7; 24], b"state"),
            golden
        );
        assert_eq!(
            sealer.open("session", "scout", 99, golden),
            Ok(b"state".to_vec())
        );
    }

    #[test]
    fn every_changed_byte_is_rejected() {
        let sealer = Sealer::new(&OLD, None);
        let sealed = sealer.seal("session", "scout", 100, [7; 24], b"state");
        let bytes = URL_SAFE_NO_PAD.decode(&sealed).unwrap();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            let text = URL_SAFE_NO_PAD.encode(changed);
            assert_eq!(
                sealer.open("session", "scout", 1, &text),
                Err(SealError::Invalid),
                "byte {at}"
            );
        }
    }

    proptest! {
        #[test]
        fn every_state_opens_again(state: Vec<u8>, nonce: [u8; 24], purpose: String, principal: String) {
            let sealer = Sealer::new(&NEW, Some(&OLD));
            let sealed = sealer.seal(&purpose, &principal, 10, nonce, &state);
            prop_assert_eq!(sealer.open(&purpose, &principal, 9, &sealed), Ok(state));
        }

        #[test]
        fn no_text_opens_by_chance_or_panics(text: String) {
            prop_assert_eq!(Sealer::new(&NEW, None).open("a", "b", 0, &text), Err(SealError::Invalid));
        }
    }
}
