//! Origin of a manifest: the server of which it is built, and how it was asked.

use model::Coding;
use wire::mcp::Era;

use crate::declared::Handshake;
use crate::manifest::Manifest;
use crate::session::{Environment, Session};
use crate::spec::UpstreamSpec;

/// The server of which a manifest is built, and how it was asked.
#[derive(Clone, Copy)]
pub(crate) struct Origin<'a> {
    pub(crate) spec: &'a UpstreamSpec,
    pub(crate) environment: &'a Environment,
    pub(crate) era: Era,
    pub(crate) coding: Coding,
    /// Whether each request has an HTTP stream of its own.
    pub(crate) over_http: bool,
    /// Whether all callers share the session.
    pub(crate) is_shared: bool,
}

impl<'a> Origin<'a> {
    /// A session.
    pub(crate) fn of(session: &'a Session) -> Self {
        Self {
            spec: &session.setup.spec,
            environment: &session.setup.environment,
            era: session.era(),
            coding: session.coding(),
            over_http: session.over_http(),
            is_shared: !session.key().is_own(),
        }
    }

    /// The server's name.
    pub(crate) fn server(&self) -> &str {
        self.spec.name()
    }

    /// Whether the arguments of calls are checked by the tools' schemas, which are JSON Schemas.
    pub(crate) fn validates(&self) -> bool {
        self.spec.config.validate && self.coding == Coding::Json
    }

    /// Notes in a manifest what the handshake says; the lists are still to come.
    pub(crate) fn begin(&self, manifest: &mut Manifest, handshake: &Handshake) {
        manifest.capabilities = handshake.capabilities.clone();
        manifest.handshake = handshake.result.clone();
        manifest.is_legacy = self.era == Era::Legacy;
        manifest.coding = self.coding;
        manifest.gateways = handshake.gateways.clone().unwrap_or_default();
    }
}
