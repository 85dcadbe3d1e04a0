//! Configuration of servers: plain, checked values.
//!
//! Values are complete: variables are expanded, names and prefixes are checked, capabilities are
//! compiled.

use std::{borrow::Cow, collections::BTreeMap, fmt, path::PathBuf, sync::Arc, time::Duration};

pub use client::guard::support;
pub use client::sandbox::{Confinement, FileAccess, ProcessLimits, SandboxSupport};
pub use vetting::{FirstUse, PinMode, PinPolicy};

use ::openapi::Operations;
use model::{Capabilities, Digest, ParticipantId};
use sha2::{Digest as _, Sha256};
use tls::ClientTls;

use crate::curation::Curation;

/// One server: `[servers.NAME]`, or an entry of `mcpServers`.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerConfig {
    /// The server's name, also its participant id.
    pub name: ParticipantId,
    /// The transport and its address.
    pub transport: Transport,
    /// Prefix of its public names; `""` keeps the server's own names. The default is the server's
    /// name.
    pub prefix: Arc<str>,
    /// The era that the gateway speaks with it.
    pub era: EraChoice,
    /// The callers that share a session.
    pub sessions: SessionSharing,
    /// The nodes of a cluster from which it is called.
    pub placement: Placement,
    /// Occasion on which the gateway runs it.
    pub start: Start,
    /// A server that runs on demand is stopped after this time without use.
    pub idle_stop: Duration,
    /// Its time limits.
    pub timeouts: Timeouts,
    /// The messages that it may send to its callers. The default: responses, notifications, and
    /// sampling, elicitation and roots requests.
    pub capabilities: Arc<Capabilities>,
    /// Whether the gateway starts it.
    pub enabled: bool,
    /// Whether the arguments of calls are checked by the input schemas of its tools, and tools
    /// whose schemas do not serve for that are left out.
    pub validate: bool,
    /// Policy on changes of its definitions.
    pub pins: PinPolicy,
    /// Selection and changes of its tools for callers; `None` if callers see them as it lists them.
    pub curation: Option<Arc<Curation>>,
}

/// The transport of a server.
#[derive(Debug, Clone, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Transport {
    /// A child process; one JSON-RPC message per line.
    Stdio(StdioConfig),
    /// Streamable HTTP.
    Http(HttpConfig),
    /// HTTP with a separate event stream (2024-11-05).
    Sse(HttpConfig),
    /// proto-mcp over a pipe, a socket or a WebSocket.
    Proto(ProtoConfig),
    /// An HTTP API whose operations are the tools.
    #[strum(serialize = "openapi")]
    OpenApi(OpenApiConfig),
    /// The built-in demo server.
    Demo,
    /// A participant that dials in and serves (`serves = true`).
    Participant,
    /// None: its configuration cannot be used, for example because an environment variable is not
    /// set.
    Unusable {
        /// Cause, for operators.
        why: String,
        /// Advice to operators about the cause.
        fix: String,
    },
}

/// A child process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StdioConfig {
    /// The program, looked up on PATH.
    pub command: String,
    /// Its arguments. Expanded variables may be secrets, so people see the arguments as written.
    pub args: Vec<SecretText>,
    /// Its environment variables, in addition to PATH, HOME and locale; it inherits nothing else.
    pub env: Vec<(String, SecretText)>,
    /// Its working directory; `None` is the gateway's.
    pub cwd: Option<PathBuf>,
    /// Confinement of the process.
    pub confinement: Confinement,
}

/// An HTTP endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpConfig {
    /// An absolute URL: `http`, `https`, and for proto-mcp `tcp`, `ws`, `wss`. It may contain
    /// secrets and never leaves the gateway.
    pub url: SecretText,
    /// Headers of every request.
    pub headers: Vec<(String, SecretText)>,
    /// Authorities that are trusted, and the certificate that is shown, if the URL begins with
    /// `https` or `wss`: `ca`, `client_cert`, `client_key`.
    pub tls: ClientTls,
}

