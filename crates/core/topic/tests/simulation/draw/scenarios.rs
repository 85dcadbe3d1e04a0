//! Scenarios that random events make too seldom: a held call, parked, resumed, approved; a proposal
//! that a participant carries out in the room.

use model::{LinkId, OperationId, ParticipantId};

use topic::About;

use crate::{
    books::calls::{Call, Place},
    names::parse,
    world::World,
};

impl World {
    pub(crate) fn story(&mut self) {
        match self.prng.below(17) {
            0..=3 => self.story_of_a_call(),
            4..=6 => self.story_of_the_room(),
            7..=12 => self.story_of_questions(),
            13..=15 => self.story_of_tasks(),
            _ => self.story_of_departures(),
        }
    }

    /// A server asks about a call whose caller is asked by answers, and the caller comes back.
    fn story_of_questions(&mut self) {
        let pausing = |open: &Call| open.pauses && open.place == Place::AtServer && !open.answered;
        let open = self.books.calls.iter().find(|(_, open)| pausing(open));
        let Some((call, server)) = open.map(|(id, open)| (*id, open.server.clone())) else {
            let links = self.books.links.iter().filter(|(_, link)| link.pauses);
            let links: Vec<LinkId> = links.map(|(link, _)| *link).collect();
            let Some(link) = self.prng.pick(&links).copied() else {
                return self.join();
            };
            return self.request_at(link);
        };
        for _ in 0..=1 + self.prng.below(2) {
            let operation = self.fresh();
            self.asks(operation, &server, About::Call(call), "roots/list");
        }
        match self.prng.below(5) {
            0 => (self.now_ms += 1_600, self.tick()).1,
            1 => self.answer(),
            _ => {}
        }
        self.come_back();
    }

    /// A caller proposes to others, and one of them answers, sometimes before the approval is on
    /// disk.
    fn story_of_the_room(&mut self) {
        let links: Vec<LinkId> = self.books.links.keys().copied().collect();
        for link in &links {
            if let Some(by) = self.books.owner(*link).filter(|_| !self.prng.one_in(4)) {
                self.regrants(&by, parse(&["mcp/*", "chat"]));
            }
        }
        let Some(link) = self.prng.pick(&links).copied() else {
            return self.join();
        };
        let others: Vec<ParticipantId> = links
            .iter()
            .filter_map(|link| self.books.owner(*link))
            .collect();
        let mut to: Vec<ParticipantId> = Vec::new();
        for _ in 0..2 {
            let one = self.prng.any(&others);
            to.extend((!to.contains(&one)).then_some(one));
        }
        let Some(proposal) = self.proposes(link, to) else {
            return;
        };
        self.proceed(proposal);
        for _ in 0..3 {
            if self.prng.one_in(2) {
                self.fulfils(Some(proposal))
            } else {
                self.decides(proposal)
            }
        }
        if self.prng.one_in(3) {
            self.answer_in_room();
        }
        self.proceed(proposal);
        (0..3).for_each(|_| self.answer_in_room());
        self.proceed(proposal);
    }

    /// The participants leave that a proposal needs: the one that would carry it out, or the one
    /// that approved it while a server does.
    fn story_of_departures(&mut self) {
        let links: Vec<LinkId> = self.books.links.keys().copied().collect();
        for link in &links {
            if let Some(by) = self.books.owner(*link) {
                self.regrants(&by, parse(&["mcp/*", "chat"]));
            }
        }
        let Some(link) = self.prng.pick(&links).copied() else {
            return self.join();
        };
        if self.prng.one_in(2) {
            let servers: Vec<ParticipantId> = self.books.servers.keys().cloned().collect();
            let to: Vec<ParticipantId> = self.prng.pick(&servers).cloned().into_iter().collect();
            let Some(proposal) = self.proposes(link, to) else {
                return;
            };
            self.proceed(proposal);
            self.fulfils(Some(proposal));
            self.proceed(proposal);
            let runs = |open: &&Call| open.in_room && open.proposal == Some(proposal);
            if let Some(approver) = self.books.calls.values().find(runs).map(|open| open.link) {
                self.leaves(approver);
            }
            self.answer();
            self.proceed(proposal);
        } else {
            let others: Vec<ParticipantId> = links
                .iter()
                .filter_map(|link| self.books.owner(*link))
                .collect();
            let Some(worker) = self.prng.pick(&others).cloned() else {
                return;
            };
            let Some(proposal) = self.proposes(link, vec![worker.clone()]) else {
                return;
            };
            self.proceed(proposal);
            for link in self.books.links_of(&worker) {
                self.leaves(link);
            }
            self.decides(proposal);
            self.fulfils(Some(proposal));
            self.proceed(proposal);
        }
    }

    fn story_of_a_call(&mut self) {
        for _ in 0..6 {
            let links = self.books.links.iter().filter(|(_, link)| link.promotes);
            let links: Vec<LinkId> = links.map(|(link, _)| *link).collect();
            let Some(link) = self.prng.pick(&links).copied() else {
                return self.join();
            };
            self.request_at(link);
            self.propose_held();
        }
        let waits = self
            .books
            .calls
            .values()
            .find(|open| open.place == Place::Held && open.proposal.is_some());
        let Some(proposal) = waits.and_then(|open| open.proposal) else {
            return;
        };
        self.proceed(proposal);
        match self.prng.below(4) {
            0 => (self.now_ms += 2_500, self.tick()).1,
            1 => self.stop(),
            _ => {}
        }
        self.resume();
        if self.prng.one_in(2) {
            self.fulfils(Some(proposal));
        }
        self.decides(proposal);
        match self.prng.below(4) {
            0 => self.cancel(),
            1 => self.regrant(),
            _ => {}
        }
        self.proceed(proposal);
        self.answer();
        self.proceed(proposal);
    }

    /// The journal writes its pending record.
    fn proceed(&mut self, proposal: OperationId) {
        if self
            .books
            .deals
            .get(&proposal)
            .is_some_and(|deal| deal.writing.is_some())
        {
            let stored = !self.prng.one_in(12);
            self.journals(proposal, stored);
        }
    }
}
