//! The task that sends spans to the collector.

use std::sync::{Arc, Weak};
use std::time::Duration;

use control::Registry;
use telemetry::trace::SPANS_PER_MESSAGE;
use telemetry::{Signal, TelemetryResource};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use crate::client::CollectorClient;
use crate::push::ExportReport;

/// The longest time for which a span waits for others.
const SPANS_WAIT: Duration = Duration::from_secs(5);
/// The time between two looks at the spans that wait.
const SPANS_LOOK: Duration = Duration::from_millis(100);

/// Sends spans to one collector. A message that is not taken is dropped, and its spans are counted.
pub(crate) struct SpansPush {
    pub(crate) registry: Weak<Registry>,
    pub(crate) resource: TelemetryResource,
    pub(crate) client: CollectorClient,
    pub(crate) report: ExportReport,
}

impl SpansPush {
    /// Sends what waits, until its end is wanted; then all that waits.
    pub(crate) async fn run(mut self, mut ends: oneshot::Receiver<()>) {
        let mut pause = Duration::ZERO;
        loop {
            let is_over = tokio::select! {
                _ = &mut ends => true,
                is_gone = self.batch(pause) => is_gone,
            };
            if is_over {
                break;
            }
            pause = self.send().await.unwrap_or_default();
        }
        while self.waiting() > 0 {
            let _ = self.send().await;
        }
    }

    /// Waits for a whole message, or until its first span has waited long enough. Returns whether
    /// the gateway is gone.
    async fn batch(&self, pause: Duration) -> bool {
        sleep(pause).await;
        let mut first: Option<Instant> = None;
        loop {
            sleep(SPANS_LOOK).await;
            if self.registry.strong_count() == 0 {
                return true;
            }
            let waiting = self.waiting();
            if waiting == 0 {
                continue;
            }
            let since = *first.get_or_insert_with(Instant::now);
            if waiting >= SPANS_PER_MESSAGE || since.elapsed() >= SPANS_WAIT {
                return false;
            }
        }
    }

    fn waiting(&self) -> usize {
        let registry = self.registry.upgrade();
        registry.map_or(0, |registry| registry.context.traces.spans.len())
    }

    /// Sends one message. Returns the time for which the collector wants no other.
    async fn send(&mut self) -> Option<Duration> {
        let context = Arc::clone(&self.registry.upgrade()?.context);
        let batch = context.traces.spans.take()?;
        let number = batch.number();
        let message = batch.into_message(&self.resource);
        let end = self.client.send(Signal::Traces, message).await;
        if !end.outcome.has_arrived() {
            context.traces.spans.drop_spans(number);
        }
        self.report.note(Signal::Traces, &end);
        end.pause
    }
}
