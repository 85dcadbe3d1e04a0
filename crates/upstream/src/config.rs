//! Configuration of servers: plain, checked values.
//!
//! Values are complete: variables are expanded, names and prefixes are checked, capabilities are compiled.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use model::{Capabilities, ParticipantId};

/// One upstream: `[servers.NAME]` or an entry of `mcpServers`.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerConfig {
    /// Its name as a participant.
    pub name: ParticipantId,
    /// How it is reached.
    pub transport: Transport,
    /// What stands before its public names; `""` gives its own names. The default is its name.
    pub prefix: Arc<str>,
    /// Which era is spoken with it.
    pub era: EraChoice,
    /// Who shares a session with it.
    pub sessions: Sessions,
    /// How long it may take for what.
    pub timeouts: Timeouts,
    /// What it may send towards its callers. The default: responses, notifications, and sampling, elicitation and roots
    /// requests.
    pub capabilities: Arc<Capabilities>,
    /// Whether it is started at all.
    pub enabled: bool,
    /// Where its definition comes from: decides whether it starts without consent.
    pub origin: Origin,
}

/// How an upstream is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// A child process, one JSON-RPC message a line.
    Stdio(StdioConfig),
    /// Streamable HTTP.
    Http(HttpConfig),
    /// HTTP with a separate event stream, as 2024-11-05 has it.
    Sse(HttpConfig),
    /// The small server that is built in.
    Demo,
    /// A participant that dials in and serves (`serves = true`).
    Participant,
}

/// A child process to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StdioConfig {
    /// The program, looked up on PATH.
    pub command: String,
    /// Its arguments. Their variables may be secrets; people are shown them as written.
    pub args: Vec<Secret>,
    /// Its own environment variables; it gets PATH, HOME and locale besides and nothing else.
    pub env: Vec<(String, Secret)>,
    /// The directory that it starts in; `None` is the gateway's.
    pub cwd: Option<PathBuf>,
}

/// An HTTP endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpConfig {
    /// An absolute `http` or `https` URL. May carry secrets: never told outside.
    pub url: Secret,
    /// Headers that every request carries.
    pub headers: Vec<(String, Secret)>,
}

/// A text that may hold a secret: it is not shown by `Debug`, and people are shown it as it was written.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    text: String,
    written: String,
}

/// Which era is spoken with an upstream (`era`, also spelled `protocolEra`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EraChoice {
    /// Found out by asking.
    #[default]
    Auto,
    /// 2024-11-05 to 2025-11-25, without asking.
    Legacy,
    /// 2026-07-28, without asking.
    Modern,
}

/// Who shares a session with an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sessions {
    /// All callers that declare no client capabilities share one; any other has its own.
    #[default]
    Auto,
    /// Everybody shares one.
    Shared,
    /// Every caller has its own.
    Caller,
    /// Every call has its own.
    Call,
}

/// How long an upstream may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeouts {
    /// From starting it to its answered handshake.
    pub start: Duration,
    /// One request; progress begins it anew.
    pub request: Duration,
    /// The same for single tools, by their own names.
    pub tools: BTreeMap<String, Duration>,
    /// What no progress extends.
    pub max: Duration,
}

/// Where a definition comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A file or flag that the operator named on the command line or in the environment.
    Named,
    /// The operator's own configuration directory, or what is built in.
    Own,
    /// Anything else that was found: a file in the working directory, another client's file.
    Imported,
    /// The API.
    Api,
}

/// What every server may cost the gateway; the same for all servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerLimits {
    /// Longest line of a child process, and longest HTTP response or stream event, in bytes.
    pub line_bytes_max: usize,
    /// Messages that wait to be written to a child process.
    pub queue_len_max: usize,
    /// Open calls of one session; a further call is refused with `upstream_busy`.
    pub calls_max: usize,
    /// Open sessions that belong to single callers, per server.
    pub caller_sessions_max: usize,
    /// A caller's session is closed after this time without a call.
    pub caller_idle: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            line_bytes_max: 16 << 20,
            queue_len_max: 1_024,
            calls_max: 1_024,
            caller_sessions_max: 64,
            caller_idle: Duration::from_secs(300),
        }
    }
}

impl Secret {
    /// A text without variables.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Secret {
        let text = text.into();
        Secret { written: text.clone(), text }
    }

    /// A text with its variables expanded, and as it was written.
    #[must_use]
    pub fn expanded(text: impl Into<String>, written: impl Into<String>) -> Secret {
        Secret { text: text.into(), written: written.into() }
    }

    /// The text itself, for the one place that needs it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// As it was written, variables unexpanded: for the operator's eyes.
    #[must_use]
    pub fn written(&self) -> &str {
        &self.written
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Origin {
    /// Whether a command of this origin starts only after consent.
    #[must_use]
    pub fn needs_consent(self) -> bool {
        match self {
            Origin::Named | Origin::Own => false,
            Origin::Imported | Origin::Api => true,
        }
    }
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts {
            start: Duration::from_secs(30),
            request: Duration::from_secs(60),
            tools: BTreeMap::new(),
            max: Duration::from_secs(600),
        }
    }
}
