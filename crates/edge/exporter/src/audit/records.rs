//! Entries of the audit log as records for a collector.

use store::audit::{RecordedEntry, RecordedVerdict};
use telemetry::trace::TraceId;
use telemetry::{LogAttribute, LogRecord, LogValue};

/// The event of each record.
const EVENT: &str = "portmoot.audit";

/// Verdicts of records with the severity of a warning.
const WARNINGS: [RecordedVerdict; 3] = [
    RecordedVerdict::Refused,
    RecordedVerdict::Failed,
    RecordedVerdict::Broken,
];

/// The record of a line of the log, which has the line itself as its body; `None` if it is no entry.
pub(super) fn record(line: &str) -> Option<LogRecord> {
    let entry = RecordedEntry::read(line)?;
    let is_warning = WARNINGS.iter().any(|one| one.as_str() == entry.verdict);
    let trace = entry.trace.as_deref();
    let trace = trace.and_then(|trace| u128::from_str_radix(trace, 16).ok());
    let mut attributes = vec![LogAttribute {
        name: "portmoot.audit.seq",
        value: LogValue::Number(entry.seq),
    }];
    let texts = [
        ("portmoot.topic", entry.topic),
        ("portmoot.participant", Some(entry.from)),
        ("portmoot.kind", Some(entry.kind)),
        ("portmoot.verdict", Some(entry.verdict)),
        ("portmoot.operation", entry.operation),
    ];
    for (name, text) in texts {
        attributes.extend(text.map(|text| LogAttribute {
            name,
            value: LogValue::Text(text.into_owned()),
        }));
    }
    Some(LogRecord {
        at_ms: entry.at_ms,
        event: EVENT,
        is_warning,
        body: line.to_owned(),
        trace: trace.map(TraceId::new),
        attributes,
    })
}
