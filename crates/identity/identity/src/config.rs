//! Section of the configuration about who may come in, and where: plain values, capabilities
//! compiled.
//!
//! The crate that reads the configuration's sources has checked names, and references between
//! tables.

use std::sync::Arc;

use crate::issuers::{IssuerConfig, IssuerSubject, ScopeConfig};
use crate::login::LoginConfig;
use auth::{CertificateId, Credential, Participant, PublicUrl};
use model::{Capabilities, ParticipantId};
use topic::section::TopicSection;

/// Participants, tokens, issuers and sign-ins as they are configured, and the topics.
#[derive(Debug, Clone, PartialEq)]
pub struct IdentityConfig {
    /// The address under which clients outside reach the gateway: `[server] public_url`.
    pub public_url: Option<PublicUrl>,
    /// Whether the data directory has an operator key, with which commands on this machine act as
    /// the local user. A change takes effect at a restart.
    pub operator_key: bool,
    /// The gateway's own authorization server: `[login]`; `None` unless it is enabled, which takes
    /// effect at a restart.
    pub login: Option<LoginConfig>,
    /// The configured participants. If there is none, and no token was issued, every client on
    /// loopback is the local user.
    pub participants: Vec<ParticipantConfig>,
    /// The topics, `main` among them.
    pub topics: Vec<TopicSection>,
    /// The names of the configured servers, which no participant may have.
    pub servers: Vec<ParticipantId>,
    /// The issuers whose access tokens are accepted, in the order of the configuration.
    pub issuers: Vec<IssuerConfig>,
    /// The scopes of these tokens. If there are none, scopes are not looked at.
    pub scopes: Vec<ScopeConfig>,
}

impl Default for IdentityConfig {
    /// No participants or topics.
    fn default() -> Self {
        Self {
            public_url: None,
            operator_key: true,
            login: None,
            participants: Vec::new(),
            topics: Vec::new(),
            servers: Vec::new(),
            issuers: Vec::new(),
            scopes: Vec::new(),
        }
    }
}

impl IdentityConfig {
    /// The authorization servers that give out tokens for this gateway, in order. If there are
    /// none, nothing of OAuth is served.
    #[must_use]
    pub fn authorization_servers(&self) -> Vec<&str> {
        let issuers = self
            .issuers
            .iter()
            .map(|issuer| issuer.rules.issuer.as_str());
        // The issuer of the gateway's own tokens is its address.
        let own = if self.login.is_some() {
            self.public_url.as_ref()
        } else {
            None
        };
        issuers.chain(own.map(PublicUrl::as_str)).collect()
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
    /// Capabilities in shadow, in place of its configured ones: what they would decide otherwise is
    /// recorded, and nothing else.
    pub shadow: Option<Arc<Capabilities>>,
    /// Whether it serves: then its tools are listed to the MCP clients of its topics.
    pub serves: bool,
}
