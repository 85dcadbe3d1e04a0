//! Spot checks: uses of a rule that go to a person although the rule would decide them.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::str::FromStr;

use model::OperationId;
use sha2::{Digest as _, Sha256};

use crate::name::RuleId;

/// While a rule has been used less often than this, it is checked often.
pub const OFTEN_UNTIL_USES: u32 = 30;
/// One of so many uses is checked at first.
pub const OFTEN_ONE_IN: u64 = 10;
/// One of so many uses is checked later.
pub const SELDOM_ONE_IN: u64 = 30;
/// Prefix of the bytes that are hashed, so that no other hash can be taken for one of these.
const DOMAIN: &[u8] = b"portmoot/spot/1\0";

/// The last spot checks of a rule that are over and remembered, so that none counts twice.
pub const CHECKS_KEPT: usize = 64;

/// The end of a spot check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SpotEnd {
    /// The call was approved as it was proposed.
    Agreed,
    /// It was rejected, or approved with other arguments.
    Disagreed,
    /// Nothing was decided: the next use is checked in its place.
    Undecided,
}

/// A text that is no [`SpotEnd`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is no end of a spot check")]
pub struct NoSpotEnd;

impl SpotEnd {
    const ALL: [Self; 3] = [Self::Agreed, Self::Disagreed, Self::Undecided];

    fn as_str(self) -> &'static str {
        match self {
            Self::Agreed => "agreed",
            Self::Disagreed => "disagreed",
            Self::Undecided => "undecided",
        }
    }
}

/// The text of the journal, such as `agreed`.
impl fmt::Display for SpotEnd {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl FromStr for SpotEnd {
    type Err = NoSpotEnd;

    fn from_str(text: &str) -> Result<Self, NoSpotEnd> {
        let mut all = Self::ALL.into_iter();
        all.find(|one| one.as_str() == text).ok_or(NoSpotEnd)
    }
}

/// The decided spot checks of one version of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpotTally {
    /// The checks that people decided.
    pub decided: u32,
    /// The checks whose call was approved as it was proposed.
    pub agreed: u32,
}

/// The spot checks of one rule, as a journal carries them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SpotTotals {
    /// Proposals that wait, each with the version that has left it.
    pub open: Vec<(OperationId, u32)>,
    /// The number of next uses that are checked in place of checks without a decision.
    pub owed: u32,
    /// The decided checks of the latest version.
    pub tally: SpotTally,
    /// The last ones that are over, the latest last.
    pub ended: Vec<OperationId>,
}

/// Why a use is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpotCause {
    /// By its draw.
    Drawn,
    /// In place of another one.
    Owed,
}

/// The spot checks of one rule.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct SpotChecks {
    open: BTreeMap<OperationId, u32>,
    owed: u32,
    tally: SpotTally,
    ended: VecDeque<OperationId>,
}

impl SpotChecks {
    /// The spot checks that these totals of a journal carry.
    pub(crate) fn carried(totals: SpotTotals) -> Self {
        Self {
            open: totals.open.into_iter().collect(),
            owed: totals.owed,
            tally: totals.tally,
            ended: totals.ended.into(),
        }
    }

    /// They, for a journal to carry.
    pub(crate) fn totals(&self) -> SpotTotals {
        SpotTotals {
            open: self
                .open
                .iter()
                .map(|(id, version)| (*id, *version))
                .collect(),
            owed: self.owed,
            tally: self.tally,
            ended: self.ended.iter().copied().collect(),
        }
    }

    pub(crate) fn is_owed(&self) -> bool {
        self.owed > 0
    }

    pub(crate) fn is_open(&self, operation: OperationId) -> bool {
        self.open.contains_key(&operation)
    }

    pub(crate) fn has_ended(&self, operation: OperationId) -> bool {
        self.ended.contains(&operation)
    }

    pub(crate) fn tally(&self) -> SpotTally {
        self.tally
    }

    /// Begins another version.
    pub(crate) fn begin(&mut self) {
        self.tally = SpotTally::default();
    }

