//! The task that sends the entries of the audit log on, in their order and at least once.
//!
//! It reads the log's own files and keeps its place beside them, so that it needs no queue: calls do
//! not know of it, and what cannot be sent now is sent later, also after a restart.

mod command;
mod records;
mod sent;

use std::sync::{Arc, Weak};
use std::time::Duration;

use control::Registry;
use store::StoreError;
use store::audit::{LogTail, TAIL_ENTRIES_MAX, TailBatch};
use telemetry::otlp::logs_message;
use telemetry::{AuditTarget, ExportOutcome, Signal, TelemetryResource};
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use crate::client::CollectorClient;
use crate::push::{ExportReport, LOG_TARGET};
pub(crate) use command::AuditCommand;
use records::record;
use sent::Sent;

/// The time between two looks for entries.
pub const AUDIT_EXPORT_LOOK: Duration = Duration::from_millis(500);
/// The time until the first further attempt to send a batch; it doubles with each that fails.
const RETRY: Duration = Duration::from_secs(1);
/// The longest time between two attempts to send a batch.
pub const AUDIT_EXPORT_RETRY_MAX: Duration = Duration::from_secs(60);

/// Where entries go.
pub(crate) enum AuditWay {
    /// To a collector.
    Collector {
        client: Box<CollectorClient>,
        resource: TelemetryResource,
        report: ExportReport,
    },
    /// To a command.
    Command(AuditCommand),
}

/// Sends the entries of one audit log to one target.
pub(crate) struct AuditPush {
    registry: Weak<Registry>,
    way: AuditWay,
    /// `None` before it was opened.
    tail: Option<LogTail>,
    /// Entries of the next batch at most.
    entries_max: usize,
    retry: Duration,
    fails: bool,
}

/// The result of one step.
enum Step {
    /// A batch is done.
    Went,
    /// All is sent.
    Idle,
    /// To be tried again after this time.
    Wait(Duration),
    /// The gateway is gone, or has no log.
    Over,
}

impl AuditPush {
    pub(crate) fn new(registry: Weak<Registry>, way: AuditWay) -> Self {
        Self {
            registry,
            way,
            tail: None,
            entries_max: TAIL_ENTRIES_MAX,
            retry: RETRY,
            fails: false,
        }
    }

    /// Sends until its end is wanted; then what is left, unless that fails.
    pub(crate) async fn run(mut self, mut ends: oneshot::Receiver<()>) {
        loop {
            let wait = match self.step().await {
                Step::Went => continue,
                Step::Over => return,
                Step::Idle => AUDIT_EXPORT_LOOK,
                Step::Wait(wait) => wait,
            };
            tokio::select! {
                _ = &mut ends => break,
                () = sleep(wait) => {}
            }
        }
        while matches!(self.step().await, Step::Went) {}
    }

    async fn step(&mut self) -> Step {
        let Some(registry) = self.registry.upgrade() else {
            return Step::Over;
        };
        let Some(durable) = registry.audit.durable_seq() else {
            let to = self.way.target().as_str();
            tracing::warn!(target: LOG_TARGET, to, "this gateway keeps no audit log, which could be exported");
            return Step::Over;
        };
        let batch = match self.read(&registry, durable).await {
            Ok(batch) => batch,
            Err(error) => return self.cannot_read(&error),
        };
        drop(registry);
        if batch.is_empty() {
            return Step::Idle;
        }
        let number = batch.lines.len();
        let sent = match number {
            0 => Sent::Arrived { rejected: 0 },
            _ => self.way.send(&batch.lines).await,
        };
        match sent {
            Sent::Arrived { rejected } => self.confirm(batch, rejected).await,
            Sent::TooLarge if number > 1 => {
                self.entries_max = number / 2;
                Step::Went
            }
            // No message can have it.
            Sent::TooLarge => self.confirm(batch, 1).await,
            Sent::Failed { pause } => {
                let wait = self.retry.max(pause.unwrap_or_default());
                self.retry = (self.retry * 2).min(AUDIT_EXPORT_RETRY_MAX);
                Step::Wait(wait)
            }
        }
    }

