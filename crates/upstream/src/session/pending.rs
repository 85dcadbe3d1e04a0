//! Table of one session's pending requests: deadlines, deferred calls, open questions of the server.
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

use crate::fault::Fault;
use crate::session_api::CallEvents;

/// A request as it goes to the server: its frame, and the headers that mirror it.
pub(super) type SentRequest = (Bytes, Option<Box<HeaderMap>>);

/// Who waits for an answer.
pub(super) enum Waiter {
    /// A caller, with the id and the progress token that it chose.
    Call { events: Arc<dyn CallEvents>, id: Id, token: Option<Id> },
    /// The session itself.
    Own(oneshot::Sender<Result<Message, Fault>>),
}

/// One request without an answer.
pub(super) struct PendingRequest {
    pub(super) waiter: Waiter,
    /// When it expires; `None` for a stream that stays open.
    pub(super) deadlines: Option<Deadlines>,
    /// What was sent, kept where it may have to be sent again.
    pub(super) sent: Option<SentRequest>,
}

/// When a request expires: `patience` after the last progress, at the latest at `hard`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadlines {
    patience: Duration,
    next: Instant,
    hard: Instant,
}

impl Deadlines {
    pub(super) fn new(now: Instant, patience: Duration, max: Duration) -> Self {
        let hard = now + max;
        Self { patience, next: (now + patience).min(hard), hard }
    }

    fn extend(&mut self, now: Instant) {
        self.next = (now + self.patience).min(self.hard);
    }
}

/// A question of the server, a request to a client, without an answer.
pub(super) struct PendingQuestion {
    /// The server's id.
    pub(super) id: Id,
    /// The call that it belongs to; `None` if it went to the session's owner.
    pub(super) call: Option<u64>,
}

/// All pending requests of one session, by number.
#[derive(Default)]
pub(super) struct PendingTable {
    last_number: u64,
    requests: HashMap<u64, PendingRequest, RandomState>,
    questions: HashMap<u64, PendingQuestion, RandomState>,
    /// Calls that wait for the end of the call before them (serial sessions).
    deferred: VecDeque<(u64, SentRequest)>,
    /// Requests that wait until the session is opened again on the same link; `None` while it is open.
    pub(super) awaiting_reopen: Option<Vec<u64>>,
    /// Why the session ended; it accepts no further request.
    pub(super) ended: Option<Fault>,
}

