//! The task that writes a room: it takes what its readers have gathered and writes the same bytes to every member.
//!
//! Owns who hears and who is there, in the order of the queue. Must not know the topic.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use json::quote;
use model::{LinkId, ParticipantId};
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval};
use wire::mcpx::{self, Draft, system};
use wire::time::rfc3339;

use super::frame::{self, Close, text};
use super::history::{History, Missed};
use super::item::{Entry, Item, Reach, RoomConfig, Said};
use super::queue::Room;
use super::run::{Listener, Run};
use crate::ground::Ground;
use platform::{random, unix_ms};

/// Turns given to readers that are ready before a room is written, as long as they bring more, so that one write carries
/// what all of them have.
const YIELDS_MAX: usize = 4;
/// Sockets that are written before others run.
const SOCKETS_AT_ONCE: usize = 64;
/// Pings without a sign of life before a socket is closed.
const SILENT_PINGS_MAX: u64 = 3;

struct Member {
    entry: Entry,
    /// The first frame of this turn's run that it may hear.
    from: usize,
}

struct Turn {
    ground: Arc<Ground>,
    ping_ms: u64,
    members: Vec<Member>,
    places: HashMap<LinkId, usize>,
    /// Everybody in the topic, with what others may know of them.
    roster: BTreeMap<ParticipantId, Bytes>,
    history: History,
    run: Run,
    heard: Vec<Bytes>,
}

/// Writes a room until nobody has it any more.
pub(super) async fn run(room: Weak<Room>, wake: Arc<Notify>, config: RoomConfig, ground: Arc<Ground>) {
    let mut turn = Turn {
        ping_ms: config.ping_ms.max(1),
        history: History::new(u64::from_le_bytes(random()) >> 12, config.history),
        members: Vec::new(),
        places: HashMap::new(),
        roster: BTreeMap::new(),
        run: Run::default(),
        heard: Vec::new(),
        ground,
    };
    let mut pings = interval(Duration::from_millis(turn.ping_ms));
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = wake.notified() => {}
            _ = pings.tick() => turn.ping(),
        }
        gather(&room).await;
        let Some(items) = room.upgrade().map(|room| room.take()) else { return };
        for item in items {
            turn.take(item);
        }
        turn.write().await;
    }
}

/// Lets readers run that are ready.
async fn gather(room: &Weak<Room>) {
    let waiting = || room.upgrade().map_or(0, |room| room.waiting());
    let mut before = waiting();
    for _ in 0..YIELDS_MAX {
        tokio::task::yield_now().await;
        let now = waiting();
        if now == before {
            return;
        }
        before = now;
    }
}

impl Turn {
    fn take(&mut self, item: Item) {
        match item {
            Item::Enter(entry) => self.enter(entry),
            Item::Present { id, json } => {
                let payload = [b"{\"event\":\"join\",\"participant\":".as_slice(), &json, b"}"].concat();
                self.say(&payload);
                self.roster.insert(id, json);
            }
            Item::Renewed { id, json } => self.renew(id, json),
            Item::Absent { id } => {
                self.roster.remove(&id);
                let payload =
                    format!("{{\"event\":\"leave\",\"participant\":{{\"id\":{}}}}}", quote(id.as_str()));
                self.say(payload.as_bytes());
            }
            Item::Say(said) => {
                self.history.keep(&said);
                self.run.say(said);
            }
            Item::Show { write, .. } => {
                if let Some(said) = write() {
                    self.run.say(said);
                }
            }
            Item::Whisper { link, frame } => self.run.whisper(link, frame),
            Item::Leave { link, close } => self.leave(link, close),
        }
    }

    /// Says who has come or gone, to everybody.
    fn say(&mut self, payload: &[u8]) {
        let envelope = self.envelope(&[], system::PRESENCE, payload);
        let (to, kind) = (Box::new([]), system::PRESENCE.into());
        self.run.say(Said { link: None, envelope, to, kind, reach: Reach::Ears });
    }

    /// An envelope of the gateway's own.
    fn envelope(&self, to: &[&str], kind: &str, payload: &[u8]) -> Bytes {
        let id = self.ground.operation().to_string();
        let ts = rfc3339(unix_ms());
        let from = model::SYSTEM;
        mcpx::envelope(&Draft { id: &id, ts: Some(&ts), from, to, kind, correlation_id: None, payload })
    }

