//! Events of a room: what its queue carries from the gateway to the writer.

use std::sync::Arc;

use bytes::Bytes;
use model::{LinkId, ParticipantId};
use topic::{Audience, Listener, Person, Replay, Roster};
use wire::mcpx::{Envelope, EnvelopePlace};

use crate::{frame::Close, socket::Socket};

/// Clock and ids for the envelopes and pings that the room itself sends.
pub trait Stamps: Send + Sync {
    /// Milliseconds on the monotonic clock that [`Socket::record_activity`] gets, too.
    fn now_ms(&self) -> u64;
    /// A new envelope id.
    fn envelope_id(&self) -> String;
}

/// A listener that begins to receive.
pub struct Newcomer {
    /// Its link in the topic.
    pub link: LinkId,
    /// Its participant.
    pub person: Person,
    /// The messages that it receives.
    pub listener: Listener,
    /// Its socket.
    pub socket: Arc<Socket>,
    /// The participants in the topic, the newcomer among them or not.
    pub roster: Roster,
    /// The messages before its join, if the room keeps a history.
    pub replay: Option<Replay<Arc<Envelope>>>,
}

/// One event of a room.
pub enum RoomEvent {
    /// A listener begins to receive, and gets a welcome.
    Enter(Box<Newcomer>),
    /// A listener's participant may do other things now: it gets another welcome.
    Renew {
        /// Its link.
        link: LinkId,
        /// Its participant.
        person: Person,
        /// The participants in the topic.
        roster: Roster,
    },
    /// A participant joined the topic.
    Joined(Person),
    /// A participant may do other things now.
    Changed(Person),
    /// A participant left the topic.
    Left(ParticipantId),
    /// An envelope for its audience.
    Publish {
        /// The envelope, unchanged.
        envelope: Arc<Envelope>,
        /// The listeners that receive it.
        audience: Audience,
        /// Its place, for the listeners that ask for it.
        place: EnvelopePlace,
    },
    /// An envelope that mirrors a call, encoded by the writer when its turn comes.
    Mirror {
        /// Bytes that the event holds until then.
        bytes: usize,
        /// Encodes the envelope.
        encode: Box<dyn FnOnce() -> Option<Bytes> + Send>,
        /// The listeners that receive it.
        audience: Audience,
    },
    /// A frame for one link alone.
    Direct {
        /// The link.
        link: LinkId,
        /// The frame.
        frame: Bytes,
    },
    /// A listener stops to receive.
    Exit {
        /// The link.
        link: LinkId,
        /// The close frame for its socket; `None` if the room does not close it.
        close: Option<Close>,
    },
}

impl RoomEvent {
    /// Bytes that the event holds while it is queued.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Publish { envelope, .. } => envelope.frame().len(),
            Self::Direct { frame, .. } => frame.len(),
            Self::Mirror { bytes, .. } => *bytes,
            Self::Enter(_) | Self::Renew { .. } | Self::Exit { .. } => 0,
            Self::Joined(_) | Self::Changed(_) | Self::Left(_) => 0,
        }
    }
}
