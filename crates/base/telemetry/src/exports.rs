//! Outcomes of the messages to a collector.

use std::sync::atomic::{AtomicU64, Ordering};

/// The subject of a message to a collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Measured values.
    Metrics,
    /// Spans.
    Traces,
    /// Entries of the audit log.
    Logs,
}

impl Signal {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Metrics, Self::Traces, Self::Logs];

    /// Its name, which is also the end of the path to which its messages go.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Metrics => "metrics",
            Self::Traces => "traces",
            Self::Logs => "logs",
        }
    }
}

/// The result of a message to a collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportOutcome {
    /// The collector has taken it whole.
    Sent,
    /// The collector has taken a part of it.
    Partial,
    /// The collector asked to be sent less often: 429, or 503 with `Retry-After`.
    Throttled,
    /// The collector takes no message of this size: 413.
    TooLarge,
    /// The collector refused it: another status of 4xx, or a redirect, which is not followed.
    Refused,
    /// There was no answer in time, or the collector failed.
    Failed,
}

impl ExportOutcome {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Sent,
        Self::Partial,
        Self::Throttled,
        Self::TooLarge,
        Self::Refused,
        Self::Failed,
    ];

    /// The outcome as metrics have it. Never changes.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Partial => "partial",
            Self::Throttled => "throttled",
            Self::TooLarge => "too_large",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }

    /// Whether all or a part has arrived.
    #[must_use]
    pub fn has_arrived(self) -> bool {
        matches!(self, Self::Sent | Self::Partial)
    }
}

/// The numbers of messages to collectors, by signal and outcome.
#[derive(Debug, Default)]
pub struct ExportCounts([[AtomicU64; ExportOutcome::ALL.len()]; Signal::ALL.len()]);

/// The number of messages of a signal with one outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExportCount {
    /// The signal.
    pub signal: Signal,
    /// The outcome.
    pub outcome: ExportOutcome,
    /// The number.
    pub number: u64,
}

impl ExportCounts {
    /// Counts a message.
    pub fn count(&self, signal: Signal, outcome: ExportOutcome) {
        let of_signal = self.0.get(signal as usize);
        let count = of_signal.and_then(|outcomes| outcomes.get(outcome as usize));
        if let Some(count) = count {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The numbers that are not 0.
    #[must_use]
    pub fn read(&self) -> Vec<ExportCount> {
        let mut read = Vec::new();
        for (signal, outcomes) in Signal::ALL.into_iter().zip(&self.0) {
            for (outcome, count) in ExportOutcome::ALL.into_iter().zip(outcomes) {
                let number = count.load(Ordering::Relaxed);
                if number > 0 {
                    read.push(ExportCount {
                        signal,
                        outcome,
                        number,
                    });
                }
            }
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_outcome_has_its_own_number() {
        let counts = ExportCounts::default();
        for (times, outcome) in ExportOutcome::ALL.into_iter().enumerate() {
            for _ in 0..times {
                counts.count(Signal::Metrics, outcome);
            }
        }
        let read = counts.read();
        let numbers: Vec<_> = read.iter().map(|one| one.number).collect();
        let outcomes: Vec<_> = read.iter().map(|one| one.outcome).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5]);
        assert_eq!(outcomes, ExportOutcome::ALL[1..]);
    }
}
