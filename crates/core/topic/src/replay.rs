//! The latest messages of a room, numbered and bounded, for late joiners and for readers.
//!
//! One ring serves both: `history` of a topic's configuration (docs/configuration.md) and the tool
//! `read_messages`. Offsets count within an epoch; each process has an epoch of its own.

use std::{collections::VecDeque, fmt, str::FromStr};

use crate::audience::Audience;

/// Messages kept for readers.
pub const READABLE_MESSAGES_MAX: usize = 1000;
/// Bytes of the messages that are kept. A longer message is not kept; its readers see a gap.
pub const REPLAY_BYTES_MAX: usize = 4 << 20;

/// Names of which a room remembers that they have another bearer, while directed messages from
/// before are kept.
pub const DISOWNED_MAX: usize = 1000;

/// A place in the published messages: the next message to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// The epoch.
    pub epoch: u64,
    /// The offset within it.
    pub offset: u64,
}

impl fmt::Display for Cursor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.epoch, self.offset)
    }
}

/// A text that is no [`Cursor`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a cursor has the form EPOCH.OFFSET")]
pub struct NoCursor;

impl FromStr for Cursor {
    type Err = NoCursor;

    fn from_str(text: &str) -> Result<Self, NoCursor> {
        let (epoch, offset) = text.split_once('.').ok_or(NoCursor)?;
        Ok(Self {
            epoch: epoch.parse().map_err(|_| NoCursor)?,
            offset: offset.parse().map_err(|_| NoCursor)?,
        })
    }
}

/// A part of the ring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replay<M> {
    /// The place of the first message that this part could hold.
    pub first: Cursor,
    /// The place of the next message that will be published.
    pub next: Cursor,
    /// Whether the ring still has every message between the requested place and [`Replay::next`].
    pub complete: bool,
    /// The messages, oldest first, each with its place.
    pub messages: Vec<PlacedMessage<M>>,
}

/// A message with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedMessage<M> {
    /// The offset in its epoch.
    pub offset: u64,
    /// When it took that place, by the wall clock.
    pub received_ms: u64,
    /// The message.
    pub message: M,
}

/// The numbers of messages that a ring keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RingLimits {
    /// Messages for late joiners; 0 keeps none.
    pub history: usize,
    /// Whether [`READABLE_MESSAGES_MAX`] messages are kept for readers.
    pub readable: bool,
}

impl RingLimits {
    fn messages(self) -> usize {
        if self.readable {
            self.history.max(READABLE_MESSAGES_MAX)
        } else {
            self.history
        }
    }
}

/// The ring.
#[derive(Debug)]
pub(crate) struct Ring<M> {
    epoch: u64,
    next: u64,
    kept: RingLimits,
    messages: VecDeque<Published<M>>,
    bytes: usize,
    disowned: VecDeque<Disowned>,
}

/// A name that has another bearer since this offset: of the messages before, those with addressees
/// are not the next one's.
#[derive(Debug)]
struct Disowned {
    name: Box<str>,
    since: u64,
}

/// A message that is kept.
#[derive(Debug)]
struct Published<M> {
    offset: u64,
    received_ms: u64,
    message: M,
    audience: Audience,
    bytes: usize,
}

impl<M: Clone> Ring<M> {
    pub(crate) fn new(epoch: u64, kept: RingLimits) -> Self {
        Self {
            epoch,
            next: 0,
            kept,
            messages: VecDeque::new(),
            bytes: 0,
            disowned: VecDeque::new(),
        }
    }

    pub(crate) fn kept(&self) -> RingLimits {
        self.kept
    }

    /// Changes the numbers of messages that are kept.
    pub(crate) fn keep(&mut self, kept: RingLimits) {
        self.kept = kept;
        self.shrink();
    }

    /// Adds a message of this length, at this time; returns its place.
    pub(crate) fn push(
        &mut self,
        message: &M,
        audience: &Audience,
        bytes: usize,
        received_ms: u64,
    ) -> Cursor {
        let offset = self.next;
        self.next += 1;
        if self.kept.messages() == 0 {
            return self.cursor(offset);
        }
        self.bytes += bytes;
        self.messages.push_back(Published {
            offset,
            received_ms,
            message: message.clone(),
            audience: audience.clone(),
            bytes,
        });
        self.shrink();
        self.cursor(offset)
    }

