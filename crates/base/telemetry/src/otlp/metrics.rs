//! Measured values as the message of OTLP.

use std::time::Duration;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint,
    ResourceMetrics, ScopeMetrics, Sum, metric::Data, number_data_point::Value,
};
use platform::HistogramCounts;
use prost::Message;

use super::{attribute, resource_message, scope};
use crate::measured::{MeasuredFamily, MeasuredValue, MetricLabels};
use crate::resource::TelemetryResource;

const CUMULATIVE: i32 = AggregationTemporality::Cumulative as i32;

/// The times of measured values, in nanoseconds of Unix time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricTimes {
    /// When counting began: the start of the process.
    pub start_ns: u64,
    /// When the values were read.
    pub read_ns: u64,
}

/// The message that says what was measured: an encoded `ExportMetricsServiceRequest`.
#[must_use]
pub fn metrics_message(
    families: &[MeasuredFamily],
    resource: &TelemetryResource,
    times: MetricTimes,
) -> Vec<u8> {
    let metrics = families.iter().filter_map(|family| metric(family, times));
    let of_scope = ScopeMetrics {
        scope: Some(scope()),
        metrics: metrics.collect(),
        ..ScopeMetrics::default()
    };
    let of_resource = ResourceMetrics {
        resource: Some(resource_message(resource)),
        scope_metrics: vec![of_scope],
        ..ResourceMetrics::default()
    };
    let request = ExportMetricsServiceRequest {
        resource_metrics: vec![of_resource],
    };
    request.encode_to_vec()
}

/// A metric; `None` of a family without values.
fn metric(family: &MeasuredFamily, times: MetricTimes) -> Option<Metric> {
    let data = match family.samples.values().next()? {
        MeasuredValue::Gauge(_) | MeasuredValue::Info => Data::Gauge(Gauge {
            data_points: numbers(family, times),
        }),
        MeasuredValue::Counter(_) => Data::Sum(Sum {
            data_points: numbers(family, times),
            aggregation_temporality: CUMULATIVE,
            is_monotonic: true,
        }),
        MeasuredValue::Durations(_) => Data::Histogram(Histogram {
            data_points: histograms(family, times),
            aggregation_temporality: CUMULATIVE,
        }),
    };
    let unit = if family.in_seconds { "s" } else { "" };
    let ending = match family.samples.values().next()? {
        // As Prometheus names information.
        MeasuredValue::Info => "_info",
        _ => "",
    };
    Some(Metric {
        name: format!("{}{ending}", family.name),
        description: family.help.to_owned(),
        unit: unit.to_owned(),
        data: Some(data),
        ..Metric::default()
    })
}

fn numbers(family: &MeasuredFamily, times: MetricTimes) -> Vec<NumberDataPoint> {
    let mut points = Vec::new();
    for (labels, value) in &family.samples {
        let (number, start_ns) = match value {
            // A gauge has no beginning.
            MeasuredValue::Gauge(number) => (*number, 0),
            MeasuredValue::Counter(number) => (*number, times.start_ns),
            MeasuredValue::Info => (1, 0),
            MeasuredValue::Durations(_) => continue,
        };
        points.push(NumberDataPoint {
            attributes: attributes(labels),
            start_time_unix_nano: start_ns,
            time_unix_nano: times.read_ns,
            value: Some(Value::AsInt(i64::try_from(number).unwrap_or(i64::MAX))),
            ..NumberDataPoint::default()
        });
    }
    points
}

fn histograms(family: &MeasuredFamily, times: MetricTimes) -> Vec<HistogramDataPoint> {
    let mut points = Vec::new();
    for (labels, value) in &family.samples {
        if let MeasuredValue::Durations(counts) = value {
            points.push(histogram(attributes(labels), counts, times));
        }
    }
    points
}

