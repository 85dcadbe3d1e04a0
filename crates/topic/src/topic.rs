//! Owns a topic's state and the questions that can be asked of it.
//! Must not know how a step changes it (see `step` and the files it names).

use std::sync::Arc;

use model::{Capabilities, LinkId, Operation, OperationId, OperationState, ParticipantId, TopicName};

use crate::{
    admission::{Verdict, judge, proposes},
    catalog::{Catalog, Route, UpstreamIndex},
    config::{Limits, TopicConfig, UpstreamNames},
    event::{Role, Target},
    manifest::ListKind,
    members::{Members, Seat},
    operations::Operations,
    proposals::Proposals,
    view::Quarantined,
};

/// One topic: who is in it, what they may do, what is open.
#[derive(Debug)]
pub struct Topic {
    pub(crate) name: TopicName,
    pub(crate) limits: Limits,
    pub(crate) catalog: Catalog,
    pub(crate) members: Members,
    pub(crate) operations: Operations,
    pub(crate) proposals: Proposals,
    /// The seat of each upstream that is in the topic, by its place in the configured order.
    pub(crate) present: Vec<Option<Seat>>,
}

/// Somebody who is in the topic.
#[derive(Debug, Clone, Copy)]
pub struct Present<'a> {
    /// Who.
    pub id: &'a ParticipantId,
    /// On which side.
    pub role: Role,
    /// What it may do.
    pub capabilities: &'a Arc<Capabilities>,
    /// Its links, in the order in which they came.
    pub links: &'a [LinkId],
}

impl Topic {
    /// An empty topic.
    pub fn new(config: TopicConfig) -> Self {
        Self {
            name: config.name,
            limits: config.limits,
            catalog: Catalog::new(&config.upstreams, config.limits),
            members: Members::default(),
            operations: Operations::default(),
            proposals: Proposals::default(),
            present: vec![None; config.upstreams.len()],
        }
    }

    /// Its name.
    pub fn name(&self) -> &TopicName {
        &self.name
    }

    /// Whether anybody hears everything that is said here ([`crate::Ear::All`]).
    pub fn is_watched(&self) -> bool {
        self.members.watchers() > 0
    }

    /// Where a target leads for this link, whether or not the link may go there.
    pub fn lookup<'a>(&'a self, link: LinkId, target: Target<'a>) -> Option<Route<'a>> {
        let link = self.members.link(link)?;
        self.catalog.resolve(&link.overrides, Some(target))
    }

    /// Whether this link may act on an entry of a list, or have that held as a proposal, and so may see it: it
    /// leads somewhere and is admitted there. `public` is the public name, URI or URI template.
    pub fn visible(&self, link: LinkId, list: ListKind, public: &str) -> bool {
        let target = match list {
            ListKind::Tools => Target::Tool(public),
            ListKind::Prompts => Target::Prompt(public),
            ListKind::Resources => Target::Uri(public),
            ListKind::Templates => {
                return self.list(link, list).iter().any(|listing| listing.public == public);
            }
        };
        let Some(member) = self.members.of_link(link) else { return false };
        self.lookup(link, target).is_some_and(|route| {
            let (granted, method, upstream) = (&member.capabilities, list.method(), route.upstream.as_str());
            let promotes = self.promotes(link) && Some(route.index) != self.catalog.builtin();
            judge(granted, method, Some(public), upstream) == Verdict::Admit
                || promotes && proposes(granted, method, Some(public), upstream)
        })
    }

    /// Whether this link could make this request now; rate and limits aside. Nothing is counted.
    pub fn admits(&self, link: LinkId, method: &str, target: Option<Target<'_>>) -> bool {
        let (Some(own), Some(member)) = (self.members.link(link), self.members.of_link(link)) else {
            return false;
        };
        self.catalog.resolve(&own.overrides, target).is_some_and(|route| {
            let context = target.and_then(Target::context);
            judge(&member.capabilities, method, context, route.upstream.as_str()) == Verdict::Admit
        })
    }

    /// Whether a participant may call a tool of an upstream, named as it was when a call of it was judged; or, of a `held`
    /// call, have it held as a proposal. Rate and limits aside; nothing is counted.
    pub fn may_call(
        &self,
        participant: &ParticipantId,
        upstream: &ParticipantId,
        tool: &str,
        held: bool,
    ) -> bool {
        self.capabilities(participant).is_some_and(|granted| {
            let (method, tool, at) = ("tools/call", Some(tool), upstream.as_str());
            judge(granted, method, tool, at) == Verdict::Admit || held && proposes(granted, method, tool, at)
        })
    }

