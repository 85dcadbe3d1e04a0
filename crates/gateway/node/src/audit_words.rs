//! Audit logs of nodes: the entries of one that match, and the check of its chain, for a command
//! that asks all nodes.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::path::Path;

use serde::{Deserialize, Serialize};
use store::StoreError;
use store::audit::{EntryFilter, EntryQuery, EntryQueryError, query, verify};

/// The most entries that a node answers with.
pub const NODE_ENTRIES_MAX: usize = 10_000;
/// The most bytes of entries that a node answers with.
const NODE_ENTRIES_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The filters of a query, as a person has written them ([`EntryQuery`]).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditQuestion {
    /// Pattern of kinds.
    pub kinds: Option<String>,
    /// Sender or recipient.
    pub participant: Option<String>,
    /// Topic.
    pub topic: Option<String>,
    /// Verdict.
    pub verdict: Option<String>,
    /// Id of an operation, or its beginning.
    pub operation: Option<String>,
    /// Earliest time, in Unix milliseconds.
    pub since_ms: Option<u64>,
    /// Time before which it was written, in Unix milliseconds.
    pub until_ms: Option<u64>,
    /// The number of entries at most: the last ones count. More than [`NODE_ENTRIES_MAX`] are as
    /// that many.
    pub last: usize,
}

impl AuditQuestion {
    /// The filters, read.
    ///
    /// # Errors
    /// When one of them cannot be used.
    pub fn filter(&self) -> Result<EntryFilter, EntryQueryError> {
        EntryFilter::read(&EntryQuery {
            kinds: self.kinds.as_deref(),
            participant: self.participant.as_deref(),
            topic: self.topic.as_deref(),
            verdict: self.verdict.as_deref(),
            operation: self.operation.as_deref(),
            since_ms: self.since_ms,
            until_ms: self.until_ms,
        })
    }
}

/// Entries of a node's log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeEntries {
    /// Lines of the log, the oldest first.
    pub lines: Vec<String>,
    /// Whether older ones match that are not among them.
    pub is_cut: bool,
}

/// The result of the check of a node's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeLog {
    /// The number of its entries.
    pub entries: u64,
    /// The head of its chain.
    pub head: String,
    /// The first defects.
    pub findings: Vec<String>,
    /// The number of all defects.
    pub findings_count: u64,
}

/// The newest entries of a data directory that match.
pub(crate) fn entries(dir: &Path, question: &AuditQuestion) -> Result<NodeEntries, StoreError> {
    // The command has read the filters too: one of another version that cannot be read matches nothing.
    let Ok(filter) = question.filter() else {
        return Ok(NodeEntries::default());
    };
    let mut newest = Newest {
        last: question.last.min(NODE_ENTRIES_MAX),
        ..Newest::default()
    };
    query(dir, &filter, |_, line| {
        newest.push(line);
        ControlFlow::Continue(())
    })?;
    Ok(NodeEntries {
        lines: newest.lines.into(),
        is_cut: newest.is_cut,
    })
}

/// The check of a data directory's log; `None` without one.
pub(crate) fn check(dir: &Path) -> Result<Option<NodeLog>, StoreError> {
    let report = verify(dir, None)?;
    Ok(report.map(|report| NodeLog {
        entries: report.entries,
        head: report.head.to_string(),
        findings: report.findings.iter().map(ToString::to_string).collect(),
        findings_count: report.findings_count,
    }))
}

/// The newest lines of a log, within the bounds of an answer.
#[derive(Default)]
struct Newest {
    last: usize,
    lines: VecDeque<String>,
    bytes: usize,
    is_cut: bool,
}

impl Newest {
    fn push(&mut self, line: &str) {
        self.bytes += line.len();
        self.lines.push_back(line.to_owned());
        while self.lines.len() > self.last || self.bytes > NODE_ENTRIES_BYTES_MAX {
            let Some(oldest) = self.lines.pop_front() else {
                return;
            };
            self.bytes -= oldest.len();
            self.is_cut = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_lines_stay_within_their_number_and_bytes() {
        let mut newest = Newest {
            last: 2,
            ..Newest::default()
        };
        for line in ["a", "b"] {
            newest.push(line);
        }
        assert!(!newest.is_cut);
        newest.push("c");
        assert!(newest.is_cut && newest.lines == ["b", "c"]);
        newest.push(&"x".repeat(NODE_ENTRIES_BYTES_MAX));
        assert_eq!(
            (newest.lines.len(), newest.bytes),
            (1, NODE_ENTRIES_BYTES_MAX)
        );
        newest.push("d");
        assert_eq!(newest.lines, ["d"]);
    }
}
