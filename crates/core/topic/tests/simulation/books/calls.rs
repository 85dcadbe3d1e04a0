//! Open calls: the place of each, and the one return of its handle.

use model::{LinkId, LogLevel, OperationId, Outcome, ParticipantId};
use topic::{Cause, Ended, Logs};

use super::{Books, deals::Written, interests::Listen, tasks::Right};
use crate::{numbers::ProposalView, turn::Turn};

/// The place of an open call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    AtServer,
    /// It waits for a proposal, and so does its caller.
    Held,
    /// The same, and its caller was answered for now.
    Parked,
    /// A server has it, and its caller was answered for now with questions.
    Paused,
    /// Paused, and its server has ended it so.
    Kept {
        answer: Option<u64>,
        outcome: Outcome,
    },
    /// The gateway waits for a proposal.
    Waiting {
        withdraws: bool,
    },
}

#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) call: u64,
    pub(crate) link: LinkId,
    pub(crate) by: ParticipantId,
    pub(crate) server: ParticipantId,
    pub(crate) place: Place,
    /// Its caller was answered for now and is no longer reached through it.
    pub(crate) answered: bool,
    /// Its caller is asked by answers for now.
    pub(crate) pauses: bool,
    /// The number of times that it was.
    pub(crate) rounds: u32,
    pub(crate) tag: Option<u8>,
    /// The proposal that it waits for or carries out.
    pub(crate) proposal: Option<OperationId>,
    pub(crate) method: &'static str,
    pub(crate) public: Option<String>,
    pub(crate) own: Option<String>,
    /// It came as a request in the room.
    pub(crate) in_room: bool,
    pub(crate) mirrored: bool,
    /// A rule takes something of it: a server gets it with an approval alone.
    pub(crate) tightened: bool,
    pub(crate) order: u64,
    pub(crate) listen: Option<Listen>,
    /// The right to the task that it asks about.
    pub(crate) about: Option<Right>,
    pub(crate) logs: Logs,
    /// Notifications that came while it was paused.
    pub(crate) missed: Vec<u64>,
}

/// A call that came with a request in the room and waits for a proposal.
#[derive(Debug, Clone)]
pub(crate) struct Waiting {
    pub(crate) operation: OperationId,
    pub(crate) call: Call,
    pub(crate) proposal: OperationId,
    /// It is the proposer's own request; else it fulfils the proposal.
    pub(crate) own: bool,
}

impl Books {
    /// The link of the gateway's own participant, if that is in the topic.
    fn own_link(&self) -> Option<LinkId> {
        self.servers
            .get(&ParticipantId::gateway())
            .map(|served| served.link)
    }

    /// Calls of approved proposals that go on without the link on which an envelope approved them.
    pub(crate) fn outlive(&mut self, turn: &Turn) {
        let Some(own) = self.own_link() else { return };
        let leaves = |link: LinkId| {
            turn.leaving
                .iter()
                .any(|(left, why)| *left == link && *why != Some(Ended::Revoked))
        };
        let mut count = 0;
        for open in self.calls.values_mut() {
            let runs =
                matches!(open.place, Place::AtServer | Place::Paused) && open.proposal.is_some();
            if open.in_room && runs && leaves(open.link) {
                (open.link, open.by, open.tag) = (own, ParticipantId::gateway(), None);
                count += 1;
            }
        }
        (0..count).for_each(|_| self.count("went on without its approver"));
    }

    fn open_by_handle(&self, call: u64) -> Option<OperationId> {
        self.calls
            .iter()
            .find(|(_, open)| open.call == call)
            .map(|(operation, _)| *operation)
    }

    pub(crate) fn by_handle(&self, call: u64) -> OperationId {
        self.open_by_handle(call).expect("the call is open")
    }

    pub(crate) fn give_back(&mut self, call: u64) {
        assert!(
            self.returned.insert(call),
            "call {call} was given back twice"
        );
    }

