//! Questions of servers to callers.

use model::{LinkId, OperationId, ParticipantId};
use topic::Cause;

use super::Books;
use crate::{numbers::Receiver, turn::Turn};

#[derive(Debug, Clone)]
pub(crate) struct Question {
    pub(crate) question: u64,
    pub(crate) link: LinkId,
    pub(crate) server: ParticipantId,
    /// The call that it is about, unless it is about a session.
    pub(crate) about: Option<OperationId>,
    pub(crate) method: &'static str,
    pub(crate) tag: Option<u8>,
    pub(crate) order: u64,
    /// Its caller no longer needs to answer.
    pub(crate) cancelled: bool,
}

impl Books {
    fn asked_by(&self, question: u64) -> Option<OperationId> {
        self.questions
            .iter()
            .find(|(_, open)| open.question == question)
            .map(|(operation, _)| *operation)
    }

    /// The receiver of a question.
    fn is_at(&self, open: &Question, to: &Receiver) -> bool {
        match (to, open.about) {
            (Receiver::Call(call), Some(about)) => self
                .calls
                .get(&about)
                .is_some_and(|own| own.call == *call && !own.answered),
            (Receiver::Link(handle), None) => self
                .links
                .get(&open.link)
                .is_some_and(|own| own.handle == *handle),
            (Receiver::Call(_), None) | (Receiver::Link(_), Some(_)) => false,
        }
    }

    pub(crate) fn asked(
        &mut self,
        operation: OperationId,
        question: u64,
        link: LinkId,
        to: &Receiver,
        turn: &Turn,
    ) {
        let (id, fresh) = turn.question.clone().expect("only a question asks");
        assert_eq!(
            (id, fresh.question, fresh.link),
            (operation, question, link)
        );
        if let Some(about) = fresh.about {
            let call = &self.calls[&about];
            assert_eq!((call.link, &call.server), (link, &fresh.server));
        } else {
            assert!(self.links[&link].attached.contains(&fresh.server));
        }
        assert!(
            self.is_at(&fresh, to),
            "asked where its caller is not: {to:?}"
        );
        self.enter_question(operation, fresh);
    }

    pub(crate) fn enter_question(&mut self, operation: OperationId, fresh: Question) {
        self.opened += 1;
        let order = self.opened;
        assert!(
            self.questions
                .insert(operation, Question { order, ..fresh })
                .is_none()
        );
    }

    /// The open questions about a call, each with its handle.
    pub(crate) fn asked_about(&self, call: OperationId) -> Vec<(OperationId, u64)> {
        let about = self
            .questions
            .iter()
            .filter(|(_, open)| open.about == Some(call));
        about.map(|(id, open)| (*id, open.question)).collect()
    }

    /// Whether a question is asked by an answer for now.
    fn is_asked_by_answer(&self, open: &Question) -> bool {
        open.about
            .and_then(|about| self.calls.get(&about))
            .is_some_and(|call| call.pauses)
    }

    pub(crate) fn settled_ask(&mut self, question: u64, answer: u64, turn: &Turn) {
        let operation = self.asked_by(question).expect("the question is open");
        let returned = turn
            .returning
            .as_ref()
            .is_some_and(|back| back.answers.contains(&(operation, answer)));
        let answered = turn
            .answering
            .is_some_and(|one| (one.operation, one.answer) == (operation, Some(answer)));
        assert!(returned || answered, "only an answer settles");
        self.questions.remove(&operation);
    }

    pub(crate) fn refused_ask(&mut self, question: u64, cause: Cause, turn: &Turn) {
        let Some(operation) = self.asked_by(question) else {
            let fresh = turn.question.as_ref().map(|(_, fresh)| fresh.question);
            return assert_eq!(fresh, Some(question), "a question is refused once");
        };
        let open = self.questions.remove(&operation).unwrap();
        let by_answer = self.is_asked_by_answer(&open);
        let failed = turn.answering.is_some_and(|one| one.operation == operation);
        assert_eq!(failed, cause == Cause::Failed);
        let leaves = turn.leaving.iter().any(|(link, _)| *link == open.link);
        assert!(
            failed || open.cancelled || leaves || by_answer,
            "its caller goes on"
        );
    }

    pub(crate) fn cancelled_ask(&mut self, operation: OperationId, to: &Receiver) {
        let open = self
            .questions
            .get(&operation)
            .cloned()
            .expect("the question is open");
        assert!(
            !open.cancelled && !self.is_asked_by_answer(&open) && self.is_at(&open, to),
            "cancelled where its caller is not: {to:?}"
        );
        self.questions.get_mut(&operation).unwrap().cancelled = true;
    }

    /// A question that is cancelled and not refused was withdrawn by its server.
    pub(crate) fn finish_questions(&mut self, turn: &Turn) {
        if let Some(withdrawn) = turn.cancelling
            && self
                .questions
                .get(&withdrawn)
                .is_some_and(|open| self.is_asked_by_answer(open))
        {
            self.questions.remove(&withdrawn);
        }
        let cancelled: Vec<OperationId> = self
            .questions
            .iter()
            .filter(|(_, open)| open.cancelled)
            .map(|(id, _)| *id)
            .collect();
        for operation in cancelled {
            assert_eq!(
                turn.cancelling,
                Some(operation),
                "its server has no refusal"
            );
            self.questions.remove(&operation);
            self.count("withdrawn question");
        }
        for (operation, open) in &self.questions {
            let call = open
                .about
                .is_none_or(|about| self.calls.contains_key(&about));
            assert!(call, "{operation} goes on without its call");
            assert!(self.links.contains_key(&open.link) && self.servers.contains_key(&open.server));
            let attached =
                open.about.is_some() || self.links[&open.link].attached.contains(&open.server);
            assert!(attached, "{operation} goes on without its session");
        }
    }
}