    /// Welcomes a newcomer, at once: it hears nothing of what was said before. Its own presence follows.
    fn enter(&mut self, mut entry: Entry) {
        let listener = listener(&entry, 0);
        let missed = self.history.is_kept().then(|| self.history.missed(entry.since, &listener));
        let you = std::mem::take(&mut entry.you);
        entry.socket.write(&[self.welcome(&entry.id, &you, missed)]);
        self.places.insert(entry.link, self.members.len());
        self.members.push(Member { entry, from: self.run.len() });
    }

    /// The welcome of a participant (MCPx v0.1, 3.5.1), framed. Everybody's part is written once, when they come.
    fn welcome(&self, id: &ParticipantId, you: &[u8], missed: Option<Missed>) -> Bytes {
        let mut payload = [b"{\"you\":".as_slice(), you, b",\"participants\":["].concat();
        let mut first = true;
        for (_, json) in self.roster.iter().filter(|(other, _)| *other != id) {
            if !std::mem::take(&mut first) {
                payload.push(b',');
            }
            payload.extend_from_slice(json);
        }
        payload.push(b']');
        if let Some(missed) = missed {
            missed.write(&mut payload);
        }
        payload.push(b'}');
        text(&self.envelope(&[id.as_str()], system::WELCOME, &payload))
    }

    fn renew(&mut self, id: ParticipantId, json: Bytes) {
        self.roster.insert(id.clone(), json.clone());
        let links: Vec<LinkId> = self
            .members
            .iter()
            .filter(|member| member.entry.id == id)
            .map(|member| member.entry.link)
            .collect();
        for link in links {
            let welcome = self.welcome(&id, &json, None);
            self.run.whisper(link, welcome);
        }
    }

    /// What was said before is still written to it.
    fn leave(&mut self, link: LinkId, close: Option<Close>) {
        let Some(place) = self.places.remove(&link) else { return };
        let gone = self.members.swap_remove(place);
        if let Some(moved) = self.members.get(place) {
            self.places.insert(moved.entry.link, place);
        }
        if let Some(close) = close {
            self.run.seal();
            self.run.heard_by(&listener(&gone.entry, gone.from), &mut self.heard);
            gone.entry.socket.write(&self.heard);
            gone.entry.socket.close(close);
        }
    }

    /// Writes the run to everybody; where nothing is said to all, only to those who are whispered to.
    async fn write(&mut self) {
        self.run.seal();
        if self.run.len() == 0 {
            let alone = self.run.whispered().filter_map(|link| self.places.get(link).copied());
            alone.collect::<Vec<_>>().into_iter().for_each(|place| self.write_to(place));
        } else {
            for place in 0..self.members.len() {
                self.write_to(place);
                if place % SOCKETS_AT_ONCE == SOCKETS_AT_ONCE - 1 {
                    tokio::task::yield_now().await;
                }
            }
        }
        self.heard.clear();
        self.run = Run::default();
    }

    fn write_to(&mut self, place: usize) {
        let Some(member) = self.members.get_mut(place) else { return };
        self.run.heard_by(&listener(&member.entry, member.from), &mut self.heard);
        member.from = 0;
        if !self.heard.is_empty() {
            member.entry.socket.write(&self.heard);
        }
    }

    /// Asks everybody for a sign of life, and closes whoever gave none.
    fn ping(&mut self) {
        let now_ms = self.ground.now_ms();
        let silent_ms = SILENT_PINGS_MAX * self.ping_ms;
        let ping = frame::ping();
        for Member { entry, .. } in &self.members {
            let silence_ms = now_ms.saturating_sub(entry.socket.heard_ms());
            if silence_ms > silent_ms {
                entry.socket.close(Close::Idle);
            } else if silence_ms >= self.ping_ms / 2 {
                entry.socket.write(std::slice::from_ref(&ping));
            }
        }
    }
}

fn listener(entry: &Entry, from: usize) -> Listener<'_> {
    Listener { link: entry.link, id: entry.id.as_str(), ear: entry.ear, echo: entry.echo, from }
}
