//! Rounds of a legacy caller's request at a modern server: results that ask (`input_required`)
//! become questions to the caller, and its answers go back with the request under a new number (MCP
//! 2026-07-28, "Multi Round-Trip Requests").
//!
//! The caller sees one call that a legacy server would have asked about: questions, then one end.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

use bytes::Bytes;
use http::HeaderMap;
use model::{Answer, Coding, Form, Notice, Refusal, RefusalCode};
use platform::Mutex;
use wire::mcp::input::{self, Required};
use wire::mcp::relay::{self, EncodedRequest};
use wire::rpc::Id;

use super::Session;
use super::pending::{Deadlines, PendingRequest, Waiter, WrittenRequest};
use crate::question::{self, Asking, Question};
use crate::session_api::{AtServer, CallEvents, Outgoing};

/// Rounds of one request. A server that asks more often gets no answer, and the caller an error.
pub const ROUNDS_MAX: u32 = 64;

/// One request with its rounds.
pub(super) struct Rounds {
    me: Weak<Self>,
    session: Weak<Session>,
    /// Receives the questions and the end.
    events: Arc<dyn CallEvents>,
    /// The request as it was sent first.
    frame: Bytes,
    headers: Option<Box<HeaderMap>>,
    /// Its first number, by which the caller cancels.
    first: u64,
    progress: Option<Bytes>,
    capabilities: Bytes,
    account: Box<str>,
    /// The name of its sender, for a link that names senders.
    name: Option<Arc<str>>,
    /// The latest end of all rounds.
    until: Instant,
    /// The time at the server of the first round.
    at_server: OnceLock<AtServer>,
    round: Mutex<Round>,
}

/// The present round.
#[derive(Default)]
struct Round {
    number: u32,
    /// The number of the request that is to be sent with the answers.
    request: u64,
    state: Option<Bytes>,
    asked: Vec<Asked>,
}

/// One question of a round.
#[derive(Clone)]
struct Asked {
    /// Its key at the server.
    key: String,
    /// Its id at the caller.
    id: u64,
    /// Whether a user may cancel it: an elicitation.
    may_cancel: bool,
    answer: Option<Bytes>,
}

impl Rounds {
    /// The events of a call at a modern server, for a caller that is asked in the legacy way.
    pub(super) fn of(
        session: &Session,
        call: &Outgoing<'_>,
        events: Arc<dyn CallEvents>,
        sent: &WrittenRequest,
        until: Instant,
    ) -> Arc<dyn CallEvents> {
        Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            session: Weak::clone(&session.me),
            events,
            frame: sent.encoded.frame.clone(),
            headers: sent.headers.clone(),
            first: call.number.0,
            progress: call.request.progress.clone(),
            capabilities: Bytes::copy_from_slice(call.capabilities),
            account: call.account.into(),
            name: session.named(call.from),
            until,
            at_server: OnceLock::new(),
            round: Mutex::default(),
        })
    }

    /// Begins the next round if an answer asks for one; false if it is the end.
    fn ask_what_is_required(&self, answer: &Answer) -> Result<bool, Refusal> {
        // An id for each question without one.
        let id = || {
            let session = self.session.upgrade();
            let number = session.map_or(0, |session| session.setup.environment.numbers.next());
            format!("portmoot-{number}")
        };
        match input::read_required(answer, id) {
            Ok(None) => Ok(false),
            Ok(Some(required)) => {
                self.ask(required)?;
                Ok(true)
            }
            Err(unreadable) => Err(Refusal::new(
                RefusalCode::UpstreamFailed,
                unreadable.to_string(),
            )),
        }
    }

    /// Asks the caller what the server asks, or sends the request again if it asks nothing.
    fn ask(&self, required: Required) -> Result<(), Refusal> {
        let session = self.session.upgrade();
        let me = self.me.upgrade();
        let (Some(session), Some(me)) = (session, me) else {
            return Err(gone());
        };
        question::check_declared(&self.capabilities, &required.questions)?;
        let numbers = &session.setup.environment.numbers;
        let request = numbers.next();
        let asked = required.questions.iter().map(|(key, question)| Asked {
            key: key.clone(),
            id: numbers.next(),
            may_cancel: question::may_cancel(question),
            answer: None,
        });
        let asked: Vec<Asked> = asked.collect();
        let ids: Vec<u64> = asked.iter().map(|asked| asked.id).collect();
        {
            let mut round = self.round.lock();
            if round.number >= ROUNDS_MAX {
                return Err(Refusal::new(
                    RefusalCode::UpstreamFailed,
                    "the server asks again and again",
                ));
            }
            *round = Round {
                number: round.number + 1,
                request,
                state: required.state,
                asked,
            };
        }
        session.keep_open(request, &me)?;
        if ids.is_empty() {
            self.send_again(&session);
            return Ok(());
        }
        let asking: Weak<dyn Asking> = Arc::downgrade(&(Arc::clone(&me) as Arc<dyn Asking>));
        for ((_, question), id) in required.questions.into_iter().zip(ids) {
            self.events.question(Question::new(
                Weak::clone(&asking),
                session.instance(),
                Id::number(id),
                question,
                Some(request),
            ));
        }
        Ok(())
    }

    /// Receives the answer to one question, if the client gave one; with the last the request is
    /// sent again.
    fn receive(&self, id: &Id, answer: Option<&Answer>) {
        let Some(session) = self.session.upgrade() else {
            return;
        };
        let Some(id) = id.as_number() else {
            return;
        };
        let mut round = self.round.lock();
        let request = round.request;
        let Some(asked) = round.asked.iter_mut().find(|asked| asked.id == id) else {
            return;
        };
        asked.answer = question::given(answer, asked.may_cancel);
        let is_answered = asked.answer.is_some();
        let is_complete = round.asked.iter().all(|asked| asked.answer.is_some());
        drop(round);
        if !is_answered {
            // The server could do nothing with an error: it wants an answer.
            session.give_up(request, &question::unanswered());
        } else if is_complete {
            self.send_again(&session);
        }
    }

    /// Sends the request with the answers of this round.
    fn send_again(&self, session: &Session) {
        let round = self.round.lock();
        let request = round.request;
        let mut answers = Vec::with_capacity(round.asked.len());
        for asked in &round.asked {
            if let Some(answer) = &asked.answer {
                answers.push((asked.key.clone(), answer.clone()));
            }
        }
        let frame = input::retry(&self.frame, request, &answers, round.state.as_deref());
        drop(round);
        let Some(frame) = frame else {
            return session.give_up(request, &question::unanswered());
        };
        let sent = WrittenRequest {
            encoded: EncodedRequest {
                coding: Coding::Json,
                frame,
            },
            headers: self.headers.clone(),
        };
        // Its caller may have cancelled it while it was asked; then nothing is sent.
        session.send_kept(request, sent);
    }
}

