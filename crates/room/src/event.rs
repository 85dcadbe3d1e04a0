//! Events of a room: what its queue carries from the gateway to the writer.

use std::sync::Arc;

use bytes::Bytes;
use model::{LinkId, ParticipantId};
use topic::Ear;

use crate::frame::Close;
use crate::socket::Socket;

/// Configuration of a room.
#[derive(Debug, Clone, Copy)]
pub struct RoomConfig {
    /// Envelopes kept for late joiners; 0 keeps none.
    pub history: usize,
    /// Interval of pings to a silent socket, in milliseconds.
    pub ping_ms: u64,
}

/// Clock and ids for the envelopes and pings that the room itself sends.
pub trait Stamps: Send + Sync {
    /// Milliseconds on the monotonic clock that [`Socket::record_activity`] gets, too.
    fn now_ms(&self) -> u64;
    /// A new envelope id.
    fn envelope_id(&self) -> String;
}

/// A link that begins to receive.
pub struct Newcomer {
    /// Its link in the topic.
    pub link: LinkId,
    /// Its participant.
    pub id: ParticipantId,
    /// The participant's public profile, as JSON.
    pub profile: Bytes,
    /// Which envelopes it receives.
    pub ear: Ear,
    /// Whether it receives its own envelopes, too.
    pub echo: bool,
    /// Its socket.
    pub socket: Arc<Socket>,
    /// Where its replay begins: epoch and offset.
    pub since: Option<(u64, u64)>,
}

/// Which members receive an envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Audience {
    /// Members whose ear matches.
    Matching,
    /// Members whose ear matches, except this participant, which gets the request in another way.
    MatchingExcept(ParticipantId),
    /// Only members that receive everything; the envelope mirrors a call and addresses none of them.
    Observers {
        /// A participant that does not receive it, because it has the call itself.
        except: Option<ParticipantId>,
    },
}

impl Audience {
    /// Members whose ear matches, without this participant.
    pub fn matching_except(skip: Option<ParticipantId>) -> Self {
        skip.map_or(Self::Matching, Self::MatchingExcept)
    }
}

/// One admitted envelope.
pub struct Message {
    /// The sender's link; `None` for envelopes of the gateway.
    pub link: Option<LinkId>,
    /// The sender's bytes, unchanged.
    pub envelope: Bytes,
    /// Its addressees; empty for a broadcast.
    pub to: Box<[Box<str>]>,
    /// Its kind.
    pub kind: Box<str>,
    /// Which members receive it.
    pub audience: Audience,
}

/// One event of a room.
pub enum RoomEvent {
    /// A link begins to receive, and gets a welcome.
    Attach(Newcomer),
    /// A participant joined the topic.
    Joined {
        /// The participant.
        id: ParticipantId,
        /// Its public profile, as JSON.
        profile: Bytes,
    },
    /// A participant has other capabilities.
    Updated {
        /// The participant.
        id: ParticipantId,
        /// Its public profile, as JSON.
        profile: Bytes,
    },
    /// A participant left the topic.
    Left {
        /// The participant.
        id: ParticipantId,
    },
    /// An envelope for its audience.
    Message(Message),
    /// An envelope that mirrors a call, encoded by the writer when its turn comes. Late joiners do not get it.
    Mirror {
        /// Bytes that the event holds until then.
        bytes: usize,
        /// Encodes the envelope.
        write: Box<dyn FnOnce() -> Option<Message> + Send>,
    },
    /// A frame for one link alone.
    Direct {
        /// The link.
        link: LinkId,
        /// The frame.
        frame: Bytes,
    },
    /// A link stops to receive.
    Detach {
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
            Self::Message(message) => message.envelope.len(),
            Self::Direct { frame, .. } => frame.len(),
            Self::Mirror { bytes, .. } => *bytes,
            Self::Attach(_) | Self::Joined { .. } | Self::Updated { .. } => 0,
            Self::Left { .. } | Self::Detach { .. } => 0,
        }
    }
}
