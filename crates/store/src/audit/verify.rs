//! Reads the whole log and says what was changed, removed, moved or cut off. Must not write, nor know what an entry says.

use std::fmt;

use super::chain::{Chain, Head, Link};
use super::entry::{Recorded, Verdict};
use super::files::{Files, Piece, name, pieces};
use super::log::follows;
use crate::error::StoreError;

/// How many findings are told one by one; the others are counted.
pub const FINDINGS_MAX: usize = 100;

/// What is wrong at one place of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// The entry, or what stands before it, is not as it was written.
    Changed {
        /// Its number.
        seq: u64,
    },
    /// These entries are not where they belong.
    Missing {
        /// The first of them.
        from: u64,
        /// The last of them.
        to: u64,
    },
    /// An entry stands where another belongs.
    Moved {
        /// Its number.
        seq: u64,
        /// The number that belongs there.
        expected: u64,
    },
    /// A line that is no entry.
    Unreadable {
        /// The segment's file.
        segment: String,
        /// Line number in it, from 1.
        line: u64,
    },
    /// The log ends before these entries, which the head counts.
    CutOff {
        /// The first of them.
        from: u64,
        /// The last of them.
        to: u64,
    },
    /// The head that is kept outside the log is missing, or was not written by us.
    NoHead,
    /// One of the two places of the head was changed, and not by a crash: the entries that it counted are missing.
    HeadChanged,
    /// The gateway itself found something wrong when it was started, and wrote it down.
    Broken {
        /// The number of the entry that says so.
        seq: u64,
        /// Its words.
        why: String,
    },
}

/// What [`super::verify`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Entries that were read.
    pub entries: u64,
    /// How far the log reaches. Kept elsewhere and handed in later, it shows if log and head were put back together.
    pub head: Head,
    /// Bytes at the end that a crash left of a write that nobody was told of. The next start removes them.
    pub unfinished_bytes: u64,
    /// What is wrong, in the order of the log; [`FINDINGS_MAX`] at most.
    pub findings: Vec<Finding>,
    /// How many findings there are.
    pub findings_count: u64,
}

impl Report {
    /// Whether the log is whole.
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

/// Reads all. `begun` is whether the key has been in use; `expected` is a head that was kept elsewhere.
pub(super) fn verify(
    files: &Files,
    chain: &Chain,
    begun: bool,
    expected: Option<Head>,
) -> Result<Report, StoreError> {
    // The head first: what is written meanwhile lies beyond it.
    let known = files.head(chain, begun)?;
    let kept = known.map(|kept| kept.head);
    let firsts = files.firsts()?;
    let report = Report {
        entries: 0,
        head: Head::START,
        unfinished_bytes: 0,
        findings: Vec::new(),
        findings_count: 0,
    };
    let anchors = kept.into_iter().chain(expected).collect();
    let kept = kept.unwrap_or(Head::START);
    let mut reading = Reading { chain, anchors, kept, ends_group: false, report };
    if known.is_none() && (begun || !firsts.is_empty()) {
        reading.report.find(Finding::NoHead);
    }
    for (at, first) in firsts.iter().enumerate() {
        reading.segment(*first, &files.segment(*first)?, at + 1 == firsts.len());
    }
    if known.is_some_and(|kept| kept.torn) && !(reading.ends_group && reading.report.head.seq > kept.seq) {
        reading.report.find(Finding::HeadChanged);
    }
    let end = reading.anchors.iter().map(|anchor| anchor.seq).max().unwrap_or_default();
    let last = reading.report.head.seq;
    if end > last {
        reading.report.find(Finding::CutOff { from: last + 1, to: end });
    }
    Ok(reading.report)
}

struct Reading<'a> {
    chain: &'a Chain,
    /// Heads that the log must agree with.
    anchors: Vec<Head>,
    kept: Head,
    /// Whether the last line that was read is the last of its group.
    ends_group: bool,
    report: Report,
}

impl Reading<'_> {
    fn segment(&mut self, first: u64, text: &[u8], last: bool) {
        let mut lines = 0;
        for piece in pieces(text) {
            lines += 1;
            let unreadable = || Finding::Unreadable { segment: name(first), line: lines };
            match piece {
                Piece::Torn(rest) if last && self.report.head.seq >= self.kept.seq => {
                    self.report.unfinished_bytes = rest.len() as u64;
                }
                Piece::Torn(_) => self.report.find(unreadable()),
                Piece::Whole(line) => match Link::read(line) {
                    // A segment that was renamed, or put in another's place, is out of order too.
                    Some(link) if lines == 1 && link.seq != first => {
                        self.report.find(Finding::Moved { seq: link.seq, expected: first });
                        self.line(&link, line);
                    }
                    Some(link) => self.line(&link, line),
                    None => self.report.find(unreadable()),
                },
            }
        }
    }

    /// After something wrong, what the line itself says is believed, so that what comes after it is still checked.
    fn line(&mut self, link: &Link<'_>, line: &[u8]) {
        let before = self.report.head;
        let expected = before.seq.saturating_add(1);
        if !follows(self.chain, &before, link) {
            self.report.find(match link.seq {
                seq if seq > expected => Finding::Missing { from: expected, to: seq - 1 },
                seq if seq < expected => Finding::Moved { seq, expected },
                seq => Finding::Changed { seq },
            });
        } else if self.anchors.iter().any(|anchor| anchor.seq == link.seq && anchor.last != link.mac) {
            self.report.find(Finding::Changed { seq: link.seq });
        }
        if let Some(why) = said_broken(line) {
            self.report.find(Finding::Broken { seq: link.seq, why });
        }
        self.report.entries += 1;
        self.report.head = Head { seq: link.seq, last: link.mac };
        self.ends_group = link.end;
    }
}

fn said_broken(line: &[u8]) -> Option<String> {
    let mark = format!(r#""verdict":"{}""#, Verdict::Broken.as_str());
    if !line.windows(mark.len()).any(|bytes| bytes == mark.as_bytes()) {
        return None;
    }
    let entry = serde_json::from_slice::<Recorded<'_>>(line).ok()?;
    (entry.verdict == Verdict::Broken.as_str()).then(|| entry.why.unwrap_or_default().into_owned())
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::Changed { seq } => write!(f, "entry {seq}, or what stands before it, was changed"),
            Finding::Missing { from, to } if from == to => write!(f, "entry {from} is missing"),
            Finding::Missing { from, to } => write!(f, "entries {from} to {to} are missing"),
            Finding::Moved { seq, expected } => write!(f, "entry {seq} stands where {expected} belongs"),
            Finding::Unreadable { segment, line } => write!(f, "line {line} of `{segment}` is no entry"),
            Finding::CutOff { from, to } if from == to => {
                write!(f, "the end was cut off: entry {from} is missing")
            }
            Finding::CutOff { from, to } => {
                write!(f, "the end was cut off: entries {from} to {to} are missing")
            }
            Finding::NoHead => f.write_str("the head that is kept outside the log is missing or not ours"),
            Finding::HeadChanged => f.write_str("one of the two places of the head was changed"),
            Finding::Broken { seq, why } => write!(f, "entry {seq} says that the log was damaged: {why}"),
        }
    }
}
