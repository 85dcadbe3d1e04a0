//! Names of metrics and attributes: those of OpenTelemetry's conventions for MCP in `conventions.txt`,
//! or the gateway's own.

use std::collections::BTreeSet;

use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value as OneOf};
use opentelemetry_proto::tonic::metrics::v1::{Metric, metric::Data};
use opentelemetry_proto::tonic::trace::v1::Span;
use serde_json::json;

use super::OFTEN;
use super::collector::{Collector, attributes_of, values_of};
use super::traces::{CLIENT, INTERNAL, SERVER};
use crate::support::{Client, Gateway, fixture, until};
use crate::ws::{people, token};

const TABLE: &str = include_str!("conventions.txt");
/// The documented metrics, which are the gateway's own but for one.
const METRICS: &str = include_str!("../../../../../../docs/metrics.md");
const OWN: &str = "portmoot.";

/// One name in a place.
#[derive(Debug)]
struct Convention {
    place: &'static str,
    name: &'static str,
    kind: &'static str,
    unit: &'static str,
    requirement: &'static str,
}

fn conventions() -> Vec<Convention> {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    let read = |line: &'static str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let [place, name, kind, unit, requirement] = words[..] else {
            panic!("{line}");
        };
        Convention {
            place,
            name,
            kind,
            unit,
            requirement,
        }
    };
    lines.map(read).collect()
}

/// A name in one of these places.
fn find(places: &[&str], name: &str) -> Option<Convention> {
    let mut all = conventions().into_iter();
    all.find(|one| places.contains(&one.place) && one.name == name)
}

/// The type of an attribute, as the table has it.
fn kind_of(attribute: &KeyValue) -> &'static str {
    match attribute.value.as_ref().and_then(|one| one.value.as_ref()) {
        Some(OneOf::StringValue(_)) => "string",
        Some(OneOf::BoolValue(_)) => "bool",
        other => panic!("{}: {other:?}", attribute.key),
    }
}

/// Asserts that an attribute may be in one of these places, or is the gateway's own, and has its
/// type. None that is opt-in is there.
#[track_caller]
fn check_attribute(places: &[&str], attribute: &KeyValue) {
    let name = &*attribute.key;
    let places = if name.starts_with(OWN) {
        &["own"]
    } else {
        places
    };
    let Some(found) = find(places, name) else {
        panic!("no convention has `{name}` in {places:?}");
    };
    assert_eq!(found.kind, kind_of(attribute), "{name}");
    assert_ne!(found.requirement, "opt-in", "{name}");
}

/// Asserts that a metric is one of the conventions, with its instrument and unit, or a documented one
/// of the gateway's own; and that its values have what they must have.
#[track_caller]
fn check_metric(metric: &Metric) {
    let name = &*metric.name;
    assert!(!metric.description.is_empty(), "{name}");
    let attributes = attributes_of(metric);
    attributes
        .iter()
        .for_each(|one| check_attribute(&["measured"], one));
    if name.starts_with(OWN) {
        let on_page = name.replace('.', "_");
        let endings = ["", "_total", "_seconds", "_info"];
        let mut written = endings
            .iter()
            .map(|ending| format!("| `{on_page}{ending}` |"));
        assert!(written.any(|row| METRICS.contains(&row)), "{name}");
        return;
    }
    let found = find(&["metric"], name).unwrap_or_else(|| panic!("no convention has `{name}`"));
    let Some(Data::Histogram(histogram)) = &metric.data else {
        panic!("{metric:?}");
    };
    assert_eq!(
        (found.kind, found.unit),
        ("histogram", &*metric.unit),
        "{name}"
    );
    for point in &histogram.data_points {
        has_required("measured", &point.attributes);
    }
}

/// Asserts that all that is required in a place is there.
#[track_caller]
fn has_required(place: &str, attributes: &[KeyValue]) {
    for one in conventions() {
        if one.place == place && one.requirement == "required" {
            let is_there = attributes.iter().any(|there| there.key == one.name);
            assert!(is_there, "{place} without {}: {attributes:?}", one.name);
        }
    }
}

/// Asserts that a span has attributes of the conventions for its kind, among them the required ones.
#[track_caller]
fn check_span(span: &Span) {
    let places: &[&str] = match span.kind {
        SERVER => &["server"],
        CLIENT => &["client"],
        INTERNAL => &["server", "client"],
        other => panic!("{other}"),
    };
    for attribute in &span.attributes {
        check_attribute(places, attribute);
    }
    has_required(places[0], &span.attributes);
}

