//! Refresh tokens: each is good once, and the next one follows from it, so that a client that lost
//! an answer gets the same again.
//!
//! A token has its family's id, its number, and a secret of 256 bits. The next secret is a keyed
//! hash of the one before: a client that asks with a token again gets the same successor, also
//! after a restart, and no table has any token. Source: RFC 9700, section 4.14.2.

use auth::{FamilyId, SealKey, Sealer, TokenHash};
use hmac::{Hmac, Mac as _};
use identity::Family;
use sha2::Sha256;

/// Prefix of every refresh token, so that secret scanners find a leaked one.
pub const REFRESH_TOKEN_PREFIX: &str = "pm_rt_";

const PURPOSE: &str = "refresh-token";
const ID_BYTES: usize = 16;
const NUMBER_BYTES: usize = 8;
const SECRET_BYTES: usize = 32;

/// A refresh token that is authentic.
#[derive(Clone, PartialEq, Eq)]
pub struct RefreshToken {
    /// Its family.
    pub family: FamilyId,
    number: u64,
    secret: [u8; SECRET_BYTES],
}

/// Place of a presented token in its family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PresentedToken {
    /// The newest one: the next one follows.
    Newest,
    /// The one before the newest, so soon that its client may have lost the answer: the newest one
    /// again.
    Before,
    /// One that was replaced, which its client would not use: it was stolen, so the family ends.
    Reused,
}

/// Makes and reads refresh tokens.
#[derive(Clone)]
pub struct RefreshTokens {
    sealer: Sealer,
    key: SealKey,
}

impl RefreshTokens {
    /// With the key of the authorization server.
    #[must_use]
    pub fn new(key: &SealKey) -> Self {
        Self {
            sealer: Sealer::new(key, None),
            key: *key,
        }
    }

    /// The first token of a family, with 32 fresh random bytes.
    #[must_use]
    pub fn first(&self, family: FamilyId, random: [u8; 32]) -> RefreshToken {
        RefreshToken {
            family,
            number: 0,
            secret: random,
        }
    }

    /// The token that follows.
    #[must_use]
    pub fn next(&self, token: &RefreshToken) -> RefreshToken {
        let number = token.number.saturating_add(1);
        RefreshToken {
            family: token.family,
            number,
            secret: self.keyed("next", token),
        }
    }

    /// Its text: always the same.
    #[must_use]
    pub fn text(&self, token: &RefreshToken) -> String {
        let mut state = Vec::with_capacity(ID_BYTES + NUMBER_BYTES + SECRET_BYTES);
        state.extend_from_slice(&token.family.0.to_be_bytes());
        state.extend_from_slice(&token.number.to_be_bytes());
        state.extend_from_slice(&token.secret);
        // One nonce for one state.
        let nonce = self.keyed("nonce", token);
        let nonce = nonce.first_chunk().copied().unwrap_or_default();
        format!(
            "{REFRESH_TOKEN_PREFIX}{}",
            self.sealer.seal(PURPOSE, "", u64::MAX, nonce, &state)
        )
    }

    /// Reads a text; `None` unless it was made with this key.
    #[must_use]
    pub fn open(&self, text: &str) -> Option<RefreshToken> {
        let state = self
            .sealer
            .open(PURPOSE, "", 0, text.strip_prefix(REFRESH_TOKEN_PREFIX)?)
            .ok()?;
        let (family, rest) = state.split_first_chunk::<ID_BYTES>()?;
        let (number, secret) = rest.split_first_chunk::<NUMBER_BYTES>()?;
        Some(RefreshToken {
            family: FamilyId(u128::from_be_bytes(*family)),
            number: u64::from_be_bytes(*number),
            secret: secret.try_into().ok()?,
        })
    }

    fn keyed(&self, what: &str, token: &RefreshToken) -> [u8; 32] {
        // HMAC takes keys of every length.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.key) else {
            return [0; 32];
        };
        mac.update(what.as_bytes());
        mac.update(&[0]);
        mac.update(&token.family.0.to_be_bytes());
        mac.update(&token.number.to_be_bytes());
        mac.update(&token.secret);
        mac.finalize().into_bytes().into()
    }
}

/// The hash of a token's text, as records have it.
#[must_use]
pub fn hash(text: &str) -> String {
    TokenHash::of(text).to_string()
}

/// Place of a token with this hash in its family.
#[must_use]
pub fn judge(family: &Family, sha256: &str, grace_ms: u64, now_ms: u64) -> PresentedToken {
    if family.sha256 == sha256 {
        return PresentedToken::Newest;
    }
    let in_grace = now_ms.saturating_sub(family.renewed_ms) < grace_ms;
    if in_grace && family.before.as_deref() == Some(sha256) {
        PresentedToken::Before
    } else {
        PresentedToken::Reused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_one_successor_and_one_spelling() {
        let tokens = RefreshTokens::new(&[1; 32]);
        let first = tokens.first(FamilyId(7), [2; 32]);
        let text = tokens.text(&first);
        assert!(text.starts_with("pm_rt_"));
        assert!(tokens.open(&text).unwrap() == first);
        let next = tokens.text(&tokens.next(&first));
        assert_ne!(next, text);
        assert_eq!(
            tokens.text(&tokens.next(&tokens.open(&text).unwrap())),
            next
        );
        let others = RefreshTokens::new(&[9; 32]);
        assert!(others.open(&text).is_none());
        assert_ne!(
            others.text(&others.next(&first)),
            next,
            "without the key no successor follows"
        );
        for wrong in [
            "",
            "pm_rt_",
            "pm_at_x",
            &text[6..],
            &format!("{text}A"),
            &text.replace("pm_rt_", "pm_at_"),
        ] {
            assert!(tokens.open(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn a_replaced_token_is_answered_for_a_moment_and_then_ends_its_family() {
        let mut family = Family {
            id: FamilyId(7).to_string(),
            participant: "ann".into(),
            client: "c".into(),
            client_name: "Editor".into(),
            client_uri: None,
            resource: "https://gw.example/mcp".into(),
            scopes: Vec::new(),
            sha256: "newest".into(),
            before: Some("before".into()),
            began_ms: 0,
            renewed_ms: 1_000,
            expires_ms: 9_000,
            ends_ms: 9_000,
        };
        use PresentedToken as P;
        for (sha256, grace_ms, now_ms, expect) in [
            ("newest", 30, 1_000, P::Newest),
            ("newest", 30, 8_000, P::Newest),
            ("before", 30, 1_029, P::Before),
            ("before", 30, 1_030, P::Reused),
            ("before", 0, 1_000, P::Reused),
            ("older", 30, 1_000, P::Reused),
        ] {
            assert_eq!(
                judge(&family, sha256, grace_ms, now_ms),
                expect,
                "{sha256} {grace_ms} {now_ms}"
            );
        }
        family.before = None;
        assert_eq!(judge(&family, "before", 30, 1_000), P::Reused);
    }
}
