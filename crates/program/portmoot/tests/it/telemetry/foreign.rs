//! Programs of others that know telemetry: Rotel, a collector of OpenTelemetry, and the official
//! reader of OpenMetrics text. Debian's `promtool` reads the older text format alone, and refuses
//! this one.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use harness::repository;
use opentelemetry_proto::tonic::trace::v1::Span;
use serde_json::{Value, json};

use super::collector::{Collector, values_of, values_on};
use super::traces::{CLIENT, PARENT, SERVER, SPAN, TRACE, hexadecimal, traceparent};
use super::{OFTEN, Stage, resting};
use crate::support::{Client, until};
use crate::ws::token;

/// The folder of the scripts.
fn scripts() -> PathBuf {
    repository().join("tests/third-party/telemetry")
}

/// A script with the Python that has the programs, which are installed on first use.
fn script(name: &str) -> Command {
    let installed = Command::new(scripts().join("install"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let talk = String::from_utf8_lossy(&installed.stderr);
    assert!(installed.status.success(), "{talk}");
    let folder = String::from_utf8(installed.stdout).unwrap();
    let mut command = Command::new(PathBuf::from(folder.trim()).join("venv/bin/python"));
    command.arg(scripts().join(name));
    command
}

/// Rotel, which exports what it receives to a collector of the tests.
struct Rotel {
    child: Child,
    base: String,
}

impl Rotel {
    fn before(collector: &Collector) -> Rotel {
        let mut child = script("collects.py")
            .arg(collector.base())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut base = String::new();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        said.read_line(&mut base).unwrap();
        let base = base.trim().to_owned();
        Rotel { child, base }
    }
}

impl Drop for Rotel {
    fn drop(&mut self) {
        // It ends with its input.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Attributes of a span by name, as they are printed.
fn attributes(span: &Span) -> BTreeMap<String, String> {
    let all = span.attributes.iter();
    all.map(|one| (one.key.clone(), format!("{:?}", one.value)))
        .collect()
}

#[test]
fn a_foreign_collector_takes_all_metrics_and_spans() {
    let collector = Collector::new();
    let rotel = Rotel::before(&collector);
    let stage = Stage::new(&format!("[telemetry]\notlp = {:?}\n{OFTEN}", rotel.base));
    let ann = Client::of(&stage.gateway, &token("ann"));
    let echo = json!({ "name": "tools_echo", "arguments": { "text": "x" } });
    let request = ann.request("tools/call", echo);
    let headers = [("traceparent", PARENT), ("tracestate", "a=1")];
    let reply = ann.post_with(&headers, &request);
    assert_eq!(reply.json()["result"]["content"][0]["text"], "x");
    assert_eq!(ann.call("tools_add", json!({}))["isError"], true);
    until("all metrics", || {
        let page = resting(stage.page());
        let passed_on = resting(values_of(&collector.latest()));
        (page.len() > 30 && passed_on == page).then_some(())
    });
    let spans = until("all spans", || {
        Some(collector.spans()).filter(|all| all.len() == 4)
    });
    assert!(stage.exports("sent") >= 1.0 && stage.exports("partial") < 1.0);
    stage.gateway.stop().expect(0);
    check_spans(&spans);
}

/// The spans of a call in the trace of its caller, and of one that failed.
#[track_caller]
fn check_spans(spans: &[Span]) {
    let of_caller = |kind: i32| {
        let mut found = spans.iter().filter(|span| span.kind == kind);
        found
            .find(|span| hexadecimal(&span.trace_id) == TRACE)
            .unwrap()
    };
    let (server, client) = (of_caller(SERVER), of_caller(CLIENT));
    assert_eq!(hexadecimal(&server.parent_span_id), SPAN);
    assert_eq!(client.parent_span_id, server.span_id);
    assert_ne!(traceparent(client), traceparent(server));
    assert_eq!(server.name, "tools/call tools_echo");
    assert!(server.end_time_unix_nano > server.start_time_unix_nano);
    let found = attributes(server);
    assert!(
        found["mcp.method.name"].contains("\"tools/call\""),
        "{found:?}"
    );
    let mut failed = spans.iter().filter(|span| span.status.is_some());
    let failed = failed.find(|span| span.kind == CLIENT).unwrap();
    assert!(
        attributes(failed)["error.type"].contains("\"tool_error\""),
        "{failed:?}"
    );
}

/// The official reader's report on a page, or its words about one that it refuses.
fn read(page: &str) -> Result<Value, String> {
    let mut child = script("reads_metrics.py")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(page.as_bytes()).unwrap();
    drop(input);
    let ran = child.wait_with_output().unwrap();
    if ran.status.success() {
        return Ok(serde_json::from_slice(&ran.stdout).unwrap());
    }
    Err(String::from_utf8_lossy(&ran.stderr).into_owned())
}

/// The name and labels of a sample, in the order of the labels' names.
fn key_of(name: &str, labels: &Value) -> String {
    let labels = labels.as_object().unwrap().iter();
    let labels: Vec<_> = labels
        .map(|(label, value)| format!("{label}={value}"))
        .collect();
    sorted(name, labels)
}

fn sorted(name: &str, mut labels: Vec<String>) -> String {
    labels.sort();
    format!("{name}{{{}}}", labels.join(","))
}

/// The same of a line of the page.
fn key_on_page(key: &str) -> String {
    let (name, labels) = key
        .trim_end_matches('}')
        .split_once('{')
        .unwrap_or((key, ""));
    let labels = labels.split(',').filter(|label| !label.is_empty());
    sorted(name, labels.map(str::to_owned).collect())
}

#[test]
fn the_official_reader_of_openmetrics_reads_the_page_as_it_is() {
    let collector = Collector::new();
    let stage = Stage::new(&collector.table(OFTEN));
    let ann = Client::of(&stage.gateway, &token("ann"));
    stage.call();
    assert_eq!(ann.call("tools_add", json!({}))["isError"], true);
    until("a message that was sent", || {
        (stage.exports("sent") >= 1.0).then_some(())
    });
    let page = stage.gateway.get("/metrics", Some(&token("ann"))).body;
    let report = read(&page).unwrap();
    let mut samples = BTreeMap::new();
    for (name, family) in report.as_object().unwrap() {
        assert_ne!(family["help"], "", "{name}");
        for sample in family["samples"].as_array().unwrap() {
            let key = key_of(sample[0].as_str().unwrap(), &sample[1]);
            samples.insert(key, sample[2].as_f64().unwrap());
        }
    }
    let lines = values_on(&page).into_iter();
    let on_page: BTreeMap<_, _> = lines
        .map(|(key, value)| (key_on_page(&key), value))
        .collect();
    assert_eq!(samples, on_page);
    for (name, kind, unit) in [
        ("portmoot_build", "info", ""),
        ("portmoot_sessions", "gauge", ""),
        ("portmoot_requests", "counter", ""),
        ("portmoot_telemetry_exports", "counter", ""),
        ("portmoot_overhead_seconds", "histogram", "seconds"),
        (
            "mcp_client_operation_duration_seconds",
            "histogram",
            "seconds",
        ),
    ] {
        assert_eq!(
            (&report[name]["type"], &report[name]["unit"]),
            (&json!(kind), &json!(unit)),
            "{name}"
        );
    }
    // It refuses what breaks the format.
    let without_end = page.replace("# EOF\n", "");
    let other_kind = page.replace("portmoot_sessions gauge", "portmoot_sessions counter");
    for wrong in [without_end, other_kind] {
        assert_ne!(wrong, page);
        assert!(read(&wrong).is_err(), "{wrong}");
    }
    stage.gateway.stop().expect(0);
}
