//! Bounds of measured durations, and the name of what has none of its own.

use std::time::Duration;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// The bounds of the buckets of durations: those of OpenTelemetry's conventions for MCP
/// (`mcp.client.operation.duration`), and three below them.
pub const DURATION_BOUNDS: [Duration; 17] = [
    ms(1),
    ms(2),
    ms(5),
    ms(10),
    ms(20),
    ms(50),
    ms(100),
    ms(200),
    ms(500),
    ms(1_000),
    ms(2_000),
    ms(5_000),
    ms(10_000),
    ms(30_000),
    ms(60_000),
    ms(120_000),
    ms(300_000),
];

/// The name of all other methods, and of the types of errors that have no name here
/// (OpenTelemetry's conventions).
pub(crate) const OTHER: &str = "_OTHER";