/// An HTTP API that an OpenAPI description describes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenApiConfig {
    /// The description.
    pub description: Description,
    /// Address of the API. All requests go to the origin of its URL.
    pub http: HttpConfig,
    /// Whether that URL is the API's; else it is where the description is fetched from, on whose
    /// origin the API is.
    pub is_base: bool,
    /// Parameters of the query of every request.
    pub query: Vec<(String, SecretText)>,
}

/// An OpenAPI description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Description {
    /// A file, as it was when the configuration was read.
    File {
        /// The file.
        path: PathBuf,
        /// Operations that the file describes.
        operations: Arc<Operations>,
    },
    /// An `http` or `https` URL; it is fetched when a session opens.
    Url(SecretText),
}

impl Description {
    /// Place of the description, as it is written.
    #[must_use]
    pub fn written(&self) -> String {
        match self {
            Self::File { path, .. } => path.display().to_string(),
            Self::Url(url) => url.written().to_owned(),
        }
    }
}

/// A proto-mcp server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProtoConfig {
    /// A child process that reads and writes frames.
    Child {
        /// The process.
        child: StdioConfig,
        /// Whether it is started again as a server that speaks JSON-RPC, if it does not speak
        /// proto-mcp.
        fallback: bool,
    },
    /// A `tcp` URL.
    Tcp(HttpConfig),
    /// A `ws` or `wss` URL; the headers are those of its handshake.
    WebSocket(HttpConfig),
    /// An `http` or `https` URL, whose origin serves gRPC; the headers are metadata of each call.
    Grpc(HttpConfig),
}

impl Transport {
    /// Host and port of its URL, if it has one and they are not made of variables.
    #[must_use]
    pub fn authority(&self) -> Option<String> {
        let url = &self.address()?.url;
        let (_, rest) = url.written().split_once("://")?;
        let authority = rest.split(['/', '?', '#']).next()?;
        let place = authority.rsplit('@').next()?;
        (!place.is_empty() && !authority.contains('$')).then(|| place.to_owned())
    }
}

impl ServerConfig {
    /// Whether it runs on demand: it is a process, and its configuration does not want it to run
    /// always.
    #[must_use]
    pub fn is_on_demand(&self) -> bool {
        self.start == Start::Demand && self.transport.child().is_some()
    }

    /// Whether its sessions may be lost while its process or connection goes on, so that calls are
    /// kept to be sent again: it is reached over HTTP, or it is a process that may pass messages on
    /// to another server, for its command line or environment has a URL.
    pub(crate) fn may_lose_sessions(&self) -> bool {
        if matches!(self.transport, Transport::OpenApi(_)) {
            return false;
        }
        let Some(child) = self.transport.child() else {
            return true;
        };
        let mut texts = child
            .args
            .iter()
            .chain(child.env.iter().map(|(_, value)| value));
        texts.any(|text| text.expose().contains("://"))
    }

    /// Text by which this server differs from another one that may list something else: its
    /// identity, its environment and its confinement, as they are written, and the era.
    pub(crate) fn listed_by(&self) -> String {
        let child = self.transport.child();
        let env = child.into_iter().flat_map(|child| &child.env);
        let env: Vec<_> = env.map(|(name, value)| (name, value.written())).collect();
        let confinement = child.map(|child| &child.confinement);
        format!("{:?}", (self.identity(), env, confinement, self.era))
    }

    /// Place at which keys of callers are of use, if its transport is not HTTP: the spelling of a
    /// URL that no other program has.
    #[must_use]
    pub fn place_of_keys(&self) -> String {
        format!("server:{}", self.identity_digest())
    }

    /// Digest of [`Self::identity`].
    #[must_use]
    pub fn identity_digest(&self) -> Digest {
        Digest(Sha256::digest(self.identity().as_bytes()).into())
    }

