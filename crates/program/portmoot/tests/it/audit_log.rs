//! Audit log of a running gateway, read with `portmoot audit query`.

use serde_json::Value;

use crate::home::Home;
use crate::support::until;

/// The audit log in a home's `data`.
pub(crate) struct AuditLog<'h>(pub(crate) &'h Home);

impl AuditLog<'_> {
    /// The entries that match these arguments, oldest first.
    #[track_caller]
    pub(crate) fn entries(&self, args: &[&str]) -> Vec<Value> {
        let query = ["audit", "query", "--json", "--data-dir", "data"];
        let ran = self.0.run(&[&query[..], args].concat()).expect(0);
        let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
        answer["entries"].as_array().unwrap().clone()
    }

    /// Waits for an entry with this participant, kind, verdict and beginning of the reason; returns
    /// it.
    #[track_caller]
    pub(crate) fn has(&self, from: &str, kind: &str, verdict: &str, why: &str) -> Value {
        until(&format!("{from} {kind} {verdict} {why}"), || {
            let all = self.entries(&["--participant", from, "--verdict", verdict]);
            all.into_iter().find(|entry| is(entry, from, kind, why))
        })
    }

    /// The number of entries with this participant, kind, verdict and beginning of the reason.
    #[track_caller]
    pub(crate) fn count(&self, from: &str, kind: &str, verdict: &str, why: &str) -> usize {
        let all = self.entries(&["--participant", from, "--verdict", verdict]);
        all.iter()
            .filter(|entry| is(entry, from, kind, why))
            .count()
    }

    /// Waits for this many entries with this participant, kind, verdict and beginning of the
    /// reason.
    #[track_caller]
    pub(crate) fn comes_to(&self, count: usize, from: &str, kind: &str, verdict: &str, why: &str) {
        until(
            &format!("{count} times {from} {kind} {verdict} {why}"),
            || (self.count(from, kind, verdict, why) == count).then_some(()),
        );
    }

    /// The number of these entries, including those that a flood entry counts.
    #[track_caller]
    pub(crate) fn counted(&self, from: &str, kind: &str, verdict: &str, cause: &str) -> u64 {
        let all = self.entries(&["--participant", from, "--verdict", verdict]);
        let counts = all
            .iter()
            .filter(|entry| is(entry, from, kind, "counted: "));
        let sum: u64 = counts
            .flat_map(|entry| {
                let causes = entry["why"]
                    .as_str()
                    .unwrap()
                    .strip_prefix("counted: ")
                    .unwrap()
                    .split(", ");
                let of = causes
                    .filter_map(|one| one.rsplit_once(' ').filter(|(name, _)| *name == cause));
                of.map(|(_, count)| count.parse::<u64>().unwrap())
                    .collect::<Vec<_>>()
            })
            .sum();
        sum + u64::try_from(self.count(from, kind, verdict, cause)).unwrap()
    }

    /// Checks that the log verifies.
    #[track_caller]
    pub(crate) fn is_whole(&self) {
        self.0
            .run(&["audit", "verify", "--data-dir", "data"])
            .expect(0);
    }
}

fn is(entry: &Value, from: &str, kind: &str, why: &str) -> bool {
    let said = entry["why"].as_str().unwrap_or_default();
    entry["from"] == from && entry["kind"] == kind && said.starts_with(why)
}
