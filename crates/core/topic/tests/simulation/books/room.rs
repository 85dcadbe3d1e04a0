//! Listeners of the room: their welcome, the presence of participants, and every message whose
//! audience includes them, in order.

use std::collections::{BTreeMap, BTreeSet};

use model::{DeliveryMode, LinkId, ParticipantId};
use topic::{Audience, Listener, Person, Roster};

use super::Books;
use crate::{
    numbers::{Effects, RoomEffect},
    turn::Turn,
};

/// A message with its audience.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) message: u64,
    /// The link and participant that sent it; none if the gateway announces it.
    pub(crate) from: Option<LinkId>,
    pub(crate) to: Vec<String>,
    pub(crate) proposes: bool,
    /// A participant that must not get it.
    pub(crate) except: Option<ParticipantId>,
}

impl Message {
    /// Whether a listener must get it, by the rules of MCPx alone.
    pub(crate) fn is_for(&self, link: LinkId, listener: &RoomListener) -> bool {
        let named =
            self.to.is_empty() || self.to.iter().any(|to| to == listener.participant.as_str());
        let mode = match listener.listener.mode {
            DeliveryMode::All => true,
            DeliveryMode::Directed => named,
            DeliveryMode::DirectedAndProposals => named || self.proposes,
        };
        let own = self.from == Some(link) && !listener.listener.echo;
        mode && !own && self.except.as_ref() != Some(&listener.participant)
    }
}

/// A listener that has entered.
#[derive(Debug, Clone)]
pub(crate) struct RoomListener {
    pub(crate) participant: ParticipantId,
    pub(crate) listener: Listener,
    /// The participants that it knows, by its welcome and presence since then.
    pub(crate) knows: BTreeSet<ParticipantId>,
}

#[derive(Debug, Default)]
pub(crate) struct Room {
    pub(crate) listeners: BTreeMap<LinkId, RoomListener>,
    /// The participants in the topic, by presence.
    pub(crate) here: BTreeSet<ParticipantId>,
    pub(crate) published: Vec<Message>,
    /// Whether this step has published its message.
    publishes: bool,
    /// Messages of earlier steps that it has published.
    pub(crate) late: BTreeSet<u64>,
    /// Whether it has announced new capabilities.
    changes: BTreeSet<ParticipantId>,
    pub(crate) kept: topic::RingLimits,
    /// The place of the oldest message that is kept.
    pub(crate) oldest: usize,
    /// Names that have had another bearer before, with the place of the first message to the
    /// present one.
    pub(crate) disowned: BTreeMap<ParticipantId, usize>,
}

impl Books {
    pub(crate) fn enter_room(&mut self, effect: &RoomEffect, turn: &Turn) {
        match effect {
            RoomEffect::Exit { link, why } => {
                assert!(
                    turn.leaving.contains(&(*link, *why)),
                    "{link} left the room"
                );
                assert!(
                    self.room.listeners.remove(link).is_some(),
                    "{link} left the room twice"
                );
            }
            RoomEffect::Enter {
                link,
                handle,
                person,
                listener,
                roster,
                replay,
            } => {
                let arrival = turn
                    .joining
                    .as_ref()
                    .expect("only a link that joins enters");
                assert_eq!((arrival.link, arrival.listener), (*link, Some(*listener)));
                assert_eq!(
                    (self.links[link].handle, &person.id),
                    (*handle, &arrival.participant)
                );
                self.check_person(person);
                let listener = RoomListener {
                    participant: person.id.clone(),
                    listener: *listener,
                    knows: BTreeSet::new(),
                };
                self.check_replay(*link, &listener, arrival.since, replay.as_ref());
                let knows = self.check_roster(roster, &person.id);
                assert!(
                    self.room
                        .listeners
                        .insert(*link, RoomListener { knows, ..listener })
                        .is_none()
                );
            }
            RoomEffect::Renew {
                link,
                person,
                roster,
            } => {
                assert_eq!(turn.regrants.as_ref(), Some(&person.id));
                let newcomer = turn.joining.as_ref().is_some_and(|own| own.link == *link);
                assert!(self.room.listeners[link].participant == person.id && !newcomer);
                self.check_person(person);
                let knows = self.check_roster(roster, &person.id);
                assert_eq!(self.room.listeners[link].knows, knows);
                self.count("renewed");
            }
            RoomEffect::Joined(person) => {
                let joins = turn.joining.as_ref().map(|own| &own.participant);
                let comes_back = turn.available.as_ref() == Some(&(person.id.clone(), true));
                assert!(
                    joins == Some(&person.id) || turn.serving.contains(&person.id) || comes_back
                );
                self.check_person(person);
                assert!(
                    self.room.here.insert(person.id.clone()),
                    "{} joined twice",
                    person.id
                );
                self.room.listeners.values_mut().for_each(|listener| {
                    let own = listener.participant == person.id;
                    assert_eq!(
                        listener.knows.insert(person.id.clone()),
                        !own,
                        "a listener is welcomed first"
                    );
                });
            }
            RoomEffect::Changed(person) => {
                assert!(turn.changes.contains(&person.id));
                self.check_person(person);
                assert!(
                    self.room.here.contains(&person.id),
                    "{} is not here",
                    person.id
                );
                assert!(
                    self.room.changes.insert(person.id.clone()),
                    "announced twice"
                );
            }
            RoomEffect::Left(participant) => {
                assert!(
                    self.room.here.remove(participant),
                    "{participant} left twice"
                );
                let is_server = turn.dismissed.contains(participant)
                    || turn
                        .available
                        .as_ref()
                        .is_some_and(|(server, _)| server == participant);
                if !is_server {
                    self.left_ms.insert(participant.clone(), self.now_ms);
                }
                let here = |listener: &RoomListener| listener.participant == *participant;
                assert!(
                    !self.room.listeners.values().any(here),
                    "{participant} left and listens"
                );
                self.room
                    .listeners
                    .values_mut()
                    .for_each(|listener| assert!(listener.knows.remove(participant)));
            }
            RoomEffect::Publish {
                message, audience, ..
            } => self.published(*message, audience, turn),
            RoomEffect::Mirror { mirrored, audience } => self.mirrored(mirrored, audience),
        }
    }

