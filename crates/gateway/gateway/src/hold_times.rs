//! Durations for which proposals waited, by their ends.

use std::sync::OnceLock;
use std::time::Duration;

use model::ProposalState;
use platform::{Histogram, HistogramCounts};

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// The bounds of the buckets: a rule decides at once, and a person within hours.
const HOLD_BOUNDS: [Duration; 14] = [
    ms(10),
    ms(100),
    ms(1_000),
    ms(2_000),
    ms(5_000),
    ms(10_000),
    ms(30_000),
    ms(60_000),
    ms(120_000),
    ms(300_000),
    ms(600_000),
    ms(1_800_000),
    ms(3_600_000),
    ms(86_400_000),
];

/// The end of waiting: its decision, and by what it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HoldEnd {
    pub(crate) decision: &'static str,
    pub(crate) by: &'static str,
}

const fn end(decision: &'static str, by: &'static str) -> HoldEnd {
    HoldEnd { decision, by }
}

/// The ends that there are.
const ENDS: [HoldEnd; 6] = [
    end("approved", "person"),
    end("approved", "rule"),
    end("rejected", "person"),
    end("rejected", "rule"),
    end("expired", "none"),
    end("withdrawn", "none"),
];

impl HoldEnd {
    /// The end of waiting that a state is; `None` of one that is none, or comes after a decision.
    pub(crate) fn of(state: ProposalState, by_rule: bool) -> Option<Self> {
        let by = if by_rule { "rule" } else { "person" };
        match state {
            ProposalState::Running => Some(end("approved", by)),
            ProposalState::Rejected => Some(end("rejected", by)),
            ProposalState::Expired => Some(end("expired", "none")),
            ProposalState::Withdrawn => Some(end("withdrawn", "none")),
            ProposalState::Pending | ProposalState::Completed | ProposalState::Failed => None,
        }
    }
}

/// Durations for which the proposals of a gateway waited until they were decided, or were over
/// undecided.
#[derive(Debug, Default)]
pub struct HoldTimes([OnceLock<Histogram>; ENDS.len()]);

/// Durations of waits that ended in the same way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldDurations {
    /// `approved`, `rejected`, `expired` or `withdrawn`.
    pub decision: &'static str,
    /// `person` for any participant, `rule`, or `none` for an end without a decision.
    pub by: &'static str,
    /// The durations.
    pub durations: HistogramCounts,
}

impl HoldTimes {
    pub(crate) fn enter(&self, end: HoldEnd, waited: Duration) {
        let mut all = ENDS.iter().zip(&self.0);
        if let Some((_, histogram)) = all.find(|(known, _)| **known == end) {
            let histogram = histogram.get_or_init(|| Histogram::new(&HOLD_BOUNDS));
            histogram.enter(waited);
        }
    }

    /// All durations until now.
    pub fn read(&self) -> Vec<HoldDurations> {
        let mut read = Vec::new();
        for (HoldEnd { decision, by }, histogram) in ENDS.into_iter().zip(&self.0) {
            if let Some(histogram) = histogram.get() {
                read.push(HoldDurations {
                    decision,
                    by,
                    durations: histogram.read(),
                });
            }
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_of_waiting_has_its_own_durations() {
        let times = HoldTimes::default();
        let ends = [
            (ProposalState::Running, false),
            (ProposalState::Running, false),
            (ProposalState::Running, true),
            (ProposalState::Rejected, true),
            (ProposalState::Expired, false),
            (ProposalState::Withdrawn, true),
        ];
        for (state, by_rule) in ends {
            let end = HoldEnd::of(state, by_rule).unwrap();
            times.enter(end, Duration::from_secs(3));
        }
        let read = times.read();
        let found: Vec<_> = read
            .iter()
            .map(|one| (one.decision, one.by, one.durations.total()))
            .collect();
        assert_eq!(
            found,
            [
                ("approved", "person", 2),
                ("approved", "rule", 1),
                ("rejected", "rule", 1),
                ("expired", "none", 1),
                ("withdrawn", "none", 1),
            ]
        );
        for state in [
            ProposalState::Pending,
            ProposalState::Completed,
            ProposalState::Failed,
        ] {
            assert_eq!(HoldEnd::of(state, false), None);
        }
    }
}
