//! Samples of the metrics, for pictures over time.

use std::collections::{HashMap, VecDeque};

use platform::Mutex;

/// Samples of the metrics that are kept for a participant.
const SAMPLES_MAX: usize = 300;
/// Time between samples, in milliseconds.
const SAMPLE_MS: u64 = 2_000;
/// Time for which a sample is kept, in milliseconds.
const KEPT_MS: u64 = 600_000;

/// The metrics at one time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Sample {
    pub(crate) at_ms: u64,
    pub(crate) uptime_s: f64,
    pub(crate) admitted: f64,
    pub(crate) refused: f64,
    /// Open requests.
    pub(crate) open: f64,
    /// Proposals that have not ended.
    pub(crate) proposals: f64,
    pub(crate) participants: f64,
    pub(crate) audit_available: f64,
    /// Calls that have failed at servers.
    pub(crate) failed: f64,
    /// Proposals that participants have decided about.
    pub(crate) by_people: f64,
    /// Proposals that rules have decided about.
    pub(crate) by_rules: f64,
    /// Bytes of definitions that lists have left out.
    pub(crate) left_out: f64,
    /// Memory of the gateway itself, in bytes.
    pub(crate) memory: f64,
    /// Processes of servers and their memory in bytes, if they were looked at: that costs more.
    pub(crate) servers: Option<ServersUse>,
}

/// The processes of all local servers at one time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct ServersUse {
    pub(crate) processes: f64,
    pub(crate) memory: f64,
}

/// Samples of the metrics, by participant: each sees its own.
#[derive(Default)]
pub(crate) struct Samples(Mutex<HashMap<String, VecDeque<Sample>>>);

impl Samples {
    /// Adds a sample, unless there is one of just now.
    pub(crate) fn add(&self, participant: &str, sample: Sample) {
        let mut all = self.0.lock();
        let now_ms = sample.at_ms;
        all.retain(|_, samples| {
            let last = samples.back().map_or(0, |last| last.at_ms);
            now_ms.saturating_sub(last) < KEPT_MS
        });
        let samples = all.entry(participant.to_owned()).or_default();
        // A gateway that has started anew counts anew.
        if samples
            .back()
            .is_some_and(|last| last.uptime_s > sample.uptime_s)
        {
            samples.clear();
        }
        samples.push_back(sample);
        let is_old = |first: &Sample| now_ms.saturating_sub(first.at_ms) >= KEPT_MS;
        while samples.len() > SAMPLES_MAX || samples.front().is_some_and(is_old) {
            samples.pop_front();
        }
    }

    /// Whether it is time for the next sample of a participant.
    pub(crate) fn is_due(&self, participant: &str, now_ms: u64) -> bool {
        let all = self.0.lock();
        let last = all.get(participant).and_then(VecDeque::back);
        last.is_none_or(|last| now_ms.saturating_sub(last.at_ms) >= SAMPLE_MS)
    }

    /// Samples of a participant, the oldest first.
    pub(crate) fn of(&self, participant: &str) -> Vec<Sample> {
        let all = self.0.lock();
        all.get(participant)
            .into_iter()
            .flatten()
            .copied()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(at_ms: u64, admitted: f64) -> Sample {
        Sample {
            at_ms,
            admitted,
            uptime_s: at_ms as f64,
            ..Sample::default()
        }
    }

    #[test]
    fn samples_are_bounded_forgotten_and_begin_anew_with_the_gateway() {
        let samples = Samples::default();
        assert!(samples.is_due("ann", 0));
        for number in 0..SAMPLES_MAX as u64 + 5 {
            samples.add("ann", at(number * SAMPLE_MS, 1.0));
        }
        assert_eq!(samples.of("ann").len(), SAMPLES_MAX);
        let last = samples.of("ann").last().unwrap().at_ms;
        assert!(!samples.is_due("ann", last + 1));
        assert!(samples.is_due("bob", last + 1));
        samples.add(
            "ann",
            Sample {
                at_ms: last + 1,
                ..Sample::default()
            },
        );
        assert_eq!(samples.of("ann").len(), 1, "another gateway");
        samples.add("bob", at(last + KEPT_MS + 1, 1.0));
        assert!(samples.of("ann").is_empty());
    }
}