fn histogram(
    attributes: Vec<KeyValue>,
    counts: &HistogramCounts,
    times: MetricTimes,
) -> HistogramDataPoint {
    let bounds = counts.bounds.iter().map(Duration::as_secs_f64);
    HistogramDataPoint {
        attributes,
        start_time_unix_nano: times.start_ns,
        time_unix_nano: times.read_ns,
        count: counts.total(),
        sum: Some(counts.sum.as_secs_f64()),
        bucket_counts: counts.counts.clone(),
        explicit_bounds: bounds.collect(),
        ..HistogramDataPoint::default()
    }
}

fn attributes(labels: &MetricLabels) -> Vec<KeyValue> {
    let all = labels.iter();
    all.map(|label| attribute(label.name, &label.value))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured::MetricLabel;

    const TIMES: MetricTimes = MetricTimes {
        start_ns: 10,
        read_ns: 20,
    };

    fn decoded(family: MeasuredFamily) -> Vec<Metric> {
        let message = metrics_message(&[family], &TelemetryResource::default(), TIMES);
        let mut request = ExportMetricsServiceRequest::decode(&*message).unwrap();
        let mut of_resource = request.resource_metrics.remove(0);
        let resource = of_resource.resource.unwrap();
        assert_eq!(resource.attributes, [attribute("service.name", "portmoot")]);
        of_resource.scope_metrics.remove(0).metrics
    }

    fn labels(server: &str) -> MetricLabels {
        vec![MetricLabel::new("portmoot.server", server)]
    }

    #[test]
    fn a_counter_is_a_cumulative_sum_since_the_start_of_the_process() {
        let family = MeasuredFamily::new("portmoot.requests", "Requests")
            .with(labels("a"), MeasuredValue::Counter(7));
        let [metric] = &decoded(family)[..] else {
            panic!("one metric")
        };
        let Some(Data::Sum(sum)) = &metric.data else {
            panic!("{metric:?}");
        };
        assert!(sum.is_monotonic && sum.aggregation_temporality == CUMULATIVE);
        let point = &sum.data_points[0];
        assert_eq!(point.attributes, [attribute("portmoot.server", "a")]);
        assert_eq!((point.start_time_unix_nano, point.time_unix_nano), (10, 20));
        assert_eq!(point.value, Some(Value::AsInt(7)));
    }

    #[test]
    fn gauges_and_information_are_gauges_and_a_metric_without_values_is_left_out() {
        let family =
            |value| MeasuredFamily::new("portmoot.sessions", "Sessions").with(labels("a"), value);
        for (value, number) in [(MeasuredValue::Gauge(4), 4), (MeasuredValue::Info, 1)] {
            let metrics = decoded(family(value));
            let Some(Data::Gauge(gauge)) = &metrics[0].data else {
                panic!("{metrics:?}");
            };
            assert_eq!(gauge.data_points[0].value, Some(Value::AsInt(number)));
        }
        assert_eq!(decoded(MeasuredFamily::new("portmoot.none", "None")), []);
    }

    #[test]
    fn durations_are_a_histogram_in_seconds_with_explicit_bounds() {
        static BOUNDS: [Duration; 2] = [Duration::from_millis(5), Duration::from_secs(1)];
        let entered = platform::Histogram::new(&BOUNDS);
        for ms in [1, 700, 9_000] {
            entered.enter(Duration::from_millis(ms));
        }
        let family = MeasuredFamily::new("mcp.client.operation.duration", "Durations")
            .in_seconds()
            .with(labels("a"), MeasuredValue::Durations(entered.read()));
        let metrics = decoded(family);
        assert_eq!(
            (&*metrics[0].name, &*metrics[0].unit),
            ("mcp.client.operation.duration", "s")
        );
        let Some(Data::Histogram(histogram)) = &metrics[0].data else {
            panic!("{metrics:?}");
        };
        assert_eq!(histogram.aggregation_temporality, CUMULATIVE);
        let point = &histogram.data_points[0];
        assert_eq!(point.explicit_bounds, [0.005, 1.0]);
        assert_eq!(point.bucket_counts, [1, 1, 1]);
        assert_eq!((point.count, point.sum), (3, Some(9.701)));
        assert_eq!(point.start_time_unix_nano, 10);
    }
}
