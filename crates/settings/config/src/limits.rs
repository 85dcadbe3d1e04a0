//! Limits of a gateway: `[server.limits]`.

use std::time::Duration;

use platform::default_share;
use topic::section::TopicLimits;
use upstream::config::ServerLimits;

/// All limits: those of topics and servers, and those of the doors. A name ends with its unit, or
/// with `max` after its unit. Two that hold for clients as for servers are among those of servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatewayLimits {
    /// Limits of each topic.
    pub topics: TopicLimits,
    /// Limits of each server.
    pub servers: ServerLimits,
    /// One HTTP request body, bytes.
    pub body_bytes_max: usize,
    /// All headers of one HTTP request, bytes.
    pub header_bytes_max: usize,
    /// Bytes held for all open calls together.
    pub held_bytes_max: usize,
    /// The share of one participant in them.
    pub participant_held_bytes_max: usize,
    /// HTTP connections at once.
    pub connections_max: usize,
    /// The share of one participant, of all guests together, and of one address before a token is
    /// known.
    pub participant_connections_max: usize,
    /// Legacy sessions at once.
    pub sessions_max: usize,
    /// Legacy sessions of one participant at once.
    pub participant_sessions_max: usize,
    /// A session ends after this long without a request or stream.
    pub session_idle: Duration,
    /// Events of one session that are kept to resume it.
    pub resume_events_max: usize,
    /// Bytes of these events.
    pub resume_bytes_max: usize,
    /// Messages in one JSON-RPC batch.
    pub batch_len_max: usize,
}

// Defaults of which a participant has a share.
const HELD_BYTES_MAX: usize = 256 << 20;
const CONNECTIONS_MAX: usize = 10_000;
const SESSIONS_MAX: usize = 10_000;

impl Default for GatewayLimits {
    fn default() -> GatewayLimits {
        GatewayLimits {
            topics: TopicLimits::default(),
            servers: ServerLimits::default(),
            body_bytes_max: 4 << 20,
            header_bytes_max: 64 << 10,
            held_bytes_max: HELD_BYTES_MAX,
            participant_held_bytes_max: default_share(HELD_BYTES_MAX),
            connections_max: CONNECTIONS_MAX,
            participant_connections_max: default_share(CONNECTIONS_MAX),
            sessions_max: SESSIONS_MAX,
            participant_sessions_max: default_share(SESSIONS_MAX),
            session_idle: Duration::from_secs(1_800),
            resume_events_max: 256,
            resume_bytes_max: 1 << 20,
            batch_len_max: 64,
        }
    }
}

impl GatewayLimits {
    /// One line of a client on a pipe, bytes: as long as one of a server.
    #[must_use]
    pub fn line_bytes_max(&self) -> usize {
        self.servers.line_bytes_max
    }

    /// Messages waiting for one slow stream: as many as for a server.
    #[must_use]
    pub fn queue_len_max(&self) -> usize {
        self.servers.queue_len_max
    }
}
