//! One upstream's part of the configuration, in the form in which supervision needs it.
//!
//! It must not know TOML, files or environment variables.

use std::sync::Arc;
use std::time::Duration;

use client::{HttpLimits, HttpSpec, StdioLimits, StdioSpec};
use http::{HeaderMap, HeaderName, HeaderValue};
use model::{KindRef, Refusal, RefusalCode};

use crate::config::{HttpConfig, ServerConfig, ServerLimits, StdioConfig, Transport};

/// The question whether a stdio server is modern waits this long; then it is greeted as a legacy one.
const PROBE: Duration = Duration::from_secs(3);
/// Connecting over HTTP.
const CONNECT: Duration = Duration::from_secs(10);

/// One configured server with its bounds.
#[derive(Debug, Clone, PartialEq)]
pub struct UpstreamSpec {
    /// What was configured.
    pub config: ServerConfig,
    /// What it may ask its callers, from its capabilities.
    pub questions: Questions,
    /// Bounds on what it may cost.
    pub bounds: UpstreamBounds,
}

/// What a server may ask its callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Questions {
    /// `sampling/createMessage`.
    pub sampling: bool,
    /// `elicitation/create`.
    pub elicitation: bool,
    /// `roots/list`.
    pub roots: bool,
}

/// Bounds on what one upstream may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpstreamBounds {
    /// Bounds of a child's pipes.
    pub stdio: StdioLimits,
    /// Bounds of an HTTP link.
    pub http: HttpLimits,
    /// How long a stdio server is asked whether it is modern.
    pub probe: Duration,
    /// Calls open at one time on one session.
    pub calls_max: usize,
    /// Questions of the server open at one time on one session.
    pub questions_max: usize,
    /// Sessions of single callers open at one time.
    pub caller_sessions_max: usize,
    /// How long a caller's session stays without a call.
    pub caller_idle: Duration,
    /// Pages of one list that are fetched.
    pub pages_max: usize,
    /// Items of one list that are kept.
    pub items_max: usize,
    /// Resource URIs subscribed to at one time on one session.
    pub subscriptions_max: usize,
}

impl UpstreamSpec {
    /// Joins a server's configuration with the bounds that hold for all.
    #[must_use]
    pub fn new(config: ServerConfig, limits: &ServerLimits) -> Self {
        let may =
            |method| KindRef::request(method, None).is_ok_and(|kind| config.capabilities.admits(kind, &[]));
        let questions = Questions {
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

    /// The time that a call of this tool may take without progress; never more than the hard maximum.
    #[must_use]
    pub fn timeout(&self, tool: Option<&str>) -> Duration {
        let times = &self.config.timeouts;
        tool.and_then(|tool| times.tools.get(tool)).copied().unwrap_or(times.request).min(times.max)
    }

    /// What to dial; `older` when an HTTP server is known to speak HTTP+SSE only.
    pub(super) fn dial(&self, older: bool) -> Result<Dial, Refusal> {
        match &self.config.transport {
            Transport::Stdio(stdio) => Ok(Dial::Stdio(self.stdio(stdio))),
            Transport::Http(http) if !older => Ok(Dial::Http(self.http(http)?)),
            Transport::Http(http) | Transport::Sse(http) => Ok(Dial::Sse(self.http(http)?)),
            Transport::Demo => Ok(Dial::Demo),
            Transport::Participant => Ok(Dial::Participant),
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
                tracing::error!(server = self.name(), header = name, "a configured header cannot be written");
                return Err(Refusal::new(
                    RefusalCode::UpstreamDown,
                    "its configuration has an unusable header",
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

/// What is needed to open a link.
#[derive(Debug)]
pub(super) enum Dial {
    Stdio(StdioSpec),
    Http(HttpSpec),
    Sse(HttpSpec),
    Demo,
    Participant,
}
