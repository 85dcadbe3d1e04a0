//! Specification of one supervised server: configuration, bounds, permitted requests, what to dial.

use std::sync::Arc;
use std::time::Duration;

use client::{HttpLimits, HttpSpec, StdioLimits, StdioSpec};
use http::{HeaderMap, HeaderName, HeaderValue};
use model::{KindRef, Refusal, RefusalCode};

use crate::config::{HttpConfig, ServerConfig, ServerLimits, StdioConfig, Transport};

/// Longest wait for a child's answer to the modern probe; after it the legacy handshake begins.
const PROBE: Duration = Duration::from_secs(3);
/// Longest wait for an HTTP connection.
const CONNECT: Duration = Duration::from_secs(10);

/// One configured server with its bounds.
#[derive(Debug, Clone, PartialEq)]
pub struct UpstreamSpec {
    /// The configuration.
    pub config: ServerConfig,
    /// The requests that the server may send to clients, from its capabilities.
    pub questions: QuestionPolicy,
    /// The bounds.
    pub bounds: UpstreamBounds,
}

/// The requests that a server may send to clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuestionPolicy {
    /// `sampling/createMessage`.
    pub sampling: bool,
    /// `elicitation/create`.
    pub elicitation: bool,
    /// `roots/list`.
    pub roots: bool,
}

/// Bounds of what one server may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpstreamBounds {
    /// Bounds of a child's pipes.
    pub stdio: StdioLimits,
    /// Bounds of an HTTP link.
    pub http: HttpLimits,
    /// Longest wait for a child's answer to the modern probe.
    pub probe: Duration,
    /// Open calls of one session.
    pub calls_max: usize,
    /// Open questions (requests of the server to clients) of one session.
    pub questions_max: usize,
    /// Open sessions that belong to single callers.
    pub caller_sessions_max: usize,
    /// A caller's session is closed after this time without a call.
    pub caller_idle: Duration,
    /// Pages fetched of one list.
    pub pages_max: usize,
    /// Items kept of one list.
    pub items_max: usize,
    /// Resources and tasks subscribed to on one session.
    pub subscriptions_max: usize,
}

impl UpstreamSpec {
    /// Joins a server's configuration with the limits of all servers.
    #[must_use]
    pub fn new(config: ServerConfig, limits: &ServerLimits) -> Self {
        let may =
            |method| KindRef::request(method, None).is_ok_and(|kind| config.capabilities.admits(kind, &[]));
        let questions = QuestionPolicy {
            sampling: may("sampling/createMessage"),
            elicitation: may("elicitation/create"),
            roots: may("roots/list"),
        };
        let bounds = UpstreamBounds {
            stdio: StdioLimits {
                line_bytes_max: limits.line_bytes_max,
                queue_len_max: limits.queue_len_max,
                ..StdioLimits::default()
            },
            http: HttpLimits {
                frame_bytes_max: limits.line_bytes_max,
                requests_max: limits.calls_max.saturating_add(8),
                connect: CONNECT,
                ..HttpLimits::default()
            },
            probe: PROBE,
            calls_max: limits.calls_max,
            questions_max: 64,
            caller_sessions_max: limits.caller_sessions_max,
            caller_idle: limits.caller_idle,
            pages_max: 1_000,
            items_max: 20_000,
            subscriptions_max: 1_024,
        };
        Self { config, questions, bounds }
    }

    /// The server's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.config.name.as_str()
    }

    /// The time that a call of this tool may take without progress; at most the hard maximum.
    #[must_use]
    pub fn timeout(&self, tool: Option<&str>) -> Duration {
        let times = &self.config.timeouts;
        tool.and_then(|tool| times.tools.get(tool)).copied().unwrap_or(times.request).min(times.max)
    }

    /// What to dial. With `http_sse` an HTTP server is known to speak HTTP+SSE (2024-11-05) only.
    pub(crate) fn target(&self, http_sse: bool) -> Result<DialTarget, Refusal> {
        match &self.config.transport {
            Transport::Stdio(stdio) => Ok(DialTarget::Stdio(self.stdio(stdio))),
            Transport::Http(http) if !http_sse => Ok(DialTarget::Http(self.http(http)?)),
            Transport::Http(http) | Transport::Sse(http) => Ok(DialTarget::Sse(self.http(http)?)),
            Transport::Demo => Ok(DialTarget::Demo),
            Transport::Participant => Ok(DialTarget::Participant),
        }
    }

    fn stdio(&self, config: &StdioConfig) -> StdioSpec {
        StdioSpec {
            name: Arc::from(self.name()),
            command: config.command.clone(),
            args: config.args.iter().map(|arg| arg.expose().to_owned()).collect(),
            env: config.env.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())).collect(),
            cwd: config.cwd.clone(),
            limits: self.bounds.stdio,
        }
    }

    fn http(&self, config: &HttpConfig) -> Result<HttpSpec, Refusal> {
        let mut headers = HeaderMap::new();
        for (name, value) in &config.headers {
            let header =
                HeaderName::try_from(name.as_str()).ok().zip(HeaderValue::from_str(value.expose()).ok());
            let Some((name, mut value)) = header else {
                tracing::error!(server = self.name(), header = name, "a configured header is invalid");
                return Err(Refusal::new(
                    RefusalCode::UpstreamDown,
                    "its configuration has an invalid header",
                ));
            };
            value.set_sensitive(true);
            headers.append(name, value);
        }
        Ok(HttpSpec {
            name: Arc::from(self.name()),
            url: config.url.expose().to_owned(),
            headers,
            limits: self.bounds.http,
        })
    }
}

/// What a session dials.
#[derive(Debug)]
pub(crate) enum DialTarget {
    Stdio(StdioSpec),
    Http(HttpSpec),
    Sse(HttpSpec),
    Demo,
    Participant,
}