    /// Text by which this server differs from another one of its name: the program with its
    /// arguments, or the address, as they are written. A change of it is the operator's.
    #[must_use]
    pub fn identity(&self) -> String {
        let kind: &str = (&self.transport).into();
        let mut parts = vec![kind];
        if let Some(child) = self.transport.child() {
            parts.push(&child.command);
            parts.extend(child.args.iter().map(SecretText::written));
            parts.extend(child.cwd.as_ref().and_then(|cwd| cwd.to_str()));
        }
        parts.extend(
            self.transport
                .address()
                .map(|address| address.url.written()),
        );
        let description = match &self.transport {
            Transport::OpenApi(api) => Some(api.description.written()),
            _ => None,
        };
        parts.extend(description.as_deref());
        parts.join("\0")
    }
}

impl Transport {
    /// The child process, if there is one.
    #[must_use]
    pub fn child(&self) -> Option<&StdioConfig> {
        match self {
            Self::Stdio(child) | Self::Proto(ProtoConfig::Child { child, .. }) => Some(child),
            Self::Proto(ProtoConfig::Tcp(_) | ProtoConfig::WebSocket(_) | ProtoConfig::Grpc(_)) => {
                None
            }
            Self::Http(_) | Self::Sse(_) | Self::OpenApi(_) => None,
            Self::Demo | Self::Participant | Self::Unusable { .. } => None,
        }
    }

    /// The child process, to complete its configuration.
    pub fn child_mut(&mut self) -> Option<&mut StdioConfig> {
        match self {
            Self::Stdio(child) | Self::Proto(ProtoConfig::Child { child, .. }) => Some(child),
            Self::Proto(ProtoConfig::Tcp(_) | ProtoConfig::WebSocket(_) | ProtoConfig::Grpc(_)) => {
                None
            }
            Self::Http(_) | Self::Sse(_) | Self::OpenApi(_) => None,
            Self::Demo | Self::Participant | Self::Unusable { .. } => None,
        }
    }

    /// Whether a variable or a header of it has each caller's own key.
    #[must_use]
    pub fn has_callers_key(&self) -> bool {
        let variables = self
            .child()
            .map(|child| child.env.as_slice())
            .unwrap_or_default();
        let headers = self
            .address()
            .map(|address| address.headers.as_slice())
            .unwrap_or_default();
        variables
            .iter()
            .chain(headers)
            .any(|(_, value)| value.is_of_caller)
    }

    /// The address, if there is one to connect to.
    #[must_use]
    pub fn address(&self) -> Option<&HttpConfig> {
        match self {
            Self::Http(http) | Self::Sse(http) => Some(http),
            Self::OpenApi(api) => Some(&api.http),
            Self::Proto(
                ProtoConfig::Tcp(http) | ProtoConfig::WebSocket(http) | ProtoConfig::Grpc(http),
            ) => Some(http),
            Self::Proto(ProtoConfig::Child { .. }) | Self::Stdio(_) => None,
            Self::Demo | Self::Participant | Self::Unusable { .. } => None,
        }
    }
}

/// A text that may contain a secret. `Debug` hides it; people see it as written, with its variables
/// unexpanded.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText {
    text: String,
    written: String,
    /// Whether each caller's own key follows the text.
    is_of_caller: bool,
}

/// The era that the gateway speaks with a server (`era`, also spelled `protocolEra`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EraChoice {
    /// The gateway probes the server.
    #[default]
    Auto,
    /// 2024-11-05 to 2025-11-25, without a probe.
    Legacy,
    /// 2026-07-28, without a probe.
    Modern,
}

/// The callers that share a session with a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SessionSharing {
    /// Callers that declare no client capabilities share one session; every other caller has its
    /// own.
    #[default]
    Auto,
    /// All callers share one session.
    Shared,
    /// Every caller has its own session.
    Caller,
    /// Every call has its own session.
    Call,
}