    /// Takes a call that the event hands in, or one that waited with a proposal.
    fn handed_in(&mut self, call: u64, turn: &Turn) -> (OperationId, Call, Option<Waiting>) {
        if let Some((operation, fresh)) = turn.calls.get(&call) {
            return (*operation, fresh.clone(), None);
        }
        let waited = self.waiting.remove(&call).expect("the call was handed in");
        (waited.operation, waited.call.clone(), Some(waited))
    }

    pub(crate) fn opens(&mut self, operation: OperationId, call: Call) {
        self.opened += 1;
        let order = self.opened;
        assert!(
            self.calls
                .insert(operation, Call { order, ..call })
                .is_none()
        );
    }

    /// Whether what an effect began with an operation may go on.
    pub(crate) fn may_proceed(&self, operation: OperationId) -> bool {
        let Some(open) = self.calls.get(&operation) else {
            return false;
        };
        match open.place {
            Place::AtServer | Place::Paused | Place::Waiting { .. } => true,
            Place::Held => open.proposal.is_none(),
            Place::Parked | Place::Kept { .. } => false,
        }
    }

    /// The level from which on the caller of an open call wants log messages.
    fn log_level(&self, open: &Call) -> Option<LogLevel> {
        match open.logs {
            Logs::OfLink => self.links.get(&open.link).and_then(|own| own.level),
            Logs::None => None,
            Logs::From(level) => Some(level),
        }
    }

    /// Checks the level with which a call was delivered.
    pub(crate) fn check_logs(&mut self, call: u64, logs: Option<LogLevel>) {
        let open = self.calls[&self.by_handle(call)].clone();
        assert_eq!(logs, self.log_level(&open));
        if let Logs::From(_) = open.logs {
            self.count("delivered with its own log level");
        }
    }

    /// Whether the caller of an open call gets a message of this level about it.
    pub(crate) fn wants_log(&self, open: &Call, level: Option<LogLevel>) -> bool {
        let from = self.log_level(open);
        level.is_none() || (open.logs != Logs::None && (from.is_none() || level >= from))
    }

    pub(crate) fn delivered(
        &mut self,
        call: u64,
        (link, server): (LinkId, u64),
        own: Option<&str>,
        proposal: Option<OperationId>,
        turn: &Turn,
    ) {
        let server = self.server_of(server);
        assert_eq!(self.servers[&server].link, link);
        let (operation, open) = if let Some(operation) = self.open_by_handle(call) {
            let open = self.calls[&operation].clone();
            // It was held, and its approval is on disk in this very step.
            assert_eq!((&open.server, open.proposal), (&server, proposal));
            assert!(
                matches!(open.place, Place::Held | Place::Parked),
                "{operation} was not held"
            );
            assert_eq!(turn.journal, proposal.map(|proposal| (proposal, true)));
            self.calls.get_mut(&operation).unwrap().place = Place::AtServer;
            self.count(if open.answered {
                "parked and let go"
            } else {
                "let go"
            });
            (operation, open)
        } else {
            let (operation, open, waited) = self.handed_in(call, turn);
            assert_eq!(open.server, server);
            if let Some(Waiting {
                proposal: named,
                own: by_proposer,
                ..
            }) = waited
            {
                assert_eq!(turn.journal.map(|(id, _)| id), Some(named));
                assert_eq!(proposal.is_none(), by_proposer);
                if by_proposer {
                    self.runs_own(named);
                }
            }
            let mut opened = Call {
                proposal,
                ..open.clone()
            };
            if let Some(own) = self
                .own_link()
                .filter(|_| proposal.is_some() && !self.links.contains_key(&open.link))
            {
                (opened.link, opened.by) = (own, ParticipantId::gateway());
            }
            self.opens(operation, opened);
            (operation, open)
        };
        assert!(proposal.is_some() || !open.tightened, "not approved");
        if let Some(proposal) = proposal {
            self.runs(proposal, operation, &server, &open);
        }
        let spelled = own.or(open.public.as_deref());
        assert_eq!(spelled, open.own.as_deref(), "its own name");
        self.check_mirror(operation, proposal);
    }

