//! Uses of tools: since which day the calls of each tool are counted, and on which day it was
//! called last.

use std::collections::BTreeMap;
use std::hash::BuildHasher as _;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::fast::RandomState;
use serde::{Deserialize, Serialize};

/// Servers whose tools are counted: the one that was listed or called longest ago makes way.
const SERVERS_MAX: usize = 1_000;
/// Tools of one server that are counted.
const COUNTED_TOOLS_MAX: usize = 10_000;
/// A tool that its server lists no more is forgotten after so many days without a call.
const UNLISTED_DAYS: u64 = 90;
/// Tools that are remembered as called on this day without a lock.
const MARKS: usize = 4_096;

/// The use of one tool. Days are counted from 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolUse {
    /// The day from which on its calls are counted: when the gateway first saw it listed, or
    /// called.
    pub since: u64,
    /// The last day on which it was called, of those.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<u64>,
}

impl ToolUse {
    /// For how many days it was not called, as far as its calls are counted.
    #[must_use]
    pub fn idle_days(&self, today: u64) -> u64 {
        today.saturating_sub(self.last.unwrap_or(self.since))
    }
}

/// The uses of all tools, by server and by the server's own name of the tool.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct ToolUses(BTreeMap<String, OfServer>);

#[derive(Debug, Default, Serialize, Deserialize)]
struct OfServer {
    /// The last day on which it was listed or called.
    seen: u64,
    tools: BTreeMap<String, ToolUse>,
}

impl ToolUses {
    /// Notes a call; false if it was noted on this day before.
    pub(super) fn note_call(&mut self, server: &str, tool: &str, today: u64) -> bool {
        let of_server = self.of_server(server, today);
        let full = of_server.tools.len() >= COUNTED_TOOLS_MAX;
        match of_server.tools.get_mut(tool) {
            Some(known) if known.last == Some(today) => return false,
            Some(known) => known.last = Some(today),
            None if full => return false,
            None => {
                let first = ToolUse {
                    since: today,
                    last: Some(today),
                };
                of_server.tools.insert(tool.to_owned(), first);
            }
        }
        true
    }

    /// Notes what a server lists; false if there is nothing new.
    pub(super) fn note_listed<'t>(
        &mut self,
        server: &str,
        listed: impl Iterator<Item = &'t str>,
        today: u64,
    ) -> bool {
        let of_server = self.of_server(server, today);
        let mut gone: Vec<String> = of_server
            .tools
            .iter()
            .filter(|(_, one)| one.idle_days(today) > UNLISTED_DAYS)
            .map(|(name, _)| name.clone())
            .collect();
        let mut is_new = false;
        for tool in listed {
            gone.retain(|name| name != tool);
            if !of_server.tools.contains_key(tool) && of_server.tools.len() < COUNTED_TOOLS_MAX {
                of_server.tools.insert(
                    tool.to_owned(),
                    ToolUse {
                        since: today,
                        last: None,
                    },
                );
                is_new = true;
            }
        }
        gone.iter()
            .for_each(|name| _ = of_server.tools.remove(name));
        is_new || !gone.is_empty()
    }

    /// The use of a tool, if its calls are counted.
    pub(super) fn of(&self, server: &str, tool: &str) -> Option<ToolUse> {
        self.0.get(server)?.tools.get(tool).copied()
    }

    fn of_server(&mut self, server: &str, today: u64) -> &mut OfServer {
        if self.0.len() >= SERVERS_MAX && !self.0.contains_key(server) {
            let oldest = self
                .0
                .iter()
                .min_by_key(|(_, one)| one.seen)
                .map(|(name, _)| name.clone());
            oldest.map(|oldest| self.0.remove(&oldest));
        }
        let of_server = self.0.entry(server.to_owned()).or_default();
        of_server.seen = today;
        of_server
    }
}

