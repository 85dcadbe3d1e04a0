//! Measured values of a gateway on their way out.
//!
//! - [`gather`]: everything that is measured, in no format.
//! - [`openmetrics`]: the text that `/metrics` answers.
//! - [`Exporter`]: the same to a collector, by OTLP over HTTP, and the audit log. Nothing waits for it.

mod audit;
mod client;
mod exporter;
mod gather;
mod openmetrics;
mod push;
mod spans;

pub use exporter::Exporter;
pub use gather::{MetricsViewer, gather};
pub use openmetrics::{OPEN_METRICS, openmetrics};
