//! Tests of looks at the audit log for one caller, on a log of this process.

use std::fs::{File, read_dir};

use store::JournalWriter;
use store::audit::{AuditEntry, AuditLog, LogFiles, Payloads, Policy, RecordedVerdict};
use tempfile::TempDir;

use super::*;
use crate::audit_places::AuditPlaces;

/// A log in a directory of its own.
pub(crate) struct Written {
    dir: TempDir,
    log: AuditLog,
    _journal: JournalWriter,
}

impl Written {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let journal = JournalWriter::open(dir.path()).unwrap();
        let policy = Policy::new(Payloads::Full, &["secret"]);
        let log = AuditLog::open(&journal, &[3; 32], 1, policy, LogFiles::default()).unwrap();
        Self {
            dir,
            log,
            _journal: journal,
        }
    }

    pub(crate) fn write(&self, entry: &AuditEntry<'_>) {
        self.log.reserve().unwrap().write(entry);
    }

    /// A look at all that was written, which sees these topics.
    pub(crate) fn reader(&self, topics: &[&str]) -> AuditReader {
        self.log.flush().unwrap();
        AuditReader {
            dir: Arc::from(self.dir.path()),
            topics: topics.iter().map(ToString::to_string).collect(),
            reads_all: false,
            _place: AuditPlaces::default().looks.of("ann").take(1).unwrap(),
        }
    }
}

fn chat<'e>(topic: Option<&'e str>, from: &'e str, at_ms: u64) -> AuditEntry<'e> {
    AuditEntry {
        at_ms,
        ..store::recorder::entry(topic, from, "chat", RecordedVerdict::Admitted)
    }
}

/// The senders of all pages of so many entries.
fn senders(reader: &AuditReader, filter: &EntryFilter, limit: usize) -> Vec<Vec<String>> {
    let (mut pages, mut before) = (Vec::new(), None);
    loop {
        let page = AuditPage::read(reader, filter, limit, before).unwrap();
        let from = |line: &RawValue| {
            let entry: RecordedEntry<'_> = serde_json::from_str(line.get()).unwrap();
            entry.from.to_string()
        };
        pages.push(page.entries.iter().map(|line| from(line)).collect());
        before = place_of(page.next.as_deref()).unwrap();
        if before.is_none() {
            return pages;
        }
    }
}

#[test]
fn pages_have_the_entries_of_the_topics_that_the_caller_may_read() {
    let written = Written::new();
    for (at, (topic, from)) in [
        (Some("main"), "a"),
        (Some("other"), "b"),
        (None, "c"),
        (Some("main"), "d"),
        (Some("main"), "e"),
    ]
    .into_iter()
    .enumerate()
    {
        written.write(&chat(topic, from, at as u64));
    }
    let all = EntryFilter::default();
    let main = written.reader(&["main"]);
    assert_eq!(senders(&main, &all, 2), [vec!["e", "d"], vec!["a"]]);
    assert_eq!(senders(&main, &all, 9), [["e", "d", "a"]]);
    assert_eq!(senders(&main, &all, 3), [["e", "d", "a"]]);
    let both = written.reader(&["main", "other"]);
    assert_eq!(senders(&both, &all, 9), [["e", "d", "b", "a"]]);
    let filter = EntryFilter {
        topic: Some("other".to_owned()),
        ..EntryFilter::default()
    };
    assert_eq!(senders(&main, &filter, 9), [Vec::<String>::new()]);
    // What is outside of topics is about all of them.
    let mut reader = both;
    reader.reads_all = true;
    assert_eq!(senders(&reader, &all, 9), [["e", "d", "c", "b", "a"]]);
}

