//! The configuration of a topic: its servers with seats and lists, and its settings.

use std::sync::Arc;

use model::{Capabilities, LinkId, ListKind, ParticipantId};

use crate::{Handles, ServerLists, TopicSettings, UpstreamNames};

/// The configuration of a topic.
#[derive(Debug, Clone)]
pub struct Configure<'a, H: Handles> {
    /// All servers, in configuration order. Views of servers that stay are kept; servers that are
    /// not named leave.
    pub upstreams: &'a [UpstreamNames],
    /// The servers that take their seats, or get another handle and other capabilities. All others
    /// keep theirs.
    pub seats: Vec<Seating<'a, H>>,
    /// Lists of servers to every caller without a session of its own. The lists of other servers
    /// stay.
    pub lists: Vec<SharedLists<'a>>,
    /// The lists of which something else is shown from now on: callers that see such a list are
    /// notified even if nothing in it differs.
    pub changed: &'a [ListKind],
    /// The settings of the topic; `None` leaves them as they are.
    pub settings: Option<Box<TopicSettings>>,
}

/// The seat of a configured server.
#[derive(Debug, Clone)]
pub struct Seating<'a, H: Handles> {
    /// The server's link.
    pub link: LinkId,
    /// The server's name. A participant that has it is revoked, unless it serves under it.
    pub server: &'a ParticipantId,
    /// The server itself.
    pub handle: H::Server,
    /// The server's rights: its configured capabilities judge its answers, notifications and
    /// questions.
    pub capabilities: Arc<Capabilities>,
}

/// The lists of a server to every caller without a session of its own there.
#[derive(Debug, Clone)]
pub struct SharedLists<'a> {
    /// The server.
    pub server: &'a ParticipantId,
    /// All its lists, whole.
    pub manifest: ServerLists,
}

impl<'a, H: Handles> Configure<'a, H> {
    /// These servers, with seats and lists as before.
    pub fn servers(upstreams: &'a [UpstreamNames]) -> Self {
        Self {
            upstreams,
            seats: Vec::new(),
            lists: Vec::new(),
            changed: &[],
            settings: None,
        }
    }
}