/// Which tools were called on this day already, on the path of a call: most calls are of such a
/// tool, and take no lock.
#[derive(Debug)]
pub(super) struct CalledToday {
    hasher: RandomState,
    day: AtomicU64,
    marks: Box<[AtomicU64]>,
}

impl Default for CalledToday {
    fn default() -> Self {
        let marks = (0..MARKS).map(|_| AtomicU64::new(0)).collect();
        Self {
            hasher: RandomState::default(),
            day: AtomicU64::new(0),
            marks,
        }
    }
}

impl CalledToday {
    /// Marks a tool; whether it was marked already. A tool that shares a place with another one may
    /// be marked again and again.
    #[inline]
    pub(super) fn mark(&self, server: &str, tool: &str) -> bool {
        // Zero is no mark.
        let mark = self.hasher.hash_one((server, tool)) | 1 << 63;
        let place = usize::try_from(mark).unwrap_or_default() % MARKS;
        let Some(place) = self.marks.get(place) else {
            return false;
        };
        place.load(Ordering::Relaxed) == mark || place.swap(mark, Ordering::Relaxed) == mark
    }

    /// Takes what day it is: on a new one no tool was called.
    pub(super) fn turn(&self, today: u64) {
        if self.day.swap(today, Ordering::Relaxed) != today {
            self.marks
                .iter()
                .for_each(|mark| mark.store(0, Ordering::Relaxed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_idle_since_its_last_call_or_since_it_is_counted() {
        let mut uses = ToolUses::default();
        assert!(uses.note_listed("files", ["read", "write"].into_iter(), 100));
        assert!(!uses.note_listed("files", ["read", "write"].into_iter(), 101));
        assert!(uses.note_call("files", "read", 110));
        assert!(
            !uses.note_call("files", "read", 110),
            "it is written once a day"
        );
        assert!(uses.note_call("files", "hidden", 110));
        let idle = |uses: &ToolUses, tool| uses.of("files", tool).map(|one| one.idle_days(130));
        assert_eq!(
            ["read", "write", "hidden", "none"].map(|tool| idle(&uses, tool)),
            [Some(20), Some(30), Some(20), None]
        );
        assert_eq!(
            uses.of("files", "read").unwrap().idle_days(90),
            0,
            "a clock that went back"
        );
        // What is listed no more is forgotten after its last use, and what is listed never.
        assert!(!uses.note_listed("files", ["write"].into_iter(), 200));
        assert!(uses.note_listed("files", ["write"].into_iter(), 201));
        assert_eq!((idle(&uses, "read"), idle(&uses, "hidden")), (None, None));
        assert_eq!(
            uses.of("files", "write"),
            Some(ToolUse {
                since: 100,
                last: None
            })
        );
    }

    #[test]
    fn servers_and_tools_are_limited() {
        let mut uses = ToolUses::default();
        let names: Vec<String> = (0..=COUNTED_TOOLS_MAX)
            .map(|number| format!("t{number}"))
            .collect();
        uses.note_listed("files", names.iter().map(String::as_str), 1);
        assert!(uses.of("files", &names[COUNTED_TOOLS_MAX - 1]).is_some());
        assert!(uses.of("files", &names[COUNTED_TOOLS_MAX]).is_none());
        assert!(!uses.note_call("files", &names[COUNTED_TOOLS_MAX], 2));
        for number in 0..SERVERS_MAX {
            uses.note_call(&format!("s{number}"), "t", 3);
        }
        assert_eq!(
            (uses.0.len(), uses.0.contains_key("files")),
            (SERVERS_MAX, false)
        );
    }

    #[test]
    fn a_tool_is_marked_once_a_day() {
        let called = CalledToday::default();
        called.turn(7);
        assert!(!called.mark("a", "t") && called.mark("a", "t"));
        assert!(!called.mark("at", ""), "names do not run together");
        called.turn(7);
        assert!(called.mark("a", "t"));
        called.turn(8);
        assert!(!called.mark("a", "t"));
    }
}
