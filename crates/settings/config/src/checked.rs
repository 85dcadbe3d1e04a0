//! Checked configuration of a gateway: one section for each crate that owns one, as values with
//! variables expanded and capabilities compiled.
//!
//! Names, prefixes, and references between tables are checked.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use authzen::config::OutsideApprover;
use identity::config::{IdentityConfig, ParticipantConfig};
use model::{ParticipantId, TopicName};
use notify::config::NotifyRoute;
use oauth::{config::AuthConfig, key::KeySource};
use registry::resolve::References;
use rules::CallRule;
use store::audit::AuditConfig;
use tls::ServerTls;
use topic::section::{Access, Sets, TopicSection};
use upstream::StartLimits;
use upstream::config::ServerConfig;

use crate::approvers::TopicApprover;
use crate::cluster::ClusterConfig;
use crate::limits::GatewayLimits;
use crate::rule_files::TopicRules;
use crate::telemetry::TelemetryConfig;

/// Time after which a person at the console proves again who it is, before what matters most.
pub const CONSOLE_PROOF: Duration = Duration::from_secs(900);

/// The console for browsers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConsoleConfig {
    /// Whether there is one; `None` has one if the gateway listens on loopback.
    pub enabled: Option<bool>,
    /// Time for which a proof of who a person is counts.
    pub proof: Duration,
}

impl Default for ConsoleConfig {
    fn default() -> Self {
        Self {
            enabled: None,
            proof: CONSOLE_PROOF,
        }
    }
}

/// The configuration of a gateway. A reload compares it with the one in force.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Config {
    /// The way in over HTTP.
    pub doors: DoorsConfig,
    /// The console for browsers: `[console]`.
    pub console: ConsoleConfig,
    /// The directory of the journal and the audit log; `None` keeps nothing on disk (`portmoot
    /// stdio`).
    pub data_dir: Option<PathBuf>,
    /// Source of the key with which sign-ins at servers are sealed: `[server] key_file`,
    /// `key_command`. A change takes effect at a restart.
    pub key: Option<KeySource>,
    /// This process as a node of a cluster: `[cluster]`. A change takes effect at a restart.
    pub cluster: Option<Arc<ClusterConfig>>,
    /// Servers that start up or are probed at a time. A change takes effect at a restart.
    pub starts: StartLimits,
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
    /// The participants that serve, as servers: their tools are listed to the MCP clients of their
    /// topics.
    pub serving: Vec<ServerConfig>,
    /// Most bytes of a tool's result that a participant with a limit of its own gets at once; 0 is
    /// without a limit.
    pub result_limits: Vec<(ParticipantId, usize)>,
    /// The sets of tools: `[sets.NAME]`. Capabilities and topics have them in place already.
    pub sets: Arc<Sets>,
    /// The rules of the topics that name a file of them.
    pub rules: Vec<TopicRules>,
    /// The approvers outside of the topics that have one.
    pub approvers: Vec<TopicApprover>,
    /// The routes of notifications.
    pub notifications: Vec<NotifyRoute>,
    /// The export of telemetry to a collector; `None` exports nothing.
    pub telemetry: Option<TelemetryConfig>,
    /// Who may come in, and into which topics.
    pub identity: Arc<IdentityConfig>,
}

impl Config {
    /// The rules of a topic.
    pub fn rules_of(&self, topic: &TopicName) -> &[CallRule] {
        let mut all = self.rules.iter();
        all.find(|one| one.topic == *topic)
            .map_or(&[], |one| &*one.rules)
    }

    /// The approver outside of a topic.
    pub fn approver_of(&self, topic: &TopicName) -> Option<&OutsideApprover> {
        let mut all = self.approvers.iter();
        all.find(|one| one.topic == *topic).map(|one| &one.approver)
    }

    /// The participants that serve in a topic, as servers.
    pub fn serving_in<'c>(
        &'c self,
        topic: &'c TopicSection,
    ) -> impl Iterator<Item = &'c ServerConfig> {
        let participants = &self.identity.participants;
        let serves = |server: &&ServerConfig| serves_in(server, participants, topic);
        self.serving.iter().filter(serves)
    }
}

/// Whether a server is a participant that may enter a topic.
pub(crate) fn serves_in(
    server: &ServerConfig,
    participants: &[ParticipantConfig],
    topic: &TopicSection,
) -> bool {
    let is_it = |one: &&ParticipantConfig| one.participant.id == server.name;
    participants
        .iter()
        .find(is_it)
        .is_some_and(|one| may_enter(one, topic))
}

/// Whether a participant may enter a topic.
pub(crate) fn may_enter(one: &ParticipantConfig, topic: &TopicSection) -> bool {
    topic.access == Access::Public || one.participant.may_enter(&topic.name)
}

/// The way in over HTTP: where the gateway listens, and what it serves there.
#[derive(Debug, Clone, PartialEq)]
pub struct DoorsConfig {
    /// The address to listen on: `[server] listen`.
    pub listen: SocketAddr,
    /// TLS of that address: `[server.tls]`; `None` speaks plain HTTP. What it consists of may
    /// change while the gateway runs, whether there is TLS may not.
    pub tls: Option<ServerTls>,
    /// Host names of this gateway besides the address itself and loopback: `[server] hosts`, lower
    /// case, without a port, and the host of the public URL.
    pub hosts: Vec<String>,
    /// Whether clients of 2024-11-05 are served at `/sse` and `/messages`.
    pub legacy_sse: bool,
}

impl Default for DoorsConfig {
    /// Loopback.
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 7070)),
            tls: None,
            hosts: Vec::new(),
            legacy_sse: false,
        }
    }
}
