//! Owns what configuration fixes for a topic: its name, its upstreams in order, and its limits.
//! Must not know the configuration's files.

use model::{ParticipantId, TopicName};

use crate::Kept;

/// The most upstreams of one topic.
pub const UPSTREAMS_MAX: usize = 1000;

/// How one upstream's names become public.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamNames {
    /// The upstream as a participant, under its configured name.
    pub id: ParticipantId,
    /// What its public names begin with, before `_`; empty gives its own names.
    pub prefix: String,
    /// The gateway's own participant: its names are taken first, and what nobody lists is never its own.
    pub builtin: bool,
    /// A participant that comes and goes as a caller too: what it serves has a seat of its own, which nobody sees.
    pub serves: bool,
}

impl UpstreamNames {
    /// An upstream with this prefix.
    pub fn new(id: ParticipantId, prefix: impl Into<String>) -> Self {
        Self { id, prefix: prefix.into(), builtin: false, serves: false }
    }

    /// A participant that serves, with this prefix.
    pub fn serving(id: ParticipantId, prefix: impl Into<String>) -> Self {
        Self { id, prefix: prefix.into(), builtin: false, serves: true }
    }

    /// The gateway's own participant, `portmoot`, with its own names.
    pub fn gateway() -> Self {
        Self { id: ParticipantId::gateway(), prefix: String::new(), builtin: true, serves: false }
    }
}

/// What a topic is made with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicConfig {
    /// Its name.
    pub name: TopicName,
    /// Its upstreams, in configuration order; at most [`UPSTREAMS_MAX`], the rest is left out. Whoever
    /// configures has asked [`check_prefixes`](crate::check_prefixes) first.
    pub upstreams: Vec<UpstreamNames>,
    /// Its limits.
    pub limits: Limits,
    /// Whether watchers are shown MCP clients' calls.
    pub mirrors: bool,
    /// The epoch of its messages: another number for each process.
    pub epoch: u64,
    /// The upper half of the ids of envelopes that the gateway sends to one participant alone. Answers to these are private.
    pub direct: u64,
    /// How many of its messages are kept.
    pub kept: Kept,
}

impl TopicConfig {
    /// A topic with the usual limits.
    pub fn new(name: TopicName, upstreams: Vec<UpstreamNames>) -> Self {
        let (limits, kept) = <_>::default();
        Self { name, upstreams, limits, mirrors: true, epoch: 0, direct: 0, kept }
    }
}

/// The limits of one topic. What goes beyond is refused or quarantined, never dropped silently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Participants at once, upstreams included.
    pub participants_max: usize,
    /// Links of one participant at once.
    pub links_per_participant_max: usize,
    /// Open operations of the topic, asks included.
    pub operations_max: usize,
    /// Open operations of one link: those that it opened and the asks that wait for its answer.
    pub operations_per_link_max: usize,
    /// The same of one participant, on all its links together; what goes beyond is no request that is taken.
    pub operations_per_participant_max: usize,
    /// Questions of servers that wait for the answer of one link.
    pub asks_per_link_max: usize,
    /// Questions of one server that wait for callers' answers.
    pub asks_per_server_max: usize,
    /// Proposals of the topic that are not over; each may have one parked call.
    pub proposals_max: usize,
    /// The same of one participant.
    pub proposals_per_participant_max: usize,
    /// Entries of one list of one upstream.
    pub items_per_list_max: usize,
    /// Resource templates of one upstream.
    pub templates_max: usize,
    /// Bytes of one tool's or prompt's own name.
    pub name_bytes_max: usize,
    /// Bytes of one URI or URI template.
    pub uri_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            participants_max: 10_000,
            links_per_participant_max: 20_000,
            operations_max: 100_000,
            operations_per_link_max: 1_024,
            operations_per_participant_max: 4_096,
            asks_per_link_max: 64,
            asks_per_server_max: 256,
            proposals_max: 10_000,
            proposals_per_participant_max: 256,
            items_per_list_max: 10_000,
            templates_max: 256,
            name_bytes_max: 512,
            uri_bytes_max: 8_192,
        }
    }
}
