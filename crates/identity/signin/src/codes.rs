//! Authorization codes: each good once, for a minute; a second use ends what the first one gave.

use std::collections::{HashMap, VecDeque};

use auth::FamilyId;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::Latest;
use sha2::{Digest as _, Sha256};

use crate::request::AuthRequest;

/// Time that a code is good, in milliseconds.
pub const CODE_MS: u64 = 60_000;
/// Time that a used code is remembered, in milliseconds.
pub const USED_CODE_MS: u64 = 600_000;
/// The most codes, used ones included. Beyond it, the participant that has most loses its oldest.
pub const CODES_MAX: usize = 10_000;
/// The most unused codes of one participant. Beyond it, its oldest is good no more.
pub const UNUSED_CODES_MAX: usize = 10;

/// Consent that a code stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeConsent {
    /// The request to which the participant consented.
    pub request: AuthRequest,
    /// The participant.
    pub participant: String,
    /// Mark of the participant when it consented. With another mark it is another bearer of the
    /// name, or had something revoked.
    pub mark: String,
    /// When the participant was asked who it is, in Unix milliseconds.
    pub asked_ms: u64,
}

/// State of a code that was presented.
#[derive(Debug, PartialEq, Eq)]
pub enum Redeemed {
    /// It was good, and is used now.
    Fresh(Box<CodeConsent>),
    /// It was used before; the family that the first use gave has to end.
    Again(Option<FamilyId>),
    /// It never was, or is too old.
    Unknown,
}

type Hash = [u8; 32];

#[derive(Debug)]
enum Entry {
    Unused {
        grant: Box<CodeConsent>,
        until_ms: u64,
    },
    Used {
        family: Option<FamilyId>,
        again: bool,
    },
}

/// All codes. A restart forgets them: their clients ask again.
#[derive(Debug, Default)]
pub struct Codes {
    by_hash: HashMap<Hash, Entry>,
    /// With the times at which they are forgotten, by participant.
    order: Latest<(u64, Hash)>,
    /// Codes that were not used yet, by participant, oldest first.
    unused: HashMap<String, VecDeque<Hash>>,
}

impl Codes {
    /// A new code for a grant. `random` are 32 fresh random bytes.
    pub fn issue(&mut self, grant: CodeConsent, random: &[u8; 32], now_ms: u64) -> String {
        let code = URL_SAFE_NO_PAD.encode(random);
        let hash = hash(&code);
        self.forget(now_ms);
        let until_ms = now_ms.saturating_add(CODE_MS);
        self.order.push(
            &grant.participant,
            0,
            (now_ms.saturating_add(USED_CODE_MS), hash),
        );
        let own = self.unused.entry(grant.participant.clone()).or_default();
        own.push_back(hash);
        let superfluous = if own.len() > UNUSED_CODES_MAX {
            own.pop_front()
        } else {
            None
        };
        superfluous.map(|oldest| self.by_hash.remove(&oldest));
        self.by_hash.insert(
            hash,
            Entry::Unused {
                grant: Box::new(grant),
                until_ms,
            },
        );
        for (_, hash) in self.order.shrink(CODES_MAX, usize::MAX) {
            self.remove(&hash);
        }
        code
    }

    fn forget(&mut self, now_ms: u64) {
        while let Some((_, hash)) = self.order.pop_if(|(end, _)| *end <= now_ms) {
            self.remove(&hash);
        }
    }

    fn remove(&mut self, hash: &Hash) {
        if let Some(Entry::Unused { grant, .. }) = self.by_hash.remove(hash) {
            self.note_use(&grant.participant, hash);
        }
    }

    /// A participant has one unused code less.
    fn note_use(&mut self, participant: &str, hash: &Hash) {
        if let Some(own) = self.unused.get_mut(participant) {
            own.retain(|known| known != hash);
            if own.is_empty() {
                self.unused.remove(participant);
            }
        }
    }

