//! Calls whose callers were answered for now with questions.

use std::collections::BTreeSet;

use model::OperationId;

use super::{
    Books,
    calls::{Call, Place},
    limits::LIMITS,
};
use crate::turn::{Returning, Turn};

impl Books {
    pub(crate) fn paused(&mut self, call: u64, round: u32, questions: &[(OperationId, u64)]) {
        let operation = self.by_handle(call);
        let known: BTreeSet<(OperationId, u64)> = self.asked_about(operation).into_iter().collect();
        assert_eq!(
            questions.iter().copied().collect::<BTreeSet<_>>(),
            known,
            "all that is open is asked"
        );
        assert!(!known.is_empty());
        let open = self.calls.get_mut(&operation).unwrap();
        assert!(
            open.pauses && open.place == Place::AtServer && !open.answered,
            "{operation} waits already"
        );
        open.rounds += 1;
        assert_eq!(open.rounds, round);
        assert!(round <= LIMITS.rounds_max);
        open.place = Place::Paused;
        if round > 1 {
            self.count("asked again");
        }
    }

    pub(crate) fn came_back(&mut self, call: u64, by: u64, turn: &Turn) {
        let Returning {
            operation,
            link,
            tag,
            round,
            ..
        } = turn.returning.clone().expect("it comes back");
        assert_eq!(self.by_handle(call), operation);
        self.give_back(by);
        for asked in self
            .questions
            .values_mut()
            .filter(|open| open.about == Some(operation))
        {
            asked.link = link;
        }
        let participant = self.links[&link].participant.clone();
        let open = self.calls.get_mut(&operation).unwrap();
        assert_eq!((open.rounds, &open.by), (round, &participant));
        let moved = open.link != link;
        (open.link, open.tag) = (link, tag);
        if open.place == Place::Paused {
            open.place = Place::AtServer;
        }
        if moved {
            self.count("came back on another link");
        }
    }

    /// The end of a paused call waits for its caller; watchers see it now.
    pub(crate) fn keep_end(&mut self, turn: &Turn) {
        let Some(operation) = turn.keeps else { return };
        let answering = turn.answering.expect("an answer is kept");
        let open = self.calls[&operation].clone();
        self.end_mirror(operation, &open, answering.outcome);
        let place = Place::Kept {
            answer: answering.answer,
            outcome: answering.outcome,
        };
        self.calls.insert(
            operation,
            Call {
                place,
                mirrored: false,
                ..open
            },
        );
        self.count("kept");
    }
}
