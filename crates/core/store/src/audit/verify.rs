//! Verification of the audit log: changed, missing, moved and truncated entries.

use super::chain::{Chain, ChainHead, ChainLine};
use super::entry::RecordedVerdict;
use super::files::{Files, SegmentPart, name, segment_parts};
use super::removed::{RemovedPart, of_log, part_of};
use crate::error::StoreError;

/// Findings that a report lists; it counts all others.
pub const FINDINGS_MAX: usize = 100;

/// Attempts to read the log while a gateway removes old files of it.
const READINGS_MAX: usize = 100;

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
    /// The removed part had defects before the gateway removed it.
    #[error("entries 1 to {to} were removed by retention, with {findings} defects in them")]
    RemovedDamaged {
        /// The last removed entry.
        to: u64,
        /// Number of the defects.
        findings: u64,
    },
}

/// The part of the log that retention has removed, with its proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    /// The part.
    pub part: RemovedPart,
    /// Number of the entry that proves it.
    pub seq: u64,
    /// When it was removed, in Unix milliseconds.
    pub at_ms: u64,
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
    /// The part before the first entry, which retention has removed.
    pub removed: Option<Removal>,
    /// Whether the head that the operator kept is of that part, and not its last: nothing in the log
    /// can be compared with it any more.
    pub head_is_removed: bool,
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

    /// As [`Report::find`], of what comes before all others.
    fn find_first(&mut self, finding: Finding) {
        self.findings_count += 1;
        self.findings.insert(0, finding);
        self.findings.truncate(FINDINGS_MAX);
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
    for _ in 0..READINGS_MAX {
        if let Some(report) = verify_once(files, chain, begun, expected)? {
            return Ok(report);
        }
    }
    let busy = std::io::ErrorKind::ResourceBusy.into();
    Err(StoreError::io("read", files.segments.path(), busy))
}

/// As [`verify`]; `None` if a segment was removed meanwhile.
fn verify_once(
    files: &Files,
    chain: &Chain,
    begun: bool,
    expected: Option<ChainHead>,
) -> Result<Option<Report>, StoreError> {
    // The head first: entries that a gateway writes meanwhile come after it.
    let known = files.head(chain, begun)?;
    let kept = known.map(|kept| kept.head);
    let firsts = files.firsts()?;
    let mut reading = Reading {
        anchors: kept.into_iter().chain(expected).collect(),
        kept: kept.unwrap_or_default(),
        is_at_begin: true,
        ..Reading::after(chain, ChainHead::default())
    };
    if known.is_none() && (begun || !firsts.is_empty()) {
        reading.report.find(Finding::HeadMissing);
    }
    for (at, first) in firsts.iter().enumerate() {
        let Some(text) = files.segment_if_there(*first)? else {
            return Ok(None);
        };
        reading.segment(*first, &text, at + 1 == firsts.len());
    }
    if known.is_some_and(|kept| kept.torn)
        && !(reading.ends_group && reading.report.head.seq > reading.kept.seq)
    {
        reading.report.find(Finding::HeadChanged);
    }
    reading.find_cut();
    Ok(Some(reading.begun(expected)))
}

/// A log as it is read, one line after the other.
pub(super) struct Reading<'a> {
    chain: &'a Chain,
    /// Heads that the log must match.
    anchors: Vec<ChainHead>,
    kept: ChainHead,
    /// Whether the next line is the first one of the log.
    is_at_begin: bool,
    /// The first line, of a log that does not begin with entry 1.
    first: Option<FirstLine>,
    /// Parts that entries of the log say are removed, oldest first.
    removals: Vec<Removal>,
    /// Whether the last line so far is the last line of its group.
    ends_group: bool,
    pub(super) report: Report,
}

/// The first line of a log whose begin was removed: what retention has noted checks it.
struct FirstLine {
    covered: Vec<u8>,
    head: ChainHead,
}

impl<'a> Reading<'a> {
    /// A reading that goes on after this head.
    pub(super) fn after(chain: &'a Chain, head: ChainHead) -> Self {
        Self {
            chain,
            anchors: Vec::new(),
            kept: ChainHead::default(),
            is_at_begin: false,
            first: None,
            removals: Vec::new(),
            ends_group: false,
            report: Report {
                head,
                ..Report::default()
            },
        }
    }

