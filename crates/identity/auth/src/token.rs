//! Tokens and their hashes.

use std::{fmt, str::FromStr};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Prefix of every token, so that secret scanners find a leaked one.
pub const TOKEN_PREFIX: &str = "pm_";

/// Makes a new token from 32 bytes of the operating system's randomness. Callers show it once and
/// never store it.
#[must_use]
pub fn encode_token(random: &[u8; 32]) -> String {
    format!("{TOKEN_PREFIX}{}", URL_SAFE_NO_PAD.encode(random))
}

/// SHA-256 of a token, stored in its place. Tokens have 256 random bits and need no slow hash.
#[derive(Clone, Copy)]
pub struct TokenHash([u8; 32]);

/// A text that is not 64 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a SHA-256 has 64 hexadecimal digits")]
pub struct TokenHashError;

impl TokenHash {
    /// Hashes a token.
    #[must_use]
    pub fn of(token: &str) -> TokenHash {
        TokenHash(Sha256::digest(token.as_bytes()).into())
    }

    /// The hash itself, for what is kept by token. It is compared as it is: only where no stranger
    /// can learn from the time.
    #[must_use]
    pub fn digest(&self) -> model::Digest {
        model::Digest(self.0)
    }

    /// The first 8 bytes, for an index. Equal prefixes do not mean equal hashes.
    #[must_use]
    pub fn prefix(&self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        u64::from_be_bytes([a, b, c, d, e, f, g, h])
    }
}

/// Compares in constant time.
impl PartialEq for TokenHash {
    fn eq(&self, other: &TokenHash) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for TokenHash {}

impl fmt::Display for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        model::Digest(self.0).fmt(f)
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(..)")
    }
}

impl FromStr for TokenHash {
    type Err = TokenHashError;

    fn from_str(text: &str) -> Result<TokenHash, TokenHashError> {
        text.parse()
            .map(|model::Digest(hash)| TokenHash(hash))
            .map_err(|_| TokenHashError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_the_prefix_and_43_url_safe_characters() {
        let token = encode_token(&[0xff; 32]);
        assert_eq!(token, format!("pm_{}8", "_".repeat(42)));
    }

    #[test]
    fn hashes_print_and_parse_back() {
        let hash = TokenHash::of("abc");
        let text = hash.to_string();
        assert_eq!(
            text,
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(text.parse(), Ok(hash));
        assert_eq!(text.to_uppercase().parse(), Ok(hash));
        assert_ne!(TokenHash::of("abd"), hash);
    }

    #[test]
    fn malformed_hashes_are_rejected() {
        for text in [
            "",
            "00",
            &"0".repeat(63),
            &"0".repeat(65),
            &"g".repeat(64),
            &"é".repeat(32),
        ] {
            assert_eq!(text.parse::<TokenHash>(), Err(TokenHashError), "{text}");
        }
    }
}
