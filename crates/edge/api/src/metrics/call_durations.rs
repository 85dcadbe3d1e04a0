//! Durations of calls at servers, by the conventions of OpenTelemetry for MCP.

use std::collections::BTreeMap;
use std::time::Duration;

use platform::HistogramCounts;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;
use upstream::CallDurations;

/// `mcp.client.operation.duration` of the conventions, as OpenMetrics writes names: a unit follows.
const NAME: &str = "mcp_client_operation_duration";
const HELP: &str = "Duration of a call at a server, from when it is sent until its answer";

/// The labels of durations: those of the conventions, and the server.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Of {
    server: String,
    method: &'static str,
    error_type: Option<&'static str>,
}

/// The durations of the calls at all servers that a caller may know of.
#[derive(Debug, Default)]
pub(super) struct AllDurations(BTreeMap<Of, HistogramCounts>);

impl AllDurations {
    /// Whether no call has ended.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds those of one server, which may serve in several topics.
    pub(super) fn add(&mut self, server: &str, durations: Vec<CallDurations>) {
        for one in durations {
            let of = Of {
                server: server.to_owned(),
                method: one.method,
                error_type: one.error_type,
            };
            match self.0.get_mut(&of) {
                Some(known) => known.add(&one.durations),
                None => {
                    self.0.insert(of, one.durations);
                }
            }
        }
    }
}

impl Collector for AllDurations {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let seconds = Some(&Unit::Seconds);
        let mut family = encoder.encode_descriptor(NAME, HELP, seconds, MetricType::Histogram)?;
        for (of, counts) in &self.0 {
            let mut labels = vec![
                ("server", of.server.as_str()),
                ("mcp_method_name", of.method),
            ];
            if let Some(error_type) = of.error_type {
                labels.push(("error_type", error_type));
            }
            let buckets: Vec<(f64, u64)> = counts
                .counts
                .iter()
                .enumerate()
                .map(|(bucket, count)| (bound(counts, bucket), *count))
                .collect();
            family
                .encode_family(&labels)?
                .encode_histogram::<NoLabelSet>(
                    counts.sum.as_secs_f64(),
                    counts.total(),
                    &buckets,
                    None,
                )?;
        }
        Ok(())
    }
}

/// The bound of a bucket in seconds.
fn bound(counts: &HistogramCounts, bucket: usize) -> f64 {
    let bound = counts.bounds.get(bucket).map(Duration::as_secs_f64);
    bound.unwrap_or(f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use platform::Histogram;
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;

    #[test]
    fn durations_are_written_as_a_histogram_of_seconds() {
        static BOUNDS: [Duration; 2] = [Duration::from_millis(5), Duration::from_secs(1)];
        let histogram = Histogram::new(&BOUNDS);
        for ms in [1, 700, 9_000] {
            histogram.enter(Duration::from_millis(ms));
        }
        let of = |error_type| CallDurations {
            method: "tools/call",
            error_type,
            durations: histogram.read(),
        };
        let mut all = AllDurations::default();
        all.add("files", vec![of(None), of(Some("tool_error"))]);
        all.add("files", vec![of(None)]);
        let mut registry = Registry::default();
        registry.register_collector(Box::new(all));
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        let labels = "server=\"files\",mcp_method_name=\"tools/call\"";
        let failed = format!("{labels},error_type=\"tool_error\"");
        for line in [
            "# TYPE mcp_client_operation_duration_seconds histogram".to_owned(),
            "# UNIT mcp_client_operation_duration_seconds seconds".to_owned(),
            format!("mcp_client_operation_duration_seconds_sum{{{labels}}} 19.402"),
            format!("mcp_client_operation_duration_seconds_count{{{labels}}} 6"),
            format!("mcp_client_operation_duration_seconds_bucket{{le=\"0.005\",{labels}}} 2"),
            format!("mcp_client_operation_duration_seconds_bucket{{le=\"1.0\",{labels}}} 4"),
            format!("mcp_client_operation_duration_seconds_bucket{{le=\"+Inf\",{labels}}} 6"),
            format!("mcp_client_operation_duration_seconds_count{{{failed}}} 3"),
        ] {
            assert!(text.lines().any(|one| one == line), "{line}\n{text}");
        }
    }
}
