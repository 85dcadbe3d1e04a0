//! Configuration of a topic: its name, its servers in order, and its limits.

use std::{collections::BTreeMap, sync::Arc};

use model::{ListKind, NameFilter, ParticipantId, TopicName};

use crate::{RingLimits, names::public_name};

/// Time that a call waits for a caller that was answered for now with questions, milliseconds.
pub const PAUSE_MS: u64 = 10 * 60 * 1000;
/// Time that further questions about a call are gathered before its caller is answered for now,
/// milliseconds: a server that asks several things at once sends them one by one.
pub const GATHER_MS: u64 = 20;
/// The most servers of one topic.
pub const UPSTREAMS_MAX: usize = 1000;

/// The own name of the tool by which a caller gets an account at a server where each caller has
/// one. The server's own tool of this name takes its place.
pub const AUTHORIZE: &str = "authorize";

/// The public naming of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamNames {
    /// The server as a participant, under its configured name.
    pub id: ParticipantId,
    /// The beginning of its public names, before `_`. With an empty prefix the server's own names
    /// are public.
    pub prefix: String,
    /// The gateway's own participant: its names win over all others, and it never gets a target
    /// that no server lists.
    pub builtin: bool,
    /// Whether this is a participant that serves, and also joins and leaves as a caller. Its server
    /// side has a seat of its own, which other participants do not see.
    pub serves: bool,
    /// Whether each caller has lists of its own, which may not be known yet: then names under the
    /// prefix that are not listed lead to the server, too.
    pub own_lists: bool,
    /// Names that the configuration gives to tools in place of the server's own, by these: the
    /// prefix stands before them.
    pub renamed: Arc<BTreeMap<Arc<str>, Arc<str>>>,
    /// The tools that the topic offers, by their [ruled names](UpstreamNames::ruled_name); `None`
    /// if all.
    pub offered: Option<Arc<NameFilter>>,
}

impl UpstreamNames {
    /// A server with this prefix.
    pub fn new(id: ParticipantId, prefix: impl Into<String>) -> Self {
        Self {
            id,
            prefix: prefix.into(),
            builtin: false,
            serves: false,
            own_lists: false,
            renamed: Arc::default(),
            offered: None,
        }
    }

    /// A participant that serves, with this prefix.
    pub fn serving(id: ParticipantId, prefix: impl Into<String>) -> Self {
        Self {
            serves: true,
            ..Self::new(id, prefix)
        }
    }

    /// The gateway's own participant, `portmoot`, with its own names.
    pub fn gateway() -> Self {
        Self {
            builtin: true,
            ..Self::new(ParticipantId::gateway(), "")
        }
    }

    /// The name of an entry of a list before it has the prefix.
    pub(crate) fn name<'a>(&'a self, list: ListKind, own: &'a str) -> &'a str {
        if list != ListKind::Tools {
            return own;
        }
        match self.renamed.get(own) {
            Some(name) => name,
            None => own,
        }
    }

    /// Whether the configuration gives an entry of a list another name.
    pub(crate) fn renames(&self, list: ListKind, own: &str) -> bool {
        list == ListKind::Tools && self.renamed.contains_key(own)
    }

    /// The server's own name of the entry that has this name before the prefix.
    pub(crate) fn original<'a>(&'a self, list: ListKind, name: &'a str) -> &'a str {
        if list != ListKind::Tools {
            return name;
        }
        let mut renamed = self.renamed.iter();
        match renamed.find(|(_, given)| ***given == *name) {
            Some((own, _)) => own,
            None => name,
        }
    }

    /// The name by which capabilities, sets and the filter of a topic go: the server's own one
    /// behind the prefix ([`public_name`]), whatever name the configuration gives it.
    #[must_use]
    pub fn ruled_name(&self, own: &str) -> String {
        public_name(&self.prefix, own)
    }

    /// Whether the topic offers an entry of a list.
    #[must_use]
    pub fn offers(&self, list: ListKind, own: &str) -> bool {
        if list != ListKind::Tools {
            return true;
        }
        match &self.offered {
            Some(offered) => offered.admits(&self.ruled_name(own)),
            None => true,
        }
    }

    /// The public name of a server's tool or prompt ([`public_name`]), with the name that the
    /// configuration gives it.
    pub fn public_name(&self, list: ListKind, own: &str) -> String {
        public_name(&self.prefix, self.name(list, own))
    }
}

