//! Ends of proposals: each once, and for a reason.

use model::{OperationId, Outcome, ParticipantId, ProposalState};
use topic::EXTENSION_MS;

use super::{
    Books,
    calls::Place,
    deals::{Deal, Written, amended_digest, warning},
};
use crate::{numbers::ProposalView, turn::Turn};

impl Books {
    /// An end is written: of an approved proposal, or at its time.
    pub(crate) fn check_end(
        &mut self,
        id: OperationId,
        deal: &Deal,
        (state, answer): (ProposalState, Option<u64>),
        turn: &Turn,
    ) {
        let approved = matches!(
            deal.durable.last(),
            Some(Written::Decided {
                state: ProposalState::Running,
                ..
            })
        );
        assert_eq!(
            approved,
            state != ProposalState::Expired,
            "{id} ended without an approval"
        );
        assert_eq!(
            deal.approved == 0,
            matches!(state, ProposalState::Withdrawn | ProposalState::Expired)
        );
        assert!(
            state != ProposalState::Withdrawn || deal.recalled,
            "{id} was given up without cause"
        );
        let by_server = turn
            .answering
            .filter(|_| deal.runner == turn.answering.map(|one| one.operation));
        let in_room = turn
            .room_answer
            .clone()
            .filter(|one| one.proposal == id && !deal.held);
        let outcome = match (by_server, in_room) {
            (Some(one), _) => Some((one.outcome, one.answer)),
            (None, Some(one)) => Some((one.outcome, Some(one.answer))),
            (None, None) => None,
        };
        match (state, outcome) {
            (ProposalState::Completed, outcome) => {
                let (outcome, given) = outcome.expect("an answer completes");
                assert_eq!((outcome, given), (Outcome::Ok, answer));
                assert!(answer.is_some());
            }
            (ProposalState::Failed, Some((outcome, given))) => {
                assert_ne!(outcome, Outcome::Ok);
                assert_eq!(given, answer);
            }
            (_, None) => {
                assert_eq!(answer, None);
                if state == ProposalState::Failed && deal.in_room && !self.is_answerable(deal) {
                    self.count("unanswerable");
                }
            }
            (state, outcome) => panic!("{id} {state} with {outcome:?}"),
        }
        self.deals.get_mut(&id).unwrap().answer = answer;
    }

    pub(crate) fn concluded(&mut self, view: &ProposalView, turn: &Turn) {
        let id = view.id;
        let state = view.state;
        let deal = self.deals.get_mut(&id).unwrap();
        assert!(deal.over.is_none() && state.is_over(), "{id} ended twice");
        assert_eq!(
            (&view.by, view.content, view.answer),
            (&deal.by, deal.content, deal.answer)
        );
        let end = |written: &Written| match written {
            Written::Opened
            | Written::Counted(_)
            | Written::Extended { .. }
            | Written::Amended { .. } => None,
            Written::Decided { state, .. } | Written::Ended { state, .. } => Some(*state),
        };
        let (about, stored) = turn.journal.expect("an end is on disk, or cannot be");
        assert_eq!(about, id);
        if stored {
            assert_eq!(deal.durable.last().and_then(end), Some(state));
        } else {
            // A failed rejection is none.
            assert_ne!(state, ProposalState::Rejected);
            deal.end_lost = true;
        }
        (deal.over, deal.fulfilment) = (Some(state), None);
        (deal.recalled, deal.queued) = (false, None);
        self.close_parked(id);
    }

    /// The answer of a participant that left the proposer out is relayed to it.
    pub(crate) fn relayed(&mut self, message: u64, to: &ParticipantId) {
        let published = self
            .room
            .published
            .iter()
            .find(|one| one.message == message);
        let published = published.expect("only a message is relayed");
        assert!(
            !published.to.iter().any(|one| one == to.as_str()),
            "{to} has it already"
        );
        assert!(
            self.deals
                .values()
                .any(|deal| deal.by == *to && deal.is_running())
        );
    }

    /// The journal answers: the record is on disk, or is not.
    pub(crate) fn journal(&mut self, id: OperationId, stored: bool) {
        let now_ms = self.now_ms;
        let deal = self.deals.get_mut(&id).unwrap();
        let written = deal.writing.take();
        if let Some(Written::Counted(mut counted)) = written {
            if counted.requested {
                self.forget_fulfilment(id);
            }
            let is_void = self.deals[&id].void.contains(&counted.ruling);
            if stored && !is_void {
                let inside = self.is_here(&counted.by).then(|| self.granted(&counted.by));
                if let Some(Some(granted)) = inside {
                    counted.outside = Some(granted.clone());
                }
                let deal = self.deals.get_mut(&id).unwrap();
                deal.counted.retain(|one| one.by != counted.by);
                deal.counted.push(counted);
            }
            return;
        }
        if let Some(Written::Extended { ruling, .. }) = written {
            if stored {
                deal.expires_ms += EXTENSION_MS;
                deal.expires_wall_ms += EXTENSION_MS;
                deal.extensions += 1;
                deal.extended = Some(ruling);
                deal.warn_ms = warning(deal, now_ms);
            }
            return;
        }
        if let Some(Written::Amended { content, ruling }) = written {
            if stored {
                deal.content = content;
                deal.amendments += 1;
                deal.version = amended_digest(content);
                deal.amended = Some(ruling);
                deal.counted.clear();
            }
            return;
        }
        deal.durable.extend(written.filter(|_| stored));
    }

    /// Whether callers wait for a proposal.
    pub(crate) fn is_waited_for(&self, id: OperationId) -> bool {
        let waits = |place: Place| matches!(place, Place::Held | Place::Waiting { .. });
        self.calls
            .values()
            .any(|open| open.proposal == Some(id) && waits(open.place))
    }
}