    /// The public spelling, for this link, of a URI that an upstream wrote; `None` if it stays as it is.
    /// What is told to this link about the URI must use it, so that it leads back.
    pub fn respelled_uri(&self, link: LinkId, upstream: &ParticipantId, own: &str) -> Option<String> {
        let index = self.catalog.index(upstream)?;
        self.catalog.respelled(&self.members.link(link)?.overrides, index, own)
    }

    /// The entries of an upstream's shared manifest that are offered to nobody, with the reasons.
    pub fn quarantined(&self, upstream: &ParticipantId) -> &[Quarantined] {
        let view = self.catalog.index(upstream).and_then(|index| self.catalog.shared(index));
        view.map_or(&[], |view| &view.quarantined)
    }

    /// The configuration of an upstream, by its place.
    pub fn upstream(&self, index: UpstreamIndex) -> Option<&UpstreamNames> {
        self.catalog.names(index)
    }

    /// An upstream's place in the configured order.
    pub fn upstream_index(&self, upstream: &ParticipantId) -> Option<UpstreamIndex> {
        self.catalog.index(upstream)
    }

    /// Whether this link hears an envelope of this kind to these addressees; see [`Ear::hears`](crate::Ear::hears). A link
    /// without an ear hears nothing.
    pub fn hears(&self, link: LinkId, to: &[&str], kind: &str) -> bool {
        let (Some(own), Some(member)) = (self.members.link(link), self.members.of_link(link)) else {
            return false;
        };
        own.ear.is_some_and(|ear| ear.hears(member.id.as_str(), to, kind))
    }

    /// Whether what this link may only propose is held as a proposal.
    pub fn promotes(&self, link: LinkId) -> bool {
        self.members.link(link).is_some_and(|own| own.promotes)
    }

    /// Everybody in the topic, in the order of their seats.
    pub fn participants(&self) -> impl Iterator<Item = Present<'_>> {
        self.members.iter().map(|(_, member)| Present {
            id: &member.id,
            role: member.role,
            capabilities: &member.capabilities,
            links: &member.links,
        })
    }

    /// What a participant may do, if it is in the topic.
    pub fn capabilities(&self, participant: &ParticipantId) -> Option<&Arc<Capabilities>> {
        let member = self.members.get(self.members.seat(participant)?)?;
        Some(&member.capabilities)
    }

    /// Whether a participant is in the topic.
    pub fn has_participant(&self, participant: &ParticipantId) -> bool {
        self.members.seat(participant).is_some()
    }

    /// A participant's links, in the order in which they came.
    pub fn links(&self, participant: &ParticipantId) -> &[LinkId] {
        let member = self.members.seat(participant).and_then(|seat| self.members.get(seat));
        member.map_or(&[], |member| &member.links)
    }

    /// The one link of a participant that listens to the room.
    pub fn listener(&self, participant: &ParticipantId) -> Option<LinkId> {
        self.members.listener(self.members.get(self.members.seat(participant)?)?)
    }

    /// Whose link this is.
    pub fn participant(&self, link: LinkId) -> Option<&ParticipantId> {
        self.members.of_link(link).map(|member| &member.id)
    }

    /// How many participants are in the topic, upstreams included.
    pub fn participants_len(&self) -> usize {
        self.members.len()
    }

    /// Everybody in the topic: who, with how many links, on which side, and with what; in the order of their seats.
    pub fn everybody(&self) -> impl Iterator<Item = (&ParticipantId, usize, Role, &Arc<Capabilities>)> {
        self.members
            .iter()
            .map(|(_, member)| (&member.id, member.links.len(), member.role, &member.capabilities))
    }

    /// How many links there are.
    pub fn links_len(&self) -> usize {
        self.members.link_count()
    }

    /// How many operations are open, asks included.
    pub fn operations_len(&self) -> usize {
        self.operations.len()
    }

    /// An open operation; nothing is kept of one that is over.
    pub fn operation(&self, id: OperationId) -> Option<Operation> {
        let open = self.operations.get(id)?;
        Some(Operation { id, link: open.link, state: OperationState::Open })
    }
}
