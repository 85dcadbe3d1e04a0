//! Severities of log messages.

use strum::{EnumString, IntoStaticStr, VariantNames};

/// The severity of a log message, from `debug` to `emergency`. Source: MCP 2025-11-25, "Logging".
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    EnumString,
    IntoStaticStr,
    VariantNames,
)]
#[strum(serialize_all = "lowercase")]
pub enum LogLevel {
    /// `debug`.
    Debug,
    /// `info`.
    Info,
    /// `notice`.
    Notice,
    /// `warning`.
    Warning,
    /// `error`.
    Error,
    /// `critical`.
    Critical,
    /// `alert`.
    Alert,
    /// `emergency`.
    Emergency,
}

impl LogLevel {
    /// The names of all levels, mildest first.
    pub const NAMES: &'static [&'static str] = <Self as VariantNames>::VARIANTS;
}