    /// The next batch. Blocks no task.
    async fn read(&mut self, registry: &Registry, durable: u64) -> Result<TailBatch, StoreError> {
        let mut tail = match self.tail.take() {
            Some(tail) => tail,
            None => self.open(registry).await?,
        };
        if durable == tail.seq() {
            self.tail = Some(tail);
            return Ok(TailBatch::default());
        }
        let entries_max = self.entries_max;
        let read = blocking(move || {
            let batch = tail.next(durable, entries_max);
            batch.map(|batch| (tail, batch))
        });
        let (tail, batch) = read.await?;
        self.tail = Some(tail);
        Ok(batch)
    }

    async fn open(&self, registry: &Registry) -> Result<LogTail, StoreError> {
        let dir = registry.audit.dir().map(Arc::clone);
        let dir = dir.ok_or(StoreError::Stopped)?;
        let target = self.way.target();
        let tail = blocking(move || LogTail::open(&dir, target.as_str())).await?;
        registry.audit_exports.begin(target, tail.seq());
        Ok(tail)
    }

    /// Notes that a batch has arrived, but for so many of its entries.
    async fn confirm(&mut self, batch: TailBatch, rejected: u64) -> Step {
        let Some(mut tail) = self.tail.take() else {
            return Step::Idle;
        };
        let lines = batch.lines.len() as u64;
        let missing = batch.missing;
        let kept = blocking(move || {
            let kept = tail.confirm(&batch);
            Ok((tail, kept))
        });
        let kept = match kept.await {
            Ok((tail, kept)) => {
                self.count(
                    lines.saturating_sub(rejected),
                    missing + rejected,
                    tail.seq(),
                );
                self.tail = Some(tail);
                kept
            }
            Err(error) => Err(error),
        };
        if let Err(error) = kept {
            return self.cannot_read(&error);
        }
        (self.retry, self.fails) = (RETRY, false);
        // A collector that takes less is not asked for more at once.
        self.entries_max = (self.entries_max * 2).min(TAIL_ENTRIES_MAX);
        Step::Went
    }

    fn count(&self, sent: u64, missing: u64, seq: u64) {
        let Some(registry) = self.registry.upgrade() else {
            return;
        };
        let target = self.way.target();
        registry.audit_exports.sent(target, sent, seq);
        if missing > 0 {
            registry.audit_exports.miss(target, missing);
            let to = target.as_str();
            tracing::warn!(target: LOG_TARGET, to, missing, "entries of the audit log are not exported: they were removed before, or not taken");
        }
    }

    fn cannot_read(&mut self, error: &StoreError) -> Step {
        if !std::mem::replace(&mut self.fails, true) {
            let to = self.way.target().as_str();
            tracing::error!(target: LOG_TARGET, %error, to, "the audit log cannot be exported");
        }
        Step::Wait(AUDIT_EXPORT_RETRY_MAX)
    }
}

impl AuditWay {
    fn target(&self) -> AuditTarget {
        match self {
            Self::Collector { .. } => AuditTarget::Otlp,
            Self::Command(_) => AuditTarget::Command,
        }
    }

    async fn send(&mut self, lines: &[String]) -> Sent {
        let (client, resource, report) = match self {
            Self::Command(command) => return command.send(lines).await,
            Self::Collector {
                client,
                resource,
                report,
            } => (client, resource, report),
        };
        let records = lines.iter().filter_map(|line| record(line)).collect();
        let message = logs_message(records, resource);
        let end = client.send(Signal::Logs, message.into()).await;
        report.note(Signal::Logs, &end);
        match end.outcome {
            ExportOutcome::Sent | ExportOutcome::Partial => Sent::Arrived {
                rejected: end.rejected,
            },
            ExportOutcome::TooLarge => Sent::TooLarge,
            ExportOutcome::Throttled | ExportOutcome::Refused | ExportOutcome::Failed => {
                Sent::Failed { pause: end.pause }
            }
        }
    }
}

/// Runs what waits for the disk on a thread of its own.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    spawn_blocking(work)
        .await
        .unwrap_or(Err(StoreError::Stopped))
}
