//! Answers of the journal, and proposals that the gateway carries out.

use model::{GATEWAY, OperationId, ParticipantId};
use topic::Cause;

use crate::{
    books::calls::Call,
    draw::requests::blank,
    numbers::{Effect, Event},
    shell::Mailbox,
    turn::Turn,
    world::World,
};

impl World {
    pub(crate) fn journal(&mut self) {
        let proposal = self.any_deal(|deal| deal.writing.is_some());
        if self
            .books
            .deals
            .get(&proposal)
            .is_some_and(|deal| deal.writing.is_some())
        {
            let stored = !self.prng.one_in(9);
            return self.journals(proposal, stored);
        }
        // An answer without a write changes nothing.
        let effects = self.live(
            Event::Written {
                proposal,
                stored: true,
            },
            Turn::default(),
        );
        assert!(effects.all.is_empty());
    }

    pub(crate) fn journals(&mut self, proposal: OperationId, stored: bool) {
        // The journal answers what it was given.
        self.shell.empty(Mailbox::Gateway);
        self.books.journal(proposal, stored);
        let turn = Turn {
            journal: Some((proposal, stored)),
            parks: true,
            ..Turn::default()
        };
        let effects = self.live(Event::Written { proposal, stored }, turn);
        assert!(
            !effects.all.is_empty(),
            "something follows from every record"
        );
        let waiting = self
            .books
            .waiting
            .values()
            .filter(|one| one.proposal == proposal)
            .count();
        let writing = self.books.deals[&proposal].writing.is_some();
        assert!(waiting == 0 || writing, "calls wait for what is decided");
    }

    /// Carries out an approved proposal: mostly as approved, sometimes at another server or a
    /// second time.
    pub(crate) fn execute(&mut self) {
        let mut due = (!self.books.to_execute.is_empty()).then(|| self.books.to_execute.remove(0));
        if due.is_none() || self.prng.one_in(8) {
            let known: Vec<OperationId> = self.books.deals.keys().copied().collect();
            let Some(proposal) = self.prng.pick(&known).copied() else {
                return;
            };
            self.books.to_execute.extend(due.take());
            due = Some((proposal, self.any_server()));
        }
        if let Some((proposal, server)) = due {
            self.executes(proposal, &server);
        }
    }

    pub(crate) fn executes(&mut self, proposal: OperationId, server: &ParticipantId) {
        self.shell.empty(Mailbox::Gateway);
        let operation = self.fresh();
        let call = self.number();
        let deal = self.books.deals[&proposal].clone();
        let gateway = self
            .books
            .servers
            .get(&ParticipantId::gateway())
            .map(|served| served.link);
        let link = gateway.unwrap_or(model::LinkId(0));
        let by = ParticipantId::gateway();
        let own = deal.own.clone();
        let open = Call {
            public: own.clone(),
            own,
            ..blank(call, link, by.clone(), server.clone(), deal.method)
        };
        let runs = deal.is_known()
            && deal.is_running()
            && deal.writing.is_none()
            && deal.runs == 0
            && !deal.in_room;
        let meant = deal.to.is_empty() || deal.to.contains(server);
        let room = gateway.is_some_and(|link| !self.books.is_full(link, &by));
        let here = self.books.servers.contains_key(server);
        let mut turn = Turn::default();
        turn.calls.insert(call, (operation, open));
        let effects = self.live(
            Event::Execute {
                proposal,
                operation,
                server,
                call,
            },
            turn,
        );
        match effects.all.as_slice() {
            [Effect::Deliver { .. }] => {
                assert!(runs && meant && room && here, "{GATEWAY} carries it out")
            }
            [
                Effect::Refuse {
                    cause: Cause::Moot, ..
                },
            ] => assert!(!runs || !meant),
            [Effect::Refuse { .. }, Effect::Store { .. }] => {
                assert!(runs && meant && (!room || !here))
            }
            other => panic!("{other:?}"),
        }
    }
}
