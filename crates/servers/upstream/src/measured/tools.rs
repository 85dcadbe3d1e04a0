//! Durations of the calls of single tools at one server.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;
use platform::{Histogram, HistogramCounts, RwLock};

use super::bounds::{DURATION_BOUNDS, OTHER};

/// The tools of one server whose calls are measured by name: the first ones that succeed. Those of all
/// others count as `_OTHER`.
pub const TOOLS_MEASURED_MAX: usize = 64;

/// Durations of the calls of one tool, by whether they failed.
#[derive(Debug)]
pub(crate) struct ToolTimes {
    answered: Histogram,
    failed: Histogram,
}

impl Default for ToolTimes {
    fn default() -> Self {
        Self {
            answered: Histogram::new(&DURATION_BOUNDS),
            failed: Histogram::new(&DURATION_BOUNDS),
        }
    }
}

impl ToolTimes {
    fn enter(&self, has_failed: bool, duration: Duration) {
        let times = if has_failed {
            &self.failed
        } else {
            &self.answered
        };
        times.enter(duration);
    }
}

/// The tool of a call that is measured.
#[derive(Debug)]
pub(super) enum MeasuredTool {
    /// One that is measured by its name.
    Known(Arc<ToolTimes>),
    /// One that has not succeeded yet: callers may ask for names that no tool has.
    New(Box<str>),
    /// One for which there is no place.
    Other,
}

/// Durations of calls of one tool that ended in the same way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolDurations {
    /// The server's own name of it, or `_OTHER`.
    pub tool: String,
    /// Whether the calls failed.
    pub has_failed: bool,
    /// Their durations.
    pub durations: HistogramCounts,
}

/// The tools of one server.
#[derive(Debug, Default)]
pub(super) struct Tools {
    named: RwLock<HashMap<Box<str>, Arc<ToolTimes>, RandomState>>,
    others: ToolTimes,
}

impl Tools {
    /// The tool of a call that begins.
    pub(super) fn find(&self, name: &str) -> MeasuredTool {
        let named = self.named.read();
        match named.get(name) {
            Some(times) => MeasuredTool::Known(Arc::clone(times)),
            None if named.len() < TOOLS_MEASURED_MAX => MeasuredTool::New(name.into()),
            None => MeasuredTool::Other,
        }
    }

    /// Enters a call of a tool that has ended.
    pub(super) fn enter(&self, tool: MeasuredTool, has_failed: bool, duration: Duration) {
        match tool {
            MeasuredTool::Known(times) => times.enter(has_failed, duration),
            MeasuredTool::New(name) if !has_failed => {
                let mut named = self.named.write();
                if named.len() < TOOLS_MEASURED_MAX || named.contains_key(&name) {
                    let times = named.entry(name).or_default();
                    return times.enter(has_failed, duration);
                }
                self.others.enter(has_failed, duration);
            }
            MeasuredTool::New(_) | MeasuredTool::Other => {
                self.others.enter(has_failed, duration);
            }
        }
    }

    /// All durations until now, by name.
    pub(super) fn read(&self) -> Vec<ToolDurations> {
        let named = self.named.read();
        let named = named.iter().map(|(name, times)| (&**name, &**times));
        let mut all = Vec::new();
        for (tool, times) in named.chain([(OTHER, &self.others)]) {
            for (has_failed, durations) in [(false, &times.answered), (true, &times.failed)] {
                let durations = durations.read();
                if durations.total() > 0 {
                    all.push(ToolDurations {
                        tool: tool.to_owned(),
                        has_failed,
                        durations,
                    });
                }
            }
        }
        all.sort_by(|one, other| (&one.tool, one.has_failed).cmp(&(&other.tool, other.has_failed)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(tools: &Tools, name: &str, has_failed: bool) {
        tools.enter(tools.find(name), has_failed, Duration::from_millis(1));
    }

    /// Names with their calls that succeeded and that failed.
    fn counts(tools: &Tools) -> Vec<(String, bool, u64)> {
        let read = tools.read().into_iter();
        read.map(|one| (one.tool, one.has_failed, one.durations.total()))
            .collect()
    }

    #[test]
    fn each_tool_has_its_durations_once_it_has_succeeded() {
        let tools = Tools::default();
        call(&tools, "made_up", true);
        call(&tools, "read", false);
        call(&tools, "read", true);
        call(&tools, "read", false);
        let of = |tool: &str, has_failed, calls| (tool.to_owned(), has_failed, calls);
        assert_eq!(
            counts(&tools),
            [
                of(OTHER, true, 1),
                of("read", false, 2),
                of("read", true, 1)
            ]
        );
    }

    #[test]
    fn tools_without_a_place_count_as_one() {
        let tools = Tools::default();
        // Both begin before either has a place.
        let (one, other) = (tools.find("first"), tools.find("first"));
        tools.enter(one, false, Duration::ZERO);
        for number in 0..TOOLS_MEASURED_MAX + 5 {
            call(&tools, &format!("t{number}"), false);
        }
        tools.enter(other, false, Duration::ZERO);
        let counts = counts(&tools);
        assert_eq!(counts.len(), TOOLS_MEASURED_MAX + 1);
        assert!(counts.contains(&(OTHER.to_owned(), false, 6)));
        assert!(counts.contains(&("first".to_owned(), false, 2)));
    }
}
