//! Effects for the queue of a topic's room.

use std::sync::Arc;

use model::{LinkId, OperationId, Outcome, ParticipantId};

use super::verdict::Ended;
use crate::roster::{Person, Roster};
use crate::{Audience, Cursor, Handles, Listener, Replay};

/// An effect for the room's queue.
#[derive(Debug, Clone, strum::IntoStaticStr, strum::VariantNames)]
pub enum RoomEffect<H: Handles> {
    /// A listener enters and is welcomed.
    Enter {
        /// Its link.
        link: LinkId,
        /// The link's sending side.
        handle: H::Link,
        /// The participant.
        person: Person,
        /// Its delivery mode and echo.
        listener: Listener,
        /// The others in the topic.
        roster: Roster,
        /// The messages that it missed, if the room keeps a history.
        replay: Option<Replay<H::Message>>,
    },
    /// The capabilities of a listener's participant have changed, or it is paused or resumed: its
    /// link is welcomed anew.
    Renew {
        /// The link.
        link: LinkId,
        /// The participant.
        person: Person,
        /// The others in the topic.
        roster: Roster,
    },
    /// A participant has joined.
    Joined(Person),
    /// The capabilities of a participant have changed, or it is paused or resumed.
    Changed(Person),
    /// A participant has left.
    Left(ParticipantId),
    /// A message to its audience.
    Publish {
        /// The message.
        message: H::Message,
        /// Its audience.
        audience: Audience,
        /// Its place among all that were published.
        place: Cursor,
        /// When it took that place, by the wall clock.
        received_ms: u64,
    },
    /// An MCP client's call, shown to watchers.
    Mirror {
        /// The call or its end.
        mirrored: Box<Mirrored<H>>,
        /// Its audience.
        audience: Audience,
    },
    /// A listener leaves.
    Exit {
        /// The link.
        link: LinkId,
        /// The topic's reason, if the topic ended the link.
        why: Option<Ended>,
    },
}

/// A call that is shown to watchers, or its end.
#[derive(Debug, Clone)]
pub struct Mirrored<H: Handles> {
    /// The operation.
    pub operation: OperationId,
    /// The caller.
    pub from: ParticipantId,
    /// The server.
    pub to: ParticipantId,
    /// The request.
    pub call: H::Call,
    /// The server's own name or URI, if it differs from the requested one.
    pub own: Option<Arc<str>>,
    /// The outcome of the call, with the server's answer if there is one; `None` for the call
    /// itself.
    pub end: Option<(Outcome, Option<H::Answer>)>,
}
