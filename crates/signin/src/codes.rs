//! Authorization codes: each good once, for a minute; a second use ends what the first one gave.

use std::collections::{HashMap, VecDeque};

use auth::FamilyId;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use crate::request::AuthRequest;

/// How long a code is good, in milliseconds.
pub const CODE_MS: u64 = 60_000;
/// How long a used code is remembered, in milliseconds.
pub const USED_CODE_MS: u64 = 600_000;
/// The most codes, used ones included. Beyond it, the oldest is forgotten.
pub const CODES_MAX: usize = 10_000;

/// What a code gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The request to which the participant consented.
    pub request: AuthRequest,
    /// The participant.
    pub participant: String,
}

/// What became of a code that was presented.
#[derive(Debug, PartialEq, Eq)]
pub enum Redeemed {
    /// It was good, and is used now.
    Fresh(Box<Grant>),
    /// It was used before; the family that the first use gave has to end.
    Again(Option<FamilyId>),
    /// It never was, or is too old.
    Unknown,
}

type Hash = [u8; 32];

#[derive(Debug)]
enum Entry {
    Unused { grant: Box<Grant>, until_ms: u64 },
    Used { family: Option<FamilyId>, again: bool },
}

/// All codes. A restart forgets them: their clients ask again.
#[derive(Debug, Default)]
pub struct Codes {
    by_hash: HashMap<Hash, Entry>,
    /// With the times at which they are forgotten, oldest first.
    order: VecDeque<(u64, Hash)>,
}

impl Codes {
    /// A new code for a grant. `random` are 32 fresh random bytes.
    pub fn issue(&mut self, grant: Grant, random: &[u8; 32], now_ms: u64) -> String {
        let code = URL_SAFE_NO_PAD.encode(random);
        let hash = hash(&code);
        self.forget(now_ms);
        let until_ms = now_ms.saturating_add(CODE_MS);
        self.by_hash.insert(hash, Entry::Unused { grant: Box::new(grant), until_ms });
        self.order.push_back((now_ms.saturating_add(USED_CODE_MS), hash));
        code
    }

    fn forget(&mut self, now_ms: u64) {
        let is_over = |(end, _): &(u64, Hash), len: usize| *end <= now_ms || len >= CODES_MAX;
        while self.order.front().is_some_and(|oldest| is_over(oldest, self.order.len())) {
            if let Some((_, hash)) = self.order.pop_front() {
                self.by_hash.remove(&hash);
            }
        }
    }

    /// Uses a code, whether or not its other parameters are right: a wrong guess costs the code.
    pub fn redeem(&mut self, code: &str, now_ms: u64) -> Redeemed {
        self.forget(now_ms);
        let Some(entry) = self.by_hash.get_mut(&hash(code)) else { return Redeemed::Unknown };
        match entry {
            Entry::Used { family, again } => {
                *again = true;
                Redeemed::Again(*family)
            }
            Entry::Unused { until_ms, .. } if *until_ms <= now_ms => Redeemed::Unknown,
            Entry::Unused { .. } => {
                match std::mem::replace(entry, Entry::Used { family: None, again: false }) {
                    Entry::Unused { grant, .. } => Redeemed::Fresh(grant),
                    Entry::Used { .. } => Redeemed::Unknown,
                }
            }
        }
    }

    /// Notes which family the first use of a code gave. Returns whether the code was used again meanwhile: then the family has to
    /// end.
    pub fn gave(&mut self, code: &str, given: FamilyId) -> bool {
        match self.by_hash.get_mut(&hash(code)) {
            Some(Entry::Used { family, again }) => {
                *family = Some(given);
                *again
            }
            Some(Entry::Unused { .. }) | None => false,
        }
    }
}

fn hash(code: &str) -> Hash {
    Sha256::digest(code.as_bytes()).into()
}

/// Whether a verifier is that of a challenge by the method `S256` (RFC 7636, section 4.6).
#[must_use]
pub fn is_verifier(verifier: &str, challenge: &str) -> bool {
    let spelled = (43..=128).contains(&verifier.len())
        && verifier.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte));
    let computed = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
    spelled && bool::from(subtle::ConstantTimeEq::ct_eq(computed.as_bytes(), challenge.as_bytes()))
}

#[cfg(test)]
pub(crate) fn grant_of_test() -> Grant {
    let request = AuthRequest {
        client_id: "desk".into(),
        client_name: "Desk".into(),
        standing: crate::client::ClientTrust::Configured,
        redirect_uri: "http://127.0.0.1:5/cb".into(),
        state: None,
        challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM".into(),
        resource: "https://gw.example/mcp".into(),
        scopes: vec!["mcp:read".into()],
    };
    Grant { request, participant: "ann".into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_good_once_and_for_a_minute() {
        let mut codes = Codes::default();
        let code = codes.issue(grant_of_test(), &[1; 32], 0);
        assert_eq!(codes.redeem("x", 1), Redeemed::Unknown);
        assert_eq!(codes.redeem(&code, CODE_MS - 1), Redeemed::Fresh(Box::new(grant_of_test())));
        assert!(!codes.gave(&code, FamilyId(7)));
        assert_eq!(codes.redeem(&code, CODE_MS), Redeemed::Again(Some(FamilyId(7))));
        assert_eq!(codes.redeem(&code, USED_CODE_MS - 1), Redeemed::Again(Some(FamilyId(7))));
        assert_eq!(codes.redeem(&code, USED_CODE_MS), Redeemed::Unknown);
        let late = codes.issue(grant_of_test(), &[2; 32], 0);
        assert_eq!(codes.redeem(&late, CODE_MS), Redeemed::Unknown);
    }

    #[test]
    fn a_second_use_before_the_first_one_has_given_anything_is_noticed() {
        let mut codes = Codes::default();
        let code = codes.issue(grant_of_test(), &[1; 32], 0);
        assert!(matches!(codes.redeem(&code, 1), Redeemed::Fresh(_)));
        assert_eq!(codes.redeem(&code, 2), Redeemed::Again(None));
        assert!(codes.gave(&code, FamilyId(7)));
    }

    #[test]
    fn codes_are_bounded() {
        let mut codes = Codes::default();
        let mut first = None;
        for number in 0..=CODES_MAX {
            let mut random = [0; 32];
            random[..8].copy_from_slice(&number.to_be_bytes());
            let code = codes.issue(grant_of_test(), &random, 0);
            first.get_or_insert(code);
        }
        assert_eq!((codes.by_hash.len(), codes.order.len()), (CODES_MAX, CODES_MAX));
        assert_eq!(codes.redeem(&first.unwrap(), 1), Redeemed::Unknown);
    }

    #[test]
    fn verifiers_are_those_of_the_rfc() {
        let challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert!(is_verifier(verifier, challenge));
        for wrong in ["", challenge, &verifier[1..], &format!("{verifier}x"), &"a".repeat(129)] {
            assert!(!is_verifier(wrong, challenge), "{wrong}");
        }
    }
}
