//! A topic's state, and the queries about members, names and lists.

use std::sync::Arc;

use model::method::CALL_TOOL;
use model::{
    Capabilities, LinkId, ListKind, LogLevel, Narrowing, OperationId, ParticipantId, TopicName,
};

use crate::{
    Handles,
    admission::{Looker, admits, within},
    catalog::{Catalog, Route, UpstreamIndex},
    claims::Claims,
    config::{Limits, TopicConfig, TopicSettings, UpstreamNames},
    deadlines::Deadlines,
    departures::Departures,
    effect::Effects,
    event::{PublicTarget, TaskRight},
    interests::Interests,
    members::{Members, Seat},
    operations::Operations,
    proposals::Proposals,
    replay::{Cursor, Replay, Ring, RingLimits},
    request_log::RequestLog,
    roster::Person,
    tasks::{Tasks, has_right},
    view::Quarantined,
};

/// One topic: its members and their capabilities, open and parked operations, proposals and
/// subscriptions.
#[derive(Debug)]
pub struct Topic<H: Handles> {
    pub(crate) name: TopicName,
    pub(crate) limits: Limits,
    pub(crate) mirrors: bool,
    pub(crate) is_branch: bool,
    pub(crate) direct: u64,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) members: Members<H>,
    pub(crate) operations: Operations<H>,
    pub(crate) proposals: Proposals<H>,
    /// Participants that look at proposals.
    pub(crate) claims: Claims,
    /// Tasks at servers, of present and absent participants.
    pub(crate) tasks: Tasks<H>,
    pub(crate) interests: Interests,
    pub(crate) ring: Ring<H::Message>,
    pub(crate) log: RequestLog,
    /// The seat of each server that is in the topic, by its place in the configured order.
    pub(crate) present: Vec<Option<Seat>>,
    /// Operations whose callers are to be answered for now, by time.
    pub(crate) deadlines: Deadlines,
    /// Whether the gateway is about to stop: then cancelling withdraws no proposal.
    pub(crate) stopping: bool,
    /// The participants that have left lately.
    pub(crate) departures: Departures,
    /// The time of the step on the steady clock, milliseconds.
    pub(crate) now_ms: u64,
    /// The time of the step on the wall clock, milliseconds.
    pub(crate) wall_ms: u64,
    /// The effects of the step, so far.
    pub(crate) effects: Effects<H>,
}

/// A participant that is in the topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Present {
    /// Its id and capabilities.
    pub person: Person,
    /// Whether it is a server.
    pub serves: bool,
    /// The number of its links.
    pub links: usize,
}

/// A server that is configured.
#[derive(Debug, Clone)]
pub struct TopicServer<H: Handles> {
    /// Its name.
    pub id: ParticipantId,
    /// Its link.
    pub link: LinkId,
    /// The server itself.
    pub handle: H::Server,
}

impl<H: Handles> Topic<H> {
    /// An empty topic.
    pub fn new(config: TopicConfig) -> Self {
        let TopicConfig {
            name,
            upstreams,
            settings,
            epoch,
            direct,
            guests,
        } = config;
        let TopicSettings {
            limits,
            mirrors,
            kept,
            is_branch,
        } = settings;
        Self {
            name,
            limits,
            mirrors,
            is_branch,
            direct,
            catalog: Arc::new(Catalog::new(&upstreams, limits)),
            members: Members::new(guests),
            operations: Operations::default(),
            proposals: Proposals::new(guests),
            claims: Claims::new(guests),
            tasks: Tasks::new(guests),
            interests: Interests::default(),
            ring: Ring::new(epoch, kept),
            log: RequestLog::new(guests),
            present: vec![None; upstreams.len()],
            deadlines: Deadlines::default(),
            stopping: false,
            departures: Departures::new(guests),
            now_ms: 0,
            wall_ms: 0,
            effects: Effects::default(),
        }
    }

    /// Its name.
    pub fn name(&self) -> &TopicName {
        &self.name
    }

    /// The route of a target for this link, whether or not the link may use it.
    pub fn lookup<'a>(&'a self, link: LinkId, target: PublicTarget<'a>) -> Option<Route<'a>> {
        let link = self.members.link(link)?;
        self.catalog.resolve(link.overrides(), Some(target))
    }

