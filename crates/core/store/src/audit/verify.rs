//! Verification of the audit log: changed, missing, moved and truncated entries.

use super::chain::{Chain, ChainHead, ChainLine};
use super::entry::{RecordedEntry, RecordedVerdict};
use super::files::{Files, SegmentPart, name, segment_parts};
use super::writer::follows;
use crate::error::StoreError;

/// Findings that a report lists; it counts all others.
pub const FINDINGS_MAX: usize = 100;

/// One defect of the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Finding {
    /// The MAC of an entry is wrong: the entry or the one before it was changed.
    #[error("entry {seq}, or the entry before it, was changed")]
    Changed {
        /// Number of the entry.
        seq: u64,
    },
    /// Entries are missing from their position.
    #[error("{}", are_missing(from, to))]
    Missing {
        /// The first missing entry.
        from: u64,
        /// The last missing entry.
        to: u64,
    },
    /// An entry is at the position of another one.
    #[error("entry {seq} is at the position of entry {expected}")]
    Moved {
        /// Number of the entry.
        seq: u64,
        /// Number of the entry that belongs at this position.
        expected: u64,
    },
    /// A line is not an entry.
    #[error("line {line} of `{segment}` is not an entry")]
    Unreadable {
        /// File of the segment.
        segment: String,
        /// Line number in the file, from 1.
        line: u64,
    },
    /// The log ends before entries that the head counts.
    #[error("the end was cut off: {}", are_missing(from, to))]
    CutOff {
        /// The first missing entry.
        from: u64,
        /// The last missing entry.
        to: u64,
    },
    /// The head outside the log is missing, or its MAC is wrong.
    #[error("the head that is stored outside the log is missing or has a wrong MAC")]
    HeadMissing,
    /// One of the two slots of the head was changed, and not by a crash: the entries that it
    /// counted are missing.
    #[error("one of the two slots of the head was changed")]
    HeadChanged,
    /// The gateway found a defect at a start and recorded it in the log.
    #[error("entry {seq} records that the log was damaged: {why}")]
    Broken {
        /// Number of the entry that records it.
        seq: u64,
        /// Reason in that entry.
        why: String,
    },
}

/// Result of [`super::verify`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Number of entries in the log.
    pub entries: u64,
    /// Head of the chain after the last entry. An operator who keeps it elsewhere and passes it to
    /// a later verification detects that log and head were both restored to an older state.
    pub head: ChainHead,
    /// Bytes of an unacknowledged write that a crash left at the end. The next start of the gateway
    /// removes them.
    pub unfinished_bytes: u64,
    /// Defects in the order of the log, at most [`FINDINGS_MAX`].
    pub findings: Vec<Finding>,
    /// Number of all defects.
    pub findings_count: u64,
}

impl Report {
    /// Whether the log has no defect.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.findings_count == 0
    }

    fn find(&mut self, finding: Finding) {
        self.findings_count += 1;
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(finding);
        }
    }
}

/// Verifies all segments. `begun` says whether the key was in use before; `expected` is a head that
/// an operator kept.
pub(super) fn verify(
    files: &Files,
    chain: &Chain,
    begun: bool,
    expected: Option<ChainHead>,
) -> Result<Report, StoreError> {
    // The head first: entries that a gateway writes meanwhile come after it.
    let known = files.head(chain, begun)?;
    let kept = known.map(|kept| kept.head);
    let firsts = files.firsts()?;
    let anchors = kept.into_iter().chain(expected).collect();
    let kept = kept.unwrap_or_default();
    let mut reading = Reading {
        chain,
        anchors,
        kept,
        ends_group: false,
        report: Report::default(),
    };
    if known.is_none() && (begun || !firsts.is_empty()) {
        reading.report.find(Finding::HeadMissing);
    }
    for (at, first) in firsts.iter().enumerate() {
        reading.segment(*first, &files.segment(*first)?, at + 1 == firsts.len());
    }
    if known.is_some_and(|kept| kept.torn)
        && !(reading.ends_group && reading.report.head.seq > kept.seq)
    {
        reading.report.find(Finding::HeadChanged);
    }
    let end = reading
        .anchors
        .iter()
        .map(|anchor| anchor.seq)
        .max()
        .unwrap_or_default();
    let last = reading.report.head.seq;
    if end > last {
        reading.report.find(Finding::CutOff {
            from: last + 1,
            to: end,
        });
    }
    Ok(reading.report)
}

struct Reading<'a> {
    chain: &'a Chain,
    /// Heads that the log must match.
    anchors: Vec<ChainHead>,
    kept: ChainHead,
    /// Whether the last line so far is the last line of its group.
    ends_group: bool,
    report: Report,
}

impl Reading<'_> {
    fn segment(&mut self, first: u64, text: &[u8], last: bool) {
        let mut lines = 0;
        for part in segment_parts(text) {
            lines += 1;
            let unreadable = || Finding::Unreadable {
                segment: name(first),
                line: lines,
            };
            match part {
                SegmentPart::Torn(rest) if last && self.report.head.seq >= self.kept.seq => {
                    self.report.unfinished_bytes = rest.len() as u64;
                }
                SegmentPart::Torn(_) => self.report.find(unreadable()),
                SegmentPart::Whole(line) => match ChainLine::read(line) {
                    // A segment that was renamed or exchanged is out of order too.
                    Some(parsed) if lines == 1 && parsed.seq != first => {
                        self.report.find(Finding::Moved {
                            seq: parsed.seq,
                            expected: first,
                        });
                        self.line(&parsed, line);
                    }
                    Some(parsed) => self.line(&parsed, line),
                    None => self.report.find(unreadable()),
                },
            }
        }
    }

    /// After a defect the line itself sets the expected head, so that the verification continues
    /// with the lines after it.
    fn line(&mut self, parsed: &ChainLine<'_>, line: &[u8]) {
        let before = self.report.head;
        let expected = before.seq.saturating_add(1);
        if !follows(self.chain, &before, parsed) {
            self.report.find(match parsed.seq {
                seq if seq > expected => Finding::Missing {
                    from: expected,
                    to: seq - 1,
                },
                seq if seq < expected => Finding::Moved { seq, expected },
                seq => Finding::Changed { seq },
            });
        } else if self
            .anchors
            .iter()
            .any(|anchor| anchor.seq == parsed.seq && anchor.last != parsed.mac)
        {
            self.report.find(Finding::Changed { seq: parsed.seq });
        }
        if let Some(why) = broken_reason(line) {
            self.report.find(Finding::Broken {
                seq: parsed.seq,
                why,
            });
        }
        self.report.entries += 1;
        self.report.head = ChainHead {
            seq: parsed.seq,
            last: parsed.mac,
        };
        self.ends_group = parsed.end;
    }
}

fn broken_reason(line: &[u8]) -> Option<String> {
    let mark = format!(r#""verdict":"{}""#, RecordedVerdict::Broken.as_str());
    if !line
        .windows(mark.len())
        .any(|bytes| bytes == mark.as_bytes())
    {
        return None;
    }
    let entry = serde_json::from_slice::<RecordedEntry<'_>>(line).ok()?;
    (entry.verdict == RecordedVerdict::Broken.as_str())
        .then(|| entry.why.unwrap_or_default().into_owned())
}

fn are_missing(from: &u64, to: &u64) -> String {
    if from == to {
        format!("entry {from} is missing")
    } else {
        format!("entries {from} to {to} are missing")
    }
}
