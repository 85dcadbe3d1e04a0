//! Specification of one supervised server: configuration, limits, what to dial.

use std::{sync::Arc, time::Duration};

use client::{AccountFault, Framing, HttpLimits, HttpSpec, LinkError, StdioSpec};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::config::{HttpConfig, ServerConfig, ServerLimits, StdioConfig};
use crate::fault::Fault;

/// Requests of a session itself that may be open beside those of callers.
const OWN_REQUESTS: usize = 8;

/// A session without a caller's key, at a server that wants one of each.
fn no_key() -> Fault {
    Fault::Link(LinkError::Account(AccountFault::KeyNeeded))
}

/// One configured server with the limits of all servers.
#[derive(Debug, Clone, PartialEq)]
pub struct UpstreamSpec {
    /// The configuration.
    pub config: ServerConfig,
    /// The limits.
    pub limits: ServerLimits,
}

impl UpstreamSpec {
    /// The server's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.config.name.as_str()
    }

    /// The time that a call of this tool may take without progress; at most the hard maximum.
    #[must_use]
    pub fn timeout(&self, tool: Option<&str>) -> Duration {
        let times = &self.config.timeouts;
        tool.and_then(|tool| times.tools.get(tool))
            .copied()
            .unwrap_or(times.request)
            .min(times.max)
    }

    /// The cause of a fault for operators, with the place of a server that could not be reached:
    /// host and port of its URL, unless they come from variables, which may be secrets.
    pub(crate) fn placed(&self, fault: &Fault) -> String {
        let cause = fault.cause();
        let is_of_place = matches!(
            fault,
            Fault::Link(
                LinkError::Unreachable(_)
                    | LinkError::Untrusted(_)
                    | LinkError::NotTls
                    | LinkError::Http { .. }
            )
        );
        match self.config.transport.authority().filter(|_| is_of_place) {
            Some(place) if !cause.contains(&place) => format!("{place}: {cause}"),
            Some(_) | None => cause,
        }
    }

    /// The time that a start may take.
    #[must_use]
    pub fn start_timeout(&self) -> Duration {
        self.config.timeouts.start
    }

    /// Settings with which the child process starts.
    ///
    /// # Errors
    /// When a variable is the caller's key, and there is none.
    pub(crate) fn stdio(
        &self,
        config: &StdioConfig,
        framing: Framing,
        key: Option<&str>,
    ) -> Result<StdioSpec, Fault> {
        let mut env = Vec::with_capacity(config.env.len());
        for (name, value) in &config.env {
            let value = value.with_key(key).ok_or_else(no_key)?;
            env.push((name.clone(), value.into_owned()));
        }
        Ok(StdioSpec {
            name: Arc::from(self.name()),
            command: config.command.clone(),
            args: config
                .args
                .iter()
                .map(|arg| arg.expose().to_owned())
                .collect(),
            env,
            cwd: config.cwd.clone(),
            confinement: config.confinement.clone(),
            framing,
            line_bytes_max: self.limits.line_bytes_max,
            queue_len_max: self.limits.queue_len_max,
        })
    }

    /// Settings with which a link of frames connects: `tcp`, `ws` and `wss` as HTTP has them.
    pub(crate) fn socket(&self, config: &HttpConfig, key: Option<&str>) -> Result<HttpSpec, Fault> {
        let mut spec = self.http(config, key)?;
        for (scheme, same) in [("tcp:", "http:"), ("wss:", "https:"), ("ws:", "http:")] {
            if let Some(rest) = spec.url.strip_prefix(scheme) {
                spec.url = format!("{same}{rest}");
                break;
            }
        }
        Ok(spec)
    }

    /// Settings with which an HTTP link connects.
    ///
    /// # Errors
    /// When a header is the caller's key, and there is none; when a header is not valid.
    pub(crate) fn http(&self, config: &HttpConfig, key: Option<&str>) -> Result<HttpSpec, Fault> {
        let mut headers = HeaderMap::new();
        for (name, value) in &config.headers {
            let value = value.with_key(key).ok_or_else(no_key)?;
            let header = HeaderName::try_from(name.as_str())
                .ok()
                .zip(HeaderValue::from_str(&value).ok());
            let Some((name, mut value)) = header else {
                tracing::error!(
                    server = self.name(),
                    header = name,
                    "a configured header is invalid"
                );
                return Err(Fault::Answer(
                    "its configuration has an invalid header".to_owned(),
                ));
            };
            value.set_sensitive(true);
            headers.append(name, value);
        }
        Ok(HttpSpec {
            name: Arc::from(self.name()),
            url: config.url.expose().to_owned(),
            headers,
            tls: config.tls.clone(),
            authorize: None,
            limits: HttpLimits {
                frame_bytes_max: self.limits.line_bytes_max,
                requests_max: self.limits.calls_max.saturating_add(OWN_REQUESTS),
                ..HttpLimits::default()
            },
        })
    }
}