    /// Whether this link could make this request now, with an access token that narrows its
    /// participant's capabilities to this; rate and limits aside. The query takes no token of the
    /// rate.
    pub fn admits(
        &self,
        link: LinkId,
        narrowing: Option<&Narrowing>,
        method: &str,
        target: Option<PublicTarget<'_>>,
    ) -> bool {
        let Some((link, member)) = self.members.linked(link) else {
            return false;
        };
        let Some(route) = self.catalog.resolve(link.overrides(), target) else {
            return false;
        };
        let context = route.ruled_context(target.and_then(PublicTarget::context));
        let granted = link.granted(member, narrowing);
        admits(&granted, method, context, route.upstream.as_str())
    }

    /// Whether this link could call this tool now, or propose the call, with an access token that
    /// narrows its participant's capabilities to this; rate and limits aside. The query takes no
    /// token of the rate.
    pub fn could_call(&self, link: LinkId, narrowing: Option<&Narrowing>, tool: &str) -> bool {
        let Some((link, member)) = self.members.linked(link) else {
            return false;
        };
        let target = Some(PublicTarget::Tool(tool));
        let Some(route) = self.catalog.resolve(link.overrides(), target) else {
            return false;
        };
        let looker = Looker {
            capabilities: &link.granted(member, narrowing),
            promotes: true,
        };
        let context = route.ruled_context(Some(tool)).unwrap_or_default();
        let access = looker.access(CALL_TOOL.name, context, route.upstream.as_str());
        access.is_some()
    }

    /// Whether the topic offers what a request of this method names at a server, by the server's
    /// own name.
    pub fn offers(&self, server: &ParticipantId, method: &str, own: &str) -> bool {
        self.catalog.offers(server, method, own)
    }

    /// The name of a server's tool by which capabilities and sets go
    /// ([`UpstreamNames::ruled_name`]).
    pub fn ruled_name(&self, server: &ParticipantId, own: &str) -> Option<String> {
        Some(self.catalog.names_of(server)?.ruled_name(own))
    }

    /// Name by which capabilities know a tool, from the public name that the configuration gives to
    /// it; `None` if it gives no such name.
    pub fn ruled_of_public(&self, server: &ParticipantId, public: &str) -> Option<String> {
        let names = self.catalog.names_of(server)?;
        let mut own_names = names.renamed.keys();
        let own = own_names.find(|own| names.public_name(ListKind::Tools, own) == public)?;
        Some(names.ruled_name(own))
    }

    /// Whether a participant may call a tool of a server, under the name by which a call of it was
    /// judged; or, of a `held` call, whether it may propose such a call. Rate and limits aside; the
    /// query takes no token.
    pub fn may_call(
        &self,
        participant: &ParticipantId,
        server: &ParticipantId,
        tool: &str,
        held: bool,
    ) -> bool {
        let right = TaskRight { server, tool, held };
        self.capabilities(participant)
            .is_some_and(|capabilities| has_right(capabilities, right))
    }

    /// The public spelling, for this link, of a URI that a server wrote; `None` if it stays as it
    /// is. Everything that this link gets about the URI must use the public spelling, so that the
    /// link can use it in requests.
    pub fn respelled_uri(&self, link: LinkId, server: &ParticipantId, own: &str) -> Option<String> {
        let index = self.catalog.index(server)?;
        self.catalog
            .respelled(self.members.link(link)?.overrides(), index, own)
    }

    /// The entries of a server's shared manifest that the topic offers to no caller, with the
    /// reasons.
    pub fn quarantined(&self, server: &ParticipantId) -> &[Quarantined] {
        let index = self.catalog.index(server);
        match index.and_then(|index| self.catalog.shared(index)) {
            Some(view) => &view.quarantined,
            None => &[],
        }
    }

    /// Whether a server is in the topic and does not run.
    pub fn is_away(&self, server: &ParticipantId) -> bool {
        let Some(seat) = self.members.server(server) else {
            return false;
        };
        self.members.get(seat).is_some_and(|member| member.away)
    }

