//! Sections of the configuration about topics, as values: `[topics.NAME]`, `[sets.NAME]`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use model::{Capabilities, NameFilter, NamePattern, ParticipantId, RateLimit, TopicName};

/// Rate limit of one guest, unless the topic sets another.
pub const GUEST_RATE: RateLimit = RateLimit {
    per_minute: 600,
    burst: 100,
};

/// A topic as it is configured.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicSection {
    /// Its name.
    pub name: TopicName,
    /// The participants that may enter.
    pub access: Access,
    /// The capabilities of guests, which have no token; `None` admits no guests.
    pub anonymous: Option<Arc<Capabilities>>,
    /// The rate limit of one guest.
    pub anonymous_rate: RateLimit,
    /// Envelopes kept for late joiners; 0 is none.
    pub history: usize,
    /// The servers that take part, `*` already resolved, in the order of the configuration.
    pub servers: Vec<ParticipantId>,
    /// View of MCP clients' calls that watchers get.
    pub mcp_calls: McpCalls,
    /// Built-in tools that lists show.
    pub builtin: Vec<BuiltIn>,
    /// The tools of servers that it offers, by their own names behind their prefixes; `None` if
    /// all.
    pub tools: Option<Arc<NameFilter>>,
    /// Content of lists of tools.
    pub tools_list: ToolsList,
    /// Time that a first list waits for servers that are still starting.
    pub list_wait: Duration,
    /// Time that a proposal waits for a decision.
    pub proposal_ttl: Duration,
    /// The number of participants that must approve a proposed call of a tool that does not say of
    /// itself that it destroys nothing, unless the server's configuration says another.
    pub destructive_approvals: usize,
    /// Most bytes of a tool's result that a participant without a limit of its own gets at once;
    /// `None` limits none.
    pub result_bytes_max: Option<usize>,
}

/// The participants that may enter a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// Every known participant.
    Public,
    /// Participants that list it among their topics.
    #[default]
    Restricted,
    /// Participants that list it among their topics. For all others it does not exist.
    Private,
}

/// View of an MCP client's call that watchers of a topic get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum McpCalls {
    /// Nothing.
    None,
    /// Kind, from, to and verdict.
    #[default]
    Kinds,
    /// The payload too.
    Full,
}

/// Content of lists of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolsList {
    /// Every tool that the caller may use.
    #[default]
    Full,
    /// Only the tools by which a caller finds and calls the others.
    Search,
}

/// Built-in tools of the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuiltIn {
    /// Show and decide proposals.
    Proposals,
    /// Send and read messages of the room, and list participants.
    Room,
    /// List, describe and call every tool.
    Proxy,
    /// Find tools by words.
    SearchTools,
}

/// Patterns of tools by the name of their set. They are compared with the servers' own names behind
/// their prefixes.
pub type Sets = BTreeMap<String, Vec<NamePattern>>;

/// Limits of a topic, its calls and its room. A name ends with its unit, or with `max` after its
/// unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopicLimits {
    /// Participants in one topic.
    pub participants_max: usize,
    /// Open calls of one participant.
    pub participant_calls_max: usize,
    /// One MCPx envelope, bytes.
    pub envelope_bytes_max: usize,
    /// Bytes of the open proposals of one topic.
    pub proposal_bytes_max: usize,
    /// The share of one participant.
    pub participant_proposal_bytes_max: usize,
    /// Time that the tools of a participant that serves stay listed after it has left.
    pub away: Duration,
    /// Interval of keep-alives on a silent stream or socket.
    pub keep_alive: Duration,
    /// Time that a call that may only be proposed is held before its caller gets an interim answer.
    pub hold: Duration,
    /// Time that a call of a modern client that was answered with questions waits for the client to
    /// come back with the answers.
    pub pause: Duration,
}

/// [`TopicLimits::proposal_bytes_max`] unless it is configured. A participant has a quarter of it.
const PROPOSAL_BYTES_MAX: usize = 64 << 20;

impl Default for TopicLimits {
    fn default() -> Self {
        Self {
            participants_max: 10_000,
            participant_calls_max: 1_024,
            envelope_bytes_max: 1 << 20,
            proposal_bytes_max: PROPOSAL_BYTES_MAX,
            participant_proposal_bytes_max: PROPOSAL_BYTES_MAX / 4,
            away: Duration::from_secs(60),
            keep_alive: Duration::from_secs(15),
            // Many clients give up after a minute.
            hold: Duration::from_secs(50),
            pause: Duration::from_secs(600),
        }
    }
}
