//! Rounds of a legacy caller's request at a modern server: results that ask (`input_required`)
//! become questions to the caller, and its answers go back with the request under a new number (MCP
//! 2026-07-28, "Multi Round-Trip Requests").
//!
//! The caller sees one call that a legacy server would have asked about: questions, then one end.

use std::sync::{Arc, Weak};
use std::time::Instant;

use bytes::Bytes;
use http::HeaderMap;
use model::{Answer, Coding, Form, Notice, Refusal, RefusalCode, Request};
use platform::Mutex;
use wire::mcp::input::{self, Required};
use wire::mcp::relay::{self, EncodedRequest};
use wire::rpc::Id;

use super::Session;
use super::pending::{Deadlines, PendingRequest, SentRequest, Waiter};
use crate::question::{self, Asking, Question};
use crate::session_api::{CallEvents, Outgoing};

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
    /// The latest end of all rounds.
    until: Instant,
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
        (call, events): (&Outgoing<'_>, Arc<dyn CallEvents>),
        (frame, headers): (&Bytes, Option<&HeaderMap>),
        until: Instant,
    ) -> Arc<dyn CallEvents> {
        Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            session: Weak::clone(&session.me),
            events,
            frame: frame.clone(),
            headers: headers.cloned().map(Box::new),
            first: call.number.0,
            progress: call.request.progress.clone(),
            capabilities: Bytes::copy_from_slice(call.capabilities),
            account: call.account.into(),
            until,
            round: Mutex::default(),
        })
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
        {
            let mut round = self.round.lock();
            if round.number >= ROUNDS_MAX {
                return Err(Refusal::new(
                    RefusalCode::UpstreamFailed,
                    "the server asks again and again",
                ));
            }
            (round.number, round.request, round.state) =
                (round.number + 1, request, required.state);
            round.asked.clone_from(&asked);
        }
        session.keep_open(request, &me)?;
        let asking: Weak<dyn Asking> = Arc::downgrade(&(Arc::clone(&me) as Arc<dyn Asking>));
        let question = |((_, question), asked): ((String, Request), &Asked)| {
            let asking = Weak::clone(&asking);
            let id = Id::number(asked.id);
            Question::new(asking, session.instance(), id, question, Some(request))
        };
        let questions: Vec<Question> = required
            .questions
            .into_iter()
            .zip(&asked)
            .map(question)
            .collect();
        if questions.is_empty() {
            self.send_again(&session)
        } else {
            questions
                .into_iter()
                .for_each(|question| self.events.question(question))
        }
        Ok(())
    }

    /// Takes the answer to one question, if the client gave one; with the last the request is sent
    /// again.
    fn take(&self, id: &Id, answer: Option<&Answer>) {
        let Some(session) = self.session.upgrade() else {
            return;
        };
        let Some(id) = id.as_number() else {
            return;
        };
        let (request, answered, complete) = {
            let mut round = self.round.lock();
            let request = round.request;
            let Some(asked) = round.asked.iter_mut().find(|asked| asked.id == id) else {
                return;
            };
            asked.answer = question::given(answer, asked.may_cancel);
            let answered = asked.answer.is_some();
            (
                request,
                answered,
                round.asked.iter().all(|asked| asked.answer.is_some()),
            )
        };
        match answered {
            // The server could do nothing with an error: it wants an answer.
            false => session.give_up(request, &question::unanswered()),
            true if complete => self.send_again(&session),
            true => {}
        }
    }

    /// Sends the request with the answers of this round.
    fn send_again(&self, session: &Session) {
        let (request, frame) = {
            let round = self.round.lock();
            let answer = |asked: &Asked| Some((asked.key.clone(), asked.answer.clone()?));
            let answers: Vec<_> = round.asked.iter().filter_map(answer).collect();
            (
                round.request,
                input::retry(&self.frame, round.request, &answers, round.state.as_deref()),
            )
        };
        match frame {
            Some(frame) if session.is_pending(request) => {
                let coding = Coding::Json;
                let encoded = EncodedRequest { coding, frame };
                let headers = self.headers.clone();
                session.send_kept(request, SentRequest { encoded, headers });
            }
            Some(_) => {}
            None => session.give_up(request, &question::unanswered()),
        }
    }
}

impl CallEvents for Rounds {
    fn notice(&self, notice: Notice) {
        self.events.notice(notice);
    }

    fn question(&self, question: Question) {
        self.events.question(question);
    }

    fn done(&self, end: Result<Answer, Refusal>) {
        let session = self.session.upgrade();
        let number = || {
            session
                .as_ref()
                .map_or(0, |session| session.setup.environment.numbers.next())
        };
        let required = end.as_ref().map_or(Ok(None), |answer| {
            input::read_required(answer, || format!("portmoot-{}", number()))
        });
        let asked = match required {
            Ok(required) => required.map(|required| self.ask(required)).transpose(),
            Err(unreadable) => Err(Refusal::new(
                RefusalCode::UpstreamFailed,
                unreadable.to_string(),
            )),
        };
        let end = match asked {
            Ok(Some(())) => return,
            Ok(None) => end,
            Err(refusal) => Err(refusal),
        };
        if let Some(session) = session {
            session.pending.lock().retried.remove(&self.first);
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
        let convert =
            |answer: &Answer| relay::convert_answer(answer, method, Form::Legacy, &|_| None);
        self.take(question.id(), given.ok().map(convert).as_ref());
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
        let pools = (&*self.setup.calls, &*self.unsent);
        let (place, _) = pending
            .place(pools, &rounds.account)
            .map_err(|full| self.full(full))?;
        let waiter = Waiter::Call {
            events,
            progress: rounds.progress.clone(),
            place,
            in_turn: true,
        };
        let deadlines = Some(Deadlines::new(
            now,
            self.setup.spec.timeout(None).min(left),
            left,
        ));
        pending.requests.insert(
            number,
            PendingRequest {
                waiter,
                deadlines,
                sent: None,
                questions: 0,
                garbled: false,
            },
        );
        pending.retried.insert(rounds.first, number);
        drop(pending);
        self.timer.notify_one();
        Ok(())
    }

    fn is_pending(&self, number: u64) -> bool {
        self.pending.lock().requests.contains_key(&number)
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
