//! Owns who comes and goes in the simulation, what they may do, and what servers list.
//! Must not know calls.

use std::sync::Arc;

use model::{Capabilities, LinkId, OperationId, ParticipantId};
use topic::{Ear, Effect, Event, Item, Manifest, RateLimit, Role, UpstreamNames, View};

use crate::{
    books::Expected,
    world::{CALLERS, GRANTS, NAMES, TEMPLATES, UPSTREAMS, URIS, World, id},
};

impl World {
    pub(crate) fn grant(&mut self, role: Role) -> Arc<Capabilities> {
        Arc::new(match role {
            Role::Upstream if self.prng.one_in(5) => Capabilities::default(),
            Role::Upstream => Capabilities::upstream(),
            Role::Caller => Capabilities::parse(self.prng.pick(&GRANTS).unwrap().iter().copied()).unwrap(),
        })
    }

    pub(crate) fn join(&mut self) {
        let link = LinkId(self.number());
        let upstream = self.prng.one_in(2);
        let (participant, role) = match upstream {
            true => (self.any_upstream(), Role::Upstream),
            false => (id(self.prng.pick(&CALLERS).unwrap()), Role::Caller),
        };
        // Sometimes under a name of the other side.
        let role = match (role, self.prng.one_in(30)) {
            (Role::Caller, true) => Role::Upstream,
            (Role::Upstream, true) => Role::Caller,
            (role, false) => role,
        };
        let capabilities = self.grant(role);
        let rate = self.prng.one_in(4).then_some(RateLimit { burst: 3, per_minute: 60 });
        let known = self.topic.has_participant(&participant);
        let ears = [Ear::All, Ear::Directed, Ear::DirectedAndProposals];
        let ear = self.prng.pick(&ears).copied().filter(|_| self.prng.one_in(3));
        let heard =
            |own: &(&LinkId, &ParticipantId)| self.books.ears.contains_key(own.0) && *own.1 == participant;
        let replaced = ear.and_then(|_| self.books.links.iter().find(heard)).map(|(link, _)| *link);
        let promotes = ear.is_none() && !self.prng.one_in(3);
        let may = self.may_join(&participant, role, known, replaced.is_some());
        self.books.links.insert(link, participant.clone());
        let (participant, granted) = (&participant, capabilities.clone());
        let event = Event::Join { link, participant, role, capabilities: granted, rate, ear, promotes };
        // Whether it was let in decides the books, so the books are entered by hand here.
        if !may {
            self.books.links.remove(&link);
        } else {
            self.books.ears.extend(ear.map(|ear| (link, ear)));
            self.grants.insert(participant.clone(), capabilities);
        }
        let leaving = replaced.filter(|_| may).into_iter().collect();
        let joining = may.then_some(link);
        let effects = self.live(event, Expected { leaving, joining, ..Expected::default() });
        let refused = effects.iter().any(|effect| matches!(effect, Effect::NotJoined { .. }));
        assert_eq!(refused, !may, "seed {}", self.seed);
    }

    pub(crate) fn may_join(
        &self,
        participant: &ParticipantId,
        role: Role,
        known: bool,
        replaces: bool,
    ) -> bool {
        let configured = self.configured.iter().any(|upstream| upstream.id == *participant);
        let links = self.topic.links(participant).len();
        let side =
            (role == Role::Upstream) == configured && (configured || participant.as_str() != "portmoot");
        side && (links < 3 || replaces) && (known || self.topic.participants_len() < 7)
    }

    pub(crate) fn leave(&mut self) {
        let link = self.any_link();
        self.live(Event::Leave { link }, Expected { leaving: vec![link], ..Expected::default() });
    }

    pub(crate) fn revoke(&mut self) {
        let participant = id(self.prng.pick(&CALLERS).unwrap());
        let leaving = self.topic.links(&participant).to_vec();
        let count = leaving.len();
        let expected = Expected { leaving, ..Expected::default() };
        let effects = self.live(Event::Revoke { participant: &participant }, expected);
        let ended = effects.iter().filter(|effect| matches!(effect, Effect::Ended { .. })).count();
        assert_eq!(ended, count, "each link is told");
    }

    pub(crate) fn regrant(&mut self) {
        let upstream = self.prng.one_in(3);
        let participant = if upstream { self.any_upstream() } else { id(self.prng.pick(&CALLERS).unwrap()) };
        // Mostly somebody for whom something approved runs.
        let runs = self.books.open.values().find(|open| open.proposal.is_some() && !open.held);
        let runs = runs.and_then(|open| self.books.links.get(&open.link)).cloned();
        let participant = runs.filter(|_| !self.prng.one_in(3)).unwrap_or(participant);
        let upstream = self.books.upstreams.contains(&participant);
        let capabilities = self.grant(if upstream { Role::Upstream } else { Role::Caller });
        if self.topic.has_participant(&participant) {
            self.grants.insert(participant.clone(), capabilities.clone());
        }
        let mine = |link: &LinkId| self.books.links.get(link) == Some(&participant);
        let runs = self.books.open.iter().filter(|(_, open)| open.proposal.is_some() && !open.held);
        let runs: Vec<OperationId> =
            runs.filter(|(_, open)| mine(&open.link)).map(|(operation, _)| *operation).collect();
        self.live(Event::Regrant { participant: &participant, capabilities }, Expected::default());
        let goes_on = |operation| self.books.open.contains_key(operation);
        assert!(runs.iter().all(goes_on), "what is approved does not depend on the caller's grants");
    }

    pub(crate) fn items(&mut self, from: &[&str]) -> Vec<Item> {
        let count = self.prng.below(4);
        let mut items = Vec::new();
        for _ in 0..count {
            let own = *self.prng.pick(from).unwrap();
            items.push(Item { own: own.into(), digest: self.prng.below(2) as u64 });
        }
        items
    }

    pub(crate) fn listed(&mut self) {
        let upstream = self.any_upstream();
        let view = if self.prng.one_in(3) { View::Link(self.any_link()) } else { View::Shared };
        let manifest = Manifest {
            tools: self.items(&NAMES),
            prompts: self.items(&NAMES),
            resources: self.items(&URIS),
            templates: self.items(&TEMPLATES),
        };
        self.live(Event::Listed { upstream: &upstream, view, manifest, told: &[] }, Expected::default());
    }

    pub(crate) fn session(&mut self) {
        let (link, upstream) = (self.any_link(), self.any_upstream());
        let event = match self.prng.one_in(2) {
            true => Event::Attach { link, upstream: &upstream },
            false => Event::Detach { link, upstream: &upstream },
        };
        self.live(event, Expected::default());
    }

    pub(crate) fn configure(&mut self) {
        let mut all = vec![UpstreamNames::gateway()];
        for (name, prefix) in UPSTREAMS {
            if !self.prng.one_in(5) {
                all.push(UpstreamNames::new(id(name), prefix));
            }
        }
        let at = self.prng.below(all.len());
        all.rotate_left(at);
        let gone = |own: &ParticipantId| !all.iter().any(|upstream| upstream.id == *own);
        let leaving =
            self.books.links.iter().filter(|(_, own)| gone(own) && self.books.upstreams.contains(own));
        let leaving = leaving.map(|(link, _)| *link).collect();
        self.configured.clone_from(&all);
        self.live(Event::Configure { upstreams: &all }, Expected { leaving, ..Expected::default() });
    }
}
