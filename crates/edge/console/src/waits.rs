//! Proposals that were decided, or were over undecided: how many, by what, and for how long each waited.

use maud::{Markup, html};

use crate::metrics::{Metrics, whole};

/// The metric of the waits.
const WAITS: &str = "portmoot_hold";
/// Parts of the waits whose longest duration is shown.
const PARTS: [(&str, f64); 3] = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)];
/// Ends of waiting, as the metric names them, in words.
const ENDS: [(&str, &str, &str); 6] = [
    ("approved", "person", "approved by a participant"),
    ("approved", "rule", "approved by a rule"),
    ("rejected", "person", "rejected by a participant"),
    ("rejected", "rule", "rejected by a rule"),
    ("expired", "none", "expired undecided"),
    ("withdrawn", "none", "withdrawn"),
];

/// The number of proposals that were decided in this way: by a `person`, by a `rule`, or by `none`.
pub(crate) fn decided(metrics: Metrics<'_>, by: &str) -> f64 {
    metrics.sum_of(&format!("{WAITS}_seconds_count"), "by", by)
}

/// The waits since the gateway started.
pub(crate) fn section(metrics: Metrics<'_>) -> Markup {
    let all = metrics.durations(WAITS, &["decision", "by"]);
    let known = ENDS.iter().filter_map(|(decision, by, words)| {
        let waits = all.get(&vec![(*decision).to_owned(), (*by).to_owned()])?;
        Some((words, waits))
    });
    let rows: Vec<_> = known.collect();
    let by_rules = decided(metrics, "rule");
    let by_people = decided(metrics, "person");
    html! {
        @if !rows.is_empty() {
            h2 { "How long proposals waited" }
            div class="wide" tabindex="0" role="region" aria-label="How long proposals waited" {
                table class="rows" data-testid="waits" {
                    thead { tr { th { "End" } @for (name, _) in PARTS { th class="number" { (name) } } th class="number" { "Proposals" } } }
                    tbody {
                        @for (words, waits) in rows {
                            tr {
                                td { (words) }
                                @for (_, part) in PARTS { td class="number" { (waits.words(waits.quantile(part))) } }
                                td class="number" { (whole(waits.count())) }
                            }
                        }
                    }
                }
            }
            @if by_rules > 0.0 {
                p class="soft" data-testid="saved-prompts" { "Rules decided " (whole(by_rules)) " of " (whole(by_rules + by_people)) ": as many prompts that no person had to answer." }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_told_by_their_ends() {
        let of = |decision: &str, by: &str, count: u32| {
            let labels = format!("decision=\"{decision}\",by=\"{by}\"");
            format!(
                "portmoot_hold_seconds_count{{{labels}}} {count}\n\
                 portmoot_hold_seconds_bucket{{le=\"30.0\",{labels}}} {count}\n\
                 portmoot_hold_seconds_bucket{{le=\"+Inf\",{labels}}} {count}\n"
            )
        };
        let text =
            of("approved", "person", 3) + &of("approved", "rule", 9) + &of("expired", "none", 1);
        let page = section(Metrics(&text)).into_string();
        for seen in [
            "approved by a participant",
            "approved by a rule",
            "expired undecided",
            "≤ 30 s",
            "Rules decided 9 of 12",
        ] {
            assert!(page.contains(seen), "{seen}: {page}");
        }
        assert!(!page.contains("rejected"));
        assert_eq!(section(Metrics("")).into_string(), "");
    }
}
