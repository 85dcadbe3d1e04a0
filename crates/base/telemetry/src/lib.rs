//! Measured values of a gateway, and the messages of OpenTelemetry that say them.
//!
//! - [`MeasuredFamily`]: the values of one metric, in no format. Those who measure fill families, and
//!   those who write them out read them, so that every way out says the same.
//! - [`otlp`]: families as messages of OTLP, and what a collector answers.
//! - [`trace`]: spans, their contexts and which are recorded.
//! - [`ExportCounts`]: what became of the messages.
//!
//! Nothing here reads a clock or sends anything.

mod audit_exports;
mod context;
mod digits;
mod exports;
mod log_record;
mod measured;
pub mod otlp;
mod resource;
mod sampling;
mod settings;
mod span;
mod span_attributes;
mod span_buffer;
mod state;
pub mod trace;

pub use audit_exports::{AuditExportCount, AuditExports, AuditTarget};
pub use exports::{ExportCount, ExportCounts, ExportOutcome, Signal};
pub use log_record::{LogAttribute, LogRecord, LogValue};
pub use measured::{MeasuredFamily, MeasuredValue, MetricLabel, MetricLabels};
pub use resource::{AttributesError, ResourceAttribute, TelemetryResource};
