//! Members of a topic: participants in numbered seats, and their links.

use std::collections::{BTreeMap, HashMap as Map};
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};
use model::{
    Capabilities, DeliveryMode, LinkId, LogLevel, Narrowing, OperationId, ParticipantId, RateLimit,
};

use crate::{
    Cursor, Handles, Listener,
    bucket::Bucket,
    catalog::{Overrides, UpstreamIndex},
    event::Brake,
    interests::OwnResource,
    refusals::{self, Refused},
    roster::{Person, Roster},
};

/// A participant's seat. Kept while it is in the topic, used again afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Seat(usize);

/// One participant.
#[derive(Debug)]
pub(crate) struct Member<H: Handles> {
    pub(crate) id: ParticipantId,
    /// The server: it sends its lists, answers requests and asks questions. A caller has none: it
    /// opens requests and answers questions.
    pub(crate) server: Option<H::Server>,
    /// The server side of a participant that serves: a seat beside its own, which other
    /// participants do not see.
    pub(crate) hidden: bool,
    /// A server that does not run, which other participants do not see either.
    pub(crate) away: bool,
    pub(crate) capabilities: Arc<Capabilities>,
    pub(crate) bucket: Option<Bucket>,
    /// Unordered: no effect may depend on the order.
    pub(crate) links: Vec<LinkId>,
    /// The link that listens to the room; at most one does.
    pub(crate) listener: Option<LinkId>,
    /// The number of open operations on all of them.
    pub(crate) open: usize,
    /// Whether it shares its limits with all other guests.
    pub(crate) guest: bool,
}

impl<H: Handles> Member<H> {
    /// One without links.
    pub(crate) fn new(
        id: ParticipantId,
        server: Option<H::Server>,
        capabilities: Arc<Capabilities>,
    ) -> Self {
        Self {
            id,
            server,
            hidden: false,
            away: false,
            capabilities,
            bucket: None,
            links: Vec::new(),
            listener: None,
            open: 0,
            guest: false,
        }
    }

    /// Takes one token, if there is one. A member without a bucket has no limit.
    pub(crate) fn take_token(&mut self, now_ms: u64) -> Result<(), Refused> {
        match &mut self.bucket {
            Some(bucket) => bucket.take(now_ms).map_err(refusals::too_soon),
            None => Ok(()),
        }
    }

    /// Sets another limit; the same one leaves the bucket as it is.
    pub(crate) fn set_rate(&mut self, rate: Option<RateLimit>, now_ms: u64) {
        // A new bucket is full: with one, each new link would have its burst again.
        let newer = rate.map(|rate| Bucket::new(rate, now_ms));
        if newer.as_ref().map(Bucket::limit) != self.bucket.as_ref().map(Bucket::limit) {
            self.bucket = newer;
        }
    }

    pub(crate) fn is_caller(&self) -> bool {
        self.server.is_none()
    }

    /// Whether other participants see it in the topic.
    pub(crate) fn is_seen(&self) -> bool {
        !self.hidden && !self.away
    }
}

/// One link of a caller; of a server, its seat's link.
#[derive(Debug)]
pub(crate) struct Link<H: Handles> {
    pub(crate) seat: Seat,
    /// Its place among the member's links.
    place: usize,
    /// The sending side; a server's link has none.
    pub(crate) handle: Option<H::Link>,
    /// Requests that it opened and questions that wait for it; of a server's link, its questions.
    pub(crate) open: Vec<OperationId>,
    /// State that few links have.
    pub(crate) holdings: Option<Box<LinkHoldings>>,
    pub(crate) listener: Option<Listener>,
    pub(crate) level: Option<LogLevel>,
    /// Whether calls that may only be proposed are held as proposals.
    pub(crate) promotes: bool,
    /// Whether it takes notifications that belong to no request.
    pub(crate) notified: bool,
    /// Whether its caller is asked by answers for now.
    pub(crate) pauses: bool,
    /// The outcome of the latest narrowing of a request on this link. Nothing depends on it: it only
    /// saves the next request with the same scopes from narrowing the same capabilities again.
    narrowed: Option<Box<Narrowed>>,
}

