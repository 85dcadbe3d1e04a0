//! How to reach an HTTP server, and the limits of a link to it.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;

/// How to reach an HTTP server.
#[derive(Debug, Clone)]
pub struct HttpSpec {
    /// The server's name, for the log.
    pub name: Arc<str>,
    /// The endpoint: an absolute `http` or `https` URL.
    pub url: String,
    /// Headers of every request, credentials among them.
    pub headers: HeaderMap,
    /// Limits of the link.
    pub limits: HttpLimits,
}

/// Limits of one HTTP link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpLimits {
    /// Length of one message, in a body or an event, in bytes.
    pub frame_bytes_max: usize,
    /// Requests open at one time. Notifications and answers on their way have the same limit of their own.
    pub requests_max: usize,
    /// Connections kept open without a request, for 4 s each.
    pub idle_connections_max: usize,
    /// Time to connect, TLS included.
    pub connect: Duration,
    /// Time to the head of an answer that needs no work: to notifications, GET and DELETE.
    pub head: Duration,
}

impl Default for HttpLimits {
    /// Messages of 16 MiB, 1024 requests, 64 idle connections, 10 s to connect, 30 s to a head.
    fn default() -> Self {
        Self {
            frame_bytes_max: 16 << 20,
            requests_max: 1024,
            idle_connections_max: 64,
            connect: Duration::from_secs(10),
            head: Duration::from_secs(30),
        }
    }
}