    /// Takes a check that a version begins. `None` if it is known.
    pub(crate) fn open(&mut self, operation: OperationId, version: u32) -> Option<SpotCause> {
        if self.is_open(operation) || self.has_ended(operation) {
            return None;
        }
        self.open.insert(operation, version);
        if self.owed == 0 {
            return Some(SpotCause::Drawn);
        }
        self.owed -= 1;
        Some(SpotCause::Owed)
    }

    /// Takes the end of a check. `latest` is the latest version, whose checks are counted.
    pub(crate) fn end(&mut self, operation: OperationId, end: SpotEnd, latest: u32) {
        let Some(version) = self.open.remove(&operation) else {
            return;
        };
        self.ended.push_back(operation);
        if self.ended.len() > CHECKS_KEPT {
            self.ended.pop_front();
        }
        if end == SpotEnd::Undecided {
            self.owed = self.owed.saturating_add(1);
        } else if version == latest {
            self.tally.decided = self.tally.decided.saturating_add(1);
            let agreed = u32::from(end == SpotEnd::Agreed);
            self.tally.agreed = self.tally.agreed.saturating_add(agreed);
        }
    }
}

/// Whether the use of a rule with this draw is checked. `seed` is secret, so that no proposer can
/// tell; `draw` is [`Spent::draws`](crate::Spent::draws). The draw is the rule's and not the proposal's:
/// a proposer that withdraws a checked proposal and makes another one has no other draw.
#[must_use]
pub fn is_spot_check(seed: &[u8; 32], rule: &RuleId, draw: u32) -> bool {
    let mut hash = Sha256::new();
    hash.update(DOMAIN);
    hash.update(seed);
    hash.update(draw.to_be_bytes());
    hash.update(rule.as_str());
    let drawn = hash
        .finalize()
        .iter()
        .take(8)
        .fold(0_u64, |all, byte| all << 8 | u64::from(*byte));
    let one_in = if draw < OFTEN_UNTIL_USES {
        OFTEN_ONE_IN
    } else {
        SELDOM_ONE_IN
    };
    drawn % one_in == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The draws below a bound that are checked.
    fn checked(seed: u8, id: &str, draws: std::ops::Range<u32>) -> Vec<u32> {
        let rule = RuleId::new(id).unwrap();
        draws
            .filter(|draw| is_spot_check(&[seed; 32], &rule, *draw))
            .collect()
    }

    #[test]
    fn a_part_of_the_uses_is_checked() {
        let often: usize = (0..200_u8)
            .map(|seed| checked(seed, "r1", 0..OFTEN_UNTIL_USES).len())
            .sum();
        assert!((480..720).contains(&often), "{often}");
        let seldom = checked(7, "r1", OFTEN_UNTIL_USES..6_000).len();
        assert!((130..270).contains(&seldom), "{seldom}");
    }

    #[test]
    fn the_last_ended_ones_are_remembered() {
        let mut checks = SpotChecks::default();
        let last = u128::try_from(CHECKS_KEPT).unwrap();
        for operation in (0..=last).map(OperationId) {
            checks.open(operation, 1);
            checks.end(operation, SpotEnd::Agreed, 1);
        }
        assert_eq!(checks.ended.len(), CHECKS_KEPT);
        assert!(!checks.has_ended(OperationId(0)) && checks.has_ended(OperationId(1)));
        for end in SpotEnd::ALL {
            assert_eq!(end.to_string().parse(), Ok(end));
        }
        assert_eq!("well".parse::<SpotEnd>(), Err(NoSpotEnd));
    }

    #[test]
    fn seed_and_rule_decide_which() {
        assert_eq!(checked(1, "r1", 0..200), checked(1, "r1", 0..200));
        assert_ne!(checked(1, "r1", 0..200), checked(2, "r1", 0..200));
        assert_ne!(checked(1, "r1", 0..200), checked(1, "r2", 0..200));
    }
}