/// The capabilities of a member within the scopes of an access token.
#[derive(Debug)]
struct Narrowed {
    /// The member's capabilities.
    whole: Arc<Capabilities>,
    /// The capabilities of the scopes.
    to: Arc<Capabilities>,
    granted: Arc<Capabilities>,
}

/// Sessions, lists and interests of one link's own.
#[derive(Debug, Default)]
pub(crate) struct LinkHoldings {
    /// Servers at which it has a session of its own.
    pub(crate) attached: Vec<UpstreamIndex>,
    /// Views that replace the shared lists.
    pub(crate) overrides: Overrides,
    /// Resources that it is subscribed to.
    pub(crate) subscriptions: Vec<OwnResource>,
    /// Its open listen requests.
    pub(crate) listens: Vec<OperationId>,
    /// The cursor from which on it may read the room's messages.
    pub(crate) since: Option<Cursor>,
    /// The servers whose apps it has read, the last one first.
    pub(crate) apps: Vec<UpstreamIndex>,
}

/// The most servers of whose apps one link's reading is remembered.
pub const APPS_PER_LINK_MAX: usize = 32;

impl LinkHoldings {
    /// Enters that the link reads an app of a server.
    pub(crate) fn read_app(&mut self, server: UpstreamIndex) {
        self.apps.retain(|other| *other != server);
        self.apps.insert(0, server);
        self.apps.truncate(APPS_PER_LINK_MAX);
    }
}

impl Narrowed {
    fn is_of<H: Handles>(&self, member: &Member<H>, narrowing: &Narrowing) -> bool {
        Arc::ptr_eq(&self.whole, &member.capabilities)
            && (Arc::ptr_eq(&self.to, &narrowing.to) || self.to == narrowing.to)
    }
}

impl<H: Handles> Link<H> {
    /// A link without open operations.
    pub(crate) fn new(seat: Seat, handle: Option<H::Link>) -> Self {
        Self {
            seat,
            place: 0,
            handle,
            open: Vec::new(),
            holdings: None,
            listener: None,
            level: None,
            promotes: false,
            notified: false,
            pauses: false,
            narrowed: None,
        }
    }

    /// Capabilities of the link's caller for a request: the member's, as far as the access token
    /// with which the request came is good for them.
    pub(crate) fn granted(
        &self,
        member: &Member<H>,
        narrowing: Option<&Narrowing>,
    ) -> Arc<Capabilities> {
        let Some(narrowing) = narrowing else {
            return Arc::clone(&member.capabilities);
        };
        match &self.narrowed {
            Some(latest) if latest.is_of(member, narrowing) => Arc::clone(&latest.granted),
            Some(_) | None => Arc::new(member.capabilities.within(&narrowing.to)),
        }
    }

    /// Keeps what [`Link::granted`] gives for a narrowing, for the requests that follow.
    pub(crate) fn keep_narrowed(&mut self, whole: &Arc<Capabilities>, to: &Arc<Capabilities>) {
        self.narrowed = Some(Box::new(Narrowed {
            whole: Arc::clone(whole),
            to: Arc::clone(to),
            granted: Arc::new(whole.within(to)),
        }));
    }

    /// Removes an open operation; the search begins with the youngest.
    fn forget(&mut self, operation: OperationId) -> bool {
        let Some(at) = self.open.iter().rposition(|open| *open == operation) else {
            return false;
        };
        self.open.swap_remove(at);
        true
    }

    pub(crate) fn overrides(&self) -> &Overrides {
        static NONE: Overrides = Overrides::new();
        match &self.holdings {
            Some(holdings) => &holdings.overrides,
            None => &NONE,
        }
    }

    /// Whether it has a session of its own at a server.
    pub(crate) fn is_attached(&self, index: UpstreamIndex) -> bool {
        self.holdings
            .as_ref()
            .is_some_and(|holdings| holdings.attached.contains(&index))
    }

    /// Enters that it has a session of its own at a server.
    pub(crate) fn attach(&mut self, index: UpstreamIndex) {
        if !self.is_attached(index) {
            self.holdings_mut().attached.push(index);
        }
    }

    pub(crate) fn holdings_mut(&mut self) -> &mut LinkHoldings {
        self.holdings.get_or_insert_default()
    }

