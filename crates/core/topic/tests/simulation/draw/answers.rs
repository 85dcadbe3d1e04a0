//! Answers of servers and callers, and cancelling.

use model::{LinkId, OperationId, Outcome, Refusal, RefusalCode};
use topic::{End, OperationRef};

use crate::{
    books::calls::{Call, Place},
    numbers::{Effect, Event},
    shell::Mailbox,
    turn::{Answering, Turn},
    world::World,
};

impl World {
    /// The link that owes the end of an operation.
    fn owes(&self, operation: OperationId) -> Option<LinkId> {
        if let Some(open) = self.books.questions.get(&operation) {
            return Some(open.link);
        }
        let open = self.books.calls.get(&operation)?;
        let at_server = matches!(
            open.place,
            Place::AtServer | Place::Paused | Place::Waiting { .. }
        );
        at_server.then(|| self.books.servers[&open.server].link)
    }

    pub(crate) fn answer(&mut self) {
        let operation = self.any_open();
        self.answers(operation);
    }

    pub(crate) fn answers(&mut self, operation: OperationId) {
        self.reach(operation);
        let rightful = self.owes(operation);
        let other = self.any_link();
        let answer = self.number();
        let link = rightful.filter(|_| !self.prng.one_in(6)).unwrap_or(other);
        let counts = rightful == Some(link);
        let (outcome, given) = match self.prng.below(4) {
            0 => (Outcome::Error, Some(answer)),
            1 => (Outcome::Refused, None),
            _ => (Outcome::Ok, Some(answer)),
        };
        let end = || match given {
            Some(answer) => End::Answered { outcome, answer },
            None => End::Failed(Box::new(Refusal::new(
                RefusalCode::UpstreamFailed,
                "it is lost",
            ))),
        };
        let answering = counts.then_some(Answering {
            operation,
            answer: given,
            outcome,
        });
        let waits = |open: &Call| open.place == Place::Paused && open.proposal.is_none();
        let keeps = counts && self.books.calls.get(&operation).is_some_and(waits);
        let turn = Turn {
            answering,
            keeps: keeps.then_some(operation),
            ..Turn::default()
        };
        let effects = self.live(
            Event::Answer {
                link,
                operation,
                end: end(),
            },
            turn,
        );
        assert!(
            keeps || effects.all.is_empty() != counts,
            "late answers and others' are ignored"
        );
        let again = self.live(
            Event::Answer {
                link,
                operation,
                end: end(),
            },
            Turn::default(),
        );
        assert!(again.all.is_empty(), "a second answer is ignored");
    }

    /// Empties the mailbox by which the receiver of a call or question learns of it.
    pub(crate) fn reach(&mut self, operation: OperationId) {
        if let Some(open) = self.books.calls.get(&operation) {
            return self.shell.empty(Mailbox::Call(open.call));
        }
        let Some(open) = self.books.questions.get(&operation) else {
            return;
        };
        let about = open.about.and_then(|about| self.books.calls.get(&about));
        self.shell.empty(match about {
            Some(call) => Mailbox::Call(call.call),
            None => Mailbox::Link(self.books.links[&open.link].handle),
        });
    }

    /// Goes on with what an effect began, unless the call is over by then.
    pub(crate) fn go_on(&mut self) {
        let operation = self.any_open();
        let work = self.number();
        self.reach(operation);
        let must = self.books.may_proceed(operation);
        let effects = self.live(Event::Proceed { operation, work }, Turn::default());
        match effects.all.as_slice() {
            [Effect::Proceed { work: own, .. }] => assert_eq!((*own, must), (work, true)),
            other => assert!(other.is_empty() && !must),
        }
    }

    pub(crate) fn cancel(&mut self) {
        if self.prng.one_in(3) {
            return self.cancel_by_tag();
        }
        let operation = self.any_open();
        let mut link = self.any_link();
        let opener = match (
            self.books.calls.get(&operation),
            self.books.questions.get(&operation),
        ) {
            (Some(open), _) => Some(open.link).filter(|_| may_cancel(open.place) && !open.answered),
            (None, Some(open)) => Some(self.books.servers[&open.server].link),
            (None, None) => None,
        };
        link = opener.filter(|_| !self.prng.one_in(4)).unwrap_or(link);
        // Now and then the connection of an earlier request ends.
        let waits = self
            .books
            .calls
            .get(&operation)
            .map_or(0, |open| open.rounds);
        let round = if self.prng.one_in(6) {
            waits.wrapping_sub(1)
        } else {
            waits
        };
        let here = self.books.owner(link).is_some();
        self.cancels(
            link,
            OperationRef::Request { operation, round },
            Some(operation).filter(|_| opener == Some(link) && here && round == waits),
        );
    }

    fn cancel_by_tag(&mut self) {
        let link = self.any_link();
        let tag = self.prng.below(3) as u8;
        let youngest = self.tagged(link, tag);
        if youngest.is_some() {
            self.books.count("cancelled by tag");
        }
        self.cancels(link, OperationRef::Tag(tag), youngest);
    }

    /// The youngest operation that a link opened under a name.
    pub(crate) fn tagged(&self, link: LinkId, tag: u8) -> Option<OperationId> {
        let calls = self
            .books
            .calls
            .iter()
            .filter(|(_, open)| open.link == link && !open.answered);
        let calls = calls
            .filter(|(_, open)| open.tag == Some(tag) && may_cancel(open.place))
            .map(|(id, open)| (open.order, *id));
        let asks = |open: &crate::books::questions::Question| {
            self.books.servers[&open.server].link == link
        };
        let asked = self
            .books
            .questions
            .iter()
            .filter(|(_, open)| asks(open) && open.tag == Some(tag));
        calls
            .chain(asked.map(|(id, open)| (open.order, *id)))
            .max()
            .map(|(_, id)| id)
    }

    fn cancels(&mut self, link: LinkId, which: OperationRef<u8>, cancelling: Option<OperationId>) {
        let about = |id| self.books.questions.get(&id).and_then(|open| open.about);
        let asked = cancelling
            .and_then(about)
            .and_then(|call| self.books.calls.get(&call));
        let silent = asked.map(|open| open.pauses);
        let effects = self.live(
            Event::Cancel { link, which },
            Turn {
                cancelling,
                ..Turn::default()
            },
        );
        let silent = silent.is_some_and(|open| open);
        assert!(
            silent || effects.all.is_empty() == cancelling.is_none(),
            "only its opener cancels an operation"
        );
        let open = cancelling.is_some_and(|id| self.topic.is_open(id));
        assert!(!open, "what is cancelled is over");
    }
}

/// Whether the caller of a call that is there still waits for it, and may cancel it.
fn may_cancel(place: Place) -> bool {
    !matches!(place, Place::Parked | Place::Paused | Place::Kept { .. })
}
