//! Checked configuration of a gateway: plain values, variables expanded, capabilities compiled.
//!
//! The crate that reads the configuration's sources has checked names, prefixes, and references
//! between tables.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use crate::issuers::{IssuerConfig, IssuerSubject, ScopeConfig};
use crate::login::LoginConfig;
use auth::{CertificateId, Credential, Participant, PublicUrl};
use model::{Capabilities, ParticipantId};
use oauth::{config::AuthConfig, key::KeySource};
use platform::default_share;
use registry::resolve::References;
use store::audit::AuditConfig;
use tls::ServerTls;
use topic::section::{Sets, TopicSection};
use upstream::config::{
    EraChoice, IDLE_STOP, ServerConfig, ServerLimits, SessionSharing, Start, Timeouts, Transport,
};
use upstream::{PROBES_AT_ONCE, STARTS_AT_ONCE};

/// The configuration of a gateway. A reload compares it with the one in force.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The address to listen on: `[server] listen`.
    pub listen: SocketAddr,
    /// TLS of that address: `[server.tls]`; `None` speaks plain HTTP. What it consists of may
    /// change while the gateway runs, whether there is TLS may not.
    pub tls: Option<ServerTls>,
    /// The directory of the journal and the audit log; `None` keeps nothing on disk (`portmoot
    /// stdio`).
    pub data_dir: Option<PathBuf>,
    /// The address under which clients outside reach the gateway: `[server] public_url`.
    pub public_url: Option<PublicUrl>,
    /// Host names of this gateway besides the address itself and loopback: `[server] hosts`, lower
    /// case, without a port, and the host of the public URL.
    pub hosts: Vec<String>,
    /// Whether the data directory has an operator key, with which commands on this machine act as
    /// the local user. A change takes effect at a restart.
    pub operator_key: bool,
    /// Source of the key with which sign-ins at servers are sealed: `[server] key_file`,
    /// `key_command`. A change takes effect at a restart.
    pub key: Option<KeySource>,
    /// The gateway's own authorization server: `[login]`; `None` unless it is enabled, which takes
    /// effect at a restart.
    pub login: Option<LoginConfig>,
    /// Whether clients of 2024-11-05 are served at `/sse` and `/messages`.
    pub legacy_sse: bool,
    /// Processes of servers that start up at a time. A change takes effect at a restart.
    pub starts_at_once: usize,
    /// Kept lists of servers that are probed at a time; 0 probes none. A change takes effect at a
    /// restart.
    pub probes_at_once: usize,
    /// All limits.
    pub limits: Arc<GatewayLimits>,
    /// The audit log. A change takes effect at a restart.
    pub audit: AuditConfig,
    /// Registries of the schemas of servers' tools; `None` resolves none. A change takes effect at
    /// a restart.
    pub references: Option<References>,
    /// The servers, in the order of the configuration. If two have one name or URI, the earlier one
    /// gets it.
    pub servers: Vec<ServerConfig>,
    /// Authorization of the gateway's requests to each server.
    pub auth: Vec<(ParticipantId, AuthConfig)>,
    /// The configured participants. If there is none, and no token was issued, every client on
    /// loopback is the local user.
    pub participants: Vec<ParticipantConfig>,
    /// The topics, `main` among them.
    pub topics: Vec<TopicSection>,
    /// The issuers whose access tokens are accepted, in the order of the configuration.
    pub issuers: Vec<IssuerConfig>,
    /// The scopes of these tokens. If there are none, scopes are not looked at.
    pub scopes: Vec<ScopeConfig>,
    /// The sets of tools: `[sets.NAME]`. Capabilities and topics have them in place already.
    pub sets: Arc<Sets>,
}

