//! The export of the audit log, to a collector and to a command: each entry at least once, in order.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use serde_json::{Value as Json, json};
use store::audit::TAIL_BYTES_MAX;

use super::collector::Collector;
use super::{SECRET, Stage};
use crate::approver_outside::pdp::raw;
use crate::audit_log::AuditLog;
use crate::support::{Client, until};
use crate::ws::token;

/// Nothing else is exported soon.
const LOG: &str = "interval = \"1h\"\naudit = true\n";

/// The entry that a record has as its body.
fn entry_of(record: &LogRecord) -> Json {
    match record.body.as_ref().and_then(|body| body.value.as_ref()) {
        Some(Value::StringValue(line)) => serde_json::from_str(line).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn number_of(entry: &Json) -> u64 {
    entry["seq"].as_u64().unwrap()
}

/// The entries in the log of a stage.
fn in_log(stage: &Stage) -> Vec<Json> {
    AuditLog(&stage.home).entries(&[])
}

/// Waits until these entries are exactly those of the log, in its order if each came once.
#[track_caller]
fn come_to_log(stage: &Stage, exported: impl Fn() -> Vec<Json>) {
    until("all entries", || {
        let (exported, log) = (exported(), in_log(stage));
        let seen: BTreeSet<u64> = exported.iter().map(number_of).collect();
        let whole: BTreeSet<u64> = log.iter().map(number_of).collect();
        (!log.is_empty() && seen == whole).then_some(())
    });
    for entry in exported() {
        let log = in_log(stage);
        assert!(log.contains(&entry), "{entry}");
    }
}

/// A value of `/metrics` about an export of the log.
fn value(stage: &Stage, name: &str, to: &str) -> Option<f64> {
    let key = format!("portmoot_audit_{name}{{to=\"{to}\"}}");
    stage.page().get(&key).copied()
}

#[test]
fn a_collector_gets_each_entry_as_the_log_has_it() {
    let collector = Collector::new();
    let stage = Stage::new(&collector.table(LOG));
    let ann = Client::of(&stage.gateway, &token("ann"));
    let secret = json!({ "text": "x", "password": SECRET });
    ann.ask(
        "tools/call",
        json!({ "name": "tools_echo", "arguments": secret }),
    );
    ann.ask(
        "tools/call",
        json!({ "name": "none_there", "arguments": {} }),
    );
    let entries = || collector.logs().iter().map(entry_of).collect::<Vec<_>>();
    come_to_log(&stage, entries);
    let numbers: Vec<u64> = entries().iter().map(number_of).collect();
    assert!(numbers.is_sorted(), "{numbers:?}");
    let records = collector.logs();
    let refused = records
        .iter()
        .find(|one| entry_of(one)["verdict"] == "refused")
        .unwrap();
    assert_eq!(
        (refused.severity_number, &*refused.event_name),
        (13, "portmoot.audit")
    );
    let attribute = |name: &str| {
        let found = refused.attributes.iter().find(|one| one.key == name);
        found
            .and_then(|one| one.value.clone())
            .and_then(|one| one.value)
    };
    let text = |text: &str| Some(Value::StringValue(text.to_owned()));
    assert_eq!(attribute("portmoot.participant"), text("ann"));
    assert_eq!(attribute("portmoot.verdict"), text("refused"));
    assert_eq!(attribute("portmoot.topic"), text("main"));
    let seq = i64::try_from(number_of(&entry_of(refused))).unwrap();
    assert_eq!(attribute("portmoot.audit.seq"), Some(Value::IntValue(seq)));
    assert!(!format!("{records:?}").contains(SECRET));
    until("the metrics", || {
        let sent = value(&stage, "exported_total", "otlp")?;
        let waiting = value(&stage, "export_waiting", "otlp")?;
        (sent >= 2.0 && waiting == 0.0).then_some(())
    });
    assert_eq!(value(&stage, "export_missing_total", "otlp"), Some(0.0));
    stage.gateway.stop().expect(0);
}

#[test]
fn nothing_is_exported_unless_it_is_switched_on() {
    let collector = Collector::new();
    let stage = Stage::new(&collector.table("interval = \"100ms\"\n"));
    stage.call();
    until("metrics", || (collector.requests().len() > 8).then_some(()));
    stage.gateway.stop().expect(0);
    assert_eq!(collector.logs(), []);
}

#[test]
fn what_a_collector_misses_while_it_is_away_comes_later_and_after_a_restart() {
    let status = Arc::new(AtomicU16::new(503));
    let now = Arc::clone(&status);
    let collector = Collector::answering(move |_| raw(now.load(Ordering::Relaxed), ""));
    let stage = Stage::new(&collector.table(LOG));
    stage.call();
    until("an attempt", || {
        (!collector.logs().is_empty()).then_some(())
    });
    assert!(value(&stage, "export_waiting", "otlp") >= Some(1.0));
    let Stage {
        home,
        base,
        gateway,
    } = stage;
    gateway.signal("KILL");
    drop(gateway);
    let refused = collector.logs().len();
    status.store(200, Ordering::Relaxed);
    let gateway = crate::support::Gateway::start(&home, &format!("{base}{}", collector.table(LOG)));
    gateway.ready("tools");
    let stage = Stage {
        home,
        base,
        gateway,
    };
    stage.call();
    let taken = || {
        let all = collector.logs();
        all[refused..].iter().map(entry_of).collect::<Vec<_>>()
    };
    come_to_log(&stage, taken);
    // What has arrived does not come again.
    let before = taken().len();
    let config = format!("{}{}", stage.base, collector.table(LOG));
    let gateway = {
        stage.gateway.stop().expect(0);
        crate::support::Gateway::start(&stage.home, &config)
    };
    gateway.ready("tools");
    let stage = Stage { gateway, ..stage };
    stage.call();
    come_to_log(&stage, taken);
    let numbers: Vec<u64> = taken()[before..].iter().map(number_of).collect();
    assert!(numbers[0] > before as u64, "{numbers:?}");
    stage.gateway.stop().expect(0);
}

#[test]
fn a_message_that_is_too_large_goes_in_parts() {
    let collector = Collector::answering(|received| {
        let is_small = received.bytes.len() < 4_000;
        raw(if is_small { 200 } else { 413 }, "")
    });
    let stage = Stage::new(&format!(
        "[audit]\npayloads = \"full\"\n{}",
        collector.table(LOG)
    ));
    let ann = Client::of(&stage.gateway, &token("ann"));
    let long = "x".repeat(6_000);
    // One that no message can have, among others.
    for text in ["a", "b", &long, "c"] {
        ann.call("tools_echo", json!({ "text": text }));
    }
    until("all but one have arrived", || {
        let waiting = value(&stage, "export_waiting", "otlp")?;
        let missing = value(&stage, "export_missing_total", "otlp")?;
        (waiting == 0.0 && missing == 1.0).then_some(())
    });
    stage.gateway.stop().expect(0);
}

#[test]
fn a_command_gets_lines_on_its_stdin_until_it_has_taken_them() {
    let (home, config) = crate::ws::people(&[("ann", &["mcp/*", "portmoot/*"])]);
    // It refuses the first batch after it has read it.
    let script = "cat > batch; if [ -e ready ]; then cat batch >> taken; else touch ready; echo no room; exit 3; fi";
    home.write(
        "ship.sh",
        &format!("cd {}\n{script}\n", home.path().display()),
    );
    let path = home.path().join("ship.sh").display().to_string();
    let audit = format!("[audit]\nexport = [\"sh\", {path:?}]\n");
    let base = format!("{config}{audit}{}", crate::support::fixture("tools", &[]));
    let gateway = crate::support::Gateway::start(&home, &base);
    gateway.ready("tools");
    let stage = Stage {
        home,
        base,
        gateway,
    };
    stage.call();
    let line = stage.gateway.receive("takes no entries of the audit log");
    assert!(line.contains("exit code 3: no room"), "{line}");
    let file = stage.home.path().join("taken");
    let taken = || {
        let text = fs::read_to_string(&file).unwrap_or_default();
        let whole = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        whole.collect::<Vec<Json>>()
    };
    come_to_log(&stage, taken);
    stage.call();
    come_to_log(&stage, taken);
    let numbers: Vec<u64> = taken().iter().map(number_of).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    // Once the command has ended.
    until("nothing waits", || {
        let waiting = value(&stage, "export_waiting", "command")?;
        (waiting == 0.0).then_some(())
    });
    // The end of the log goes out before the gateway does.
    stage.call();
    let home = stage.home;
    stage.gateway.stop().expect(0);
    let log = AuditLog(&home).entries(&[]);
    assert_eq!(taken().last().map(number_of), log.last().map(number_of));
}

/// The number of the oldest entry that the log has; 0 before it has a file.
fn oldest_entry(stage: &Stage) -> usize {
    let Ok(files) = fs::read_dir(stage.home.path().join("data/audit")) else {
        return 0;
    };
    let first = |file: std::io::Result<fs::DirEntry>| {
        let name = file.unwrap().file_name().into_string().unwrap();
        name.strip_suffix(".jsonl")?.parse().ok()
    };
    files.filter_map(first).min().unwrap_or(0)
}

#[test]
fn entries_that_are_removed_before_they_are_exported_are_counted() {
    let (home, config) = crate::ws::people(&[("ann", &["mcp/*", "portmoot/*"])]);
    let status = Arc::new(AtomicU16::new(503));
    let now = Arc::clone(&status);
    let collector = Collector::answering(move |_| raw(now.load(Ordering::Relaxed), ""));
    let audit = "[audit]\nrotate_bytes = \"64KiB\"\nkeep_bytes = \"64KiB\"\npayloads = \"full\"\n";
    let base = format!(
        "{config}{audit}{}{}",
        crate::support::fixture("tools", &[]),
        collector.table(LOG)
    );
    let gateway = crate::support::Gateway::start(&home, &base);
    gateway.ready("tools");
    let stage = Stage {
        home,
        base,
        gateway,
    };
    let ann = Client::of(&stage.gateway, &token("ann"));
    let text = "x".repeat(20_000);
    // More than the exporter has read by then, so that it misses some of it.
    let read_ahead = TAIL_BYTES_MAX / text.len();
    until("more is removed than is read at once", || {
        ann.call("tools_echo", json!({ "text": text }));
        (oldest_entry(&stage) > read_ahead).then_some(())
    });
    status.store(200, Ordering::Relaxed);
    until("the rest arrives", || {
        let waiting = value(&stage, "export_waiting", "otlp")?;
        let missing = value(&stage, "export_missing_total", "otlp")?;
        (waiting == 0.0 && missing >= 1.0).then_some(())
    });
    stage
        .gateway
        .receive("entries of the audit log are not exported");
    stage.gateway.stop().expect(0);
}
