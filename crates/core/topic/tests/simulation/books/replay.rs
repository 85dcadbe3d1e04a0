//! Replay of the room's messages: the kept ones and their listeners.

use model::{DeliveryMode, LinkId, ParticipantId};
use topic::{Cursor, Listener, READABLE_MESSAGES_MAX, Replay, RingLimits};

use super::{
    Books,
    room::{Message, RoomListener},
};

/// The epoch of a topic's messages is the number of its life.
fn capacity(kept: RingLimits) -> usize {
    if kept.readable {
        kept.history.max(READABLE_MESSAGES_MAX)
    } else {
        kept.history
    }
}

impl Books {
    pub(crate) fn keep(&mut self, message: Message) {
        self.room.published.push(message);
        self.shrink();
    }

    pub(crate) fn keeps(&mut self, kept: RingLimits) {
        self.room.kept = kept;
        self.shrink();
    }

    fn shrink(&mut self) {
        let room = &mut self.room;
        room.oldest = room
            .oldest
            .max(room.published.len().saturating_sub(capacity(room.kept)));
    }

    /// A replay holds what the listener would have got since that place, if it is still kept.
    pub(crate) fn check_replay(
        &mut self,
        link: LinkId,
        listener: &RoomListener,
        since: Option<Cursor>,
        replay: Option<&Replay<u64>>,
    ) {
        let room = &self.room;
        let Some(replay) = replay else {
            return assert_eq!(room.kept.history, 0);
        };
        assert!(room.kept.history > 0);
        let next = room.published.len();
        let oldest = room.oldest.max(next.saturating_sub(room.kept.history));
        let same = since.filter(|since| since.epoch == replay.next.epoch);
        let wanted = same.map_or(0, |since| usize::try_from(since.offset).unwrap().min(next));
        let known = same.is_some_and(|since| usize::try_from(since.offset).unwrap() <= next);
        let complete = wanted >= oldest && (since.is_none() || known);
        self.compare(link, listener, replay, (wanted.max(oldest), complete));
        self.count("replayed");
    }

    fn compare(
        &self,
        link: LinkId,
        listener: &RoomListener,
        replay: &Replay<u64>,
        (first, complete): (usize, bool),
    ) {
        let numbered = self.room.published.iter().enumerate().skip(first);
        // What a former bearer of the name was sent is none of the present one's.
        let own_since = self
            .room
            .disowned
            .get(&listener.participant)
            .copied()
            .unwrap_or_default();
        let is_own = |at: usize, message: &Message| at >= own_since || message.to.is_empty();
        let must =
            numbered.filter(|(at, message)| is_own(*at, message) && message.is_for(link, listener));
        let must: Vec<(u64, u64)> = must
            .map(|(at, message)| (at as u64, message.message))
            .collect();
        let placed = replay.messages.iter().map(|one| (one.offset, one.message));
        let placed: Vec<(u64, u64)> = placed.collect();
        assert_eq!(placed, must, "{listener:?}");
        assert_eq!(
            (replay.first.offset, replay.next.offset),
            (first as u64, self.room.published.len() as u64)
        );
        assert_eq!(replay.complete, complete);
    }

    /// A reader gets the messages that a listener to every message would have got.
    pub(crate) fn check_reading(
        &self,
        participant: &ParticipantId,
        from: usize,
        replay: &Replay<u64>,
    ) {
        let listener = Listener {
            mode: DeliveryMode::All,
            echo: true,
        };
        let listener = RoomListener {
            participant: participant.clone(),
            listener,
            knows: Default::default(),
        };
        let wanted = from.min(self.room.published.len());
        let first = wanted.max(self.room.oldest);
        self.compare(
            LinkId(0),
            &listener,
            replay,
            (first, wanted >= self.room.oldest && from == wanted),
        );
    }
}