/// The nodes of a cluster from which a server is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Placement {
    /// From every node if the server keeps nothing between two calls, as far as the gateway can see;
    /// else from the home.
    #[default]
    Auto,
    /// From the home: it is one process or session for the whole cluster.
    Home,
    /// From every node: each has a process or sessions of its own.
    Every,
}

/// Occasion on which the gateway runs a server that is a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Start {
    /// From its first use on, until no client that used it is connected and it was unused for a
    /// while.
    #[default]
    Demand,
    /// Always.
    Always,
}

/// The time without use after which a server that runs on demand is stopped, unless configured
/// otherwise.
pub const IDLE_STOP: Duration = Duration::from_secs(600);

/// Time limits of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeouts {
    /// From the start to the end of the handshake.
    pub start: Duration,
    /// One request; progress restarts the limit.
    pub request: Duration,
    /// Limits of one request to single tools, by the server's own names.
    pub tools: BTreeMap<String, Duration>,
    /// The hard maximum of one request, whatever its progress.
    pub max: Duration,
}

/// Limits of what one server may cost the gateway; the same for all servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerLimits {
    /// Longest line of a child process, and longest HTTP response or stream event, in bytes. It
    /// holds for clients on a pipe too.
    pub line_bytes_max: usize,
    /// Messages that wait to be written to a child process. It holds for streams to clients too.
    pub queue_len_max: usize,
    /// Open calls at one server, in all its sessions; a further call is refused with
    /// `upstream_busy`.
    pub calls_max: usize,
    /// The share of one participant in them.
    pub participant_calls_max: usize,
    /// Open sessions that belong to single callers, per server.
    pub caller_sessions_max: usize,
    /// The share of one participant in them.
    pub participant_sessions_max: usize,
    /// A caller's session is closed after this time without a call.
    pub caller_idle: Duration,
    /// Longest wait for the answer to the modern probe; after it the legacy handshake begins.
    pub probe: Duration,
    /// Pages fetched of one list.
    pub pages_max: usize,
    /// Items kept of one list.
    pub items_max: usize,
    /// Resources and tasks subscribed to on one session.
    pub subscriptions_max: usize,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            line_bytes_max: 16 << 20,
            queue_len_max: 1_024,
            calls_max: 1_024,
            participant_calls_max: 256,
            caller_sessions_max: 64,
            participant_sessions_max: 16,
            caller_idle: Duration::from_secs(300),
            probe: Duration::from_secs(3),
            pages_max: 1_000,
            items_max: 20_000,
            subscriptions_max: 1_024,
        }
    }
}

impl SecretText {
    /// A text without variables.
    #[must_use]
    pub fn new(text: impl Into<String>) -> SecretText {
        let text = text.into();
        SecretText {
            written: text.clone(),
            text,
            is_of_caller: false,
        }
    }

    /// A text with its variables expanded, and as it was written.
    #[must_use]
    pub fn expanded(text: impl Into<String>, written: impl Into<String>) -> SecretText {
        SecretText {
            text: text.into(),
            written: written.into(),
            is_of_caller: false,
        }
    }

    /// The key of each caller, after this text, and as it was written.
    #[must_use]
    pub fn of_caller(before: impl Into<String>, written: impl Into<String>) -> SecretText {
        SecretText {
            is_of_caller: true,
            ..SecretText::expanded(before, written)
        }
    }

    /// The text for a session of the caller with this key. `None` where it is the caller's and
    /// there is no key.
    #[must_use]
    pub(crate) fn with_key(&self, key: Option<&str>) -> Option<Cow<'_, str>> {
        match (self.is_of_caller, key) {
            (false, _) => Some(self.text.as_str().into()),
            (true, key) => Some([self.text.as_str(), key?].concat().into()),
        }
    }

    /// The text itself, for the place that needs it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// The text as written, with its variables unexpanded; for display.
    #[must_use]
    pub fn written(&self) -> &str {
        &self.written
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
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
