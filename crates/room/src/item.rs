//! What goes through a room's queue. Must not know what becomes of it.

use std::sync::Arc;

use bytes::Bytes;
use model::{LinkId, ParticipantId};
use topic::Ear;

use super::frame::Close;
use super::socket::Socket;

/// What a room is made with.
#[derive(Debug, Clone, Copy)]
pub struct RoomConfig {
    /// Envelopes kept for late joiners; 0 keeps none.
    pub history: usize,
    /// Between two signs of life on a silent socket, milliseconds.
    pub ping_ms: u64,
}

/// Clock and ids for the envelopes and pings that the room writes by itself.
pub trait Stamps: Send + Sync {
    /// Milliseconds on the monotonic clock that sockets are told the time of.
    fn now_ms(&self) -> u64;
    /// A new envelope id.
    fn envelope_id(&self) -> String;
}

/// Somebody who begins to hear.
pub struct Entry {
    /// Its link in the topic.
    pub link: LinkId,
    /// Who it is.
    pub id: ParticipantId,
    /// What others may know of it, as JSON.
    pub you: Bytes,
    /// What it wants to hear.
    pub ear: Ear,
    /// Whether it hears what it says itself.
    pub echo: bool,
    /// Where to write.
    pub socket: Arc<Socket>,
    /// From where on it wants what it missed: epoch and offset.
    pub since: Option<(u64, u64)>,
}

/// Who hears an envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// Whoever's ear it is for.
    Ears,
    /// The same but for this one, who is asked another way.
    But(ParticipantId),
    /// Only those who hear everything, as a sight and not as something said to them; `but` this one, who has the real thing.
    Watchers {
        /// Who does not hear it.
        but: Option<ParticipantId>,
    },
}

impl Reach {
    /// Whoever's ear it is for, without this one.
    pub fn all_but(skip: Option<ParticipantId>) -> Self {
        skip.map_or(Self::Ears, Self::But)
    }

    /// Who does not hear it, if anybody; none of what is only to be seen.
    pub(super) fn but(&self) -> Option<Option<ParticipantId>> {
        match self {
            Self::Ears => Some(None),
            Self::But(but) => Some(Some(but.clone())),
            Self::Watchers { .. } => None,
        }
    }
}

/// One envelope that was admitted.
pub struct Said {
    /// Who says it; nobody for the gateway's own messages.
    pub link: Option<LinkId>,
    /// The sender's bytes, as they came.
    pub envelope: Bytes,
    /// Whom it names; nobody is everybody.
    pub to: Box<[Box<str>]>,
    /// Its kind.
    pub kind: Box<str>,
    /// Who hears it.
    pub reach: Reach,
}

/// What goes through the room's queue.
pub enum Item {
    /// Somebody begins to hear; it is welcomed.
    Enter(Entry),
    /// A participant is in the topic; what others may know of it, as JSON.
    Present {
        /// Who.
        id: ParticipantId,
        /// What others may know.
        json: Bytes,
    },
    /// A participant may do other things now.
    Renewed {
        /// Who.
        id: ParticipantId,
        /// What others may know.
        json: Bytes,
    },
    /// A participant has left the topic.
    Absent {
        /// Who.
        id: ParticipantId,
    },
    /// An envelope for all who hear it.
    Say(Said),
    /// Something to be seen, written when its turn comes. It is not kept for late joiners.
    Show {
        /// Bytes that it holds until then.
        bytes: usize,
        /// Writes it.
        write: Box<dyn FnOnce() -> Option<Said> + Send>,
    },
    /// Bytes for one socket alone, framed.
    Whisper {
        /// Its link.
        link: LinkId,
        /// One frame.
        frame: Bytes,
    },
    /// A hearer goes.
    Leave {
        /// Its link.
        link: LinkId,
        /// Why its socket is closed, if the room closes it.
        close: Option<Close>,
    },
}

impl Item {
    /// Bytes that it holds.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Say(said) => said.envelope.len(),
            Self::Whisper { frame, .. } => frame.len(),
            Self::Show { bytes, .. } => *bytes,
            Self::Enter(_) | Self::Present { .. } | Self::Renewed { .. } => 0,
            Self::Absent { .. } | Self::Leave { .. } => 0,
        }
    }
}
