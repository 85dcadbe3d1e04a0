//! Supervision of one upstream.

use std::sync::Arc;

use bytes::Bytes;
use client::Guard;
use model::{Era, Refusal, RefusalCode};

use super::manifest::Manifest;
use super::session::Session;
use super::sink::{Hello, SessionKey, SessionSink};
use super::spec::UpstreamSpec;
use super::status::Status;

/// What all upstreams stand on.
#[derive(Clone)]
pub struct Ground {
    /// The guard of child processes, if one runs.
    pub guard: Option<Guard>,
    /// Who the gateway says it is: an `Implementation` object, raw JSON.
    pub identity: Bytes,
    /// Where everything goes that is about no call.
    pub sink: Arc<dyn SessionSink>,
}

/// One configured server.
pub struct Upstream {
    spec: UpstreamSpec,
}

impl Upstream {
    /// Begins to start the server and returns at once. Must be called inside a runtime.
    #[must_use]
    pub fn start(spec: UpstreamSpec, ground: Ground) -> Arc<Self> {
        let _ = ground;
        Arc::new(Self { spec })
    }

    /// What was configured.
    #[must_use]
    pub fn spec(&self) -> &UpstreamSpec {
        &self.spec
    }

    /// How it is doing, for `servers ls` and `/readyz`.
    #[must_use]
    pub fn status(&self) -> Status {
        Status {
            name: Arc::from(self.spec.name()),
            state: super::status::State::Starting,
            reason: None,
            eras: Vec::new(),
            version: None,
            pid: None,
            sessions: 0,
            calls: 0,
            listed: [0; 4],
            quarantined: Vec::new(),
            restarts: 0,
            retry_after_ms: None,
        }
    }

    /// What it offered last, running or not; empty before its first start.
    #[must_use]
    pub fn manifest(&self) -> Arc<Manifest> {
        Arc::default()
    }

    /// Waits until the first start has ended, well or badly. The caller bounds the wait.
    pub async fn settled(&self) {}

    /// The session for a caller: the shared one where policy and declared capabilities allow it, else the caller's own,
    /// opened on first use. Its era is the caller's where the server speaks it.
    ///
    /// # Errors
    /// A refusal that says why the server cannot be used now.
    pub async fn session(&self, key: &SessionKey, hello: &Hello, era: Era) -> Result<Arc<Session>, Refusal> {
        let _ = (key, hello, era);
        Err(Refusal::new(RefusalCode::UpstreamDown, "not started"))
    }

    /// Closes what belongs to a caller that has left.
    pub fn leave(&self, key: &SessionKey) {
        let _ = key;
    }

    /// Ends every session; nothing is started again.
    pub async fn close(&self) {}
}