/// The configuration of a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicConfig {
    /// Its name.
    pub name: TopicName,
    /// Its servers, in configuration order; the topic ignores all after [`UPSTREAMS_MAX`].
    /// [`check_prefixes`](crate::check_prefixes) has accepted them.
    pub upstreams: Vec<UpstreamNames>,
    /// Its settings.
    pub settings: TopicSettings,
    /// The epoch of its messages: another number for each process.
    pub epoch: u64,
    /// The upper half of the ids of envelopes that the gateway sends to one participant alone.
    /// Answers to these are private.
    pub direct: u64,
    /// The beginning of the ids of guests, who have the limits of one participant together. If it
    /// is empty, there are none.
    pub guests: &'static str,
}

impl TopicConfig {
    /// A topic with the usual limits.
    pub fn new(name: TopicName, upstreams: Vec<UpstreamNames>) -> Self {
        Self {
            name,
            upstreams,
            settings: TopicSettings::default(),
            epoch: 0,
            direct: 0,
            guests: "",
        }
    }
}

/// The settings of a topic, which another configuration changes while it is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopicSettings {
    /// Its limits. What is beyond a smaller one already stays until it ends.
    pub limits: Limits,
    /// Whether listeners that get every message also get MCP clients' calls.
    pub mirrors: bool,
    /// The number of its messages that are kept.
    pub kept: RingLimits,
    /// Whether it is a branch: another process has its proposals and its room, so that it carries out
    /// what needs neither, and holds nothing.
    pub is_branch: bool,
}

impl Default for TopicSettings {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            mirrors: true,
            kept: RingLimits::default(),
            is_branch: false,
        }
    }
}

/// The limits of one topic. The topic refuses or quarantines everything beyond them, and drops
/// nothing silently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Participants at once, servers included.
    pub participants_max: usize,
    /// Links of one participant at once.
    pub links_per_participant_max: usize,
    /// Open operations of the topic, questions included.
    pub operations_max: usize,
    /// Open operations of one link: those that it opened and the questions that wait for its
    /// answer.
    pub operations_per_link_max: usize,
    /// Open operations of one participant, on all its links together; of all guests together as
    /// well.
    pub operations_per_participant_max: usize,
    /// Questions of servers that wait for the answer of one link.
    pub asks_per_link_max: usize,
    /// Questions of one server that wait for callers' answers.
    pub asks_per_server_max: usize,
    /// Questions of one server that wait for one participant, on all its links together.
    pub asks_per_server_and_participant_max: usize,
    /// Times that one call is answered for now with questions.
    pub rounds_max: u32,
    /// Time that questions are gathered before a caller is answered for now with them,
    /// milliseconds.
    pub gather_ms: u64,
    /// Time that a call that was answered for now waits for its caller, milliseconds.
    pub pause_ms: u64,
    /// Time that a participant that has left counts as away for a moment, milliseconds: what it is
    /// to carry out is not approved meanwhile, and stays pending.
    pub away_ms: u64,
    /// Proposals of the topic that are not over; each may have one parked call.
    pub proposals_max: usize,
    /// Proposals of one participant that are not over; of all guests together as well.
    ///
    /// An agent with others below it makes that many calls in parallel. Where it may only propose, each
    /// of them is a proposal, and one that is refused fails its work. Against a flood a reviewer pauses
    /// its proposer, and approvals in a hurry teach no rule.
    pub proposals_per_participant_max: usize,
    /// Bytes of the contents of these proposals.
    pub proposal_bytes_max: usize,
    /// Bytes of the contents of one participant's proposals; of all guests' together as well.
    pub proposal_bytes_per_participant_max: usize,
    /// Entries of one list of one server.
    pub items_per_list_max: usize,
    /// Resource templates of one server.
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
            asks_per_server_and_participant_max: 64,
            rounds_max: 64,
            gather_ms: GATHER_MS,
            pause_ms: PAUSE_MS,
            away_ms: 0,
            proposals_max: 10_000,
            proposals_per_participant_max: 256,
            proposal_bytes_max: 64 << 20,
            proposal_bytes_per_participant_max: 16 << 20,
            items_per_list_max: 10_000,
            templates_max: 256,
            name_bytes_max: 512,
            uri_bytes_max: 8_192,
        }
    }
}
