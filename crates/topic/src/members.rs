//! Owns who is in the topic: participants in numbered seats, and their links.
//! Must not know operations' fate or effects; it only keeps the books.

use std::{collections::HashMap, sync::Arc};

use model::{Capabilities, LinkId, OperationId, ParticipantId};

use crate::{
    catalog::{Overrides, UpstreamIndex},
    ear::Ear,
    event::Role,
    idmap::IdMap,
    rate::{Bucket, RateLimit},
};

/// A participant's seat. Kept while it is in the topic, used again afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Seat(u32);

/// One participant.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) id: ParticipantId,
    pub(crate) role: Role,
    /// What a participant serves: beside its own seat, and seen by nobody.
    pub(crate) hidden: bool,
    pub(crate) capabilities: Arc<Capabilities>,
    pub(crate) bucket: Option<Bucket>,
    /// In the order in which they came.
    pub(crate) links: Vec<LinkId>,
    /// How much is open on all of them.
    pub(crate) open: usize,
}

impl Member {
    /// Takes one token, or tells in how many milliseconds there will be one.
    pub(crate) fn take_token(&mut self, now_ms: u64) -> Result<(), u64> {
        self.bucket.as_mut().map_or(Ok(()), |bucket| bucket.take(now_ms))
    }

    /// Sets another limit; the same one leaves the bucket as it is.
    pub(crate) fn set_rate(&mut self, rate: Option<RateLimit>, now_ms: u64) {
        let newer = rate.map(|rate| Bucket::new(rate, now_ms));
        if newer.as_ref().map(Bucket::limit) != self.bucket.as_ref().map(Bucket::limit) {
            self.bucket = newer;
        }
    }
}

/// One link.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) seat: Seat,
    /// Requests that it opened and asks that wait for it.
    pub(crate) open: Vec<OperationId>,
    /// Upstreams at which it has a session of its own.
    pub(crate) attached: Vec<UpstreamIndex>,
    pub(crate) overrides: Overrides,
    /// What it hears of the room.
    pub(crate) ear: Option<Ear>,
    /// Whether what it may only propose is held as a proposal.
    pub(crate) promotes: bool,
}

impl Link {
    /// A link without anything open.
    pub(crate) fn new(seat: Seat, ear: Option<Ear>, promotes: bool) -> Self {
        let (open, attached, overrides) = <_>::default();
        Self { seat, open, attached, overrides, ear, promotes }
    }

    /// Strikes an operation off; the youngest are looked at first.
    fn forget(&mut self, operation: OperationId) -> bool {
        let at = self.open.iter().rposition(|open| *open == operation);
        at.map(|at| self.open.swap_remove(at)).is_some()
    }
}

/// From so many buckets of participants that have left on, those that are full again are forgotten.
const WORN_MAX: usize = 256;

/// Everybody in the topic.
#[derive(Debug, Default)]
pub(crate) struct Members {
    seats: Vec<Option<Member>>,
    free: Vec<u32>,
    by_id: HashMap<ParticipantId, Seat>,
    /// The seats of what participants serve.
    hidden: HashMap<ParticipantId, Seat>,
    links: IdMap<LinkId, Link>,
    /// How many links hear everything.
    watchers: usize,
    /// Buckets of those who left before they were full again: coming back is no way around a limit.
    worn: HashMap<ParticipantId, Bucket>,
}

