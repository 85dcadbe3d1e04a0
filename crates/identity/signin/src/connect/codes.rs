//! One-time codes by which a browser shows at a connect page whose it is: a participant gets one
//! with its own token.

use std::collections::HashMap;

use sha2::{Digest as _, Sha256};

/// The digits of a code.
pub const CONNECT_CODE_DIGITS: usize = 8;
/// Time that a code is good, in milliseconds.
pub const CONNECT_CODE_MS: u64 = 600_000;
/// The most codes that wait to be used. A participant has one at most.
pub const CONNECT_CODES_MAX: usize = 1_000;
/// Wrong codes at links of a participant after which its code is void.
pub const CONNECT_TRIES_MAX: u32 = 5;

const CODES: u64 = 10_u64.pow(8);

#[derive(Debug)]
struct Waiting {
    hash: [u8; 32],
    until_ms: u64,
    tries_left: u32,
}

/// There are too many codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many one-time codes wait to be used")]
pub struct TooManyCodes;

/// Result of a code that was typed at a link.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Typed {
    /// The code of the link's participant, which is used now.
    Right,
    /// The code of this other participant, which is void now.
    OfAnother(String),
    /// No code.
    Wrong,
}

/// All codes, by participant. A restart voids them.
#[derive(Debug, Default)]
pub(super) struct ConnectCodes(HashMap<String, Waiting>);

impl ConnectCodes {
    /// A new code for a participant, in place of the one that it had. `random` are 16 fresh random
    /// bytes.
    pub(super) fn issue(
        &mut self,
        participant: &str,
        random: [u8; 16],
        now_ms: u64,
    ) -> Result<String, TooManyCodes> {
        self.0.retain(|_, waiting| now_ms < waiting.until_ms);
        if self.0.len() >= CONNECT_CODES_MAX && !self.0.contains_key(participant) {
            return Err(TooManyCodes);
        }
        let number = u128::from_be_bytes(random) % u128::from(CODES);
        let code = format!("{number:0CONNECT_CODE_DIGITS$}");
        let until_ms = now_ms.saturating_add(CONNECT_CODE_MS);
        let waiting = Waiting {
            hash: hash(&code),
            until_ms,
            tries_left: CONNECT_TRIES_MAX,
        };
        self.0.insert(participant.to_owned(), waiting);
        let (first, second) = code
            .split_at_checked(CONNECT_CODE_DIGITS / 2)
            .unwrap_or((&code, ""));
        Ok(format!("{first}-{second}"))
    }

    /// Uses a code that was typed at a link of this participant. Blanks and dashes do not count. A
    /// wrong code costs the participant of the link a try, and nothing else.
    pub(super) fn redeem(&mut self, participant: &str, typed: &str, now_ms: u64) -> Typed {
        let digits: String = typed
            .chars()
            .filter(|one| !one.is_whitespace() && *one != '-')
            .collect();
        let presented = hash(&digits);
        self.0
            .retain(|_, waiting| now_ms < waiting.until_ms && waiting.tries_left > 0);
        let is_it = |waiting: &Waiting| -> bool {
            subtle::ConstantTimeEq::ct_eq(&waiting.hash[..], &presented[..]).into()
        };
        if self.0.get(participant).is_some_and(is_it) {
            self.0.remove(participant);
            return Typed::Right;
        }
        if let Some(own) = self.0.get_mut(participant) {
            own.tries_left -= 1;
        }
        let other = self
            .0
            .iter()
            .find(|(_, waiting)| is_it(waiting))
            .map(|(name, _)| name.clone());
        match other {
            Some(other) => {
                self.0.remove(&other);
                Typed::OfAnother(other)
            }
            None => Typed::Wrong,
        }
    }
}

fn hash(code: &str) -> [u8; 32] {
    Sha256::digest(code.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_good_once_at_links_of_its_participant() {
        let mut codes = ConnectCodes::default();
        let anns = codes.issue("ann", [7; 16], 0).unwrap();
        let bobs = codes.issue("bob", [8; 16], 0).unwrap();
        assert_eq!(
            (anns.len(), anns.as_bytes()[4]),
            (CONNECT_CODE_DIGITS + 1, b'-')
        );
        assert_eq!(
            codes.redeem("ann", &bobs, 1),
            Typed::OfAnother("bob".to_owned())
        );
        assert_eq!(codes.redeem("bob", &bobs, 1), Typed::Wrong, "it is void");
        assert_eq!(
            codes.redeem("ann", &format!(" {} ", anns.replace('-', " ")), 1),
            Typed::Right
        );
        assert_eq!(codes.redeem("ann", &anns, 1), Typed::Wrong);
        let old = codes.issue("ann", [1; 16], 0).unwrap();
        let new = codes.issue("ann", [2; 16], 0).unwrap();
        assert_eq!(codes.redeem("ann", &old, 1), Typed::Wrong);
        assert_eq!(
            codes.redeem("ann", &new, CONNECT_CODE_MS),
            Typed::Wrong,
            "it has expired"
        );
    }

    #[test]
    fn a_code_is_void_after_five_wrong_ones_at_links_of_its_participant() {
        let mut codes = ConnectCodes::default();
        let code = codes.issue("ann", [7; 16], 0).unwrap();
        (1..CONNECT_TRIES_MAX).for_each(|_| assert_eq!(codes.redeem("ann", "1", 1), Typed::Wrong));
        (0..2 * CONNECT_TRIES_MAX)
            .for_each(|_| assert_eq!(codes.redeem("bob", "1", 1), Typed::Wrong));
        assert_eq!(
            codes.redeem("ann", &code, 1),
            Typed::Right,
            "one try was left"
        );
        let code = codes.issue("ann", [7; 16], 0).unwrap();
        (0..CONNECT_TRIES_MAX).for_each(|_| assert_eq!(codes.redeem("ann", "1", 1), Typed::Wrong));
        assert_eq!(codes.redeem("ann", &code, 1), Typed::Wrong);
    }

    #[test]
    fn codes_are_bounded_and_a_participant_has_one() {
        let mut codes = ConnectCodes::default();
        for number in 0..CONNECT_CODES_MAX as u128 {
            codes
                .issue(&number.to_string(), number.to_be_bytes(), 0)
                .unwrap();
        }
        assert_eq!(codes.issue("ann", [7; 16], 1), Err(TooManyCodes));
        assert!(codes.issue("5", [7; 16], 1).is_ok());
        assert!(codes.issue("ann", [7; 16], CONNECT_CODE_MS).is_ok());
    }
}
