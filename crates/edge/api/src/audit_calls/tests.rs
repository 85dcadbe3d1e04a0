//! Tests of calls and timelines, on a log of this process.

use serde_json::json;
use store::audit::{AuditEntry, RecordedVerdict as Word};

use super::*;
use crate::audit::tests::Written;

const CALL: &str = "mcp/request:tools/call:files_write";
const PROPOSAL_KIND: &str = "mcp/proposal:tools/call:write";

fn entry<'e>(from: &'e str, kind: &'e str, verdict: Word, id: u128) -> AuditEntry<'e> {
    AuditEntry {
        operation: Some(OperationId(id)),
        to: &["files"],
        ..store::recorder::entry(Some("main"), from, kind, verdict)
    }
}

/// Writes a call that is held, and the proposal that is made of it.
fn hold(log: &Written, from: &str, call: u128, proposal: u128) {
    let own = Some("write");
    let held = entry(from, CALL, Word::Held, call);
    log.write(&AuditEntry { own, ..held });
    let why = CallLink::For(OperationId(call)).to_string();
    let opened = entry(from, PROPOSAL_KIND, Word::Held, proposal);
    let why = Some(why.as_str());
    log.write(&AuditEntry { why, ..opened });
}

fn happens(log: &Written, from: &str, verdict: Word, id: u128) {
    log.write(&entry(from, PROPOSAL_KIND, verdict, id));
}

fn wanted(query: serde_json::Value) -> Result<WantedCalls, Refusal> {
    WantedCalls::read(serde_json::from_value(query).unwrap())
}

/// The calls of all pages, as `BY TARGET OUTCOME DECIDED-BY`.
fn calls(reader: &AuditReader, mut query: serde_json::Value) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        let page = wanted(query.clone()).unwrap().find(reader).unwrap();
        let line = |call: &AuditCall| {
            let by = call.decided_by.as_deref().unwrap_or("-");
            format!("{} {} {} {by}", call.by, call.target, call.outcome)
        };
        all.extend(page.calls.iter().map(line));
        let Some(next) = page.next else { return all };
        query["after"] = json!(next);
    }
}

/// A log of several calls, with something of another topic and something that is no call.
fn log() -> Written {
    let log = Written::new();
    log.write(&entry(
        "ann",
        "mcp/request:tools/call:files_read",
        Word::Admitted,
        1,
    ));
    hold(&log, "scout", 2, 102);
    hold(&log, "scout", 3, 103);
    log.write(&entry("ann", "chat", Word::Admitted, 50));
    happens(&log, "bo", Word::Approved, 102);
    // Unfit: it was admitted, and is refused since.
    log.write(&entry("ann", CALL, Word::Admitted, 4));
    log.write(&entry("ann", CALL, Word::Refused, 4));
    let elsewhere = entry("eve", CALL, Word::Admitted, 5);
    let topic = Some("other");
    log.write(&AuditEntry { topic, ..elsewhere });
    happens(&log, "scout", Word::Completed, 102);
    // A proposal without a call, and what would have been decided otherwise.
    log.write(&entry("worker", PROPOSAL_KIND, Word::Held, 106));
    log.write(&entry("ann", CALL, Word::Shadow, 1));
    happens(&log, "ann", Word::Refused, 103);
    happens(&log, "ann", Word::Rejected, 103);
    // An envelope of a room has no id.
    let said = entry(
        "ann",
        "mcp/request:tools/call:files_read",
        Word::Admitted,
        0,
    );
    let operation = None;
    log.write(&AuditEntry { operation, ..said });
    log
}

#[test]
fn a_call_has_what_became_of_its_proposal_on_whatever_page() {
    let log = log();
    let reader = log.reader(&["main"]);
    let expected = [
        "ann files_read admitted -",
        "worker write held -",
        "ann files_write refused -",
        "scout files_write rejected ann",
        "scout files_write completed bo",
        "ann files_read admitted -",
    ];
    for limit in ["100", "6", "3"] {
        let found = calls(&reader, json!({ "limit": limit }));
        assert_eq!(found, expected, "{limit}");
    }
    // Between the two entries of a call it is on both pages, with the same end.
    let single = calls(&reader, json!({ "limit": "1" }));
    let mut without = single.clone();
    without.dedup();
    assert_eq!(without, expected);
    let first = wanted(json!({})).unwrap().find(&reader).unwrap();
    assert!(first.calls[0].operation.is_none());
    assert_eq!(first.calls[3].proposal, Some(OperationId(103).to_string()));
    assert_eq!(first.calls[2].verdict, "admitted");
}