    fn check_person(&self, person: &Person) {
        let granted = self
            .granted(&person.id)
            .expect("a participant in the room is not revoked");
        assert_eq!(**granted, *person.capabilities, "{}", person.id);
        assert_eq!(
            self.braked.contains(&person.id),
            person.paused,
            "{}",
            person.id
        );
    }

    /// Every roster names all participants.
    fn check_roster(&self, roster: &Roster, own: &ParticipantId) -> BTreeSet<ParticipantId> {
        let names: BTreeSet<ParticipantId> =
            roster.iter().map(|person| person.id.clone()).collect();
        assert_eq!(names.len(), roster.iter().count());
        let mut here = self.room.here.clone();
        here.insert(own.clone());
        assert_eq!(names, here);
        names
    }

    fn published(&mut self, message: u64, audience: &Audience, turn: &Turn) {
        let own = match &turn.message {
            Some(own) => {
                assert_eq!(own.message, message);
                assert!(
                    !std::mem::replace(&mut self.room.publishes, true),
                    "published twice"
                );
                own.clone()
            }
            None => self.published_late(message),
        };
        for (link, listener) in &self.room.listeners {
            let includes =
                audience.includes(*link, listener.participant.as_str(), listener.listener);
            assert_eq!(
                includes,
                own.is_for(*link, listener),
                "{link} {listener:?} {own:?}"
            );
        }
        self.keep(own);
    }

    pub(crate) fn finish_room(&mut self, effects: &Effects, turn: &Turn) {
        let published = std::mem::take(&mut self.room.publishes);
        let changed = std::mem::take(&mut self.room.changes);
        assert_eq!(changed, turn.changes, "new capabilities are announced");
        let withheld = effects
            .all
            .iter()
            .any(|effect| matches!(effect, crate::numbers::Effect::Withhold { .. }));
        assert!(!(published && withheld), "published and withheld");
        assert_eq!(
            published,
            turn.message.is_some(),
            "a message is published once"
        );
        let callers = self.links.values().map(|link| link.participant.clone());
        let servers = self
            .servers
            .keys()
            .filter(|id| !self.serves(id) && !self.away.contains(*id))
            .cloned();
        assert_eq!(
            callers.chain(servers).collect::<BTreeSet<_>>(),
            self.room.here,
            "presence"
        );
        let listens = |link: &LinkId| self.links[link].listener.is_some();
        let listeners: Vec<LinkId> = self
            .links
            .keys()
            .filter(|link| listens(link))
            .copied()
            .collect();
        assert_eq!(
            listeners,
            self.room.listeners.keys().copied().collect::<Vec<_>>(),
            "listeners"
        );
        let mut owners: Vec<&ParticipantId> = self
            .room
            .listeners
            .values()
            .map(|listener| &listener.participant)
            .collect();
        owners.sort_unstable();
        owners.dedup();
        assert_eq!(
            owners.len(),
            self.room.listeners.len(),
            "two listeners of one participant"
        );
        self.finish_mirrors(turn);
    }
}
