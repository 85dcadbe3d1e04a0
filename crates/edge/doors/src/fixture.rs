//! Gateway of the tests: one topic, no servers, the local user.

use std::sync::Arc;
use std::time::Duration;

use auth::{Identities, Participant, Sealer};
use config::{Config, DoorsConfig, GatewayLimits};
use control::{Registry, RegistryParts};
use identity::Standing;
use identity::config::IdentityConfig;
use identity::grants::Grants;
use identity::identities::local_user;
use model::TopicName;
use store::recorder::Recorder;
use topic::section::{Access, BuiltIn, McpCalls, TopicSection};

/// A configuration with the topic `main`.
pub(crate) fn config(limits: GatewayLimits) -> Config {
    let topic = TopicSection {
        name: TopicName::new("main").unwrap(),
        access: Access::Restricted,
        anonymous: None,
        anonymous_rate: topic::section::GUEST_RATE,
        history: 0,
        servers: Vec::new(),
        mcp_calls: McpCalls::Kinds,
        builtin: vec![BuiltIn::Room],
        tools: None,
        tools_list: <_>::default(),
        list_wait: Duration::ZERO,
        proposal_ttl: Duration::from_secs(60),
        destructive_approvals: 1,
        result_bytes_max: None,
    };
    let doors = DoorsConfig {
        legacy_sse: true,
        ..DoorsConfig::default()
    };
    let identity = IdentityConfig {
        topics: vec![topic],
        ..IdentityConfig::default()
    };
    Config {
        doors,
        limits: Arc::new(limits),
        identity: Arc::new(identity),
        ..Config::default()
    }
}

/// A registry with that configuration.
pub(crate) fn registry(limits: GatewayLimits) -> Arc<Registry> {
    let config = config(limits);
    let identities = Identities::local(local_user(&config.identity));
    registry_for(config, identities)
}

/// A registry with this configuration and these identities.
pub(crate) fn registry_for(config: Config, identities: Identities) -> Arc<Registry> {
    let audit = Recorder::open(config.audit.policy(), None, config.audit.files).unwrap();
    let standing = Standing {
        identities,
        sign_ins: <_>::default(),
        grants: Grants::default(),
    };
    let sealer = Sealer::new(&[7; 32], None);
    let accounts = Arc::new(oauth::ServerAccounts::in_memory());
    Registry::start(RegistryParts {
        config,
        standing,
        sealer,
        guard: None,
        journal: None,
        audit,
        accounts,
        branch: None,
    })
    .unwrap()
}

/// The local user of that registry.
pub(crate) fn user(registry: &Registry) -> Arc<Participant> {
    local_user(&registry.config().identity)
}