impl Config {
    /// The authorization servers that give out tokens for this gateway, in order. If there are
    /// none, nothing of OAuth is served.
    #[must_use]
    pub fn authorization_servers(&self) -> Vec<&str> {
        let issuers = self
            .issuers
            .iter()
            .map(|issuer| issuer.rules.issuer.as_str());
        // The issuer of the gateway's own tokens is its address.
        let own = self
            .public_url
            .as_ref()
            .filter(|_| self.login.is_some())
            .map(PublicUrl::as_str);
        issuers.chain(own).collect()
    }

    /// The scopes that clients are asked for at first.
    pub fn baseline_scopes(&self) -> impl Iterator<Item = &str> {
        self.scopes
            .iter()
            .filter(|scope| scope.baseline)
            .map(|scope| scope.name.as_str())
    }
}

/// A configured participant and its tokens: `[participants.NAME]`.
#[derive(Debug, Clone, PartialEq)]
pub struct ParticipantConfig {
    /// The participant.
    pub participant: Arc<Participant>,
    /// The hashes of its configured tokens. It may have issued tokens instead.
    pub credentials: Vec<Credential>,
    /// The subject of an issuer that it is.
    pub subject: Option<IssuerSubject>,
    /// Its client certificates.
    pub certificates: Vec<CertificateId>,
    /// Whether `capabilities` was written out. An issued token then has none of its own.
    pub capabilities_written: bool,
    /// Its timeouts if it serves: then its tools are listed to the MCP clients of its topics.
    pub serves: Option<Timeouts>,
    /// Whether the arguments of MCP clients' calls are checked if it serves
    /// ([`ServerConfig::validate`]).
    pub validate: bool,
    /// Most bytes of a tool's result that it gets at once; 0 is without a limit, `None` as its
    /// topics have it.
    pub result_bytes_max: Option<usize>,
}

impl ParticipantConfig {
    /// The server that it is, if it serves.
    #[must_use]
    pub fn server(&self) -> Option<ServerConfig> {
        let name = self.participant.id.clone();
        Some(ServerConfig {
            // As for configured servers: characters that a tool's name cannot have become `_`.
            prefix: name
                .as_str()
                .replace(
                    |c: char| !c.is_ascii_alphanumeric() && !"_-.".contains(c),
                    "_",
                )
                .into(),
            name,
            transport: Transport::Participant,
            // On MCPx, payloads have the legacy form.
            era: EraChoice::Legacy,
            sessions: SessionSharing::Shared,
            timeouts: self.serves.clone()?,
            capabilities: Arc::new(Capabilities::upstream()),
            enabled: true,
            validate: self.validate,
            pins: upstream::config::PinPolicy::default(),
            start: Start::Always,
            idle_stop: IDLE_STOP,
            curation: None,
        })
    }
}

/// All limits: `[server.limits]`. A name ends with its unit, or with `max` after its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatewayLimits {
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
    /// One MCPx envelope, bytes.
    pub envelope_bytes_max: usize,
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
    /// Open calls of one participant.
    pub participant_calls_max: usize,
    /// Open calls at one server; more are refused with `upstream_busy`.
    pub upstream_calls_max: usize,
    /// The share of one participant, in all topics and sessions together.
    pub participant_upstream_calls_max: usize,
    /// Callers' own sessions with one server.
    pub upstream_sessions_max: usize,
    /// The share of one participant.
    pub participant_upstream_sessions_max: usize,
    /// A caller's own session with a server is closed after this long without a call.
    pub upstream_session_idle: Duration,
    /// Messages waiting for one slow stream.
    pub queue_len_max: usize,
    /// Events of one session that are kept to resume it.
    pub resume_events_max: usize,
    /// Bytes of these events.
    pub resume_bytes_max: usize,
    /// Messages in one JSON-RPC batch.
    pub batch_len_max: usize,
    /// Bytes of the open proposals of one topic.
    pub proposal_bytes_max: usize,
    /// The share of one participant.
    pub participant_proposal_bytes_max: usize,
    /// Participants in one topic.
    pub topic_participants_max: usize,
    /// Time that the tools of a participant that serves stay listed after it has left.
    pub away: Duration,
    /// Interval of keep-alive comments on a silent stream.
    pub keep_alive: Duration,
    /// Time that a call that may only be proposed is held before its caller gets an interim answer.
    pub hold: Duration,
    /// Time that a call of a modern client that was answered with questions waits for the client to
    /// come back with the answers.
    pub pause: Duration,
}