#[test]
fn a_page_ends_before_a_mebibyte_and_leaves_out_what_is_longer() {
    let written = Written::new();
    let payload = format!("\"{}\"", "x".repeat(60 << 10));
    for at in 0..20 {
        written.write(&AuditEntry {
            payload: Some(payload.as_bytes()),
            ..chat(Some("main"), "a", at)
        });
    }
    let name = "n".repeat(4_000);
    let names = vec![name.as_str(); 300];
    written.write(&AuditEntry {
        to: &names,
        ..chat(Some("main"), "long", 30)
    });
    let reader = written.reader(&["main"]);
    let page = AuditPage::read(&reader, &EntryFilter::default(), 500, None).unwrap();
    let bytes: usize = page.entries.iter().map(|line| line.get().len()).sum();
    assert!(bytes <= AUDIT_ANSWER_BYTES_MAX, "{bytes}");
    assert_eq!((page.entries.len(), page.left_out), (17, 1));
    let next = place_of(page.next.as_deref()).unwrap();
    let page = AuditPage::read(&reader, &EntryFilter::default(), 500, next).unwrap();
    assert_eq!((page.entries.len(), page.next), (3, None));
}

#[test]
fn a_look_ends_an_hour_before_the_time_that_is_wanted() {
    let written = Written::new();
    let wanted = 10 * CLOCK_SLACK_MS;
    // The clock was set back by less than that, then by more.
    for (from, at_ms) in [
        ("passed over", wanted),
        ("old", wanted - CLOCK_SLACK_MS - 1),
        ("b", wanted),
        ("early", wanted - 1),
        ("a", wanted + 1),
    ] {
        written.write(&chat(Some("main"), from, at_ms));
    }
    let filter = EntryFilter {
        since_ms: Some(wanted),
        ..EntryFilter::default()
    };
    assert_eq!(
        senders(&written.reader(&["main"]), &filter, 9),
        [["a", "b"]]
    );
}

#[test]
fn a_changed_log_is_found_and_one_that_is_too_large_is_not_read() {
    let written = Written::new();
    written.write(&chat(Some("main"), "a", 1));
    written.log.flush().unwrap();
    let dir = written.dir.path();
    let report = checked(dir, None).unwrap();
    assert!(report.intact && report.entries == 1, "{}", report.head);
    let segment = read_dir(dir.join("audit"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let text = std::fs::read_to_string(segment.path()).unwrap();
    std::fs::write(segment.path(), text.replace("admitted", "refused")).unwrap();
    let report = checked(dir, None).unwrap();
    assert!(!report.intact && report.findings_count > 0);
    let file = File::options().write(true).open(segment.path()).unwrap();
    file.set_len(AUDIT_VERIFIED_BYTES_MAX + 1).unwrap();
    let refused = checked(dir, None).map(|_| ()).unwrap_err();
    assert_eq!(refused.code, RefusalCode::TooLarge);
}

#[test]
fn filters_limits_and_places_are_checked() {
    let filter = |text: &str| {
        let query: AuditQuery = serde_json::from_str(text).unwrap();
        query.filter()
    };
    for (text, words) in [
        (r#"{"verdict":"no"}"#, "there is no verdict `no`"),
        (r#"{"kinds":"*"}"#, "is not a list of kinds"),
        (r#"{"operation":"x"}"#, "is not the beginning of"),
        (r#"{"since":"yesterday"}"#, "`since` must be a time ago"),
    ] {
        let refused = filter(text).unwrap_err();
        assert_eq!(refused.code, RefusalCode::Malformed);
        assert!(refused.message.contains(words), "{}", refused.message);
    }
    let name = "n".repeat(store::audit::FILTER_BYTES_MAX);
    assert!(filter(&format!(r#"{{"participant":"{name}"}}"#)).is_ok());
    assert!(filter(&format!(r#"{{"participant":"{name}n"}}"#)).is_err());
    assert!(serde_json::from_str::<AuditQuery>(r#"{"verdicts":"held"}"#).is_err());
    assert_eq!(page_limit(None).unwrap(), AUDIT_PAGE);
    assert_eq!(page_limit(Some("501")).unwrap(), AUDIT_PAGE_MAX);
    for wrong in ["0", "-1", "x", ""] {
        assert!(page_limit(Some(wrong)).is_err(), "{wrong}");
    }
    assert!(place_of(Some("1:2")).is_err());
}
