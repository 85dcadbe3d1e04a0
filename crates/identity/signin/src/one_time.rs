//! One-time codes with which a participant signs in at the page.

use std::collections::HashMap;

use sha2::{Digest as _, Sha256};

/// The digits of a code.
pub const CODE_DIGITS: usize = 10;
/// Time that a code is good, in milliseconds.
pub const ONE_TIME_MS: u64 = 600_000;
/// The most codes that wait to be used. A participant has one at most.
pub const ONE_TIME_CODES_MAX: usize = 1_000;
/// Wrong codes in all after which a code is void, so that guessing finds one of its kind once in 20
/// million times.
pub const WRONG_TRIES_MAX: u32 = 500;

const CODES: u64 = 10_u64.pow(10);

/// A code that waits to be used.
#[derive(Debug)]
struct Waiting {
    hash: [u8; 32],
    until_ms: u64,
    wrong_left: u32,
}

/// All codes, by participant. A restart forgets them.
#[derive(Debug, Default)]
pub struct OneTimeCodes(HashMap<String, Waiting>);

/// There are too many codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many one-time codes wait to be used")]
pub struct TooManyOneTime;

impl OneTimeCodes {
    /// A new code for a participant, in place of the one that it had. `random` are 16 fresh random
    /// bytes.
    ///
    /// # Errors
    /// [`TooManyOneTime`].
    pub fn issue(
        &mut self,
        participant: &str,
        random: [u8; 16],
        now_ms: u64,
    ) -> Result<String, TooManyOneTime> {
        self.0.retain(|_, waiting| now_ms < waiting.until_ms);
        if self.0.len() >= ONE_TIME_CODES_MAX && !self.0.contains_key(participant) {
            return Err(TooManyOneTime);
        }
        let number = u128::from_be_bytes(random) % u128::from(CODES);
        let code = format!("{number:0CODE_DIGITS$}");
        let waiting = Waiting {
            hash: hash(&code),
            until_ms: now_ms.saturating_add(ONE_TIME_MS),
            wrong_left: WRONG_TRIES_MAX,
        };
        self.0.insert(participant.to_owned(), waiting);
        let (first, second) = code
            .split_at_checked(CODE_DIGITS / 2)
            .unwrap_or((&code, ""));
        Ok(format!("{first}-{second}"))
    }

    /// Uses a code, and returns whose it was. Blanks and dashes in it do not count.
    pub fn redeem(&mut self, typed: &str, now_ms: u64) -> Option<String> {
        let digits: String = typed
            .chars()
            .filter(|one| !one.is_whitespace() && *one != '-')
            .collect();
        self.0
            .retain(|_, waiting| now_ms < waiting.until_ms && waiting.wrong_left > 0);
        let presented = hash(&digits);
        let is_it = |waiting: &Waiting| {
            subtle::ConstantTimeEq::ct_eq(&waiting.hash[..], &presented[..]).into()
        };
        let found = self
            .0
            .iter()
            .find(|(_, waiting)| is_it(waiting))
            .map(|(participant, _)| participant.clone());
        match &found {
            Some(participant) => _ = self.0.remove(participant),
            None => self
                .0
                .values_mut()
                .for_each(|waiting| waiting.wrong_left -= 1),
        }
        found
    }
}

fn hash(code: &str) -> [u8; 32] {
    Sha256::digest(code.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_signs_its_participant_in_once() {
        let mut codes = OneTimeCodes::default();
        let code = codes.issue("ann", [7; 16], 0).unwrap();
        assert_eq!((code.len(), code.as_bytes()[5]), (CODE_DIGITS + 1, b'-'));
        assert!(code.bytes().filter(u8::is_ascii_digit).count() == CODE_DIGITS);
        assert_eq!(codes.redeem("00000-00000", 1), None);
        assert_eq!(
            codes
                .redeem(&format!(" {} ", code.replace('-', " ")), 1)
                .as_deref(),
            Some("ann")
        );
        assert_eq!(codes.redeem(&code, 1), None);
        let old = codes.issue("ann", [8; 16], 0).unwrap();
        let new = codes.issue("ann", [9; 16], 0).unwrap();
        assert_eq!(codes.redeem(&old, 1), None, "a new one replaces it");
        assert_eq!(codes.redeem(&new, ONE_TIME_MS), None, "it has expired");
    }

    #[test]
    fn a_code_is_void_after_so_many_wrong_ones() {
        let mut codes = OneTimeCodes::default();
        let code = codes.issue("ann", [7; 16], 0).unwrap();
        (1..WRONG_TRIES_MAX).for_each(|_| assert_eq!(codes.redeem("1", 1), None));
        let mut others = OneTimeCodes::default();
        others
            .0
            .insert("ann".into(), codes.0.remove("ann").unwrap());
        assert_eq!(
            others.redeem(&code, 1).as_deref(),
            Some("ann"),
            "one try was left"
        );
        let code = others.issue("ann", [7; 16], 0).unwrap();
        (0..WRONG_TRIES_MAX).for_each(|_| assert_eq!(others.redeem("1", 1), None));
        assert_eq!(others.redeem(&code, 1), None);
    }

    #[test]
    fn codes_are_bounded_and_a_participant_has_one() {
        let mut codes = OneTimeCodes::default();
        for number in 0..ONE_TIME_CODES_MAX as u128 {
            codes
                .issue(&number.to_string(), number.to_be_bytes(), 0)
                .unwrap();
        }
        assert_eq!(codes.issue("ann", [7; 16], 1), Err(TooManyOneTime));
        assert!(codes.issue("5", [7; 16], 1).is_ok());
        assert!(codes.issue("ann", [7; 16], ONE_TIME_MS).is_ok());
    }
}
