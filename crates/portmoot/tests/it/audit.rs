//! `audit query` and `audit verify` on a data directory.

use std::fs;

use serde_json::Value;
use store::Writer;
use store::audit::{Audit, Entry, Policy, Verdict};

use crate::runner::Home;

/// A home whose data directory has a log of three entries; the file that holds them.
fn home() -> (Home, std::path::PathBuf) {
    let home = Home::new();
    let dir = home.path().join("data");
    let journal = Writer::open(&dir).unwrap();
    let audit = Audit::open(&journal, &[3; 32], 1_000, Policy::default()).unwrap();
    let entry = Entry {
        at_ms: 1_785_241_800_250,
        topic: Some("main"),
        from: "scout",
        kind: "mcp/request:tools/call:write_file",
        to: &["files"],
        verdict: Verdict::Refused,
        why: Some("capability_violation"),
        operation: Some(model::OperationId(7)),
        digest: None,
        payload: None,
    };
    let forged = Entry { kind: "system/\u{202e}error", to: &[], topic: None, ..entry };
    let chat = Entry { kind: "chat", verdict: Verdict::Admitted, at_ms: 1_785_241_900_000, ..entry };
    for entry in [entry, forged, chat] {
        audit.reserve().unwrap().write(&entry);
    }
    audit.flush().unwrap();
    let segment = fs::read_dir(dir.join("audit")).unwrap().next().unwrap().unwrap().path();
    (home, segment)
}

#[test]
fn the_log_is_asked_by_kind_participant_time_and_operation() {
    let (home, _) = home();
    let check = |args: &[&str], expected: &[u64]| {
        let ran = home.run(&[&["audit", "query", "--json", "--data-dir", "data"], args].concat()).expect(0);
        let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
        let found = answer["entries"].as_array().unwrap().iter().map(|entry| entry["seq"].as_u64().unwrap());
        assert_eq!(found.collect::<Vec<_>>(), expected, "{args:?}");
    };
    check(&[], &[1, 2, 3]);
    check(&["mcp/request:tools/call:*"], &[1]);
    check(&["system/*"], &[2]);
    check(&["--participant", "files"], &[1, 3]);
    check(&["--participant", "nobody"], &[]);
    check(&["--verdict", "refused", "--topic", "main"], &[1]);
    check(&["--operation", &format!("{:032x}", 7), "--last", "1"], &[3]);
    check(&["--since", "2026-07-28T12:31:00Z"], &[3]);
    check(&["--until", "2026-07-28T12:31:00Z"], &[1, 2]);
    let shown = home.run(&["audit", "query", "--data-dir", "data"]).expect(0).stdout;
    let expected = [
        r"ENTRY  TIME                      TOPIC  FROM   KIND                               TO     VERDICT   WHY",
        r"1      2026-07-28T12:30:00.250Z  main   scout  mcp/request:tools/call:write_file  files  refused   capability_violation",
        r"2      2026-07-28T12:30:00.250Z  -      scout  system/\u{202e}error               -      refused   capability_violation",
        r"3      2026-07-28T12:31:40.000Z  main   scout  chat                               files  admitted  capability_violation",
    ];
    assert_eq!(shown.lines().collect::<Vec<_>>(), expected);
    for wrong in [["*", ""], ["--since", "yesterday"]] {
        let args: Vec<&str> = wrong.into_iter().filter(|arg| !arg.is_empty()).collect();
        home.run(&[&["audit", "query", "--data-dir", "data"], &args[..]].concat()).expect(2);
    }
}

#[test]
fn what_was_changed_is_found() {
    let (home, segment) = home();
    let verify = |more: &[&str]| home.run(&[&["audit", "verify", "--data-dir", "data"], more].concat());
    let told = verify(&[]).expect(0).stdout;
    let head = told.trim().strip_prefix("whole: 3 entries, head ").unwrap().to_owned();
    verify(&["--head", &head]).expect(0);
    verify(&["--head", "3"]).expect(2);
    let text = fs::read_to_string(&segment).unwrap();
    fs::write(&segment, text.replace("refused", "admitted")).unwrap();
    let told = verify(&[]).expect(1).stdout;
    assert!(told.starts_with("entry 1, or what stands before it, was changed\n"), "{told}");
    let report: Value = serde_json::from_str(&verify(&["--json"]).expect(1).stdout).unwrap();
    assert_eq!((&report["whole"], &report["findings_count"]), (&Value::Bool(false), &Value::from(2)));
    fs::write(&segment, text.lines().next().unwrap().to_owned() + "\n").unwrap();
    let told = verify(&["--head", &head]).expect(1).stdout;
    assert!(told.starts_with("the end was cut off: entries 2 to 3 are missing\n"), "{told}");
    home.run(&["audit", "verify", "--data-dir", "elsewhere"]).expect(5);
}
