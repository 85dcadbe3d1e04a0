//! Rows of a table of audit entries.

use store::audit::RecordedEntry;
use wire::time::rfc3339;

/// The columns.
pub(super) const COLUMNS: [&str; 8] = [
    "ENTRY", "TIME", "TOPIC", "FROM", "KIND", "TO", "VERDICT", "WHY",
];

/// The cells of an entry.
pub(super) fn row(entry: &RecordedEntry<'_>) -> Vec<String> {
    let to: Vec<&str> = entry.to.iter().map(AsRef::as_ref).collect();
    vec![
        entry.seq.to_string(),
        rfc3339(entry.at_ms),
        entry.topic.as_deref().unwrap_or("-").to_owned(),
        entry.from.clone().into_owned(),
        entry.kind.clone().into_owned(),
        if to.is_empty() {
            "-".to_owned()
        } else {
            to.join(", ")
        },
        entry.verdict.clone().into_owned(),
        entry.why.as_deref().unwrap_or_default().to_owned(),
    ]
}
