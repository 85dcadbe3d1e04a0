//! Crashes, restarts from the journal alone, and the end of a run.

use model::{LinkId, OperationId, ProposalState};
use topic::{CountedApproval, EndedProposal, Restore, RingLimits};

use crate::{
    books::{
        Books,
        deals::{Deal, Written, warning},
        envelopes::digest,
        tasks::{Stage, Task},
    },
    draw::held::terms,
    numbers::{Event, Numbers},
    turn::Turn,
    world::World,
};

/// Proposals that are over and known after a restart; of the others only digests are kept.
const KNOWN_MAX: usize = 3;

impl Books {
    /// Whether a proposal of this envelope was on disk and is no longer known, or was rejected.
    pub(crate) fn is_closed(&self, envelope: &str) -> bool {
        let over = |deal: &Deal| deal.gone && !deal.durable.is_empty() && deal.envelope == envelope;
        self.deals.values().any(over) || self.rejected.contains_key(envelope)
    }

    /// The journal after a crash; the record that was being written has arrived, or not.
    fn recover(&mut self, id: OperationId, arrived: bool) {
        self.journal(id, arrived);
        let deal = self.deals.get_mut(&id).unwrap();
        if deal.gone {
            return;
        }
        (deal.recalled, deal.requested, deal.queued) = (false, false, None);
        (deal.fulfilment, deal.in_room) = (None, false);
        assert!(!deal.proposed || !deal.durable.is_empty(), "{id} is lost");
        match deal.durable.last() {
            None => deal.gone = true,
            Some(Written::Counted(_) | Written::Extended { .. } | Written::Amended { .. }) => {
                panic!("{id}: an approval is no decision")
            }
            Some(Written::Opened) => {
                assert!(
                    deal.approved == 0 && deal.runs_own == 0,
                    "{id} would run again"
                );
                assert!(
                    deal.over.is_none() || deal.end_lost,
                    "{id} is over, and comes back"
                );
                (deal.over, deal.end_lost, deal.proposed, deal.restored) =
                    (None, false, true, true);
            }
            // An approved proposal without an end has failed, and never runs again.
            Some(Written::Decided {
                state: ProposalState::Running,
                ..
            }) => {
                deal.over = Some(ProposalState::Failed);
                (deal.end_lost, deal.answer) = (false, None);
                deal.durable.push(Written::Ended {
                    state: ProposalState::Failed,
                    answer: None,
                });
            }
            Some(Written::Decided { state, .. }) => {
                (deal.over, deal.end_lost) = (Some(*state), false)
            }
            Some(Written::Ended { state, answer }) => {
                (deal.over, deal.end_lost, deal.answer) = (Some(*state), false, *answer);
            }
        }
    }
}

impl World {
    pub(crate) fn crash(&mut self) {
        if self.recorded {
            self.log.push("CRASH".to_owned());
        }
        self.life += 1;
        let tasks = self.books.tasks.values();
        let tasks = tasks.filter(|task| task.durable && task.stage == Stage::Known);
        let tasks: Vec<Task> = tasks.cloned().collect();
        self.topic = Self::topic(&self.books.configured, self.life);
        self.books.forget();
        self.shell.forget();
        self.books.count("crashed");
        for id in self.books.deals.keys().copied().collect::<Vec<_>>() {
            let arrived = self.prng.one_in(2);
            self.books.recover(id, arrived);
        }
        self.restore();
        self.restores_tasks(tasks);
        // The journal has the pauses, too.
        for braked in std::mem::take(&mut self.books.braked) {
            self.brake(&braked, true);
        }
        // Participants that may no longer propose are revoked again, some while they are absent.
        for (participant, granted) in self.books.standings() {
            match granted {
                _ if self.books.is_server(&participant) => {}
                Some(granted) => self.regrants(&participant, granted),
                None => self.revokes(&participant),
            }
        }
        self.open();
    }

