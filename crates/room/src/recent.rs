//! Recent messages for readers without a socket: numbered, bounded in count and bytes, lost with the process.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

use bytes::Bytes;
use model::ParticipantId;

/// Envelopes kept per room.
pub const RECENT_ENVELOPES_MAX: usize = 1000;
/// Bytes kept per room. A longer envelope is not kept; its readers see a gap.
pub const RECENT_BYTES_MAX: usize = 4 << 20;

/// The position of the next envelope to read. Offsets count within an epoch; each process has an epoch of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// Random number of the room in this process.
    pub epoch: u64,
    /// Number of envelopes before it.
    pub offset: u64,
}

impl fmt::Display for Cursor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.epoch, self.offset)
    }
}

impl FromStr for Cursor {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (epoch, offset) = text.split_once('.').ok_or(())?;
        Ok(Self { epoch: epoch.parse().map_err(|_| ())?, offset: offset.parse().map_err(|_| ())? })
    }
}

/// One envelope, and the participant that may not read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecentMessage {
    /// The envelope.
    pub envelope: Bytes,
    /// The participant that may not read it, because it gets the request in another way.
    pub except: Option<ParticipantId>,
}

/// The messages since a cursor.
#[derive(Debug, PartialEq, Eq)]
pub struct RecentPage {
    /// The cursor of the first message.
    pub first: Cursor,
    /// Whether messages between the requested cursor and the first one are lost.
    pub gap: bool,
    /// The messages, oldest first.
    pub messages: Vec<RecentMessage>,
}

/// The last messages of a room.
#[derive(Debug)]
pub(crate) struct RecentMessages {
    epoch: u64,
    next: u64,
    kept: VecDeque<RecentMessage>,
    bytes: usize,
}

impl RecentMessages {
    pub(crate) fn new(epoch: u64) -> Self {
        Self { epoch, next: 0, kept: VecDeque::new(), bytes: 0 }
    }

    /// Adds a message; the oldest messages make room. Copies the envelope: a slice would keep the whole read buffer alive.
    pub(crate) fn push(&mut self, message: RecentMessage) {
        let message = RecentMessage { envelope: Bytes::copy_from_slice(&message.envelope), ..message };
        self.next += 1;
        self.bytes += message.envelope.len();
        self.kept.push_back(message);
        while self.kept.len() > RECENT_ENVELOPES_MAX || self.bytes > RECENT_BYTES_MAX {
            let Some(oldest) = self.kept.pop_front() else { return };
            self.bytes -= oldest.envelope.len();
        }
    }

    /// The cursor of the next message.
    pub(crate) fn end(&self) -> Cursor {
        Cursor { epoch: self.epoch, offset: self.next }
    }

    /// The messages since a cursor. Messages of another epoch are lost.
    pub(crate) fn since(&self, from: Cursor) -> RecentPage {
        let oldest = self.next.saturating_sub(self.kept.len() as u64);
        let known = from.epoch == self.epoch;
        let first = if known { from.offset.clamp(oldest, self.next) } else { oldest };
        let skip = usize::try_from(first - oldest).unwrap_or(usize::MAX);
        RecentPage {
            first: Cursor { epoch: self.epoch, offset: first },
            gap: !known || from.offset < oldest,
            messages: self.kept.iter().skip(skip).cloned().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(envelope: impl Into<Bytes>) -> RecentMessage {
        RecentMessage { envelope: envelope.into(), except: None }
    }

    fn since(recent: &RecentMessages, epoch: u64, offset: u64) -> (u64, bool, Vec<String>) {
        let RecentPage { first, gap, messages } = recent.since(Cursor { epoch, offset });
        assert_eq!(first.epoch, 7);
        let texts = messages.iter().map(|one| String::from_utf8_lossy(&one.envelope).into_owned()).collect();
        (first.offset, gap, texts)
    }

    #[test]
    fn a_page_reports_a_gap() {
        let mut recent = RecentMessages::new(7);
        assert_eq!(since(&recent, 7, 0), (0, false, vec![]));
        for number in 0..RECENT_ENVELOPES_MAX {
            recent.push(message(number.to_string()));
        }
        assert_eq!(recent.end(), Cursor { epoch: 7, offset: 1000 });
        assert_eq!(since(&recent, 7, 998), (998, false, vec!["998".into(), "999".into()]));
        assert_eq!(since(&recent, 7, 0).2.len(), RECENT_ENVELOPES_MAX);
        recent.push(message("1000"));
        let (first, gap, texts) = since(&recent, 7, 0);
        assert_eq!((first, gap, texts.len(), texts[0].as_str()), (1, true, RECENT_ENVELOPES_MAX, "1"));
        assert!(!since(&recent, 7, 1).1);
        assert_eq!(since(&recent, 7, 2000), (1001, false, vec![]));
        let (first, gap, texts) = since(&recent, 6, 900);
        assert_eq!((first, gap, texts.len()), (1, true, RECENT_ENVELOPES_MAX));
    }

    #[test]
    fn bytes_are_bounded() {
        let mut recent = RecentMessages::new(7);
        let half = message(vec![b'x'; RECENT_BYTES_MAX / 2]);
        recent.push(half.clone());
        recent.push(half);
        assert_eq!((recent.bytes, recent.kept.len()), (RECENT_BYTES_MAX, 2));
        recent.push(message("y"));
        assert_eq!((recent.bytes, recent.kept.len()), (RECENT_BYTES_MAX / 2 + 1, 2));
        recent.push(message(vec![b'z'; RECENT_BYTES_MAX + 1]));
        assert_eq!((recent.bytes, recent.kept.len()), (0, 0));
        assert_eq!(since(&recent, 7, 3), (4, true, vec![]));
    }

    #[test]
    fn the_read_buffer_of_an_envelope_is_freed() {
        let mut recent = RecentMessages::new(7);
        let read = Bytes::from(vec![b'x'; 4096]);
        recent.push(message(read.slice(..2)));
        assert!(read.is_unique());
        assert_eq!(since(&recent, 7, 0).2, ["xx"]);
    }

    #[test]
    fn cursors_are_written_and_parsed() {
        let cursor = Cursor { epoch: 7, offset: 12 };
        assert_eq!((cursor.to_string().as_str(), "7.12".parse()), ("7.12", Ok(cursor)));
        for wrong in ["", "7", "7.", ".1", "7.-1", "7.1.2"] {
            assert_eq!(wrong.parse::<Cursor>(), Err(()), "{wrong}");
        }
    }
}
