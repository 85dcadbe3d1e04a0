//! Writer of a room: one task that takes the queued events and writes each batch to all members.
//!
//! It owns the list of attached members, in the order of the queue.

use std::sync::{Arc, Weak};
use std::{collections::HashMap, time::Duration};

use bytes::Bytes;
use model::LinkId;
use platform::unix_ms;
use tokio::sync::Notify;
use tokio::time::{Interval, MissedTickBehavior, interval};
use topic::{Audience, Listener, Person, PlacedMessage, Replay, Roster};
use wire::mcpx::system::{self, History, Presence, Stamp};
use wire::mcpx::{Envelope, EnvelopePlace};
use wire::time::rfc3339;

use crate::batch::{Batch, Recipient};
use crate::event::{Newcomer, RoomEvent, Stamps};
use crate::frame::{self, Close, text};
use crate::{queue::Room, socket::Socket};

/// Yields to ready readers before a batch is written, while each brings more events: one write then
/// carries the events of all readers.
const YIELDS_MAX: usize = 4;
/// Sockets that are written between two yields.
const SOCKETS_AT_ONCE: usize = 64;
/// Pings without an answer before a socket is closed.
const SILENT_PINGS_MAX: u64 = 3;

/// One listener.
struct Member {
    link: LinkId,
    person: Person,
    listener: Listener,
    socket: Arc<Socket>,
    /// The first frame of the current batch that it may receive.
    from: usize,
}

impl Member {
    fn as_recipient(&self) -> Recipient<'_> {
        let Self {
            link,
            person,
            listener,
            socket,
            from,
        } = self;
        Recipient {
            link: *link,
            id: person.id.as_str(),
            listener: *listener,
            places: socket.wants_places(),
            from: *from,
        }
    }
}

struct Writer {
    stamps: Arc<dyn Stamps>,
    ping_ms: u64,
    members: Vec<Member>,
    /// Index into `members` by link.
    indexes: HashMap<LinkId, usize>,
    /// The number of members that ask for places.
    placed: usize,
    batch: Batch,
    /// Scratch space for the slices of one member.
    slices: Vec<Bytes>,
}

/// Opens an empty room and starts its writer, which pings silent sockets at this interval, in
/// milliseconds, and ends when the room is dropped. Must be called inside a runtime.
pub fn open(ping_ms: u64, stamps: Arc<dyn Stamps>) -> Arc<Room> {
    let room = Arc::new(Room::default());
    room.ping_every(ping_ms);
    let writer = Writer {
        ping_ms: room.ping_ms(),
        members: Vec::new(),
        indexes: HashMap::new(),
        placed: 0,
        batch: Batch::default(),
        slices: Vec::new(),
        stamps,
    };
    tokio::spawn(run(writer, Arc::downgrade(&room), room.wake()));
    room
}

async fn run(mut writer: Writer, room: Weak<Room>, wake: Arc<Notify>) {
    let mut pings = every(writer.ping_ms);
    loop {
        tokio::select! {
            () = wake.notified() => {}
            _ = pings.tick() => writer.ping(),
        }
        gather(&room).await;
        let Some(room) = room.upgrade() else {
            return;
        };
        let ping_ms = room.ping_ms();
        let events = room.take();
        drop(room);
        if writer.ping_ms != ping_ms {
            writer.ping_ms = ping_ms;
            pings = every(ping_ms);
        }
        for event in events {
            writer.handle(event);
        }
        writer.write().await;
    }
}