impl Members {
    /// The bucket of a newcomer: the one that it left with, or a full one.
    pub(crate) fn bucket(&mut self, id: &ParticipantId, rate: RateLimit, now_ms: u64) -> Bucket {
        if self.worn.len() >= WORN_MAX {
            self.worn.retain(|_, bucket| !bucket.is_full(now_ms));
        }
        let fresh = Bucket::new(rate, now_ms);
        self.worn.remove(id).filter(|worn| worn.limit() == fresh.limit()).unwrap_or(fresh)
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

    /// The seat under which an upstream serves: its own, or the one beside it.
    pub(crate) fn server(&self, id: &ParticipantId) -> Option<Seat> {
        let own =
            || self.seat(id).filter(|seat| self.get(*seat).is_some_and(|own| own.role == Role::Upstream));
        self.hidden.get(id).copied().or_else(own)
    }

    pub(crate) fn get(&self, seat: Seat) -> Option<&Member> {
        self.seats.get(usize::try_from(seat.0).ok()?)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, seat: Seat) -> Option<&mut Member> {
        self.seats.get_mut(usize::try_from(seat.0).ok()?)?.as_mut()
    }

    pub(crate) fn link(&self, link: LinkId) -> Option<&Link> {
        self.links.get(&link)
    }

    pub(crate) fn link_mut(&mut self, link: LinkId) -> Option<&mut Link> {
        self.links.get_mut(&link)
    }

    /// The member that a link belongs to.
    pub(crate) fn of_link(&self, link: LinkId) -> Option<&Member> {
        self.get(self.link(link)?.seat)
    }

    /// Notes an operation as open on a link.
    pub(crate) fn begin(&mut self, link: LinkId, operation: OperationId) {
        let Some(own) = self.links.get_mut(&link) else { return };
        own.open.push(operation);
        let seat = own.seat;
        if let Some(member) = self.get_mut(seat) {
            member.open += 1;
        }
    }

    /// Strikes it off.
    pub(crate) fn finish(&mut self, link: LinkId, operation: OperationId) {
        let Some(own) = self.links.get_mut(&link) else { return };
        let (seat, gone) = (own.seat, own.forget(operation));
        if let Some(member) = self.get_mut(seat).filter(|_| gone) {
            member.open = member.open.saturating_sub(1);
        }
    }

    /// Everybody with a seat number, in seat order, but for hidden seats.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Seat, &Member)> {
        (0..)
            .map(Seat)
            .zip(&self.seats)
            .filter_map(|(seat, member)| Some((seat, member.as_ref().filter(|member| !member.hidden)?)))
    }

    /// Every link, in no order that may be told.
    pub(crate) fn links_mut(&mut self) -> impl Iterator<Item = (LinkId, &mut Link)> {
        self.links.iter_mut().map(|(id, link)| (*id, link))
    }

    /// Gives a newcomer a seat.
    pub(crate) fn sit(&mut self, member: Member) -> Seat {
        let (id, hidden) = (member.id.clone(), member.hidden);
        let number = match self.free.pop() {
            Some(number) => number,
            None => {
                self.seats.push(None);
                u32::try_from(self.seats.len() - 1).unwrap_or(u32::MAX)
            }
        };
        if let Some(place) = usize::try_from(number).ok().and_then(|at| self.seats.get_mut(at)) {
            *place = Some(member);
        }
        self.seats_of(hidden).insert(id, Seat(number));
        Seat(number)
    }

    /// Takes a seat back.
    pub(crate) fn stand(&mut self, seat: Seat) -> Option<Member> {
        let mut member = usize::try_from(seat.0).ok().and_then(|at| self.seats.get_mut(at))?.take()?;
        self.seats_of(member.hidden).remove(&member.id);
        let worn = member.bucket.take().map(|bucket| (member.id.clone(), bucket));
        self.worn.extend(worn);
        self.free.push(seat.0);
        Some(member)
    }

    fn seats_of(&mut self, hidden: bool) -> &mut HashMap<ParticipantId, Seat> {
        if hidden { &mut self.hidden } else { &mut self.by_id }
    }

    /// Adds a link to a seated member.
    pub(crate) fn connect(&mut self, id: LinkId, link: Link) {
        if let Some(member) = self.get_mut(link.seat) {
            member.links.push(id);
            self.watchers += usize::from(link.ear == Some(Ear::All));
            self.links.insert(id, link);
        }
    }

    /// The one link of a member that listens to the room.
    pub(crate) fn listener(&self, member: &Member) -> Option<LinkId> {
        member.links.iter().copied().find(|link| self.link(*link).is_some_and(|own| own.ear.is_some()))
    }

    /// Removes a link from the books and from its member.
    pub(crate) fn disconnect(&mut self, link: LinkId) -> Option<Link> {
        let gone = self.links.remove(&link)?;
        self.watchers -= usize::from(gone.ear == Some(Ear::All));
        if let Some(member) = self.get_mut(gone.seat) {
            member.links.retain(|other| *other != link);
            member.open = member.open.saturating_sub(gone.open.len());
        }
        Some(gone)
    }
}