impl CallEvents for Rounds {
    fn notice(&self, notice: Notice) {
        self.events.notice(notice);
    }

    fn question(&self, question: Question) {
        self.events.question(question);
    }

    fn measured(&self, at_server: AtServer) {
        // Passed on if there is no later round, for which its caller is waited for too.
        let _ = self.at_server.set(at_server);
    }

    fn done(&self, end: Result<Answer, Refusal>) {
        let end = match end {
            Ok(answer) => match self.ask_what_is_required(&answer) {
                Ok(true) => return,
                Ok(false) => Ok(answer),
                Err(refusal) => Err(refusal),
            },
            Err(refusal) => Err(refusal),
        };
        let session = self.session.upgrade();
        let later = session.and_then(|session| session.pending.lock().retried.remove(&self.first));
        if let (Some(at_server), None) = (self.at_server.get(), later) {
            self.events.measured(*at_server);
        }
        self.events.done(end);
    }
}

impl Asking for Rounds {
    fn take_answer(
        &self,
        question: &Question,
        given: Result<&Answer, &Refusal>,
    ) -> Result<(), Refusal> {
        let method = question.request().method.as_str();
        let answer = given
            .ok()
            .map(|answer| relay::convert_answer(answer, method, Form::Legacy, &|_| None));
        self.receive(question.id(), answer.as_ref());
        Ok(())
    }

    fn count_question(&self, call: Option<u64>, begins: bool) {
        if let Some(session) = self.session.upgrade() {
            session.pending.lock().count_question(call, begins);
        }
    }
}

impl Session {
    /// Keeps a call pending under a new number while its caller is asked, until its rounds must
    /// end.
    fn keep_open(&self, number: u64, rounds: &Arc<Rounds>) -> Result<(), Refusal> {
        let now = Instant::now();
        let events = Arc::<Rounds>::clone(rounds);
        let left = rounds.until.saturating_duration_since(now);
        let mut pending = self.pending.lock();
        if pending.ended.is_some() {
            return Err(gone());
        }
        let place = self.place(&mut pending, &rounds.account, rounds.name.clone())?;
        let patience = self.setup.spec.timeout(None).min(left);
        let open = PendingRequest {
            waiter: Waiter::Call {
                events,
                progress: rounds.progress.clone(),
                place: place.call,
                sender: place.sender,
                in_turn: true,
                began: None,
            },
            deadlines: Some(Deadlines::new(now, patience, left)),
            sent: None,
            questions: 0,
            garbled: false,
        };
        pending.requests.insert(number, open);
        pending.retried.insert(rounds.first, number);
        drop(pending);
        self.timer.notify_one();
        Ok(())
    }

    /// Ends a call whose caller did not answer the server's questions.
    fn give_up(&self, number: u64, refusal: &Refusal) {
        let Some(request) = self.settle(number) else {
            return;
        };
        if let Waiter::Call { events, .. } = request.waiter {
            events.done(Err(refusal.clone()));
            self.close_if_done();
        }
    }
}

/// The refusal of a call whose session is over.
fn gone() -> Refusal {
    Refusal::new(
        RefusalCode::UpstreamDown,
        "the server has gone while it asked",
    )
}