    /// Reads a segment.
    pub(super) fn segment(&mut self, first: u64, text: &[u8], last: bool) {
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
        let goes_on = !self.is_first(parsed) && self.goes_on(parsed);
        if let Some(entry) = of_log(line) {
            if let Some(part) = part_of(&entry).filter(|_| goes_on) {
                self.removals.push(Removal {
                    part,
                    seq: parsed.seq,
                    at_ms: entry.at_ms,
                });
            }
            if entry.verdict == RecordedVerdict::Broken.as_str() {
                self.report.find(Finding::Broken {
                    seq: parsed.seq,
                    why: entry.why.unwrap_or_default().into_owned(),
                });
            }
        }
        self.report.entries += 1;
        self.report.head = parsed.head();
        self.ends_group = parsed.end;
    }

    /// Whether it is the first line of a log that does not begin with entry 1.
    fn is_first(&mut self, parsed: &ChainLine<'_>) -> bool {
        let is_first = std::mem::take(&mut self.is_at_begin) && parsed.seq > 1;
        if is_first {
            self.compare_anchors(parsed);
            self.first = Some(FirstLine {
                covered: parsed.covered.to_vec(),
                head: parsed.head(),
            });
        }
        is_first
    }

    /// Whether a line goes on with the chain. If not, that is a finding.
    fn goes_on(&mut self, parsed: &ChainLine<'_>) -> bool {
        let before = self.report.head;
        let expected = before.seq.saturating_add(1);
        if self.chain.goes_on(&before, parsed) {
            self.compare_anchors(parsed);
            return true;
        }
        self.report.find(match parsed.seq {
            seq if seq > expected => Finding::Missing {
                from: expected,
                to: seq - 1,
            },
            seq if seq < expected => Finding::Moved { seq, expected },
            seq => Finding::Changed { seq },
        });
        false
    }

    fn compare_anchors(&mut self, parsed: &ChainLine<'_>) {
        let is_other = |anchor: &ChainHead| anchor.seq == parsed.seq && anchor.last != parsed.mac;
        if self.anchors.iter().any(is_other) {
            self.report.find(Finding::Changed { seq: parsed.seq });
        }
    }

    fn find_cut(&mut self) {
        let ends = self.anchors.iter().map(|anchor| anchor.seq);
        let end = ends.max().unwrap_or_default();
        let last = self.report.head.seq;
        if end > last {
            self.report.find(Finding::CutOff {
                from: last + 1,
                to: end,
            });
        }
    }

    /// The report, with what entries say about the part before the first one.
    fn begun(mut self, expected: Option<ChainHead>) -> Report {
        let Some(FirstLine { covered, head }) = self.first.take() else {
            return self.report;
        };
        if let Some(expected) = expected.filter(|one| (1..head.seq).contains(&one.seq)) {
            self.compare_removed(&expected);
        }
        let mut before = self.removals.into_iter();
        let proof = before.rfind(|one| one.part.head.seq < head.seq);
        let part = proof.as_ref().map(|proof| proof.part).unwrap_or_default();
        let to = part.head.seq;
        if to + 1 < head.seq {
            self.report.find_first(Finding::Missing {
                from: to + 1,
                to: head.seq - 1,
            });
        } else if self.chain.next_mac(&part.head.last, &covered) != head.last {
            self.report.find_first(Finding::Changed { seq: head.seq });
        }
        if part.findings > 0 {
            let findings = part.findings;
            self.report
                .find_first(Finding::RemovedDamaged { to, findings });
        }
        self.report.removed = proof;
        self.report
    }

    /// Compares a head of the removed part with what entries have of it.
    fn compare_removed(&mut self, expected: &ChainHead) {
        let mut heads = self.removals.iter().map(|one| one.part.head);
        match heads.find(|head| head.seq == expected.seq) {
            Some(head) if head == *expected => {}
            Some(_) => self
                .report
                .find_first(Finding::Changed { seq: expected.seq }),
            None => self.report.head_is_removed = true,
        }
    }
}

fn are_missing(from: &u64, to: &u64) -> String {
    if from == to {
        format!("entry {from} is missing")
    } else {
        format!("entries {from} to {to} are missing")
    }
}