    fn restore(&mut self) {
        let known = |deal: &Deal| deal.is_known();
        let deals: Vec<(OperationId, Deal)> = self
            .books
            .deals
            .iter()
            .filter(|(_, deal)| known(deal))
            .map(|(id, deal)| (*id, deal.clone()))
            .collect();
        let over: Vec<OperationId> = deals
            .iter()
            .filter(|(_, deal)| deal.over.is_some())
            .map(|(id, _)| *id)
            .collect();
        let last = &over[over.len().saturating_sub(KNOWN_MAX)..];
        self.books
            .deals
            .values_mut()
            .for_each(|deal| deal.gone = true);
        for (proposal, deal) in &deals {
            let proposal = *proposal;
            let content = deal.content;
            let terms = terms(deal);
            let known = deal.over.is_none() || last.contains(&proposal);
            self.books.deals.get_mut(&proposal).unwrap().gone = !known;
            if known {
                let held = deal.held;
                let public = deal.public.as_deref();
                let approved_by = deal.counted.iter();
                let approved_by = approved_by
                    .map(|one| CountedApproval {
                        by: one.by.clone(),
                        outside: None,
                        shown: deal.digest(),
                        note: None,
                    })
                    .collect();
                let warns = warning(deal, self.now_ms);
                self.books.deals.get_mut(&proposal).unwrap().warn_ms = warns;
                for one in &mut self.books.deals.get_mut(&proposal).unwrap().counted {
                    one.outside = None;
                }
                let end = deal.over.map(|state| ended(deal, state));
                self.books.count(if end.is_some() {
                    "ended again"
                } else {
                    "pending again"
                });
                let restore = Restore {
                    proposal,
                    terms,
                    content,
                    held,
                    public,
                    approved_by,
                    end,
                };
                self.live(Event::Restore(restore), Turn::default());
            }
        }
        let until_ms = self.now_ms + 1_000_000_000_000;
        let closed = self
            .books
            .deals
            .values()
            .filter(|deal| deal.gone && !deal.durable.is_empty());
        let closed: Vec<(u64, u128)> = closed
            .map(|deal| (until_ms, digest(&deal.envelope)))
            .collect();
        if !closed.is_empty() {
            self.books.count("closed again");
        }
        self.live(Event::Closed { closed }, Turn::default());
    }

    /// At the end every call and question is answered, and none is open.
    pub(crate) fn finish(&mut self) {
        for _ in 0..6 {
            self.now_ms += 1_000_000;
            self.books.now_ms = self.now_ms;
            self.tick();
            for (proposal, server) in std::mem::take(&mut self.books.to_execute) {
                self.executes(proposal, &server);
            }
            for operation in self.books.calls.keys().copied().collect::<Vec<_>>() {
                if self.topic.is_open(operation) {
                    self.answers(operation);
                }
            }
            let writing = self
                .books
                .deals
                .iter()
                .filter(|(_, deal)| deal.writing.is_some());
            for proposal in writing.map(|(id, _)| *id).collect::<Vec<_>>() {
                self.journals(proposal, true);
            }
        }
        for link in self.books.links.keys().copied().collect::<Vec<LinkId>>() {
            self.leaves(link);
        }
        for _ in 0..3 {
            let writing = self
                .books
                .deals
                .iter()
                .filter(|(_, deal)| deal.writing.is_some());
            for proposal in writing.map(|(id, _)| *id).collect::<Vec<_>>() {
                self.journals(proposal, true);
            }
        }
        let servers: Vec<OperationId> = self.books.calls.keys().copied().collect();
        servers
            .into_iter()
            .for_each(|operation| self.settle(operation));
        self.configures(&[topic::UpstreamNames::gateway()]);
        self.now_ms += 1_000_000;
        self.books.now_ms = self.now_ms;
        self.tick();
        assert_eq!((self.topic.tasks_len(), self.books.tasks.len()), (0, 0));
        self.shell.empty_all();
        self.shell.check_ends();
        assert_eq!(
            (self.books.deals_open(), self.topic.proposals_len()),
            (0, 0)
        );
        assert_eq!(
            (self.topic.operations_len(), self.topic.parked_len()),
            (0, 0)
        );
        assert!(
            self.books.calls.is_empty() && self.books.questions.is_empty(),
            "an operation is lost"
        );
        assert!(
            self.books.rulings.is_empty() && self.books.waiting.is_empty(),
            "a handle is lost"
        );
        assert!(self.books.unpublished.is_empty(), "an envelope is lost");
        assert_eq!(
            (
                self.topic.next_deadline_ms(),
                self.topic.kept() == RingLimits::default()
            ),
            (None, self.books.room.kept == RingLimits::default())
        );
        let gateway = usize::from(
            self.books
                .servers
                .contains_key(&model::ParticipantId::gateway()),
        );
        assert_eq!(
            (self.topic.participants_len(), self.topic.links_len()),
            (gateway, gateway)
        );
    }

    /// The server answers a call that goes on without its caller.
    fn settle(&mut self, operation: OperationId) {
        while self.topic.is_open(operation) {
            self.answers(operation);
            let writing = self
                .books
                .deals
                .iter()
                .filter(|(_, deal)| deal.writing.is_some());
            for proposal in writing.map(|(id, _)| *id).collect::<Vec<_>>() {
                self.journals(proposal, true);
            }
        }
    }
}

fn ended(deal: &Deal, state: ProposalState) -> EndedProposal<Numbers> {
    let decided = deal.durable.iter().find_map(|written| match written {
        Written::Decided {
            by,
            ruling: Some(ruling),
            ..
        } => Some((by.clone(), *ruling)),
        Written::Opened
        | Written::Counted(_)
        | Written::Extended { .. }
        | Written::Amended { .. }
        | Written::Decided { .. }
        | Written::Ended { .. } => None,
    });
    EndedProposal {
        state,
        reason: None,
        decided,
        fulfilment: None,
        answer: deal.answer,
    }
}