    pub(crate) fn held(&mut self, call: u64, own: Option<&str>, turn: &Turn) {
        let (operation, open, waited) = self.handed_in(call, turn);
        assert!(waited.is_none() && self.links[&open.link].promotes);
        assert_eq!(own.or(open.public.as_deref()), open.own.as_deref());
        self.opens(
            operation,
            Call {
                place: Place::Held,
                ..open
            },
        );
    }

    /// A caller is answered for now, about a proposal that is on disk.
    pub(crate) fn parked(&mut self, call: u64, proposal: OperationId, turn: &Turn) {
        assert!(turn.parks, "parked without cause");
        assert!(
            !self.deals[&proposal].durable.is_empty(),
            "{proposal} is not on disk"
        );
        let operation = self.by_handle(call);
        let open = self.calls.get_mut(&operation).unwrap();
        assert_eq!(open.proposal, Some(proposal));
        match open.place {
            Place::Held => (open.place, open.answered) = (Place::Parked, true),
            Place::Waiting { .. } => self.close(operation, Outcome::Ok),
            Place::AtServer | Place::Parked | Place::Paused | Place::Kept { .. } => {
                panic!("{operation} does not wait")
            }
        }
    }

    pub(crate) fn reported(&mut self, call: u64, view: &ProposalView) {
        let deal = &self.deals[&view.id];
        assert_eq!(
            (deal.over, deal.content),
            (Some(view.state), view.content),
            "it is not over"
        );
        assert_eq!(view.answer, deal.answer);
        let operation = self.by_handle(call);
        let open = &self.calls[&operation];
        assert_eq!((open.proposal, &open.by), (Some(view.id), &deal.by));
        assert!(matches!(open.place, Place::Held | Place::Waiting { .. }));
        self.close(operation, Outcome::Ok);
    }

    pub(crate) fn settled(
        &mut self,
        call: u64,
        answer: u64,
        view: Option<&ProposalView>,
        turn: &Turn,
    ) {
        let operation = self.by_handle(call);
        if let Place::Kept {
            answer: kept,
            outcome,
        } = self.calls[&operation].place
        {
            assert_eq!((kept, view.is_none()), (Some(answer), true));
            self.count("kept end settled");
            return self.close(operation, outcome);
        }
        let answering = turn.answering.expect("only an answer settles");
        assert_eq!(
            (answering.operation, answering.answer),
            (operation, Some(answer))
        );
        let open = &self.calls[&operation];
        let carried_out = open
            .proposal
            .filter(|_| matches!(open.place, Place::AtServer | Place::Paused));
        let running = carried_out.filter(|id| self.deals[id].over.is_none());
        assert_eq!(view.map(|view| view.id), running);
        // A participant of the room may have answered before.
        let kept = running.map_or(Some(answer), |id| match self.deals[&id].writing {
            Some(Written::Ended { answer, .. }) => answer,
            Some(
                Written::Opened
                | Written::Counted(_)
                | Written::Extended { .. }
                | Written::Amended { .. }
                | Written::Decided { .. },
            )
            | None => Some(answer),
        });
        assert!(view.is_none_or(|view| view.answer == kept));
        if answering.outcome == Outcome::Ok {
            self.keep_subscription(operation);
        }
        self.close(operation, answering.outcome);
    }

    pub(crate) fn refused(&mut self, call: u64, cause: Cause, turn: &Turn) {
        if let Some(operation) = self.open_by_handle(call) {
            let open = &self.calls[&operation];
            if let Place::Kept { answer, .. } = open.place
                && cause == Cause::Failed
            {
                assert_eq!(answer, None);
                return self.close(operation, Outcome::Refused);
            }
            let failed = turn
                .answering
                .is_some_and(|one| one.operation == operation && one.answer.is_none());
            assert_eq!(failed, cause == Cause::Failed && turn.answering.is_some());
            assert!(cause != Cause::UpstreamDown || turn.dismissed.contains(&open.server));
            assert!(cause != Cause::Withdrawn || turn.regrants.as_ref() == Some(&open.by));
            return self.close(operation, Outcome::Refused);
        }
        if !turn.calls.contains_key(&call) {
            let waited = self
                .waiting
                .remove(&call)
                .expect("a call that is refused was handed in");
            // The journal has answered, or a rejection takes the place of the approval it came with.
            let brought = turn.decision.as_ref().filter(|(_, one)| !one.approves);
            let journal = turn.journal.as_ref().map(|(id, _)| *id);
            let about = journal.or(brought.map(|(id, _)| *id));
            assert_eq!(about, Some(waited.proposal));
        }
        self.give_back(call);
    }