impl PendingTable {
    /// A number for the next request, in either direction; never used twice.
    pub(super) fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }

    /// Pending calls of callers.
    pub(super) fn calls(&self) -> usize {
        self.requests.values().filter(|request| matches!(request.waiter, Waiter::Call { .. })).count()
    }

    pub(super) fn insert(&mut self, number: u64, request: PendingRequest) {
        self.requests.insert(number, request);
    }

    pub(super) fn get(&self, number: u64) -> Option<&PendingRequest> {
        self.requests.get(&number)
    }

    /// Removes a request and its questions. Returns also the deferred call to send next.
    pub(super) fn settle(&mut self, number: u64) -> (Option<PendingRequest>, Option<(u64, SentRequest)>) {
        let Some(request) = self.requests.remove(&number) else { return (None, None) };
        if !self.questions.is_empty() {
            self.questions.retain(|_, question| question.call != Some(number));
        }
        let deferred = self.deferred.iter().position(|(deferred, ..)| *deferred == number);
        if let Some(at) = deferred {
            self.deferred.remove(at);
            return (Some(request), None);
        }
        let next = matches!(request.waiter, Waiter::Call { .. }).then(|| self.deferred.pop_front()).flatten();
        (Some(request), next)
    }

    /// Keeps a call until the call before it has ended.
    pub(super) fn defer(&mut self, number: u64, request: SentRequest) {
        self.deferred.push_back((number, request));
    }

    /// The number of the call that was sent and is pending, if there is exactly one.
    pub(super) fn only_call(&self) -> Option<u64> {
        let sent = |number: &u64| !self.deferred.iter().any(|(deferred, ..)| deferred == number);
        let mut calls = self
            .requests
            .iter()
            .filter(|(number, request)| matches!(request.waiter, Waiter::Call { .. }) && sent(number))
            .map(|(number, _)| *number);
        let first = calls.next()?;
        calls.next().is_none().then_some(first)
    }

    /// Extends the deadline of a request that made progress, and returns the request.
    pub(super) fn extend(&mut self, number: u64, now: Instant) -> Option<&PendingRequest> {
        let request = self.requests.get_mut(&number)?;
        if let Some(deadlines) = &mut request.deadlines {
            deadlines.extend(now);
        }
        Some(request)
    }

    /// Takes what was sent for a request: it is sent again only once.
    pub(super) fn take_sent(&mut self, number: u64) -> Option<SentRequest> {
        self.requests.get_mut(&number)?.sent.take()
    }

    /// Numbers of the expired requests. While the server waits for a client's answer only the hard maximum counts: a person
    /// may be typing.
    pub(super) fn expired(&mut self, now: Instant) -> Vec<u64> {
        let questions = &self.questions;
        let asking =
            |number: u64| questions.values().any(|question| question.call.is_none_or(|call| call == number));
        let mut expired = Vec::new();
        for (number, request) in &mut self.requests {
            let Some(deadlines) = request.deadlines.as_mut().filter(|deadlines| deadlines.next <= now) else {
                continue;
            };
            if deadlines.hard > now && asking(*number) {
                deadlines.extend(now);
            } else {
                expired.push(*number);
            }
        }
        expired
    }

    /// Removes everything at the end of the session.
    pub(super) fn drain(&mut self) -> Vec<PendingRequest> {
        self.questions.clear();
        self.deferred.clear();
        self.awaiting_reopen = None;
        self.requests.drain().map(|(_, request)| request).collect()
    }

    /// Adds a question; `None` when `max` questions are open.
    pub(super) fn add_question(&mut self, question: PendingQuestion, max: usize) -> Option<u64> {
        if self.questions.len() >= max {
            return None;
        }
        let number = self.next_number();
        self.questions.insert(number, question);
        Some(number)
    }

    /// Removes a question that a client has answered.
    pub(super) fn take_question(&mut self, number: u64) -> Option<PendingQuestion> {
        self.questions.remove(&number)
    }

    /// Removes the question that the server has cancelled, by the server's id.
    pub(super) fn withdraw_question(&mut self, id: &Id) -> Option<(u64, PendingQuestion)> {
        let number = *self.questions.iter().find(|(_, question)| question.id == *id)?.0;
        self.questions.remove(&number).map(|question| (number, question))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(deadlines: Deadlines) -> PendingRequest {
        PendingRequest { waiter: Waiter::Own(oneshot::channel().0), deadlines: Some(deadlines), sent: None }
    }

    #[test]
    fn progress_and_questions_extend_the_deadline_up_to_the_maximum() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let (patience, max) = (Duration::from_secs(10), Duration::from_secs(35));
        let mut table = PendingTable::default();
        let (asking, silent) = (table.next_number(), table.next_number());
        for number in [asking, silent] {
            table.insert(number, own(Deadlines::new(start, patience, max)));
        }
        assert!(table.expired(at(9)).is_empty());
        table.extend(silent, at(9));
        let asked = PendingQuestion { id: Id::number(1), call: Some(asking) };
        let question = table.add_question(asked, 1).unwrap();
        assert!(table.add_question(PendingQuestion { id: Id::number(2), call: None }, 1).is_none());
        assert!(table.expired(at(15)).is_empty());
        assert_eq!(table.expired(at(20)), [silent]);
        table.settle(silent);
        assert!(table.expired(at(26)).is_empty());
        assert!(table.take_question(question).is_some());
        assert_eq!(table.expired(at(36)), [asking]);
    }

    #[test]
    fn settling_a_call_removes_its_questions() {
        let mut table = PendingTable::default();
        let number = table.next_number();
        let second = Duration::from_secs(1);
        table.insert(number, own(Deadlines::new(Instant::now(), second, second)));
        let asked = PendingQuestion { id: Id::string("q"), call: Some(number) };
        let question = table.add_question(asked, 9).unwrap();
        assert!(table.settle(number).0.is_some());
        assert!(table.take_question(question).is_none());
        assert!(table.withdraw_question(&Id::string("q")).is_none());
        assert!(table.settle(number).0.is_none());
    }
}