    fn watches(&self) -> bool {
        self.listener
            .is_some_and(|listener| listener.mode == DeliveryMode::All)
    }
}

/// The account of a participant: its own, or the one of all guests.
pub(crate) fn account<'a>(id: &'a ParticipantId, guests: &'a str) -> &'a str {
    if is_guest(id, guests) {
        guests
    } else {
        id.as_str()
    }
}

/// Whether an id begins as those of guests do.
pub(crate) fn is_guest(id: &ParticipantId, guests: &str) -> bool {
    !guests.is_empty() && id.as_str().starts_with(guests)
}

/// The number of buckets of participants that have left, from which on the full ones are forgotten.
const WORN_MIN: usize = 256;

/// All members.
#[derive(Debug)]
pub(crate) struct Members<H: Handles> {
    seats: Vec<Option<Member<H>>>,
    free: Vec<Seat>,
    by_id: Map<ParticipantId, Seat>,
    /// The seats of the server sides of participants that serve.
    hidden: Map<ParticipantId, Seat>,
    links: HashMap<LinkId, Link<H>>,
    /// The number of links that get every message.
    watchers: usize,
    /// Buckets of participants that left before the bucket was full: rejoining does not reset a
    /// limit.
    worn: Map<ParticipantId, Bucket>,
    /// The number of these buckets at which the full ones are forgotten: twice as many as remained
    /// the last time.
    worn_max: usize,
    /// All members that others see.
    roster: Roster,
    /// The participants that are paused, present or not.
    brakes: BTreeMap<ParticipantId, Brake>,
    /// The beginning of guests' ids, and the numbers of their open operations and links.
    guests: &'static str,
    guests_open: usize,
    guests_links: usize,
}

impl<H: Handles> Members<H> {
    /// None. Ids that begin with `guests` are those of guests.
    pub(crate) fn new(guests: &'static str) -> Self {
        Self {
            seats: Vec::new(),
            free: Vec::new(),
            by_id: Map::new(),
            hidden: Map::new(),
            links: HashMap::new(),
            watchers: 0,
            worn: Map::new(),
            worn_max: WORN_MIN,
            roster: Roster::default(),
            brakes: BTreeMap::new(),
            guests,
            guests_open: 0,
            guests_links: 0,
        }
    }

    /// The number of links of guests.
    pub(crate) fn guests_links(&self) -> usize {
        self.guests_links
    }

    /// The number of operations that are open on the account of a member: of all guests together,
    /// if it is one.
    pub(crate) fn open_on_account(&self, member: &Member<H>) -> usize {
        if member.guest {
            self.guests_open
        } else {
            member.open
        }
    }

