//! The task that sends metrics to the collector, again and again.

use std::sync::{Arc, Weak};
use std::time::Duration;

use control::Registry;
use platform::unix_ms;
use telemetry::otlp::{MetricTimes, metrics_message};
use telemetry::{ExportCounts, Signal, TelemetryResource};
use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::client::{CollectorClient, ExportEnd};
use crate::gather::{MetricsViewer, gather};

pub(crate) const LOG_TARGET: &str = "portmoot::telemetry";

/// What the metrics of a gateway are read from.
#[derive(Clone)]
pub(crate) struct MetricsSource {
    pub(crate) registry: Weak<Registry>,
    pub(crate) resource: TelemetryResource,
    /// When the process started, in nanoseconds of Unix time.
    pub(crate) start_ns: u64,
}

impl MetricsSource {
    /// The message of now; `None` if the gateway is gone.
    pub(crate) fn message(&self) -> Option<Vec<u8>> {
        let registry = self.registry.upgrade()?;
        let families = gather(&registry, MetricsViewer::Operator);
        let times = MetricTimes {
            start_ns: self.start_ns,
            read_ns: unix_ms().saturating_mul(1_000_000),
        };
        Some(metrics_message(&families, &self.resource, times))
    }
}

/// Sends metrics to one collector. What is not taken is not sent again: the next message has all.
pub(crate) struct MetricsPush {
    pub(crate) source: MetricsSource,
    pub(crate) client: CollectorClient,
    pub(crate) interval: Duration,
    pub(crate) report: ExportReport,
}

impl MetricsPush {
    /// Sends at each interval, until the last message comes or its sender is dropped.
    pub(crate) async fn run(mut self, mut last: oneshot::Receiver<Vec<u8>>) {
        let mut wait = self.interval;
        loop {
            let message = tokio::select! {
                message = &mut last => return self.end(message.ok()).await,
                () = sleep(wait) => self.source.message(),
            };
            let Some(message) = message else { return };
            let end = tokio::select! {
                end = self.client.send(Signal::Metrics, message.into()) => end,
                message = &mut last => return self.end(message.ok()).await,
            };
            wait = self.interval.max(end.pause.unwrap_or_default());
            self.report.note(Signal::Metrics, &end);
        }
    }

    async fn end(mut self, message: Option<Vec<u8>>) {
        if let Some(message) = message {
            let end = self.client.send(Signal::Metrics, message.into()).await;
            self.report.note(Signal::Metrics, &end);
        }
    }
}

/// Counts the ends of messages. The log gets a line when they begin to fail, and one when they
/// arrive again.
pub(crate) struct ExportReport {
    counts: Arc<ExportCounts>,
    is_failing: bool,
}

impl ExportReport {
    pub(crate) fn new(counts: Arc<ExportCounts>) -> Self {
        Self {
            counts,
            is_failing: false,
        }
    }

    pub(crate) fn note(&mut self, signal: Signal, end: &ExportEnd) {
        self.counts.count(signal, end.outcome);
        let was_failing = std::mem::replace(&mut self.is_failing, !end.why.is_empty());
        let signal = signal.as_str();
        let ExportEnd { outcome, why, .. } = end;
        match (was_failing, self.is_failing) {
            (false, true) if outcome.has_arrived() => {
                tracing::warn!(target: LOG_TARGET, signal, why, "the collector takes only a part of the telemetry");
            }
            (false, true) => {
                tracing::warn!(target: LOG_TARGET, signal, why, "telemetry does not arrive at the collector; it is tried again at each interval");
            }
            (true, false) => {
                tracing::info!(target: LOG_TARGET, signal, "telemetry arrives at the collector again");
            }
            (false, false) | (true, true) => {
                tracing::debug!(target: LOG_TARGET, signal, outcome = outcome.as_str(), why, "telemetry was sent");
            }
        }
    }
}
