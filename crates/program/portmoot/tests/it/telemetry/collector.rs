//! A collector of telemetry: what it has received, decoded by the types of the OpenTelemetry
//! project.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::metrics::v1::{
    HistogramDataPoint, Metric, NumberDataPoint, metric::Data, number_data_point,
};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

use crate::approver_outside::pdp::{Pdp, Received, Said, raw};
use crate::support::until;

/// The path of metrics.
const METRICS: &str = "/v1/metrics";
/// The path of spans.
const TRACES: &str = "/v1/traces";
/// The path of records of logs.
const LOGS: &str = "/v1/logs";

/// Measured values by name and labels, as OpenMetrics writes both.
pub(super) type Values = BTreeMap<String, f64>;

/// The collector.
pub(super) struct Collector(Pdp);

impl Collector {
    /// One that takes everything.
    pub(super) fn new() -> Collector {
        Collector::answering(|_| raw(200, ""))
    }

    /// One that answers by this script.
    pub(super) fn answering(
        script: impl Fn(&Received) -> Said + Send + Sync + 'static,
    ) -> Collector {
        Collector(Pdp::start(move |received, _| script(received)))
    }

    /// Its address.
    pub(super) fn base(&self) -> String {
        self.0.base()
    }

    /// A table that exports to it, with more of this in it.
    pub(super) fn table(&self, more: &str) -> String {
        format!("[telemetry]\notlp = \"{}\"\n{more}", self.base())
    }

    /// The messages of metrics so far, as they came.
    pub(super) fn requests(&self) -> Vec<Received> {
        self.0.received(METRICS)
    }

    /// The messages of metrics so far.
    pub(super) fn messages(&self) -> Vec<ExportMetricsServiceRequest> {
        let all = self.requests().into_iter();
        all.map(|one| ExportMetricsServiceRequest::decode(&*one.bytes).unwrap())
            .collect()
    }

    /// All spans so far.
    pub(super) fn spans(&self) -> Vec<Span> {
        let mut spans = Vec::new();
        for one in self.0.received(TRACES) {
            let message = ExportTraceServiceRequest::decode(&*one.bytes).unwrap();
            let of_resources = message.resource_spans.into_iter();
            let scopes = of_resources.flat_map(|one| one.scope_spans);
            spans.extend(scopes.flat_map(|scope| scope.spans));
        }
        spans
    }

    /// All records of logs so far.
    pub(super) fn logs(&self) -> Vec<LogRecord> {
        let mut records = Vec::new();
        for one in self.0.received(LOGS) {
            let message = ExportLogsServiceRequest::decode(&*one.bytes).unwrap();
            let of_resources = message.resource_logs.into_iter();
            let scopes = of_resources.flat_map(|one| one.scope_logs);
            records.extend(scopes.flat_map(|scope| scope.log_records));
        }
        records
    }

    /// The metrics of its latest message, once there is one.
    #[track_caller]
    pub(super) fn latest(&self) -> Vec<Metric> {
        let message = until("a message of metrics", || self.messages().pop());
        metrics_of(message)
    }
}

/// The metrics of a message.
pub(super) fn metrics_of(message: ExportMetricsServiceRequest) -> Vec<Metric> {
    let of_resources = message.resource_metrics.into_iter();
    let scopes = of_resources.flat_map(|one| one.scope_metrics);
    scopes.flat_map(|scope| scope.metrics).collect()
}

/// The value of an attribute that is a text.
pub(super) fn text(attribute: &KeyValue) -> &str {
    match attribute.value.as_ref().and_then(|one| one.value.as_ref()) {
        Some(Value::StringValue(text)) => text,
        other => panic!("{}: {other:?}", attribute.key),
    }
}

/// All attributes of the values of a metric.
pub(super) fn attributes_of(metric: &Metric) -> Vec<KeyValue> {
    let mut all = Vec::new();
    match metric.data.as_ref().unwrap() {
        Data::Gauge(gauge) => gauge
            .data_points
            .iter()
            .for_each(|one| all.extend(one.attributes.clone())),
        Data::Sum(sum) => sum
            .data_points
            .iter()
            .for_each(|one| all.extend(one.attributes.clone())),
        Data::Histogram(histogram) => histogram
            .data_points
            .iter()
            .for_each(|one| all.extend(one.attributes.clone())),
        other => panic!("{other:?}"),
    }
    all
}

/// The same values as `/metrics` has them.
pub(super) fn values_of(metrics: &[Metric]) -> Values {
    let mut values = Values::new();
    for metric in metrics {
        let unit = match &*metric.unit {
            "" => "",
            "s" => "_seconds",
            other => panic!("{other}"),
        };
        let name = metric.name.replace('.', "_") + unit;
        match metric.data.as_ref().unwrap() {
            Data::Gauge(gauge) => numbers(&name, &gauge.data_points, &mut values),
            Data::Sum(sum) => {
                assert!(sum.is_monotonic && sum.aggregation_temporality == 2);
                numbers(&format!("{name}_total"), &sum.data_points, &mut values);
            }
            Data::Histogram(histogram) => {
                assert_eq!(histogram.aggregation_temporality, 2, "cumulative");
                let all = histogram.data_points.iter();
                all.for_each(|point| durations(&name, point, &mut values));
            }
            other => panic!("{other:?}"),
        }
    }
    values
}

fn numbers(name: &str, points: &[NumberDataPoint], values: &mut Values) {
    for point in points {
        let Some(number_data_point::Value::AsInt(number)) = point.value else {
            panic!("{point:?}");
        };
        let key = key(name, labels(&point.attributes));
        values.insert(key, f64::from(i32::try_from(number).unwrap()));
    }
}

fn durations(name: &str, point: &HistogramDataPoint, values: &mut Values) {
    let labels = labels(&point.attributes);
    let count = |number: u64| f64::from(u32::try_from(number).unwrap());
    let sum = key(&format!("{name}_sum"), labels.clone());
    values.insert(sum, point.sum.unwrap());
    let total = key(&format!("{name}_count"), labels.clone());
    values.insert(total, count(point.count));
    let bounds = point.explicit_bounds.iter().map(|bound| number(*bound));
    let mut below = 0;
    for (bound, number) in bounds.chain(["+Inf".to_owned()]).zip(&point.bucket_counts) {
        below += number;
        let mut labels = labels.clone();
        labels.insert(0, format!("le=\"{bound}\""));
        values.insert(key(&format!("{name}_bucket"), labels), count(below));
    }
}

/// A number as OpenMetrics writes it.
fn number(number: f64) -> String {
    let written = number.to_string();
    match written.contains('.') {
        true => written,
        false => written + ".0",
    }
}

/// Labels as OpenMetrics writes them.
fn labels(attributes: &[KeyValue]) -> Vec<String> {
    let mut labels = Vec::new();
    for attribute in attributes {
        let name = attribute.key.strip_prefix("portmoot.");
        let name = name.unwrap_or(&attribute.key).replace('.', "_");
        labels.push(format!("{name}={:?}", text(attribute)));
    }
    labels
}

fn key(name: &str, labels: Vec<String>) -> String {
    match labels.is_empty() {
        true => name.to_owned(),
        false => format!("{name}{{{}}}", labels.join(",")),
    }
}

/// The values of a page of `/metrics`.
pub(super) fn values_on(page: &str) -> Values {
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    let values = lines.map(|line| {
        let (key, value) = line.rsplit_once(' ').unwrap();
        (key.to_owned(), value.parse().unwrap())
    });
    values.collect()
}
