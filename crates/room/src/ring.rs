//! What was said lately, for those who come and read instead of listening: numbered, bounded, gone with the process.
//!
//! Kept only where somebody may read it. Must not know who reads, nor what an envelope says.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

use bytes::Bytes;
use model::ParticipantId;

/// Envelopes that are kept.
pub const RING_ENVELOPES_MAX: usize = 1000;
/// Their bytes. A longer envelope is not kept, which its readers are told.
pub const RING_BYTES_MAX: usize = 4 << 20;

/// A place in what was said: the next envelope to read. Offsets count within an epoch; another process is another epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Of which process.
    pub epoch: u64,
    /// How many envelopes came before.
    pub offset: u64,
}

impl fmt::Display for Mark {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.epoch, self.offset)
    }
}

impl FromStr for Mark {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (epoch, offset) = text.split_once('.').ok_or(())?;
        Ok(Self { epoch: epoch.parse().map_err(|_| ())?, offset: offset.parse().map_err(|_| ())? })
    }
}

/// One envelope, and who does not hear it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Its bytes.
    pub envelope: Bytes,
    /// Who does not hear it.
    pub but: Option<ParticipantId>,
}

/// What was said since a place.
#[derive(Debug, PartialEq, Eq)]
pub struct Since {
    /// The place of the first of these envelopes.
    pub first: Mark,
    /// Whether something before it is not kept any more.
    pub gap: bool,
    /// What is kept.
    pub envelopes: Vec<Kept>,
}

/// The last envelopes of a room.
#[derive(Debug)]
pub(super) struct Ring {
    epoch: u64,
    next: u64,
    kept: VecDeque<Kept>,
    bytes: usize,
}

impl Ring {
    pub(super) fn new(epoch: u64) -> Self {
        Self { epoch, next: 0, kept: VecDeque::new(), bytes: 0 }
    }

    /// Adds an envelope; the oldest make room. It is copied: a slice would hold all that was read with it.
    pub(super) fn keep(&mut self, kept: Kept) {
        let kept = Kept { envelope: Bytes::copy_from_slice(&kept.envelope), ..kept };
        self.next += 1;
        self.bytes += kept.envelope.len();
        self.kept.push_back(kept);
        while self.kept.len() > RING_ENVELOPES_MAX || self.bytes > RING_BYTES_MAX {
            let Some(oldest) = self.kept.pop_front() else { return };
            self.bytes -= oldest.envelope.len();
        }
    }

    /// The place of what will be said next.
    pub(super) fn end(&self) -> Mark {
        Mark { epoch: self.epoch, offset: self.next }
    }

    /// What is kept since this place. What was said in another epoch is lost.
    pub(super) fn since(&self, from: Mark) -> Since {
        let oldest = self.next.saturating_sub(self.kept.len() as u64);
        let known = from.epoch == self.epoch;
        let first = if known { from.offset.clamp(oldest, self.next) } else { oldest };
        let skip = usize::try_from(first - oldest).unwrap_or(usize::MAX);
        Since {
            first: Mark { epoch: self.epoch, offset: first },
            gap: !known || from.offset < oldest,
            envelopes: self.kept.iter().skip(skip).cloned().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(envelope: impl Into<Bytes>) -> Kept {
        Kept { envelope: envelope.into(), but: None }
    }

    fn since(ring: &Ring, epoch: u64, offset: u64) -> (u64, bool, Vec<String>) {
        let Since { first, gap, envelopes } = ring.since(Mark { epoch, offset });
        assert_eq!(first.epoch, 7);
        let texts = envelopes.iter().map(|one| String::from_utf8_lossy(&one.envelope).into_owned()).collect();
        (first.offset, gap, texts)
    }

    #[test]
    fn a_reader_knows_whether_it_missed_something() {
        let mut ring = Ring::new(7);
        assert_eq!(since(&ring, 7, 0), (0, false, vec![]));
        for number in 0..RING_ENVELOPES_MAX {
            ring.keep(kept(number.to_string()));
        }
        assert_eq!(ring.end(), Mark { epoch: 7, offset: 1000 });
        assert_eq!(since(&ring, 7, 998), (998, false, vec!["998".into(), "999".into()]));
        assert_eq!(since(&ring, 7, 0).2.len(), RING_ENVELOPES_MAX);
        ring.keep(kept("1000"));
        let (first, gap, texts) = since(&ring, 7, 0);
        assert_eq!((first, gap, texts.len(), texts[0].as_str()), (1, true, RING_ENVELOPES_MAX, "1"));
        assert!(!since(&ring, 7, 1).1);
        assert_eq!(since(&ring, 7, 2000), (1001, false, vec![]));
        let (first, gap, texts) = since(&ring, 6, 900);
        assert_eq!((first, gap, texts.len()), (1, true, RING_ENVELOPES_MAX));
    }

    #[test]
    fn bytes_are_bounded_too() {
        let mut ring = Ring::new(7);
        let half = kept(vec![b'x'; RING_BYTES_MAX / 2]);
        ring.keep(half.clone());
        ring.keep(half);
        assert_eq!((ring.bytes, ring.kept.len()), (RING_BYTES_MAX, 2));
        ring.keep(kept("y"));
        assert_eq!((ring.bytes, ring.kept.len()), (RING_BYTES_MAX / 2 + 1, 2));
        ring.keep(kept(vec![b'z'; RING_BYTES_MAX + 1]));
        assert_eq!((ring.bytes, ring.kept.len()), (0, 0));
        assert_eq!(since(&ring, 7, 3), (4, true, vec![]));
    }

    #[test]
    fn what_was_read_with_an_envelope_is_not_held() {
        let mut ring = Ring::new(7);
        let read = Bytes::from(vec![b'x'; 4096]);
        ring.keep(kept(read.slice(..2)));
        assert!(read.is_unique());
        assert_eq!(since(&ring, 7, 0).2, ["xx"]);
    }

    #[test]
    fn marks_are_spelled() {
        let mark = Mark { epoch: 7, offset: 12 };
        assert_eq!((mark.to_string().as_str(), "7.12".parse()), ("7.12", Ok(mark)));
        for wrong in ["", "7", "7.", ".1", "7.-1", "7.1.2"] {
            assert_eq!(wrong.parse::<Mark>(), Err(()), "{wrong}");
        }
    }
}
