//! The one checked configuration that a gateway runs on: plain values, variables expanded, capabilities compiled.
//!
//! Owns the types and their defaults. Must not know TOML, JSON, the command line or where a value was written; whoever
//! fills it has checked it (names, prefixes, references between tables).

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use auth::{Credential, Participant, Rate};
use model::{Capabilities, ParticipantId, TopicName};
use store::audit::Payloads;
use upstream::config::{EraChoice, Origin, ServerConfig, ServerLimits, Sessions, Timeouts, Transport};

/// Everything a gateway needs to start, and to compare with when it reloads.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Where it listens: `[server] listen`.
    pub listen: SocketAddr,
    /// Where it keeps its journal; `None` keeps nothing on disk (`portmoot stdio`).
    pub data_dir: Option<PathBuf>,
    /// Host names that are ours besides the address itself and loopback: `[server] hosts`, lower case, without a port.
    pub hosts: Vec<String>,
    /// Whether `/sse` and `/messages` serve 2024-11-05 clients.
    pub legacy_sse: bool,
    /// Bounds of everything.
    pub limits: Limits,
    /// What is recorded. Another takes effect at a restart.
    pub audit: AuditConfig,
    /// Upstreams in the order of the configuration; the earlier one wins where two want one name.
    pub servers: Vec<ServerConfig>,
    /// Who may come in, as configured. Empty (and no token issued) means the local user on loopback only.
    pub participants: Vec<ParticipantConfig>,
    /// The topics, `main` among them.
    pub topics: Vec<TopicConfig>,
}

/// What `[audit]` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditConfig {
    /// Whether there is a log, where there is a place for one.
    pub enabled: bool,
    /// What of payloads is written.
    pub payloads: Payloads,
    /// Members whose values are never written, beside [`store::audit::REDACTED`].
    pub redact: Vec<String>,
}

impl Default for AuditConfig {
    fn default() -> Self {
        Self { enabled: true, payloads: Payloads::default(), redact: Vec::new() }
    }
}

/// A participant that was configured: who it is, and the token that proves it.
#[derive(Debug, Clone, PartialEq)]
pub struct ParticipantConfig {
    /// Who.
    pub participant: Arc<Participant>,
    /// Its tokens' hashes; may be empty when its tokens are issued ones.
    pub credentials: Vec<Credential>,
    /// Whether `capabilities` was written out; an issued token may then not bring its own.
    pub capabilities_written: bool,
    /// How long it may take to answer, if it serves: then its tools are listed to the MCP clients of its topics.
    pub serves: Option<Timeouts>,
}

impl ParticipantConfig {
    /// What it serves, as an upstream; nothing if it does not.
    #[must_use]
    pub fn server(&self) -> Option<ServerConfig> {
        let name = self.participant.id.clone();
        Some(ServerConfig {
            // As of a server: what cannot stand in a tool's name is a `_`.
            prefix: name
                .as_str()
                .replace(|c: char| !c.is_ascii_alphanumeric() && !"_-.".contains(c), "_")
                .into(),
            name,
            transport: Transport::Participant,
            // On MCPx payloads have the legacy form (design, section 4).
            era: EraChoice::Legacy,
            sessions: Sessions::Shared,
            timeouts: self.serves.clone()?,
            capabilities: Arc::new(Capabilities::upstream()),
            enabled: true,
            origin: Origin::Own,
        })
    }
}

/// A topic: `[topics.NAME]`.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicConfig {
    /// Its name.
    pub name: TopicName,
    /// Who may enter.
    pub access: Access,
    /// What those without a token may do here; `None` lets none of them in.
    pub anonymous: Option<Arc<Capabilities>>,
    /// How often each of them may ask.
    pub anonymous_rate: Rate,
    /// Envelopes kept for late joiners; 0 is none.
    pub history: usize,
    /// The upstreams that take part, `*` already resolved, in the order of the configuration.
    pub servers: Vec<ParticipantId>,
    /// What others see of MCP clients' calls.
    pub mcp_calls: McpCalls,
    /// Built-in tools that lists show.
    pub builtin: Vec<BuiltIn>,
    /// How long a first list waits for servers that are still starting.
    pub list_wait: Duration,
    /// How long a proposal waits for a decision.
    pub proposal_ttl: Duration,
}