/// Ticks at this interval, in milliseconds. After a delay none is made up for.
fn every(ms: u64) -> Interval {
    let mut ticks = interval(Duration::from_millis(ms));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Lets ready readers run.
async fn gather(room: &Weak<Room>) {
    let queued = || room.upgrade().map_or(0, |room| room.len());
    let mut before = queued();
    for _ in 0..YIELDS_MAX {
        tokio::task::yield_now().await;
        let now = queued();
        if now == before {
            return;
        }
        before = now;
    }
}

impl Writer {
    fn handle(&mut self, event: RoomEvent) {
        match event {
            RoomEvent::Enter(newcomer) => self.enter(*newcomer),
            RoomEvent::Renew {
                link,
                person,
                roster,
            } => self.renew(link, person, &roster),
            // MCPx has only joins and leaves: a second join has the participant's new capabilities.
            RoomEvent::Joined(person) | RoomEvent::Changed(person) => {
                self.broadcast(Presence::Join(seen(&person)));
            }
            RoomEvent::Left(id) => self.broadcast(Presence::Leave(id.as_str())),
            RoomEvent::Publish {
                envelope,
                audience,
                place,
            } => {
                if self.placed > 0 {
                    self.batch.push_placed(text(&place.stamp(envelope.frame())));
                }
                self.batch.push(envelope.frame(), audience);
            }
            RoomEvent::Mirror {
                encode, audience, ..
            } => {
                if let Some(envelope) = encode() {
                    self.batch.push(&envelope, audience);
                }
            }
            RoomEvent::Direct { link, frame } => self.batch.push_direct(link, frame),
            RoomEvent::Exit { link, close } => self.exit(link, close),
        }
    }

    /// Broadcasts that a participant joined or left.
    fn broadcast(&mut self, presence: Presence<'_>) {
        let envelope = self.stamped(|stamp| system::presence(stamp, presence));
        self.batch.push(&envelope, Audience::broadcast());
    }

    /// An envelope of the gateway.
    fn stamped(&self, encode: impl FnOnce(Stamp<'_>) -> Bytes) -> Bytes {
        let id = self.stamps.envelope_id();
        let ts = rfc3339(unix_ms());
        encode(Stamp {
            id: &id,
            ts: Some(&ts),
        })
    }

    /// Sends the welcome to a newcomer at once, before the frames of the current batch; it receives
    /// frames from here on.
    fn enter(&mut self, newcomer: Newcomer) {
        let Newcomer {
            link,
            person,
            listener,
            socket,
            roster,
            replay,
        } = newcomer;
        let places = socket.wants_places();
        socket.write(&[self.welcome(&person, &roster, replay.as_ref(), places)]);
        self.placed += usize::from(places);
        self.indexes.insert(link, self.members.len());
        self.members.push(Member {
            link,
            person,
            listener,
            socket,
            from: self.batch.len(),
        });
    }

    /// The framed welcome of a participant.
    fn welcome(
        &self,
        person: &Person,
        roster: &Roster,
        replay: Option<&Replay<Arc<Envelope>>>,
        places: bool,
    ) -> Bytes {
        let others = roster
            .iter()
            .filter(|other| other.id != person.id)
            .map(seen);
        let past = replay
            .map(|replay| past(replay, places))
            .unwrap_or_default();
        let history = replay.map(|replay| History {
            epoch: replay.next.epoch,
            offset: replay.next.offset,
            complete: replay.complete,
            envelopes: past.iter().map(|envelope| &**envelope).collect(),
        });
        text(&self.stamped(|stamp| system::welcome(stamp, seen(person), others, history.as_ref())))
    }

    /// Sends a participant its new capabilities, in another welcome.
    fn renew(&mut self, link: LinkId, person: Person, roster: &Roster) {
        let welcome = self.welcome(&person, roster, None, false);
        self.batch.push_direct(link, welcome);
        if let Some(member) = self
            .indexes
            .get(&link)
            .and_then(|index| self.members.get_mut(*index))
        {
            member.person = person;
        }
    }

    /// Removes a member. A member whose socket the room closes gets all earlier frames of the batch
    /// first.
    fn exit(&mut self, link: LinkId, close: Option<Close>) {
        let Some(index) = self.indexes.remove(&link) else {
            return;
        };
        let member = self.members.swap_remove(index);
        self.placed -= usize::from(member.socket.wants_places());
        if let Some(moved) = self.members.get(index) {
            self.indexes.insert(moved.link, index);
        }
        if let Some(close) = close {
            self.batch.seal();
            self.batch
                .frames_for(&member.as_recipient(), &mut self.slices);
            member.socket.write(&self.slices);
            member.socket.close(close);
        }
    }

    /// Writes the batch to all members; a batch of direct frames only to their links.
    async fn write(&mut self) {
        self.batch.seal();
        // Without envelopes for many only the members that are named need be looked at.
        if self.batch.len() == 0 {
            let direct = self
                .batch
                .direct_links()
                .filter_map(|link| self.indexes.get(link).copied());
            direct
                .collect::<Vec<_>>()
                .into_iter()
                .for_each(|index| self.write_to(index));
        } else {
            for index in 0..self.members.len() {
                self.write_to(index);
                // A large room must not hold up the other tasks of the runtime.
                if index % SOCKETS_AT_ONCE == SOCKETS_AT_ONCE - 1 {
                    tokio::task::yield_now().await;
                }
            }
        }
        self.slices.clear();
        self.batch = Batch::default();
    }

    fn write_to(&mut self, index: usize) {
        let Some(member) = self.members.get_mut(index) else {
            return;
        };
        self.batch
            .frames_for(&member.as_recipient(), &mut self.slices);
        // A newcomer has missed the beginning of this batch only.
        member.from = 0;
        if !self.slices.is_empty() {
            member.socket.write(&self.slices);
        }
    }

    /// Pings silent sockets, and closes those that did not answer several pings.
    fn ping(&mut self) {
        let now_ms = self.stamps.now_ms();
        let silent_ms = SILENT_PINGS_MAX * self.ping_ms;
        let ping = frame::ping();
        for Member { socket, .. } in &self.members {
            let silence_ms = now_ms.saturating_sub(socket.last_activity_ms());
            if silence_ms > silent_ms {
                socket.close(Close::Idle);
            } else if silence_ms >= self.ping_ms / 2 {
                socket.write(std::slice::from_ref(&ping));
            }
        }
    }
}

/// The frames of a history.
fn past(replay: &Replay<Arc<Envelope>>, places: bool) -> Vec<Bytes> {
    let messages = replay.messages.iter();
    let frames = messages.map(|one| {
        if places {
            place_of(replay.next.epoch, one).stamp(one.message.frame())
        } else {
            one.message.frame().clone()
        }
    });
    frames.collect()
}

fn place_of(epoch: u64, message: &PlacedMessage<Arc<Envelope>>) -> EnvelopePlace {
    EnvelopePlace {
        epoch,
        offset: message.offset,
        received_ms: message.received_ms,
    }
}

fn seen(person: &Person) -> system::PersonView<'_> {
    system::PersonView {
        id: person.id.as_str(),
        capabilities: &person.capabilities,
        paused: person.paused,
    }
}