    /// The configuration of a server's names, by its place.
    pub fn upstream(&self, index: UpstreamIndex) -> Option<&UpstreamNames> {
        self.catalog.names(index)
    }

    /// The servers that are in the topic, in configuration order.
    pub fn servers(&self) -> impl Iterator<Item = TopicServer<H>> {
        self.present
            .iter()
            .flatten()
            .filter_map(|seat| self.server_at(*seat))
    }

    /// A server that is in the topic.
    pub fn server(&self, id: &ParticipantId) -> Option<TopicServer<H>> {
        self.server_at(self.seat_at(self.catalog.index(id)?)?)
    }

    /// The seat of a configured server, if it is in the topic.
    pub(crate) fn seat_at(&self, index: UpstreamIndex) -> Option<Seat> {
        self.present.get(index.0).copied().flatten()
    }

    /// The seat of the gateway's own participant.
    pub(crate) fn gateway_seat(&self) -> Option<Seat> {
        self.seat_at(self.catalog.builtin()?)
    }

    pub(crate) fn seat_in(&mut self, index: UpstreamIndex, seat: Option<Seat>) {
        if let Some(place) = self.present.get_mut(index.0) {
            *place = seat;
        }
    }

    fn server_at(&self, seat: Seat) -> Option<TopicServer<H>> {
        let member = self.members.get(seat)?;
        let id = member.id.clone();
        let handle = member.server.clone()?;
        Some(TopicServer {
            id,
            link: *member.links.first()?,
            handle,
        })
    }

    /// All participants in the topic, in the order of their seats; no server that does not run.
    pub fn participants(&self) -> Vec<Present> {
        let seen = self.members.seen();
        seen.map(|member| Present {
            person: self.members.person(member),
            serves: !member.is_caller(),
            links: member.links.len(),
        })
        .collect()
    }

    /// The links of all callers, in no order, with their participants.
    pub fn links(&self) -> Vec<(LinkId, H::Link, ParticipantId)> {
        let mut links = Vec::new();
        for member in self.members.callers() {
            for link in &member.links {
                if let Some(handle) = self.handle(*link) {
                    links.push((*link, handle, member.id.clone()));
                }
            }
        }
        links
    }