impl Default for Config {
    /// Loopback, nothing on disk, no servers, participants or topics.
    fn default() -> Config {
        Config {
            listen: SocketAddr::from(([127, 0, 0, 1], 7070)),
            tls: None,
            data_dir: None,
            public_url: None,
            hosts: Vec::new(),
            operator_key: true,
            key: None,
            login: None,
            legacy_sse: false,
            starts_at_once: STARTS_AT_ONCE,
            probes_at_once: PROBES_AT_ONCE,
            limits: Arc::default(),
            audit: AuditConfig::default(),
            references: None,
            servers: Vec::new(),
            auth: Vec::new(),
            participants: Vec::new(),
            topics: Vec::new(),
            issuers: Vec::new(),
            scopes: Vec::new(),
            sets: Arc::default(),
        }
    }
}

impl GatewayLimits {
    /// The limits for each server.
    #[must_use]
    pub fn servers(&self) -> ServerLimits {
        ServerLimits {
            line_bytes_max: self.line_bytes_max,
            queue_len_max: self.queue_len_max,
            calls_max: self.upstream_calls_max,
            participant_calls_max: self.participant_upstream_calls_max,
            caller_sessions_max: self.upstream_sessions_max,
            participant_sessions_max: self.participant_upstream_sessions_max,
            caller_idle: self.upstream_session_idle,
            ..ServerLimits::default()
        }
    }
}

// Defaults of which a participant has a share.
const HELD_BYTES_MAX: usize = 256 << 20;
const PROPOSAL_BYTES_MAX: usize = 64 << 20;
const CONNECTIONS_MAX: usize = 10_000;
const SESSIONS_MAX: usize = 10_000;
const UPSTREAM_CALLS_MAX: usize = 1_024;
const UPSTREAM_SESSIONS_MAX: usize = 64;

impl Default for GatewayLimits {
    fn default() -> GatewayLimits {
        GatewayLimits {
            body_bytes_max: 4 << 20,
            header_bytes_max: 64 << 10,
            line_bytes_max: 16 << 20,
            held_bytes_max: HELD_BYTES_MAX,
            participant_held_bytes_max: default_share(HELD_BYTES_MAX),
            envelope_bytes_max: 1 << 20,
            connections_max: CONNECTIONS_MAX,
            participant_connections_max: default_share(CONNECTIONS_MAX),
            sessions_max: SESSIONS_MAX,
            participant_sessions_max: default_share(SESSIONS_MAX),
            session_idle: Duration::from_secs(1_800),
            participant_calls_max: 1_024,
            upstream_calls_max: UPSTREAM_CALLS_MAX,
            participant_upstream_calls_max: default_share(UPSTREAM_CALLS_MAX),
            upstream_sessions_max: UPSTREAM_SESSIONS_MAX,
            participant_upstream_sessions_max: default_share(UPSTREAM_SESSIONS_MAX),
            upstream_session_idle: Duration::from_secs(300),
            queue_len_max: 1_024,
            resume_events_max: 256,
            resume_bytes_max: 1 << 20,
            batch_len_max: 64,
            proposal_bytes_max: PROPOSAL_BYTES_MAX,
            participant_proposal_bytes_max: default_share(PROPOSAL_BYTES_MAX),
            topic_participants_max: 10_000,
            away: Duration::from_secs(60),
            keep_alive: Duration::from_secs(15),
            // Many clients give up after a minute.
            hold: Duration::from_secs(50),
            pause: Duration::from_secs(600),
        }
    }
}
