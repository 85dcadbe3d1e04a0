//! A topic and a proposal for the tests of this crate.

use std::sync::Arc;
use std::time::Duration;

use auth::Sealer;
use model::method::CALL_TOOL;
use model::{Digest, OperationId, TopicName};
use topic::section::{Access, GUEST_RATE, McpCalls, TopicLimits, TopicSection};

use crate::context::Context;
use crate::dispatch::Settings;
use crate::proposals::kept::OpenedProposal;

/// The operation of [`opened`].
pub(crate) const OPENED: OperationId = OperationId(7);

/// A call of the tool `pay` of `bank`, as `scout` has proposed it in the topic `main`.
pub(crate) fn opened() -> OpenedProposal {
    OpenedProposal {
        id: OPENED.to_string(),
        topic: "main".into(),
        by: "scout".into(),
        to: vec!["bank".into()],
        method: CALL_TOOL.name.into(),
        context: Some("pay".into()),
        envelope: "p1".into(),
        era: None,
        params: None,
        tool: None,
        digest: Digest([1; 32]).to_string(),
        held: false,
        door: None,
        approvals: None,
        amendments: 0,
        plan: None,
        at_ms: 1,
        expires_ms: 300_001,
    }
}

/// Settings of the topic `main`, which has no servers.
pub(crate) fn settings() -> Settings {
    let topic = TopicSection {
        name: TopicName::new("main").unwrap(),
        access: Access::Restricted,
        anonymous: None,
        anonymous_rate: GUEST_RATE,
        history: 100,
        servers: Vec::new(),
        mcp_calls: McpCalls::None,
        builtin: Vec::new(),
        tools: None,
        tools_list: <_>::default(),
        list_wait: Duration::ZERO,
        proposal_ttl: Duration::from_secs(600),
        destructive_approvals: 1,
        result_bytes_max: None,
    };
    let limits = TopicLimits {
        away: Duration::ZERO,
        hold: Duration::ZERO,
        ..TopicLimits::default()
    };
    Settings {
        topic,
        limits,
        is_branch: false,
    }
}

/// A context that keeps nothing.
pub(crate) fn context() -> Arc<Context> {
    Arc::new(Context::new(
        Sealer::new(&[7; 32], None),
        Arc::default(),
        Arc::new(oauth::ServerAccounts::in_memory()),
    ))
}