    /// The sending sides of a caller's links, in no order.
    pub fn handles<'a>(&'a self, participant: &ParticipantId) -> impl Iterator<Item = &'a H::Link> {
        let links = self
            .members
            .of_id(participant)
            .map_or(&[][..], |member| &member.links);
        links
            .iter()
            .filter_map(|link| self.members.link(*link)?.handle.as_ref())
    }

    /// The sending side of a caller's link.
    pub fn handle(&self, link: LinkId) -> Option<H::Link> {
        self.members.link(link)?.handle.clone()
    }

    /// The capabilities of a participant, if it is in the topic.
    pub fn capabilities(&self, participant: &ParticipantId) -> Option<&Arc<Capabilities>> {
        self.members
            .of_id(participant)
            .map(|member| &member.capabilities)
    }

    /// The capabilities of a participant for an act with an access token that narrows them to this:
    /// those that it has in the topic, or these from `outside` if it is not there. Without either it
    /// has none.
    pub fn granted_to(
        &self,
        participant: &ParticipantId,
        outside: Option<&Arc<Capabilities>>,
        narrowing: Option<&Narrowing>,
    ) -> Arc<Capabilities> {
        let whole = self.capabilities(participant).or(outside).cloned();
        within(&whole.unwrap_or_default(), narrowing)
    }

    /// Whether a participant is in the topic.
    pub fn has_participant(&self, participant: &ParticipantId) -> bool {
        self.members.seat(participant).is_some()
    }

    /// The link of a participant that listens to the room; at most one does.
    pub fn listener(&self, participant: &ParticipantId) -> Option<LinkId> {
        self.members.of_id(participant)?.listener
    }

    /// The participant that a link belongs to.
    pub fn participant(&self, link: LinkId) -> Option<&ParticipantId> {
        self.members.of_link(link).map(|member| &member.id)
    }

    /// The number of participants in the topic, servers included.
    pub fn participants_len(&self) -> usize {
        self.members.len()
    }

    /// The number of links of guests.
    pub fn guests_len(&self) -> usize {
        self.members.guests_links()
    }

    /// The number of links.
    pub fn links_len(&self) -> usize {
        self.members.link_count()
    }

    /// The number of open operations, including questions, without parked ones.
    pub fn operations_len(&self) -> usize {
        self.operations.len()
    }

    /// The number of open calls that servers have and for whose answers callers wait, listen
    /// requests aside.
    pub fn calls_len(&self) -> usize {
        self.operations
            .which(|open| open.state.is_at_server() && !open.state.is_paused() && !open.listens())
            .len()
    }

    /// The number of parked operations.
    pub fn parked_len(&self) -> usize {
        self.operations.parked()
    }

    /// Whether a link has an open operation.
    pub fn is_busy(&self, link: LinkId) -> bool {
        self.members
            .link(link)
            .is_some_and(|link| !link.open.is_empty())
    }

    /// Whether a caller on this link waits for the answer of a request.
    pub fn is_awaited(&self, link: LinkId) -> bool {
        let Some(link) = self.members.link(link) else {
            return false;
        };
        let mut open = link.open.iter().filter_map(|id| self.operations.get(*id));
        open.any(|open| !open.state.is_ask() && !open.state.is_paused())
    }

    /// Whether a request that a link opened under this name waits for its answer.
    pub fn is_tagged(&self, link: LinkId, tag: &H::Tag) -> bool {
        self.tagged(link, tag).is_some()
    }

    /// Whether an operation is open.
    pub fn is_open(&self, operation: OperationId) -> bool {
        self.operations.contains(operation)
    }

    /// Whether the caller of an open call was answered for now with questions, and is not back.
    pub fn is_paused(&self, operation: OperationId) -> bool {
        self.operations
            .get(operation)
            .is_some_and(|open| open.state.is_paused())
    }

    /// An open call.
    pub fn call(&self, operation: OperationId) -> Option<H::Call> {
        self.operations.get(operation)?.handle.call().cloned()
    }

    /// Whether this link is subscribed to a resource of a server, itself or by a listen request.
    pub fn follows(&self, link: LinkId, server: &ParticipantId, own: &str) -> bool {
        self.interests
            .subscribers(server, own)
            .iter()
            .any(|one| one.link == link)
    }

    /// Whether a listen request of this link names a task.
    pub fn watches(&self, link: LinkId, task: &str) -> bool {
        self.interests
            .watchers(task)
            .iter()
            .any(|watcher| watcher.link == link)
    }

    /// Whether any listen request names a task.
    pub fn is_watched(&self, task: &str) -> bool {
        !self.interests.watchers(task).is_empty()
    }

    /// The level from which on a link wants log messages.
    pub fn level(&self, link: LinkId) -> Option<LogLevel> {
        self.members.link(link)?.level
    }

    /// The servers' questions that wait for this link's answer.
    pub fn questions(&self, link: LinkId) -> Vec<H::Question> {
        let Some(link) = self.members.link(link) else {
            return Vec::new();
        };
        let open = link.open.iter().filter_map(|id| self.operations.get(*id));
        open.filter_map(|open| open.handle.question().cloned())
            .collect()
    }

    /// The numbers of the room's messages that are kept.
    pub fn kept(&self) -> RingLimits {
        self.ring.kept()
    }

    /// The place of the next message that is published in the room.
    pub fn next_message(&self) -> Cursor {
        self.ring.next()
    }

    /// The place from which on a link may read the room's messages.
    pub fn readable_since(&self, link: LinkId) -> Option<Cursor> {
        self.members.link(link)?.holdings.as_ref()?.since
    }

    /// The room's messages since a place, as a participant that gets every message would have got
    /// them.
    pub fn messages(&self, participant: &ParticipantId, from: Cursor) -> Replay<H::Message> {
        let everything = crate::Listener {
            mode: model::DeliveryMode::All,
            echo: true,
        };
        // No link has this number: the reader's own messages are included anyway.
        let none = LinkId(u64::MAX);
        let reader = participant.as_str();
        self.ring.since(reader, Some(from), usize::MAX, |audience| {
            audience.includes(none, reader, everything)
        })
    }
}
