//! The table of what is open on one session: calls, their order where one waits for another, and questions.
//!
//! A plain structure under the session's lock: no I/O, time is an argument.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use foldhash::fast::RandomState;
use http::HeaderMap;
use tokio::sync::oneshot;
use wire::rpc::{Id, Message};

use super::super::fault::Fault;
use super::super::sink::CallSink;

/// A request as it goes to the server: its frame, and the headers that mirror it.
pub(in super::super) type Sent = (Bytes, Option<Box<HeaderMap>>);

/// Who waits for an answer.
pub(in super::super) enum Waiter {
    /// A caller, with the id and the progress token that it gave.
    Call { sink: Arc<dyn CallSink>, id: Id, token: Option<Id> },
    /// The session itself.
    Own(oneshot::Sender<Result<Message, Fault>>),
}

/// One open request.
pub(in super::super) struct Open {
    pub(in super::super) waiter: Waiter,
    /// Without progress it expires at `deadline`; never later than `hard`. Nothing for a stream that stays.
    pub(in super::super) times: Option<Times>,
    /// What was sent, kept where it may have to be sent again.
    pub(in super::super) sent: Option<Sent>,
}

/// When a request expires.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Times {
    patience: Duration,
    deadline: Instant,
    hard: Instant,
}

impl Times {
    pub(in super::super) fn new(now: Instant, patience: Duration, max: Duration) -> Self {
        let hard = now + max;
        Self { patience, deadline: (now + patience).min(hard), hard }
    }

    fn extend(&mut self, now: Instant) {
        self.deadline = (now + self.patience).min(self.hard);
    }
}

/// A question of the server that waits for an answer.
pub(in super::super) struct Question {
    /// The server's id.
    pub(in super::super) id: Id,
    /// The call in which it was asked; none if it went to the session's owner.
    pub(in super::super) about: Option<u64>,
}

#[derive(Default)]
pub(in super::super) struct Calls {
    last: u64,
    open: HashMap<u64, Open, RandomState>,
    questions: HashMap<u64, Question, RandomState>,
    /// Calls that wait for the one before, where questions could not be told apart otherwise.
    waiting: VecDeque<(u64, Sent)>,
    /// Requests that wait for a new session on the same link.
    pub(in super::super) stalled: Option<Vec<u64>>,
    /// Why nothing more is taken.
    pub(in super::super) ended: Option<Fault>,
}

impl Calls {
    /// A number for the next request or question; never used twice.
    pub(in super::super) fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    pub(in super::super) fn len(&self) -> usize {
        self.open.len()
    }

    /// Callers' calls that are open.
    pub(in super::super) fn callers(&self) -> usize {
        self.open.values().filter(|open| matches!(open.waiter, Waiter::Call { .. })).count()
    }

    pub(in super::super) fn insert(&mut self, number: u64, open: Open) {
        self.open.insert(number, open);
    }

    pub(in super::super) fn get(&self, number: u64) -> Option<&Open> {
        self.open.get(&number)
    }

    /// Takes a request out, with the questions asked in it; and says what may be sent now that it is gone.
    pub(in super::super) fn settle(&mut self, number: u64) -> (Option<Open>, Option<(u64, Sent)>) {
        let Some(open) = self.open.remove(&number) else { return (None, None) };
        if !self.questions.is_empty() {
            self.questions.retain(|_, question| question.about != Some(number));
        }
        let waited = self.waiting.iter().position(|(waiting, ..)| *waiting == number);
        if let Some(at) = waited {
            self.waiting.remove(at);
            return (Some(open), None);
        }
        let next = matches!(open.waiter, Waiter::Call { .. }).then(|| self.waiting.pop_front()).flatten();
        (Some(open), next)
    }

    /// Keeps a call until the one before has its answer.
    pub(in super::super) fn wait(&mut self, number: u64, request: Sent) {
        self.waiting.push_back((number, request));
    }

    /// The only call of a caller that is open and was sent.
    pub(in super::super) fn only_call(&self) -> Option<u64> {
        let sent = |number: &u64| !self.waiting.iter().any(|(waiting, ..)| waiting == number);
        let mut calls = self
            .open
            .iter()
            .filter(|(number, open)| matches!(open.waiter, Waiter::Call { .. }) && sent(number))
            .map(|(number, _)| *number);
        let first = calls.next()?;
        calls.next().is_none().then_some(first)
    }