    pub(crate) fn dropped(&mut self, call: u64, turn: &Turn) {
        // The held call runs instead of the one that came with the decision.
        if let Some(waited) = self.waiting.remove(&call) {
            let held = self
                .calls
                .values()
                .any(|open| open.proposal == Some(waited.proposal));
            let counted = self.deals[&waited.proposal].counted.last();
            let is_partial = counted.is_some_and(|one| one.requested);
            assert!((held || is_partial) && turn.journal == Some((waited.proposal, true)));
            self.count("dropped for a held call");
            return self.give_back(call);
        }
        let operation = self.by_handle(call);
        let open = &self.calls[&operation];
        let leaves = turn.leaving.iter().any(|(link, _)| *link == open.link);
        let late = turn.parks && matches!(open.place, Place::Paused | Place::Kept { .. });
        assert!(
            turn.cancelling == Some(operation) || leaves && !open.answered || late,
            "{operation} was dropped"
        );
        if late {
            self.count("its caller did not come back");
        }
        self.close(operation, Outcome::Cancelled);
    }

    /// A server may stop: it had the call.
    pub(crate) fn cancelled(&mut self, call: u64) {
        let open = &self.calls[&self.by_handle(call)];
        assert!(matches!(open.place, Place::AtServer | Place::Paused));
        assert!(
            self.servers.contains_key(&open.server),
            "{} is not here",
            open.server
        );
    }

    /// Ends a call. Its questions have ended before it.
    pub(crate) fn close(&mut self, operation: OperationId, outcome: Outcome) {
        let open = self.calls.remove(&operation).expect("a call ends once");
        let asked = self
            .questions
            .values()
            .find(|ask| ask.about == Some(operation));
        assert!(asked.is_none(), "{operation} ended before {asked:?}");
        self.give_back(open.call);
        self.end_task_part(operation, outcome);
        self.end_interest(&open, operation);
        self.end_mirror(operation, &open, outcome);
        self.check_given_up(&open);
    }

    /// A parked call ends with its proposal.
    pub(crate) fn close_parked(&mut self, proposal: OperationId) {
        let parked = |open: &Call| open.place == Place::Parked && open.proposal == Some(proposal);
        let found = self
            .calls
            .iter()
            .find(|(_, open)| parked(open))
            .map(|(operation, _)| *operation);
        if let Some(open) = found.and_then(|operation| self.calls.remove(&operation)) {
            self.give_back(open.call);
            self.count("parked and over");
        }
    }

    /// All calls that were handed in are open, wait, or were given back; the caller of this
    /// function knows those that the topic refuses.
    pub(crate) fn has(&self, call: u64) -> bool {
        self.returned.contains(&call)
            || self.waiting.contains_key(&call)
            || self.calls.values().any(|open| open.call == call)
    }

    pub(crate) fn finish_calls(&mut self, turn: &Turn) {
        for (operation, open) in &self.calls {
            assert!(
                open.answered || self.is_linked(open),
                "{operation} goes on without its link"
            );
            assert!(
                !turn.dismissed.contains(&open.server),
                "{operation} goes on without its server"
            );
            let waits = matches!(
                open.place,
                Place::Waiting { .. } | Place::Held | Place::Parked
            );
            let over = open
                .proposal
                .is_some_and(|id| self.deals[&id].over.is_some());
            assert!(!waits || !over, "{operation} waits for what is over");
        }
    }

    /// Whether a call's link is in the topic: a caller's, or the gateway's own.
    fn is_linked(&self, open: &Call) -> bool {
        self.links.contains_key(&open.link)
            || self.servers.values().any(|served| served.link == open.link)
    }
}
