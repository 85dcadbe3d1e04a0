//! Statistics of approvals: bounds of the share of wrong ones, budgets, rates of the past.

use crate::guards::RuleRate;
use crate::window::HOUR_MS;

/// The fewest uses that a general rule has before its author looks again.
pub const USES_MIN: u32 = 5;
/// The lowest rate that a rule has, in calls an hour.
pub const RATE_MIN: u32 = 5;
/// The risk that a bound does not hold.
const RISK: f64 = 0.05;

/// Lower bound of the share of calls in a rule's region that its reviewers would approve, in
/// thousandths, after so many approvals in a row without a rejection: 95 %, at any time at which one
/// looks (Ville's inequality with a uniform mixture: `(0.05 / (n + 1)) ^ (1 / n)`).
#[must_use]
pub fn approved_share_permille(approvals: u32) -> u16 {
    if approvals == 0 {
        return 0;
    }
    let n = f64::from(approvals);
    let share = (RISK / (n + 1.0)).powf(1.0 / n);
    // In 0..=1000: a rounding down keeps a lower bound.
    let permille = (share * 1000.0).floor().clamp(0.0, 1000.0);
    (0..=1000_u16)
        .rev()
        .find(|one| f64::from(*one) <= permille)
        .unwrap_or_default()
}

/// The uses that a general rule may have before its author looks again: a third of the approvals
/// that it rests on, so that about one wrong use is to be expected at most.
#[must_use]
pub fn uses_after(approvals: u32) -> u32 {
    (approvals / 3).max(USES_MIN)
}

/// The rate of the past: twice the 95th percentile of the approved calls of an hour, at least
/// [`RATE_MIN`]. Hours without a call do not count.
#[must_use]
pub fn rate_of(times_ms: &[u64]) -> RuleRate {
    let mut hours: Vec<u64> = times_ms.iter().map(|at| at / HOUR_MS).collect();
    hours.sort_unstable();
    let mut counts: Vec<u32> = hours
        .chunk_by(|one, next| one == next)
        .map(|hour| u32::try_from(hour.len()).unwrap_or(u32::MAX))
        .collect();
    counts.sort_unstable();
    // The smallest count that at least 95 % of the hours do not exceed.
    let at = (counts.len() * 95).div_ceil(100).saturating_sub(1);
    let busy = counts.get(at).copied().unwrap_or_default();
    let most = crate::guards::USES_MAX;
    RuleRate::an_hour(busy.saturating_mul(2).clamp(RATE_MIN, most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_any_time_bound_has_its_known_values() {
        // Computed apart: 38.4, 58.3, 73.9, 80.7, 88.7, 92.7, 97.1 %.
        for (approvals, permille) in [
            (0, 0),
            (1, 25),
            (5, 383),
            (10, 583),
            (20, 739),
            (30, 807),
            (59, 886),
            (100, 926),
            (299, 971),
        ] {
            let found = approved_share_permille(approvals);
            assert!(found.abs_diff(permille) <= 1, "{approvals}: {found}");
        }
        assert!(approved_share_permille(u32::MAX) <= 1000);
    }

    #[test]
    fn a_budget_is_a_third_of_its_evidence() {
        assert_eq!([0, 10, 15, 20, 100].map(uses_after), [5, 5, 5, 6, 33]);
    }

    #[test]
    fn a_rate_is_twice_that_of_the_past() {
        let hour = |at: u64, calls: usize| vec![at * HOUR_MS; calls];
        assert_eq!(rate_of(&[]).max, RATE_MIN);
        assert_eq!(rate_of(&hour(3, 10)).max, 20);
        // One busy hour of twenty does not count.
        let quiet: Vec<u64> = (0..19).flat_map(|at| hour(at, 4)).collect();
        assert_eq!(rate_of(&[quiet.clone(), hour(30, 50)].concat()).max, 8);
        assert_eq!(
            rate_of(&[quiet, hour(30, 50), hour(31, 50)].concat()).max,
            100
        );
    }
}