#[test]
fn calls_are_filtered_and_those_of_other_topics_are_not_seen() {
    let log = log();
    let reader = log.reader(&["main"]);
    let count = |query: serde_json::Value| calls(&reader, query).len();
    assert_eq!(count(json!({ "participant": "scout" })), 2);
    assert_eq!(count(json!({ "participant": "eve" })), 0);
    assert_eq!(count(json!({ "server": "files" })), 6);
    assert_eq!(count(json!({ "server": "file" })), 0);
    assert_eq!(count(json!({ "tool": "*_write" })), 3);
    assert_eq!(
        count(json!({ "tool": "write" })),
        3,
        "the server's own name"
    );
    assert_eq!(count(json!({ "topic": "other" })), 0);
    for limit in ["100", "1"] {
        let outcome = |outcome: &str| count(json!({ "outcome": outcome, "limit": limit }));
        let found = ["rejected", "completed", "held", "approved"].map(outcome);
        assert_eq!(found, [1, 1, 1, 0], "{limit}");
    }
    let other = log.reader(&["other"]);
    assert_eq!(calls(&other, json!({})), ["eve files_write admitted -"]);
    assert!(wanted(json!({ "outcome": "lost" })).is_err());
    assert!(wanted(json!({ "tool": "a".repeat(10_000) })).is_err());
}

/// The timeline of an operation, as `VERDICT FROM`.
fn timeline(reader: &AuditReader, id: u128, place: Option<&str>) -> Vec<String> {
    let place = place_of(place).unwrap();
    let found = AuditTimeline::find(reader, OperationId(id), place).unwrap();
    let line = |line: &RawValue| {
        let entry: RecordedEntry<'_> = serde_json::from_str(line.get()).unwrap();
        format!("{} {}", entry.verdict, entry.from)
    };
    found.entries.iter().map(|one| line(one)).collect()
}

#[test]
fn a_timeline_joins_the_call_and_its_proposal_whichever_is_named() {
    let log = log();
    let reader = log.reader(&["main"]);
    let expected = ["held scout", "held scout", "approved bo", "completed scout"];
    assert_eq!(timeline(&reader, 2, None), expected);
    assert_eq!(timeline(&reader, 102, None), expected);
    let all = wanted(json!({})).unwrap().find(&reader).unwrap();
    let place = &all.calls[4].place;
    assert_eq!(timeline(&reader, 2, Some(place)), expected);
    let ended = ["held scout", "held scout", "refused ann", "rejected ann"];
    assert_eq!(timeline(&reader, 3, None), ended);
    assert_eq!(timeline(&reader, 4, None), ["admitted ann", "refused ann"]);
    // That of another topic is like one that does not exist.
    let unknown = |id| {
        let found = AuditTimeline::find(&reader, OperationId(id), None);
        format!("{:?}", found.map(|_| ()).unwrap_err())
    };
    assert_eq!(
        unknown(5).replace(&OperationId(5).to_string(), "ID"),
        unknown(99).replace(&OperationId(99).to_string(), "ID")
    );
}

#[test]
fn a_call_that_repeats_a_proposal_is_joined_and_joins_are_bounded() {
    let log = Written::new();
    hold(&log, "scout", 1, 100);
    for call in 2..=u128::try_from(JOINED_MAX).unwrap() + 20 {
        log.write(&entry("scout", CALL, Word::Held, call));
        let why = CallLink::Repeated(OperationId(call)).to_string();
        let repeated = entry("scout", PROPOSAL_KIND, Word::Held, 100);
        let why = Some(why.as_str());
        log.write(&AuditEntry { why, ..repeated });
    }
    happens(&log, "ann", Word::Rejected, 100);
    let reader = log.reader(&["main"]);
    let rejected = calls(&reader, json!({ "outcome": "rejected" }));
    assert_eq!(rejected.len(), JOINED_MAX + 20);
    // Each call that is joined has an entry, and the proposal has all of its own.
    let found = timeline(&reader, 1, None);
    assert_eq!(found.len(), JOINED_MAX - 1 + JOINED_MAX + 20 + 1);
    assert_eq!(found.last().unwrap(), "rejected ann");
}

#[test]
fn a_timeline_has_at_most_so_many_entries() {
    let log = Written::new();
    for _ in 0..AUDIT_PAGE_MAX + 1 {
        happens(&log, "ann", Word::Refused, 7);
    }
    let reader = log.reader(&["main"]);
    let found = AuditTimeline::find(&reader, OperationId(7), None).unwrap();
    assert!(found.cut);
    assert_eq!(found.entries.len(), AUDIT_PAGE_MAX);
}
