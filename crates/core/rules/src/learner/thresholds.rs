//! Thresholds of the learner, and the most candidates of a group.

/// Approvals of one group that make a candidate.
pub const APPROVALS_MIN: usize = 10;
/// Approvals that a candidate must cover after it took its form.
pub const SHADOW_MIN: u32 = 10;
/// Days on which it must have covered them.
pub const SHADOW_DAYS_MIN: usize = 2;
/// Approvals of one and the same call that make a candidate for its repetition.
pub const REPEATS_MIN: usize = 3;
/// As many where the proposer's calls of the tool were approved [`APPROVALS_MIN`] times, all of them with the
/// same members, and none of the tool was rejected: these approvals say more than a third one.
pub const PROVEN_REPEATS_MIN: usize = 2;
/// The most candidates of one group.
pub const GROUP_CANDIDATES_MAX: usize = 8;

/// Numbers of approvals that are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LearnerThresholds {
    /// As [`APPROVALS_MIN`].
    pub approvals: usize,
    /// As [`SHADOW_MIN`].
    pub shadow: u32,
    /// As [`SHADOW_DAYS_MIN`].
    pub shadow_days: usize,
    /// As [`REPEATS_MIN`].
    pub repeats: usize,
    /// As [`PROVEN_REPEATS_MIN`].
    pub proven_repeats: usize,
}

impl Default for LearnerThresholds {
    fn default() -> Self {
        Self {
            approvals: APPROVALS_MIN,
            shadow: SHADOW_MIN,
            shadow_days: SHADOW_DAYS_MIN,
            repeats: REPEATS_MIN,
            proven_repeats: PROVEN_REPEATS_MIN,
        }
    }
}
