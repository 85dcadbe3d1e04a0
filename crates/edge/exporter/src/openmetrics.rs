//! Measured values as OpenMetrics text.

use std::fmt;
use std::time::Duration;

use platform::HistogramCounts;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::{Registry, Unit};
use telemetry::{MeasuredFamily, MeasuredValue, MetricLabels};

/// The media type of the text.
pub const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A value without an exemplar.
const NO_EXEMPLAR: Option<&Exemplar<NoLabelSet, u64>> = None;

/// The text that says what was measured.
#[must_use]
pub fn openmetrics(families: Vec<MeasuredFamily>) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Families(families)));
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = encode(&mut text, &registry);
    text
}

/// Families, as the library that knows the format reads them.
#[derive(Debug)]
struct Families(Vec<MeasuredFamily>);

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for family in &self.0 {
            encode_family(family, &mut encoder)?;
        }
        Ok(())
    }
}

/// Writes a metric; one without values is left out.
fn encode_family(family: &MeasuredFamily, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let Some(first) = family.samples.values().next() else {
        return Ok(());
    };
    let (name, help) = (family.open_metrics_name(), format!("{}.", family.help));
    let unit = family.in_seconds.then_some(&Unit::Seconds);
    let mut metric = encoder.encode_descriptor(&name, &help, unit, metric_type(first))?;
    for (labels, value) in &family.samples {
        let labels = named(labels);
        match value {
            MeasuredValue::Info => metric.encode_info(&labels)?,
            _ if labels.is_empty() => encode_value(value, &mut metric)?,
            _ => encode_value(value, &mut metric.encode_family(&labels)?)?,
        }
    }
    Ok(())
}

fn metric_type(value: &MeasuredValue) -> MetricType {
    match value {
        MeasuredValue::Gauge(_) => MetricType::Gauge,
        MeasuredValue::Counter(_) => MetricType::Counter,
        MeasuredValue::Durations(_) => MetricType::Histogram,
        MeasuredValue::Info => MetricType::Info,
    }
}

/// The labels with their names in OpenMetrics.
fn named(labels: &MetricLabels) -> Vec<(String, String)> {
    let all = labels.iter();
    all.map(|label| (label.open_metrics_name(), label.value.clone()))
        .collect()
}

fn encode_value(value: &MeasuredValue, metric: &mut MetricEncoder<'_>) -> fmt::Result {
    match value {
        MeasuredValue::Gauge(number) => metric.encode_gauge(number),
        MeasuredValue::Counter(number) => metric.encode_counter(number, NO_EXEMPLAR),
        MeasuredValue::Durations(counts) => encode_durations(counts, metric),
        // Its labels are what it says, and they are written already.
        MeasuredValue::Info => Ok(()),
    }
}

fn encode_durations(counts: &HistogramCounts, metric: &mut MetricEncoder<'_>) -> fmt::Result {
    let bounds = counts.bounds.iter().map(Duration::as_secs_f64);
    let bounds = bounds.chain([f64::INFINITY]);
    let buckets: Vec<(f64, u64)> = bounds.zip(counts.counts.iter().copied()).collect();
    let sum = counts.sum.as_secs_f64();
    metric.encode_histogram::<NoLabelSet>(sum, counts.total(), &buckets, None)
}

#[cfg(test)]
mod tests {
    use platform::Histogram;
    use telemetry::MetricLabel;

    use super::*;

    #[track_caller]
    fn has(text: &str, lines: &[&str]) {
        for line in lines {
            assert!(text.lines().any(|one| one == *line), "{line}\n{text}");
        }
    }

    #[test]
    fn each_kind_is_written_as_the_format_has_it() {
        let labels = |name| vec![MetricLabel::new(name, "a \"b\"")];
        let text = openmetrics(vec![
            MeasuredFamily::new("portmoot.build", "The running version")
                .with(labels("portmoot.version"), MeasuredValue::Info),
            MeasuredFamily::new("portmoot.sessions", "Sessions")
                .with(MetricLabels::new(), MeasuredValue::Gauge(3)),
            MeasuredFamily::new("portmoot.requests", "Requests")
                .with(labels("portmoot.topic"), MeasuredValue::Counter(2)),
            MeasuredFamily::new("portmoot.none", "None"),
        ]);
        has(
            &text,
            &[
                "# HELP portmoot_build The running version.",
                "# TYPE portmoot_build info",
                "portmoot_build_info{version=\"a \\\"b\\\"\"} 1",
                "# TYPE portmoot_sessions gauge",
                "portmoot_sessions 3",
                "# TYPE portmoot_requests counter",
                "portmoot_requests_total{topic=\"a \\\"b\\\"\"} 2",
                "# EOF",
            ],
        );
        assert!(!text.contains("none"), "{text}");
    }

    #[test]
    fn durations_are_written_as_a_histogram_of_seconds() {
        static BOUNDS: [Duration; 2] = [Duration::from_millis(5), Duration::from_secs(1)];
        let histogram = Histogram::new(&BOUNDS);
        for ms in [1, 700, 9_000] {
            histogram.enter(Duration::from_millis(ms));
        }
        let durations = || MeasuredValue::Durations(histogram.read());
        let of = |more: Option<MetricLabel>| {
            let mut labels = vec![
                MetricLabel::new("portmoot.server", "files"),
                MetricLabel::new("mcp.method.name", "tools/call"),
            ];
            labels.extend(more);
            labels
        };
        let failed = Some(MetricLabel::new("error.type", "tool_error"));
        let family = MeasuredFamily::new("mcp.client.operation.duration", "Durations")
            .in_seconds()
            .with(of(None), durations())
            .with(of(None), durations())
            .with(of(failed), durations());
        let labels = "server=\"files\",mcp_method_name=\"tools/call\"";
        let lines = [
            "# TYPE mcp_client_operation_duration_seconds histogram".to_owned(),
            "# UNIT mcp_client_operation_duration_seconds seconds".to_owned(),
            format!("mcp_client_operation_duration_seconds_sum{{{labels}}} 19.402"),
            format!("mcp_client_operation_duration_seconds_count{{{labels}}} 6"),
            format!("mcp_client_operation_duration_seconds_bucket{{le=\"0.005\",{labels}}} 2"),
            format!("mcp_client_operation_duration_seconds_bucket{{le=\"1.0\",{labels}}} 4"),
            format!("mcp_client_operation_duration_seconds_bucket{{le=\"+Inf\",{labels}}} 6"),
            format!(
                "mcp_client_operation_duration_seconds_count{{{labels},error_type=\"tool_error\"}} 3"
            ),
        ];
        has(
            &openmetrics(vec![family]),
            &lines.each_ref().map(String::as_str),
        );
    }
}