    /// Notes that a name has another bearer from now on. It is remembered as long as a directed
    /// message from before is kept. Of more than [`DISOWNED_MAX`] names the oldest is forgotten
    /// with the messages that were not its next bearer's.
    pub(crate) fn disown(&mut self, name: &str) {
        let mut messages = self.messages.iter();
        let first_directed = messages.find(|message| !message.audience.to.is_empty());
        let Some(first_directed) = first_directed.map(|message| message.offset) else {
            return self.disowned.clear();
        };
        self.disowned
            .retain(|other| *other.name != *name && other.since > first_directed);
        self.disowned.push_back(Disowned {
            name: name.into(),
            since: self.next,
        });
        if self.disowned.len() <= DISOWNED_MAX {
            return;
        }
        let Some(forgotten) = self.disowned.pop_front() else {
            return;
        };
        while let Some(oldest) = self.messages.front()
            && oldest.offset < forgotten.since
        {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        self.bytes -= self.messages.pop_front().map_or(0, |oldest| oldest.bytes);
    }

    fn shrink(&mut self) {
        while self.messages.len() > self.kept.messages() || self.bytes > REPLAY_BYTES_MAX {
            self.drop_oldest();
        }
    }

    pub(crate) fn next(&self) -> Cursor {
        self.cursor(self.next)
    }

    fn cursor(&self, offset: u64) -> Cursor {
        Cursor {
            epoch: self.epoch,
            offset,
        }
    }

    /// The place from which a newcomer may read.
    pub(crate) fn newcomer(&self) -> Cursor {
        self.cursor(self.next.saturating_sub(self.kept.history as u64))
    }

    /// The messages for a reader since a place for which `includes` holds, among the `at_most`
    /// newest of the ring. A place of another epoch is before all messages.
    pub(crate) fn since(
        &self,
        reader: &str,
        from: Option<Cursor>,
        at_most: usize,
        includes: impl Fn(&Audience) -> bool,
    ) -> Replay<M> {
        let disowned = self.disowned.iter().find(|other| *other.name == *reader);
        let owned_since = disowned.map_or(0, |disowned| disowned.since);
        let at_most = u64::try_from(at_most).unwrap_or(u64::MAX);
        let oldest_wanted = self.next.saturating_sub(at_most);
        let oldest_kept = match self.messages.front() {
            Some(oldest) => oldest.offset,
            None => self.next,
        };
        let oldest = oldest_kept.max(oldest_wanted);
        // A place that is still to come is of another ring, whatever it says.
        let is_known = from.is_none_or(|from| from.epoch == self.epoch && from.offset <= self.next);
        let wanted = match from {
            Some(from) if from.epoch == self.epoch => from.offset.min(self.next),
            Some(_) | None => 0,
        };
        let first = wanted.max(oldest);
        let mut messages = Vec::new();
        for message in &self.messages {
            let is_owned = message.offset >= owned_since || message.audience.to.is_empty();
            if message.offset >= first && is_owned && includes(&message.audience) {
                messages.push(PlacedMessage {
                    offset: message.offset,
                    received_ms: message.received_ms,
                    message: message.message.clone(),
                });
            }
        }
        Replay {
            first: self.cursor(first),
            next: self.next(),
            complete: is_known && wanted >= oldest,
            messages,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: u64 = 9;

    fn ring(history: usize, readable: bool, messages: u64) -> Ring<u64> {
        let mut ring = Ring::new(7, RingLimits { history, readable });
        for number in 0..messages {
            ring.push(&number, &Audience::broadcast(), 10, NOW_MS);
        }
        ring
    }

    fn since(ring: &Ring<u64>, from: Option<(u64, u64)>, at_most: usize) -> (u64, bool, Vec<u64>) {
        let from = from.map(|(epoch, offset)| Cursor { epoch, offset });
        let Replay {
            first,
            next,
            complete,
            messages,
        } = ring.since("cid", from, at_most, |_| true);
        assert_eq!((first.epoch, next), (7, ring.next()));
        assert!(messages.iter().all(|one| one.offset == one.message));
        (
            first.offset,
            complete,
            messages.into_iter().map(|one| one.message).collect(),
        )
    }

    #[test]
    fn a_latecomer_knows_whether_it_missed_something() {
        let ring = ring(3, false, 5);
        for (from, expected) in [
            (None, (2, false, vec![2, 3, 4])),
            (Some((7, 2)), (2, true, vec![2, 3, 4])),
            (Some((7, 4)), (4, true, vec![4])),
            (Some((7, 5)), (5, true, vec![])),
            (Some((7, 9)), (5, false, vec![])),
            (Some((7, 1)), (2, false, vec![2, 3, 4])),
            (Some((6, 5)), (2, false, vec![2, 3, 4])),
        ] {
            assert_eq!(since(&ring, from, 3), expected, "{from:?}");
        }
        assert_eq!(ring.newcomer().offset, 2);
    }

    #[test]
    fn history_and_readers_share_the_ring() {
        let ring = ring(2, true, 5);
        assert_eq!(since(&ring, None, 2), (3, false, vec![3, 4]));
        assert_eq!(
            since(&ring, Some((7, 0)), usize::MAX),
            (0, true, vec![0, 1, 2, 3, 4])
        );
        let full = self::ring(2, true, READABLE_MESSAGES_MAX as u64 + 1);
        let (first, complete, numbers) = since(&full, Some((7, 0)), usize::MAX);
        assert_eq!(
            (first, complete, numbers.len()),
            (1, false, READABLE_MESSAGES_MAX)
        );
        assert!(since(&full, Some((7, 1)), usize::MAX).1);
    }

    #[test]
    fn nothing_is_kept_unless_configured_and_offsets_go_on() {
        let mut ring = ring(0, false, 5);
        assert_eq!(since(&ring, None, usize::MAX), (5, false, vec![]));
        assert_eq!(since(&ring, Some((7, 5)), usize::MAX), (5, true, vec![]));
        ring.keep(RingLimits {
            history: 0,
            readable: true,
        });
        ring.push(&5, &Audience::broadcast(), 10, NOW_MS);
        assert_eq!(since(&ring, Some((7, 5)), usize::MAX), (5, true, vec![5]));
        ring.keep(RingLimits::default());
        assert_eq!(since(&ring, Some((7, 5)), usize::MAX), (6, false, vec![]));
    }

    #[test]
    fn bytes_are_bounded() {
        let mut ring = ring(0, true, 0);
        for number in 0..2 {
            ring.push(
                &number,
                &Audience::broadcast(),
                REPLAY_BYTES_MAX / 2,
                NOW_MS,
            );
        }
        assert_eq!(since(&ring, None, usize::MAX).2, [0, 1]);
        ring.push(&2, &Audience::broadcast(), 1, NOW_MS);
        assert_eq!(since(&ring, None, usize::MAX).2, [1, 2]);
        ring.push(&3, &Audience::broadcast(), REPLAY_BYTES_MAX + 1, NOW_MS);
        assert_eq!(since(&ring, Some((7, 3)), usize::MAX), (4, false, vec![]));
    }

    #[test]
    fn messages_are_chosen_by_audience() {
        let mut ring: Ring<u64> = ring(9, false, 0);
        let to_bob = Audience {
            to: smallvec::smallvec!["bob".into()],
            ..Audience::broadcast()
        };
        ring.push(&0, &to_bob, 1, NOW_MS);
        ring.push(&1, &Audience::broadcast(), 1, NOW_MS);
        let chosen = ring.since("cid", None, 9, |audience| audience.to.is_empty());
        let placed = PlacedMessage {
            offset: 1,
            received_ms: NOW_MS,
            message: 1,
        };
        assert_eq!((chosen.messages, chosen.complete), (vec![placed], true));
    }

    #[test]
    fn names_with_another_bearer_are_bounded_and_what_is_forgotten_is_kept_from_them() {
        let mut ring: Ring<u64> = Ring::new(
            7,
            RingLimits {
                history: 0,
                readable: true,
            },
        );
        let to = |name: &str| Audience {
            to: smallvec::smallvec![name.into()],
            ..Audience::broadcast()
        };
        ring.disown("none");
        assert!(
            ring.disowned.is_empty(),
            "nothing is kept that was another's"
        );
        ring.push(&0, &to("first"), 1, NOW_MS);
        ring.disown("first");
        ring.push(&1, &to("dan"), 1, NOW_MS);
        for number in 1..DISOWNED_MAX {
            ring.disown(&format!("n{number}"));
        }
        let read = |ring: &Ring<u64>, name: &str| {
            ring.since(name, None, 9, |_| true)
                .messages
                .into_iter()
                .map(|one| one.message)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            (
                ring.disowned.len(),
                read(&ring, "first"),
                read(&ring, "dan")
            ),
            (DISOWNED_MAX, vec![1], vec![0, 1])
        );
        ring.disown("one more");
        assert_eq!(
            (
                ring.disowned.len(),
                read(&ring, "first"),
                read(&ring, "dan")
            ),
            (DISOWNED_MAX, vec![1], vec![1])
        );
        assert_eq!(ring.bytes, 1);
    }

    #[test]
    fn cursors_round_trip() {
        let cursor = Cursor {
            epoch: 7,
            offset: 12,
        };
        assert_eq!(
            (cursor.to_string().as_str(), "7.12".parse()),
            ("7.12", Ok(cursor))
        );
        for wrong in ["", "7", "7.", ".1", "7.-1", "7.1.2"] {
            assert_eq!(wrong.parse::<Cursor>(), Err(NoCursor), "{wrong}");
        }
    }
}
