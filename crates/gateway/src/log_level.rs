//! Log levels by their names in the protocol (MCP 2025-11-25, "Logging").

use topic::LogLevel;

/// All levels by name, mildest first.
pub const LOG_LEVELS: [(&str, LogLevel); 8] = [
    ("debug", LogLevel::Debug),
    ("info", LogLevel::Info),
    ("notice", LogLevel::Notice),
    ("warning", LogLevel::Warning),
    ("error", LogLevel::Error),
    ("critical", LogLevel::Critical),
    ("alert", LogLevel::Alert),
    ("emergency", LogLevel::Emergency),
];

/// The level of this name.
pub fn parse(name: &str) -> Option<LogLevel> {
    LOG_LEVELS.iter().find(|(known, _)| *known == name).map(|(_, level)| *level)
}

/// The name of a level.
pub(crate) fn name(level: LogLevel) -> &'static str {
    LOG_LEVELS.iter().find(|(_, known)| *known == level).map_or("info", |(name, _)| name)
}
