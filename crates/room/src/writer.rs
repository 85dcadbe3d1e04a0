//! Writer of a room: one task that takes the queued events and writes each batch to all members.
//!
//! It owns who is attached and who is in the topic, in the order of the queue.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use json::quote;
use model::{LinkId, ParticipantId};
use platform::{random, unix_ms};
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval};
use wire::mcpx::{self, Draft, system};
use wire::time::rfc3339;

use crate::batch::{Batch, Recipient};
use crate::event::{Audience, Message, Newcomer, RoomConfig, RoomEvent, Stamps};
use crate::frame::{self, Close, text};
use crate::queue::Room;
use crate::replay::{Replay, ReplayPage};

/// Yields to ready readers before a batch is written, while each brings more events: one write then carries the events of
/// all readers.
const YIELDS_MAX: usize = 4;
/// Sockets that are written between two yields.
const SOCKETS_AT_ONCE: usize = 64;
/// Pings without an answer before a socket is closed.
const SILENT_PINGS_MAX: u64 = 3;

/// One attached link.
struct Member {
    newcomer: Newcomer,
    /// The first frame of the current batch that it may receive.
    from: usize,
}

struct Writer {
    stamps: Arc<dyn Stamps>,
    ping_ms: u64,
    members: Vec<Member>,
    /// Index into `members` by link.
    indexes: HashMap<LinkId, usize>,
    /// The public profile of every participant in the topic.
    roster: BTreeMap<ParticipantId, Bytes>,
    replay: Replay,
    batch: Batch,
    /// Scratch space for the slices of one member.
    slices: Vec<Bytes>,
}

/// Opens an empty room and starts its writer, which ends when the room is dropped. Must be called inside a runtime.
pub fn open(config: RoomConfig, stamps: Arc<dyn Stamps>) -> Arc<Room> {
    let room = Arc::new(Room::default());
    tokio::spawn(run(Arc::downgrade(&room), room.wake(), config, stamps));
    room
}

