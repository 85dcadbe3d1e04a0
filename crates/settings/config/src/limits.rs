//! Limits of a gateway: `[server.limits]`.

use std::time::Duration;

use platform::default_share;
use topic::section::TopicLimits;
use upstream::config::ServerLimits;

/// All limits: those of topics and servers, and those of the doors. A name ends with its unit, or
/// with `max` after its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatewayLimits {
    /// Limits of each topic.
    pub topics: TopicLimits,
    /// Limits of each server. It has `line_bytes_max` and `queue_len_max` too.
    pub servers: ServerLimits,
    /// One HTTP request body, bytes.
    pub body_bytes_max: usize,
    /// All headers of one HTTP request, bytes.
    pub header_bytes_max: usize,
    /// One line of a stdio server or client, and one event of a stream, bytes.
    pub line_bytes_max: usize,
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
    /// Messages waiting for one slow stream.
    pub queue_len_max: usize,
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
        let servers = ServerLimits::default();
        GatewayLimits {
            topics: TopicLimits::default(),
            servers,
            body_bytes_max: 4 << 20,
            header_bytes_max: 64 << 10,
            line_bytes_max: servers.line_bytes_max,
            held_bytes_max: HELD_BYTES_MAX,
            participant_held_bytes_max: default_share(HELD_BYTES_MAX),
            connections_max: CONNECTIONS_MAX,
            participant_connections_max: default_share(CONNECTIONS_MAX),
            sessions_max: SESSIONS_MAX,
            participant_sessions_max: default_share(SESSIONS_MAX),
            session_idle: Duration::from_secs(1_800),
            queue_len_max: servers.queue_len_max,
            resume_events_max: 256,
            resume_bytes_max: 1 << 20,
            batch_len_max: 64,
        }
    }
}