    /// Progress: the call has its time again.
    pub(in super::super) fn extend(&mut self, number: u64, now: Instant) -> Option<&Open> {
        let open = self.open.get_mut(&number)?;
        if let Some(times) = &mut open.times {
            times.extend(now);
        }
        Some(open)
    }

    /// What was sent for a request, taken: it is sent again only once.
    pub(in super::super) fn unsend(&mut self, number: u64) -> Option<Sent> {
        self.open.get_mut(&number)?.sent.take()
    }

    /// Numbers of the requests whose time is over. While the server waits for an answer to a question only the hard
    /// maximum counts: a person may be typing.
    pub(in super::super) fn expired(&mut self, now: Instant) -> Vec<u64> {
        let questions = &self.questions;
        let asking = |number: u64| {
            questions.values().any(|question| question.about.is_none_or(|about| about == number))
        };
        let mut over = Vec::new();
        for (number, open) in &mut self.open {
            let Some(times) = open.times.as_mut().filter(|times| times.deadline <= now) else { continue };
            if times.hard > now && asking(*number) {
                times.extend(now);
            } else {
                over.push(*number);
            }
        }
        over
    }

    /// Takes everything out: the session has ended.
    pub(in super::super) fn drain(&mut self) -> Vec<Open> {
        self.questions.clear();
        self.waiting.clear();
        self.stalled = None;
        self.open.drain().map(|(_, open)| open).collect()
    }

    /// Notes a question; `None` when too many are open.
    pub(in super::super) fn ask(&mut self, question: Question, max: usize) -> Option<u64> {
        if self.questions.len() >= max {
            return None;
        }
        let number = self.number();
        self.questions.insert(number, question);
        Some(number)
    }

    /// Takes a question out, for its answer.
    pub(in super::super) fn answered(&mut self, number: u64) -> Option<Question> {
        self.questions.remove(&number)
    }

    /// Takes the question with the server's id out: the server wants no answer any more.
    pub(in super::super) fn withdrawn(&mut self, id: &Id) -> Option<(u64, Question)> {
        let number = *self.questions.iter().find(|(_, question)| question.id == *id)?.0;
        self.questions.remove(&number).map(|question| (number, question))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(times: Times) -> Open {
        Open { waiter: Waiter::Own(oneshot::channel().0), times: Some(times), sent: None }
    }

    #[test]
    fn time_is_extended_by_progress_and_questions_but_not_beyond_the_maximum() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let (patience, max) = (Duration::from_secs(10), Duration::from_secs(35));
        let mut calls = Calls::default();
        let (asking, silent) = (calls.number(), calls.number());
        for number in [asking, silent] {
            calls.insert(number, own(Times::new(start, patience, max)));
        }
        assert!(calls.expired(at(9)).is_empty());
        calls.extend(silent, at(9));
        let question = calls.ask(Question { id: Id::number(1), about: Some(asking) }, 1).unwrap();
        assert!(calls.ask(Question { id: Id::number(2), about: None }, 1).is_none());
        assert!(calls.expired(at(15)).is_empty());
        assert_eq!(calls.expired(at(20)), [silent]);
        calls.settle(silent);
        assert!(calls.expired(at(26)).is_empty());
        assert!(calls.answered(question).is_some());
        assert_eq!(calls.expired(at(36)), [asking]);
    }

    #[test]
    fn what_a_settled_call_asked_is_gone() {
        let mut calls = Calls::default();
        let number = calls.number();
        let second = Duration::from_secs(1);
        calls.insert(number, own(Times::new(Instant::now(), second, second)));
        let question = calls.ask(Question { id: Id::string("q"), about: Some(number) }, 9).unwrap();
        assert!(calls.settle(number).0.is_some());
        assert!(calls.answered(question).is_none());
        assert!(calls.withdrawn(&Id::string("q")).is_none());
        assert!(calls.settle(number).0.is_none());
    }
}
