//! Records of a log, for a collector.

use crate::context::TraceId;

/// A record of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRecord {
    /// Its time, in Unix milliseconds.
    pub at_ms: u64,
    /// The event that it is about.
    pub event: &'static str,
    /// Whether it is about something that was refused or has failed.
    pub is_warning: bool,
    /// Its text.
    pub body: String,
    /// The trace to which it belongs.
    pub trace: Option<TraceId>,
    /// Its attributes.
    pub attributes: Vec<LogAttribute>,
}

/// An attribute of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogAttribute {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: LogValue,
}

/// A value of an attribute of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogValue {
    /// A text.
    Text(String),
    /// A number.
    Number(u64),
}
