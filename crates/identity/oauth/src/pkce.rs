//! Proof of a code exchange (RFC 7636) and other unguessable texts.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use platform::random;
use sha2::{Digest, Sha256};

use crate::secret::Secret;

/// 256 random bits, as 43 URL-safe characters: a verifier, a state.
#[must_use]
pub fn unguessable() -> Secret {
    Secret::new(URL_SAFE_NO_PAD.encode(random::<32>()))
}

/// The challenge of a verifier by the method `S256`.
#[must_use]
pub fn challenge(verifier: &Secret) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.expose()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_is_that_of_the_rfc() {
        let verifier = Secret::new("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".to_owned());
        assert_eq!(
            challenge(&verifier),
            "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
        );
    }

    #[test]
    fn no_two_are_alike() {
        assert!(unguessable() != unguessable());
        assert_eq!(unguessable().expose().len(), 43);
    }
}
