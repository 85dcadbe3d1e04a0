//! Links of callers, seats of servers, and participants that are present.

use std::collections::BTreeSet;

use model::{LinkId, LogLevel, ParticipantId};
use topic::{Ended, Listener};

use super::{Books, interests::Subscription};
use crate::turn::Turn;

#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub(crate) participant: ParticipantId,
    pub(crate) handle: u64,
    pub(crate) listener: Option<Listener>,
    pub(crate) promotes: bool,
    pub(crate) notified: bool,
    /// Whether it is asked by answers for now.
    pub(crate) pauses: bool,
    pub(crate) level: Option<LogLevel>,
    /// Servers at which it has a session of its own.
    pub(crate) attached: BTreeSet<ParticipantId>,
    pub(crate) subscriptions: Vec<Subscription>,
}

#[derive(Debug, Clone)]
pub(crate) struct Served {
    pub(crate) link: LinkId,
    pub(crate) handle: u64,
}

impl Books {
    pub(crate) fn is_server(&self, participant: &ParticipantId) -> bool {
        self.configured
            .iter()
            .any(|names| names.id == *participant && !names.serves)
    }

    pub(crate) fn serves(&self, participant: &ParticipantId) -> bool {
        self.configured
            .iter()
            .any(|names| names.id == *participant && names.serves)
    }

    /// Whether a participant is in the topic, as others see it.
    pub(crate) fn is_here(&self, participant: &ParticipantId) -> bool {
        self.links
            .values()
            .any(|link| link.participant == *participant)
            || self.servers.contains_key(participant) && !self.serves(participant)
    }

    /// Whether the others see a participant in the topic.
    pub(crate) fn is_seen(&self, participant: &ParticipantId) -> bool {
        self.is_here(participant) && !self.away.contains(participant)
    }

    pub(crate) fn links_of(&self, participant: &ParticipantId) -> Vec<LinkId> {
        let own = self
            .links
            .iter()
            .filter(|(_, link)| link.participant == *participant);
        own.map(|(link, _)| *link).collect()
    }

    /// The listener of a participant.
    pub(crate) fn listener_of(&self, participant: &ParticipantId) -> Option<LinkId> {
        let own = self
            .links
            .iter()
            .filter(|(_, link)| link.participant == *participant);
        own.filter(|(_, link)| link.listener.is_some())
            .map(|(link, _)| *link)
            .next()
    }

    /// The participant of any link.
    pub(crate) fn owner(&self, link: LinkId) -> Option<ParticipantId> {
        let caller = self.links.get(&link).map(|link| link.participant.clone());
        let server = || {
            self.servers
                .iter()
                .find(|(_, served)| served.link == link)
                .map(|(id, _)| id.clone())
        };
        caller.or_else(server)
    }

    /// The server of this handle.
    pub(crate) fn server_of(&self, handle: u64) -> ParticipantId {
        let found = self
            .servers
            .iter()
            .find(|(_, served)| served.handle == handle);
        found.map(|(id, _)| id.clone()).expect("the server is here")
    }

    /// A link has ended: no later effect names it.
    pub(crate) fn closed(&mut self, handle: u64, why: Option<Ended>, turn: &Turn) {
        let found = self
            .links
            .iter()
            .find(|(_, own)| own.handle == handle)
            .map(|(link, _)| *link);
        let link = found.expect("a link is closed once");
        assert!(
            turn.leaving.contains(&(link, why)),
            "{link} was closed without cause"
        );
        let open = self
            .calls
            .values()
            .find(|open| open.link == link && !open.answered);
        assert!(open.is_none(), "{link} was closed with {open:?}");
        assert!(
            self.questions.values().all(|open| open.link != link),
            "{link} still owes an answer"
        );
        self.links.remove(&link);
    }

    pub(crate) fn finish_participants(&mut self, turn: &Turn) {
        for (link, _) in &turn.leaving {
            assert!(
                !self.links.contains_key(link),
                "{link} did not learn of its end"
            );
        }
        for server in &turn.dismissed {
            assert!(self.servers.remove(server).is_some());
            self.away.remove(server);
            self.forget_subscriptions(server);
        }
    }
}