    /// The bucket of a newcomer: the one that it left with, or a full one.
    pub(crate) fn bucket(&mut self, id: &ParticipantId, rate: RateLimit, now_ms: u64) -> Bucket {
        if self.worn.len() >= self.worn_max {
            self.worn.retain(|_, bucket| !bucket.is_full(now_ms));
            self.worn_max = WORN_MIN.max(self.worn.len() * 2);
        }
        let fresh = Bucket::new(rate, now_ms);
        match self.worn.remove(id) {
            Some(worn) if worn.limit() == fresh.limit() => worn,
            // The tokens of another limit say nothing about this one.
            Some(_) | None => fresh,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(crate) fn watchers(&self) -> usize {
        self.watchers
    }

    pub(crate) fn link_count(&self) -> usize {
        self.links.len()
    }

    pub(crate) fn seat(&self, id: &ParticipantId) -> Option<Seat> {
        self.by_id.get(id).copied()
    }

    /// The seat under which a server serves: its own, or the hidden one beside it.
    pub(crate) fn server(&self, id: &ParticipantId) -> Option<Seat> {
        if let Some(seat) = self.seat(id)
            && let Some(member) = self.get(seat)
            && !member.is_caller()
        {
            return Some(seat);
        }
        self.hidden.get(id).copied()
    }

    pub(crate) fn get(&self, seat: Seat) -> Option<&Member<H>> {
        self.seats.get(seat.0)?.as_ref()
    }

    /// Mutable access, for all but what the roster depends on: see [`Members::set_capabilities`],
    /// [`Members::set_away`] and [`Members::set_brake`].
    pub(crate) fn get_mut(&mut self, seat: Seat) -> Option<&mut Member<H>> {
        self.seats.get_mut(seat.0)?.as_mut()
    }

    pub(crate) fn set_capabilities(&mut self, seat: Seat, capabilities: Arc<Capabilities>) {
        if let Some(member) = self.get_mut(seat) {
            member.capabilities = capabilities;
        }
        self.show(seat);
    }

    /// Narrows a member's capabilities for a request on one of its links, unless the request before
    /// had the same scopes.
    pub(crate) fn narrow(&mut self, link: LinkId, narrowing: Option<&Narrowing>) {
        let Some(narrowing) = narrowing else { return };
        let Some(link) = self.links.get_mut(&link) else {
            return;
        };
        let Some(member) = self.seats.get(link.seat.0).and_then(Option::as_ref) else {
            return;
        };
        if let Some(latest) = &link.narrowed
            && latest.is_of(member, narrowing)
        {
            return;
        }
        link.keep_narrowed(&member.capabilities, &narrowing.to);
    }

    pub(crate) fn set_away(&mut self, seat: Seat, away: bool) {
        if let Some(member) = self.get_mut(seat) {
            member.away = away;
        }
        self.show(seat);
    }

    /// Pauses a participant, in place of an earlier pause, or resumes it without a brake; it need not
    /// have a seat. Returns whether it was the other way before.
    pub(crate) fn set_brake(&mut self, participant: &ParticipantId, brake: Option<Brake>) -> bool {
        let is_braked = brake.is_some();
        let before = match brake {
            Some(brake) => self.brakes.insert(participant.clone(), brake),
            None => self.brakes.remove(participant),
        };
        let changes = before.is_some() != is_braked;
        if changes && let Some(seat) = self.seat(participant) {
            self.show(seat);
        }
        changes
    }

    /// The participants that are paused.
    pub(crate) fn brakes(&self) -> &BTreeMap<ParticipantId, Brake> {
        &self.brakes
    }

    /// Whether a participant is paused.
    pub(crate) fn is_braked(&self, participant: &ParticipantId) -> bool {
        !self.brakes.is_empty() && self.brakes.contains_key(participant)
    }

    /// A member as others see it.
    pub(crate) fn person(&self, member: &Member<H>) -> Person {
        Person {
            id: member.id.clone(),
            capabilities: Arc::clone(&member.capabilities),
            paused: self.is_braked(&member.id),
        }
    }

    /// Takes a member into the roster as others see it now, or out of it.
    fn show(&mut self, seat: Seat) {
        let Some(member) = self.seats.get(seat.0).and_then(Option::as_ref) else {
            return;
        };
        if member.hidden {
            return;
        }
        if member.away {
            self.roster.remove(&member.id)
        } else {
            self.roster.add(self.person(member))
        }
    }

    pub(crate) fn link(&self, id: LinkId) -> Option<&Link<H>> {
        self.links.get(&id)
    }

    pub(crate) fn link_mut(&mut self, id: LinkId) -> Option<&mut Link<H>> {
        self.links.get_mut(&id)
    }

    /// The member that a link belongs to.
    pub(crate) fn of_link(&self, link: LinkId) -> Option<&Member<H>> {
        self.get(self.link(link)?.seat)
    }

    /// A link with its member.
    pub(crate) fn linked(&self, link: LinkId) -> Option<(&Link<H>, &Member<H>)> {
        let link = self.link(link)?;
        Some((link, self.get(link.seat)?))
    }

    /// A participant, if it is in the topic under its own seat.
    pub(crate) fn of_id(&self, id: &ParticipantId) -> Option<&Member<H>> {
        self.get(self.seat(id)?)
    }

    /// Enters an operation as open on a link.
    pub(crate) fn begin(&mut self, link: LinkId, operation: OperationId) {
        let Some(link) = self.links.get_mut(&link) else {
            return;
        };
        link.open.push(operation);
        let seat = link.seat;
        if let Some(member) = self.get_mut(seat) {
            member.open += 1;
            if member.guest {
                self.guests_open += 1;
            }
        }
    }

    /// Removes an operation from its link.
    pub(crate) fn finish(&mut self, link: LinkId, operation: OperationId) {
        let Some(link) = self.links.get_mut(&link) else {
            return;
        };
        // A parked call has left its link before its end.
        if !link.forget(operation) {
            return;
        }
        let seat = link.seat;
        if let Some(member) = self.get_mut(seat) {
            member.open = member.open.saturating_sub(1);
            if member.guest {
                self.guests_open = self.guests_open.saturating_sub(1);
            }
        }
    }

    /// All members in the order of their seats, but for hidden ones.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Member<H>> {
        self.seats.iter().flatten().filter(|member| !member.hidden)
    }

    /// The members that other participants see.
    pub(crate) fn seen(&self) -> impl Iterator<Item = &Member<H>> {
        self.iter().filter(|member| member.is_seen())
    }

    /// The members that are callers.
    pub(crate) fn callers(&self) -> impl Iterator<Item = &Member<H>> {
        self.iter().filter(|member| member.is_caller())
    }

    /// Sessions, lists and interests of the links that have any, unordered: no effect may depend on
    /// the order.
    pub(crate) fn all_holdings_mut(&mut self) -> impl Iterator<Item = &mut LinkHoldings> {
        self.links
            .values_mut()
            .filter_map(|link| link.holdings.as_deref_mut())
    }

    /// Gives a newcomer a seat.
    pub(crate) fn sit(&mut self, member: Member<H>) -> Seat {
        let id = member.id.clone();
        let hidden = member.hidden;
        let guest = is_guest(&id, self.guests);
        let seat = self.free.pop().unwrap_or_else(|| {
            self.seats.push(None);
            Seat(self.seats.len() - 1)
        });
        if let Some(place) = self.seats.get_mut(seat.0) {
            *place = Some(Member { guest, ..member });
        }
        self.seats_of(hidden).insert(id, seat);
        self.show(seat);
        seat
    }

    /// Frees a seat.
    pub(crate) fn free(&mut self, seat: Seat) -> Option<Member<H>> {
        let mut member = self.seats.get_mut(seat.0)?.take()?;
        self.seats_of(member.hidden).remove(&member.id);
        if let Some(bucket) = member.bucket.take() {
            self.worn.insert(member.id.clone(), bucket);
        }
        self.free.push(seat);
        if !member.hidden {
            self.roster.remove(&member.id);
        }
        Some(member)
    }

    fn seats_of(&mut self, hidden: bool) -> &mut Map<ParticipantId, Seat> {
        if hidden {
            &mut self.hidden
        } else {
            &mut self.by_id
        }
    }

    /// Adds a link to a seated member.
    pub(crate) fn connect(&mut self, id: LinkId, mut link: Link<H>) {
        let Some(member) = self.get_mut(link.seat) else {
            return;
        };
        link.place = member.links.len();
        member.links.push(id);
        if link.listener.is_some() {
            member.listener = Some(id);
        }
        if member.guest {
            self.guests_links += 1;
        }
        self.watchers += usize::from(link.watches());
        self.links.insert(id, link);
    }

    /// Removes a link and takes it from its member.
    pub(crate) fn disconnect(&mut self, link: LinkId) -> Option<Link<H>> {
        let gone = self.links.remove(&link)?;
        self.watchers -= usize::from(gone.watches());
        let Some(member) = self.get_mut(gone.seat) else {
            return Some(gone);
        };
        let is_guest = member.guest;
        member.open = member.open.saturating_sub(gone.open.len());
        if member.listener == Some(link) {
            member.listener = None;
        }
        // The last link takes the place of the one that is gone.
        member.links.swap_remove(gone.place);
        if let Some(moved) = member.links.get(gone.place).copied()
            && let Some(moved) = self.links.get_mut(&moved)
        {
            moved.place = gone.place;
        }
        if is_guest {
            self.guests_links -= 1;
            self.guests_open = self.guests_open.saturating_sub(gone.open.len());
        }
        Some(gone)
    }

    /// All members that others see, as they see them now.
    pub(crate) fn roster(&self) -> Roster {
        self.roster.clone()
    }
}