    /// Uses a code, whether or not its other parameters are right: a wrong guess costs the code.
    pub fn redeem(&mut self, code: &str, now_ms: u64) -> Redeemed {
        self.forget(now_ms);
        let hash = hash(code);
        let Some(entry) = self.by_hash.get_mut(&hash) else {
            return Redeemed::Unknown;
        };
        match entry {
            Entry::Used { family, again } => {
                *again = true;
                Redeemed::Again(*family)
            }
            Entry::Unused { until_ms, .. } if *until_ms <= now_ms => Redeemed::Unknown,
            Entry::Unused { .. } => {
                match std::mem::replace(
                    entry,
                    Entry::Used {
                        family: None,
                        again: false,
                    },
                ) {
                    Entry::Unused { grant, .. } => {
                        self.note_use(&grant.participant, &hash);
                        Redeemed::Fresh(grant)
                    }
                    Entry::Used { .. } => Redeemed::Unknown,
                }
            }
        }
    }

    /// Notes which family the first use of a code gave. Returns whether the code was used again
    /// meanwhile: then the family has to end.
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
        && verifier
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte));
    let computed = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
    spelled
        && bool::from(subtle::ConstantTimeEq::ct_eq(
            computed.as_bytes(),
            challenge.as_bytes(),
        ))
}

#[cfg(test)]
pub(crate) fn grant_of_test() -> CodeConsent {
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
    CodeConsent {
        request,
        participant: "ann".into(),
        mark: String::new(),
        asked_ms: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_good_once_and_for_a_minute() {
        let mut codes = Codes::default();
        let code = codes.issue(grant_of_test(), &[1; 32], 0);
        assert_eq!(codes.redeem("x", 1), Redeemed::Unknown);
        assert_eq!(
            codes.redeem(&code, CODE_MS - 1),
            Redeemed::Fresh(Box::new(grant_of_test()))
        );
        assert!(!codes.gave(&code, FamilyId(7)));
        assert_eq!(
            codes.redeem(&code, CODE_MS),
            Redeemed::Again(Some(FamilyId(7)))
        );
        assert_eq!(
            codes.redeem(&code, USED_CODE_MS - 1),
            Redeemed::Again(Some(FamilyId(7)))
        );
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
    fn codes_are_bounded_and_no_participant_pushes_out_those_of_another() {
        let mut codes = Codes::default();
        let mut number = 0_u64;
        let mut issue = |codes: &mut Codes, participant: &str| {
            number += 1;
            let mut random = [0; 32];
            random[..8].copy_from_slice(&number.to_be_bytes());
            codes.issue(
                CodeConsent {
                    participant: participant.to_owned(),
                    ..grant_of_test()
                },
                &random,
                0,
            )
        };
        let of_bob = issue(&mut codes, "bob");
        let of_ann: Vec<String> = (0..=UNUSED_CODES_MAX)
            .map(|_| issue(&mut codes, "ann"))
            .collect();
        assert_eq!(
            codes.redeem(&of_ann[0], 1),
            Redeemed::Unknown,
            "one more than may be unused"
        );
        for _ in 0..=CODES_MAX {
            issue(&mut codes, "eve");
        }
        assert!(
            codes.by_hash.len() < 100 && codes.order.len() == CODES_MAX,
            "{}",
            codes.by_hash.len()
        );
        for code in of_ann.iter().skip(1).chain([&of_bob]) {
            assert!(matches!(codes.redeem(code, 1), Redeemed::Fresh(_)));
        }
        // Used ones are remembered, and bounded too.
        for _ in 0..=CODES_MAX {
            let code = issue(&mut codes, "eve");
            codes.redeem(&code, 1);
        }
        assert!(codes.by_hash.len() <= CODES_MAX && codes.order.len() == CODES_MAX);
        assert_eq!(codes.redeem(&of_bob, 1), Redeemed::Again(None));
        codes.forget(USED_CODE_MS);
        assert!(codes.by_hash.is_empty() && codes.unused.is_empty() && codes.order.is_empty());
    }

    #[test]
    fn verifiers_are_those_of_the_rfc() {
        let challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert!(is_verifier(verifier, challenge));
        for wrong in [
            "",
            challenge,
            &verifier[1..],
            &format!("{verifier}x"),
            &"a".repeat(129),
        ] {
            assert!(!is_verifier(wrong, challenge), "{wrong}");
        }
    }
}
