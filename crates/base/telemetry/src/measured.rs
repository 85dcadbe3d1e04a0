//! Measured values, in no format.

use std::collections::BTreeMap;

use platform::HistogramCounts;

/// The prefix of the gateway's own names.
const OWN: &str = "portmoot.";

/// A label of a measured value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MetricLabel {
    /// Its name, as OpenTelemetry writes names: `mcp.method.name`, `portmoot.server`.
    pub name: &'static str,
    /// Its value.
    pub value: String,
}

impl MetricLabel {
    /// A label.
    pub fn new(name: &'static str, value: impl Into<String>) -> Self {
        Self {
            name,
            value: value.into(),
        }
    }

    /// The name in OpenMetrics: without the gateway's prefix, and with underscores.
    #[must_use]
    pub fn open_metrics_name(&self) -> String {
        let name = self.name.strip_prefix(OWN).unwrap_or(self.name);
        name.replace('.', "_")
    }
}

/// The labels of one value, in the order in which they are written.
pub type MetricLabels = Vec<MetricLabel>;

/// A measured value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MeasuredValue {
    /// A number that rises and falls.
    Gauge(u64),
    /// A number that only rises while the process runs.
    Counter(u64),
    /// Durations.
    Durations(HistogramCounts),
    /// 1: the labels are what is said.
    Info,
}

impl MeasuredValue {
    /// Adds a value of the same kind.
    fn add(&mut self, other: Self) {
        match (self, other) {
            (Self::Gauge(sum), Self::Gauge(more)) | (Self::Counter(sum), Self::Counter(more)) => {
                *sum = sum.saturating_add(more);
            }
            (Self::Durations(sum), Self::Durations(more)) => sum.add(&more),
            (_, Self::Info) => {}
            (one, other) => debug_assert!(false, "{other:?} is added to {one:?}"),
        }
    }
}

/// The values of one metric, by their labels. All are of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeasuredFamily {
    /// The name, as OpenTelemetry writes names: `portmoot.sessions`, `mcp.client.operation.duration`.
    pub name: &'static str,
    /// One sentence about it, without a full stop.
    pub help: &'static str,
    /// Whether the values are in seconds, a unit that formats write beside the name.
    pub in_seconds: bool,
    /// The values.
    pub samples: BTreeMap<MetricLabels, MeasuredValue>,
}

impl MeasuredFamily {
    /// A metric without values.
    #[must_use]
    pub fn new(name: &'static str, help: &'static str) -> Self {
        Self {
            name,
            help,
            in_seconds: false,
            samples: BTreeMap::new(),
        }
    }

    /// The metric, in seconds.
    #[must_use]
    pub fn in_seconds(mut self) -> Self {
        self.in_seconds = true;
        self
    }

    /// The metric with one more value.
    #[must_use]
    pub fn with(mut self, labels: MetricLabels, value: MeasuredValue) -> Self {
        self.add(labels, value);
        self
    }

    /// Adds a value to that of the same labels.
    pub fn add(&mut self, labels: MetricLabels, value: MeasuredValue) {
        match self.samples.get_mut(&labels) {
            Some(known) => known.add(value),
            None => {
                self.samples.insert(labels, value);
            }
        }
    }

    /// The name in OpenMetrics, where the format adds the endings of kinds and units.
    #[must_use]
    pub fn open_metrics_name(&self) -> String {
        self.name.replace('.', "_")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use platform::Histogram;

    use super::*;

    fn labels(server: &str) -> MetricLabels {
        vec![MetricLabel::new("portmoot.server", server)]
    }

    #[test]
    fn values_of_the_same_labels_are_added_up() {
        static BOUNDS: [Duration; 1] = [Duration::from_millis(5)];
        let histogram = Histogram::new(&BOUNDS);
        histogram.enter(Duration::from_millis(1));
        let mut numbers = MeasuredFamily::new("portmoot.server_calls", "Calls")
            .with(labels("a"), MeasuredValue::Gauge(2))
            .with(labels("b"), MeasuredValue::Gauge(5));
        numbers.add(labels("a"), MeasuredValue::Gauge(3));
        let found: Vec<_> = numbers.samples.values().cloned().collect();
        assert_eq!(found, [MeasuredValue::Gauge(5), MeasuredValue::Gauge(5)]);
        let durations = || MeasuredValue::Durations(histogram.read());
        let of_calls = MeasuredFamily::new("mcp.client.operation.duration", "Durations")
            .with(labels("a"), durations())
            .with(labels("a"), durations());
        let Some(MeasuredValue::Durations(sum)) = of_calls.samples.get(&labels("a")) else {
            panic!("{of_calls:?}");
        };
        assert_eq!((sum.total(), sum.sum), (2, Duration::from_millis(2)));
    }

    #[test]
    fn names_are_those_of_both_formats() {
        let family = MeasuredFamily::new("mcp.client.operation.duration", "Durations");
        assert_eq!(family.open_metrics_name(), "mcp_client_operation_duration");
        let names = ["portmoot.server", "mcp.method.name", "error.type"];
        let names = names.map(|name| MetricLabel::new(name, "x").open_metrics_name());
        assert_eq!(names, ["server", "mcp_method_name", "error_type"]);
    }
}