/// Who may enter a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// Every known participant.
    Public,
    /// Those that list it among their topics.
    #[default]
    Restricted,
    /// The same, and for all others it does not exist.
    Private,
}

/// What the others in a topic see of an MCP client's call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum McpCalls {
    /// Nothing.
    None,
    /// Kind, from, to and verdict.
    #[default]
    Kinds,
    /// The payload too.
    Full,
}

/// Tools of the gateway's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuiltIn {
    /// Those that show and decide proposals.
    Proposals,
    /// Those that say, read what is said, and tell who is there.
    Room,
    /// List, info and call over everything.
    Proxy,
    /// Finds tools by words.
    SearchTools,
}

/// Bounds of everything, each with its unit last in the name: `[server.limits]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// One HTTP request body, bytes.
    pub body_bytes_max: usize,
    /// All headers of one HTTP request, bytes.
    pub header_bytes_max: usize,
    /// One line of a stdio server or client, and one event of a stream, bytes.
    pub line_bytes_max: usize,
    /// Bytes held for all open calls together.
    pub held_bytes_max: usize,
    /// One MCPx envelope, bytes.
    pub envelope_bytes_max: usize,
    /// HTTP connections at once.
    pub connections_max: usize,
    /// Legacy sessions at once.
    pub sessions_max: usize,
    /// Legacy sessions of one participant at once.
    pub participant_sessions_max: usize,
    /// After this long without a request or stream a session ends.
    pub session_idle: Duration,
    /// Open calls of one participant.
    pub participant_calls_max: usize,
    /// Open calls at one upstream; more are refused with `upstream_busy`.
    pub upstream_calls_max: usize,
    /// Sessions of callers' own at one upstream.
    pub upstream_sessions_max: usize,
    /// After this long without a call an upstream's caller session is closed.
    pub upstream_session_idle: Duration,
    /// Messages waiting for one slow stream.
    pub queue_len_max: usize,
    /// Events of one session that are kept to resume it.
    pub resume_events_max: usize,
    /// Their bytes.
    pub resume_bytes_max: usize,
    /// Messages in one JSON-RPC batch.
    pub batch_len_max: usize,
    /// Participants in one topic.
    pub topic_participants_max: usize,
    /// How long the tools of a participant that serves stay listed after it has left.
    pub away: Duration,
    /// Between two keep-alive comments on a silent stream.
    pub keep_alive: Duration,
    /// How long a call that may only be proposed is held before its caller is answered for now.
    pub hold: Duration,
}

impl Default for Config {
    /// Loopback, nothing on disk, no servers, nobody but the local user, no topic: something to fill.
    fn default() -> Config {
        Config {
            listen: SocketAddr::from(([127, 0, 0, 1], 7070)),
            data_dir: None,
            hosts: Vec::new(),
            legacy_sse: false,
            limits: Limits::default(),
            audit: AuditConfig::default(),
            servers: Vec::new(),
            participants: Vec::new(),
            topics: Vec::new(),
        }
    }
}

impl Limits {
    /// The limits that hold for each server.
    #[must_use]
    pub fn servers(&self) -> ServerLimits {
        ServerLimits {
            line_bytes_max: self.line_bytes_max,
            queue_len_max: self.queue_len_max,
            calls_max: self.upstream_calls_max,
            caller_sessions_max: self.upstream_sessions_max,
            caller_idle: self.upstream_session_idle,
        }
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            body_bytes_max: 4 << 20,
            header_bytes_max: 64 << 10,
            line_bytes_max: 16 << 20,
            held_bytes_max: 256 << 20,
            envelope_bytes_max: 1 << 20,
            connections_max: 10_000,
            sessions_max: 10_000,
            participant_sessions_max: 10_000,
            session_idle: Duration::from_secs(1_800),
            participant_calls_max: 1_024,
            upstream_calls_max: 1_024,
            upstream_sessions_max: 64,
            upstream_session_idle: Duration::from_secs(300),
            queue_len_max: 1_024,
            resume_events_max: 256,
            resume_bytes_max: 1 << 20,
            batch_len_max: 64,
            topic_participants_max: 10_000,
            away: Duration::from_secs(60),
            keep_alive: Duration::from_secs(15),
            // Clients give up after a minute.
            hold: Duration::from_secs(50),
        }
    }
}
