//! Findings of a trial: acts by their old and new outcomes, and those that could not be tried.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The columns of [`Findings::rows`].
pub(super) const COLUMNS: [&str; 6] = ["KIND", "TO", "WAS", "WOULD BE", "BY", "TIMES"];

/// A part of a policy that changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PolicyPart {
    /// What the participant may do: its capabilities, its profile, its grants.
    Capabilities,
    /// Which changes of servers' definitions have calls refused.
    Pins,
    /// The rules of topics.
    Rules,
}

impl PolicyPart {
    /// Its word in tables and JSON.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Capabilities => "capabilities",
            Self::Pins => "pins",
            Self::Rules => "rules",
        }
    }
}

/// An act of the participant that would be decided otherwise.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OtherAct {
    /// The part of the policy that decides it otherwise.
    pub(super) by: PolicyPart,
    /// Its kind.
    pub(super) kind: String,
    /// Its addressees, separated by commas.
    pub(super) to: String,
    /// What became of it.
    pub(super) was: &'static str,
    /// What would become of it.
    pub(super) would_be: &'static str,
}

/// All acts that would be decided otherwise, and those that could not be tried.
#[derive(Debug, Default)]
pub(super) struct Findings {
    otherwise: BTreeMap<OtherAct, usize>,
    not_tried: BTreeMap<(PolicyPart, &'static str), usize>,
}

impl Findings {
    /// Notes an act that would be decided otherwise.
    pub(super) fn note(&mut self, act: OtherAct) {
        *self.otherwise.entry(act).or_default() += 1;
    }

    /// Notes an act that could not be tried on a part of the policy, and why.
    pub(super) fn not_tried(&mut self, part: PolicyPart, why: &'static str) {
        *self.not_tried.entry((part, why)).or_default() += 1;
    }

    /// The number of acts that a part of the policy decides so, instead of so.
    pub(super) fn count(&self, by: PolicyPart, was: &[&str], would_be: &str) -> usize {
        let meant = self
            .otherwise
            .iter()
            .filter(|(act, _)| act.by == by && act.would_be == would_be && was.contains(&act.was));
        meant.map(|(_, times)| times).sum()
    }

    /// The outcomes that a part of the policy would change, each with its number.
    pub(super) fn outcomes(&self, by: PolicyPart) -> BTreeMap<(&'static str, &'static str), usize> {
        let mut outcomes = BTreeMap::new();
        for (act, times) in &self.otherwise {
            if act.by == by {
                *outcomes.entry((act.was, act.would_be)).or_default() += times;
            }
        }
        outcomes
    }

    /// Lines about what could not be tried.
    pub(super) fn gaps(&self) -> Vec<String> {
        let gaps = self.not_tried.iter().map(|((part, why), times)| {
            format!(
                "not tried: {} ({}): {why}",
                counted(*times, "act"),
                part.as_str()
            )
        });
        gaps.collect()
    }

    /// The acts as rows of a table.
    pub(super) fn rows(&self) -> impl Iterator<Item = Vec<String>> {
        self.otherwise.iter().map(|(act, times)| {
            vec![
                act.kind.clone(),
                act.to.clone(),
                act.was.to_owned(),
                act.would_be.to_owned(),
                act.by.as_str().to_owned(),
                times.to_string(),
            ]
        })
    }

    /// The acts that would be decided otherwise, as JSON.
    pub(super) fn otherwise_json(&self) -> Value {
        let rows = self.otherwise.iter().map(|(act, times)| {
            json!({
                "kind": act.kind,
                "to": act.to,
                "was": act.was,
                "would_be": act.would_be,
                "by": act.by.as_str(),
                "times": times,
            })
        });
        rows.collect()
    }

    /// What could not be tried, as JSON.
    pub(super) fn gaps_json(&self) -> Value {
        let rows = self
            .not_tried
            .iter()
            .map(|((part, why), times)| json!({ "by": part.as_str(), "why": why, "times": times }));
        rows.collect()
    }
}

/// A number of things: `1 request`, `2 requests`.
pub(super) fn counted(count: usize, thing: &str) -> String {
    let end = if count == 1 { "" } else { "s" };
    format!("{count} {thing}{end}")
}

/// A number of things in the past: `2 calls that were made`.
pub(super) fn that_were(count: usize, thing: &str, what: &str) -> String {
    let were = if count == 1 { "was" } else { "were" };
    format!("{} that {were} {what}", counted(count, thing))
}
