//! The export that is in force.

use std::sync::Arc;
use std::time::Duration;

use config::TelemetryConfig;
use control::Registry;
use platform::{Mutex, unix_ms};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::audit::{AuditCommand, AuditPush, AuditWay};
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
    /// The export of the audit log to the collector.
    collector: Mutex<Option<RunningTask>>,
    /// The export of the audit log to a command.
    command: Mutex<Option<RunningTask>>,
    /// Held by the export of the audit log to a collector: the next one begins where it ends.
    log: Arc<tokio::sync::Mutex<()>>,
}

/// An export to one collector.
struct RunningExport {
    config: TelemetryConfig,
    source: MetricsSource,
    last: oneshot::Sender<Vec<u8>>,
    metrics: JoinHandle<()>,
    spans: Option<RunningTask>,
}

/// A task that sends, and the wish that it ends.
struct RunningTask {
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
            collector: Mutex::default(),
            command: Mutex::default(),
            log: Arc::default(),
        }
    }

    /// Gives the entries of the audit log to a command from now on. Must be called inside a runtime.
    pub fn give_to(&self, words: Vec<String>) {
        let command = AuditCommand::new(words, self.registry.guard.clone());
        let push = AuditPush::new(Arc::downgrade(&self.registry), AuditWay::Command(command));
        *self.command.lock() = Some(RunningTask::start(|ends| push.run(ends)));
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
        let next = config.map(|config| self.start(config));
        let with_log = next.as_ref().filter(|next| next.config.audit);
        let log = with_log.map(|next| self.start_log(next));
        let former = std::mem::replace(&mut *running, next);
        drop(running);
        let former_log = std::mem::replace(&mut *self.collector.lock(), log);
        if let Some(former) = former {
            tokio::spawn(former.end());
        }
        tokio::spawn(end_of(former_log));
    }

    /// Sends what the audit log has, and ends its export: that is given two seconds.
    pub async fn end_of_log(&self) {
        let collector = self.collector.lock().take();
        let command = self.command.lock().take();
        tokio::join!(end_of(collector), end_of(command));
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

    fn start_log(&self, export: &RunningExport) -> RunningTask {
        let way = AuditWay::Collector {
            client: Box::new(CollectorClient::new(export.config.clone())),
            resource: export.source.resource.clone(),
            report: ExportReport::new(Arc::clone(&self.registry.exports)),
        };
        let push = AuditPush::new(Arc::downgrade(&self.registry), way);
        let log = Arc::clone(&self.log);
        RunningTask::start(async move |ends| {
            let _log = log.lock_owned().await;
            push.run(ends).await;
        })
    }

    fn start_spans(&self, config: &TelemetryConfig, source: &MetricsSource) -> RunningTask {
        let push = SpansPush {
            registry: Arc::downgrade(&self.registry),
            resource: source.resource.clone(),
            client: CollectorClient::new(config.clone()),
            report: ExportReport::new(Arc::clone(&self.registry.exports)),
        };
        RunningTask::start(|ends| push.run(ends))
    }
}

impl RunningExport {
    /// Ends it with a last message, which is made at once.
    fn end(self) -> impl Future<Output = ()> {
        if let Some(message) = self.source.message() {
            // A task that has ended takes no more.
            let _ = self.last.send(message);
        }
        let spans = self.spans;
        async move {
            tokio::join!(within_last(self.metrics), end_of(spans));
        }
    }
}

impl RunningTask {
    fn start<F>(run: impl FnOnce(oneshot::Receiver<()>) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (ends, ended) = oneshot::channel();
        Self {
            ends,
            task: tokio::spawn(run(ended)),
        }
    }

    /// Has the task send what waits, and end.
    fn end(self) -> JoinHandle<()> {
        // One that has ended wants no wish.
        let _ = self.ends.send(());
        self.task
    }
}

/// Ends a task, if there is one, and waits for it no longer than its last messages may take.
async fn end_of(task: Option<RunningTask>) {
    if let Some(task) = task {
        within_last(task.end()).await;
    }
}

/// Waits for the end of a task that sends its last messages, and no longer than they may take.
async fn within_last(mut task: JoinHandle<()>) {
    if timeout(EXPORT_LAST, &mut task).await.is_err() {
        task.abort();
    }
}
