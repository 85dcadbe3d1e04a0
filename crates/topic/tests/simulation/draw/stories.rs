//! Stories that chance alone tells too seldom: a held call, parked, come back for, approved.

use model::{LinkId, OperationId};

use crate::{books::calls::Place, world::World};

impl World {
    pub(crate) fn story(&mut self) {
        for _ in 0..6 {
            let links = self.books.links.iter().filter(|(_, link)| link.promotes);
            let links: Vec<LinkId> = links.map(|(link, _)| *link).collect();
            let Some(link) = self.prng.pick(&links).copied() else { return self.join() };
            self.request_at(link);
            self.propose_held();
        }
        let waits =
            self.books.calls.values().find(|open| open.place == Place::Held && open.proposal.is_some());
        let Some(proposal) = waits.and_then(|open| open.proposal) else { return };
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

    /// The journal writes what it was asked to.
    fn proceed(&mut self, proposal: OperationId) {
        if self.books.deals.get(&proposal).is_some_and(|deal| deal.writing.is_some()) {
            let stored = !self.prng.one_in(12);
            self.journals(proposal, stored);
        }
    }
}
