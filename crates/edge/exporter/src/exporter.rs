//! The export that is in force.

use std::sync::Arc;
use std::time::Duration;

use config::TelemetryConfig;
use control::Registry;
use platform::{Mutex, unix_ms};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::client::CollectorClient;
use crate::push::{ExportReport, MetricsPush, MetricsSource};
use crate::spans::SpansPush;

/// The time in which the last message has to arrive when an export ends.
pub(crate) const EXPORT_LAST: Duration = Duration::from_secs(2);

/// Sends what a gateway measures to a collector, as configured.
pub struct Exporter {
    registry: Arc<Registry>,
    /// When the process started, in nanoseconds of Unix time.
    start_ns: u64,
    running: Mutex<Option<RunningExport>>,
}

/// An export to one collector.
struct RunningExport {
    config: TelemetryConfig,
    source: MetricsSource,
    last: oneshot::Sender<Vec<u8>>,
    metrics: JoinHandle<()>,
    spans: Option<RunningSpans>,
}

/// The task that sends spans, and the wish that it ends.
struct RunningSpans {
    ends: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Exporter {
    /// The exporter of a gateway, which sends nothing yet.
    #[must_use]
    pub fn new(registry: &Arc<Registry>) -> Self {
        let start_ms = unix_ms().saturating_sub(registry.context.now_ms());
        Self {
            registry: Arc::clone(registry),
            start_ns: start_ms.saturating_mul(1_000_000),
            running: Mutex::default(),
        }
    }

    /// Sends as the configuration says from now on. If it differs from before, what was measured
    /// until now goes to the former collector. Must be called inside a runtime.
    pub fn put_in_force(&self, config: Option<&TelemetryConfig>) {
        let mut running = self.running.lock();
        if running.as_ref().map(|one| &one.config) == config {
            return;
        }
        let traces = config.and_then(|config| config.traces);
        self.registry.context.traces.put_in_force(traces);
        self.registry
            .context
            .overhead
            .put_in_force(config.is_some());
        let former = std::mem::replace(&mut *running, config.map(|config| self.start(config)));
        drop(running);
        if let Some(former) = former {
            tokio::spawn(former.end());
        }
    }

    /// Sends what was measured until now, and nothing afterwards. The message is made at once, and
    /// has two seconds to arrive.
    pub fn end(&self) -> impl Future<Output = ()> + use<> {
        let ending = self.running.lock().take().map(RunningExport::end);
        async move {
            if let Some(ending) = ending {
                ending.await;
            }
        }
    }

    fn start(&self, config: &TelemetryConfig) -> RunningExport {
        let resource = config.resource.clone();
        let source = MetricsSource {
            registry: Arc::downgrade(&self.registry),
            resource: resource
                .or("service.version", env!("CARGO_PKG_VERSION"))
                .or("service.instance.id", &self.registry.context.instance),
            start_ns: self.start_ns,
        };
        let spans = config.traces.map(|_| self.start_spans(config, &source));
        let push = MetricsPush {
            source: source.clone(),
            client: CollectorClient::new(config.clone()),
            interval: config.interval,
            report: ExportReport::new(Arc::clone(&self.registry.exports)),
        };
        let (last, ends) = oneshot::channel();
        RunningExport {
            config: config.clone(),
            source,
            last,
            metrics: tokio::spawn(push.run(ends)),
            spans,
        }
    }

    fn start_spans(&self, config: &TelemetryConfig, source: &MetricsSource) -> RunningSpans {
        let push = SpansPush {
            registry: Arc::downgrade(&self.registry),
            resource: source.resource.clone(),
            client: CollectorClient::new(config.clone()),
            report: ExportReport::new(Arc::clone(&self.registry.exports)),
        };
        let (ends, ended) = oneshot::channel();
        RunningSpans {
            ends,
            task: tokio::spawn(push.run(ended)),
        }
    }
}

impl RunningExport {
    /// Ends it with a last message, which is made at once.
    fn end(self) -> impl Future<Output = ()> {
        if let Some(message) = self.source.message() {
            // A task that has ended takes no more.
            let _ = self.last.send(message);
        }
        let spans = self.spans.map(RunningSpans::end);
        async move {
            let spans = async move {
                if let Some(task) = spans {
                    within_last(task).await;
                }
            };
            tokio::join!(within_last(self.metrics), spans);
        }
    }
}

impl RunningSpans {
    /// Has the task send what waits, and end.
    fn end(self) -> JoinHandle<()> {
        // One that has ended wants no wish.
        let _ = self.ends.send(());
        self.task
    }
}

/// Waits for the end of a task that sends its last messages, and no longer than they may take.
async fn within_last(mut task: JoinHandle<()>) {
    if timeout(EXPORT_LAST, &mut task).await.is_err() {
        task.abort();
    }
}