async fn run(room: Weak<Room>, wake: Arc<Notify>, config: RoomConfig, stamps: Arc<dyn Stamps>) {
    let mut writer = Writer {
        ping_ms: config.ping_ms.max(1),
        replay: Replay::new(u64::from_le_bytes(random()) >> 12, config.history),
        members: Vec::new(),
        indexes: HashMap::new(),
        roster: BTreeMap::new(),
        batch: Batch::default(),
        slices: Vec::new(),
        stamps,
    };
    let mut pings = interval(Duration::from_millis(writer.ping_ms));
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = wake.notified() => {}
            _ = pings.tick() => writer.ping(),
        }
        gather(&room).await;
        let Some(events) = room.upgrade().map(|room| room.take()) else { return };
        for event in events {
            writer.handle(event);
        }
        writer.write().await;
    }
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
            RoomEvent::Attach(newcomer) => self.attach(newcomer),
            RoomEvent::Joined { id, profile } => {
                let payload = [b"{\"event\":\"join\",\"participant\":".as_slice(), &profile, b"}"].concat();
                self.broadcast_presence(&payload);
                self.roster.insert(id, profile);
            }
            RoomEvent::Updated { id, profile } => self.update(id, profile),
            RoomEvent::Left { id } => {
                self.roster.remove(&id);
                let payload =
                    format!("{{\"event\":\"leave\",\"participant\":{{\"id\":{}}}}}", quote(id.as_str()));
                self.broadcast_presence(payload.as_bytes());
            }
            RoomEvent::Message(message) => {
                self.replay.push(&message);
                self.batch.push(message);
            }
            RoomEvent::Mirror { write, .. } => {
                if let Some(message) = write() {
                    self.batch.push(message);
                }
            }
            RoomEvent::Direct { link, frame } => self.batch.push_direct(link, frame),
            RoomEvent::Detach { link, close } => self.detach(link, close),
        }
    }

    /// Broadcasts that a participant joined or left.
    fn broadcast_presence(&mut self, payload: &[u8]) {
        let envelope = self.envelope(&[], system::PRESENCE, payload);
        let (to, kind) = (Box::new([]), system::PRESENCE.into());
        self.batch.push(Message { link: None, envelope, to, kind, audience: Audience::Matching });
    }

    /// An envelope of the gateway.
    fn envelope(&self, to: &[&str], kind: &str, payload: &[u8]) -> Bytes {
        let id = self.stamps.envelope_id();
        let ts = rfc3339(unix_ms());
        let from = model::SYSTEM;
        mcpx::envelope(&Draft { id: &id, ts: Some(&ts), from, to, kind, correlation_id: None, payload })
    }

    /// Sends the welcome to a newcomer at once, before the frames of the current batch; it receives frames from here on.
    fn attach(&mut self, mut newcomer: Newcomer) {
        let recipient = recipient(&newcomer, 0);
        let page = self.replay.is_kept().then(|| self.replay.page(newcomer.since, &recipient));
        let profile = std::mem::take(&mut newcomer.profile);
        newcomer.socket.write(&[self.welcome(&newcomer.id, &profile, page)]);
        self.indexes.insert(newcomer.link, self.members.len());
        self.members.push(Member { newcomer, from: self.batch.len() });
    }

    /// The framed welcome of a participant (MCPx v0.1, 3.5.1): its own profile, those of the others, the replay.
    fn welcome(&self, id: &ParticipantId, profile: &[u8], page: Option<ReplayPage>) -> Bytes {
        let mut payload = [b"{\"you\":".as_slice(), profile, b",\"participants\":["].concat();
        let mut first = true;
        for (_, other) in self.roster.iter().filter(|(other, _)| *other != id) {
            if !std::mem::take(&mut first) {
                payload.push(b',');
            }
            payload.extend_from_slice(other);
        }
        payload.push(b']');
        if let Some(page) = page {
            page.write(&mut payload);
        }
        payload.push(b'}');
        text(&self.envelope(&[id.as_str()], system::WELCOME, &payload))
    }

    /// Sends a participant its new profile, in another welcome.
    fn update(&mut self, id: ParticipantId, profile: Bytes) {
        self.roster.insert(id.clone(), profile.clone());
        let members = self.members.iter().filter(|member| member.newcomer.id == id);
        let links: Vec<LinkId> = members.map(|member| member.newcomer.link).collect();
        for link in links {
            let welcome = self.welcome(&id, &profile, None);
            self.batch.push_direct(link, welcome);
        }
    }

    /// Removes a member. A member whose socket the room closes gets all earlier frames of the batch first.
    fn detach(&mut self, link: LinkId, close: Option<Close>) {
        let Some(index) = self.indexes.remove(&link) else { return };
        let Member { newcomer, from } = self.members.swap_remove(index);
        if let Some(moved) = self.members.get(index) {
            self.indexes.insert(moved.newcomer.link, index);
        }
        if let Some(close) = close {
            self.batch.seal();
            self.batch.frames_for(&recipient(&newcomer, from), &mut self.slices);
            newcomer.socket.write(&self.slices);
            newcomer.socket.close(close);
        }
    }

    /// Writes the batch to all members; a batch of direct frames only to their links.
    async fn write(&mut self) {
        self.batch.seal();
        if self.batch.len() == 0 {
            let direct = self.batch.direct_links().filter_map(|link| self.indexes.get(link).copied());
            direct.collect::<Vec<_>>().into_iter().for_each(|index| self.write_to(index));
        } else {
            for index in 0..self.members.len() {
                self.write_to(index);
                if index % SOCKETS_AT_ONCE == SOCKETS_AT_ONCE - 1 {
                    tokio::task::yield_now().await;
                }
            }
        }
        self.slices.clear();
        self.batch = Batch::default();
    }

    fn write_to(&mut self, index: usize) {
        let Some(member) = self.members.get_mut(index) else { return };
        self.batch.frames_for(&recipient(&member.newcomer, member.from), &mut self.slices);
        member.from = 0;
        if !self.slices.is_empty() {
            member.newcomer.socket.write(&self.slices);
        }
    }

    /// Pings silent sockets, and closes those that did not answer several pings.
    fn ping(&mut self) {
        let now_ms = self.stamps.now_ms();
        let silent_ms = SILENT_PINGS_MAX * self.ping_ms;
        let ping = frame::ping();
        for Member { newcomer, .. } in &self.members {
            let silence_ms = now_ms.saturating_sub(newcomer.socket.last_activity_ms());
            if silence_ms > silent_ms {
                newcomer.socket.close(Close::Idle);
            } else if silence_ms >= self.ping_ms / 2 {
                newcomer.socket.write(std::slice::from_ref(&ping));
            }
        }
    }
}

fn recipient(newcomer: &Newcomer, from: usize) -> Recipient<'_> {
    let Newcomer { link, id, ear, echo, .. } = newcomer;
    Recipient { link: *link, id: id.as_str(), ear: *ear, echo: *echo, from }
}