/// What is there under its condition: of spans of this kind that begin with a name, one has this
/// attribute.
#[track_caller]
fn some_span_has(spans: &[Span], kind: i32, name: &str, attribute: &str) {
    let mut found = spans
        .iter()
        .filter(|span| span.kind == kind && span.name.starts_with(name));
    let has = found.any(|span| span.attributes.iter().any(|one| one.key == attribute));
    assert!(has, "{name}: {attribute}");
}

/// A gateway that is asked for everything that has a span, in every way to end.
fn exported(collector: &Collector) -> (Vec<Metric>, Vec<Span>, String) {
    let (home, config) = people(&[
        ("ann", &["mcp/*", "portmoot/*"]),
        ("scout", &["mcp/proposal:*"]),
    ]);
    let telemetry = collector.table(OFTEN);
    let expires = "[topics.main]\nproposal_ttl = \"1s\"\n";
    let config = [&*config, &fixture("tools", &[]), &telemetry, expires].concat();
    let gateway = Gateway::start(&home, &config);
    gateway.ready("tools");
    let ann = Client::of(&gateway, &token("ann"));
    ann.call("tools_echo", json!({ "text": "x" }));
    ann.call("tools_add", json!({}));
    ann.ask("tools/call", json!({ "name": "none", "arguments": {} }));
    let uri = json!({ "uri": "test://static-text" });
    assert!(ann.ask("resources/read", uri)["result"].is_object());
    let prompt = json!({ "name": "tools_test_simple_prompt" });
    assert!(ann.ask("prompts/get", prompt)["result"].is_object());
    // It waits until its proposal expires.
    let scout = Client::of(&gateway, &token("scout"));
    let held = json!({ "name": "tools_echo", "arguments": { "text": "held" } });
    scout.ask("tools/call", held);
    let metrics = until("the waits and the calls", || {
        let latest = collector.latest();
        let has = |name: &str| values_of(&latest).keys().any(|key| key.starts_with(name));
        let all = has("portmoot_hold_seconds") && has("mcp_client_operation_duration_seconds");
        all.then_some(latest)
    });
    let page = gateway.get("/metrics", Some(&token("ann"))).body;
    gateway.stop().expect(0);
    (metrics, collector.spans(), page)
}

#[test]
fn every_exported_name_is_one_of_the_conventions_or_a_listed_one_of_the_gateways_own() {
    let collector = Collector::new();
    let (metrics, spans, page) = exported(&collector);
    metrics.iter().for_each(check_metric);
    spans.iter().for_each(check_span);
    let resource = collector
        .messages()
        .remove(0)
        .resource_metrics
        .remove(0)
        .resource
        .unwrap();
    for attribute in &resource.attributes {
        check_attribute(&["resource"], attribute);
    }
    has_required("resource", &resource.attributes);
    for (kind, name, attribute) in [
        (SERVER, "tools/call", "gen_ai.tool.name"),
        (SERVER, "tools/call", "gen_ai.operation.name"),
        (SERVER, "tools/call", "jsonrpc.request.id"),
        (SERVER, "tools/call", "error.type"),
        (SERVER, "tools/call", "rpc.response.status_code"),
        (SERVER, "resources/read", "mcp.resource.uri"),
        (SERVER, "prompts/get", "gen_ai.prompt.name"),
        (CLIENT, "tools/call", "gen_ai.tool.name"),
        (CLIENT, "tools/call", "network.transport"),
        (CLIENT, "tools/call", "error.type"),
        (CLIENT, "resources/read", "mcp.resource.uri"),
        (CLIENT, "prompts/get", "gen_ai.prompt.name"),
        (INTERNAL, "proposal", "portmoot.decision"),
    ] {
        some_span_has(&spans, kind, name, attribute);
    }
    check_page(&page, &metrics);
}

/// Asserts that the page has the same names, with underscores and without the gateway's prefix of
/// labels.
#[track_caller]
fn check_page(page: &str, metrics: &[Metric]) {
    let mut names = BTreeSet::new();
    let mut labels = BTreeSet::from(["le".to_owned()]);
    for metric in metrics {
        let unit = if metric.unit == "s" { "_seconds" } else { "" };
        names.insert(metric.name.replace('.', "_") + unit);
        for attribute in attributes_of(metric) {
            let name = attribute.key.strip_prefix(OWN).unwrap_or(&attribute.key);
            labels.insert(name.replace('.', "_"));
        }
    }
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            let ending = if kind == "info" { "_info" } else { "" };
            let name = format!("{name}{ending}");
            assert!(names.contains(&name), "{name}: {names:?}");
        } else if let Some((_, rest)) = line.split_once('{') {
            for label in rest.split(',') {
                let label = label.split('=').next().unwrap();
                assert!(labels.contains(label), "{label}: {line}");
            }
        }
    }
}
