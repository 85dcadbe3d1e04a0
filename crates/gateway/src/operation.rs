//! One open request of a caller: from the topic's admission to its one answer.
//!
//! Owns where its answer goes and how to take it back. Must not know how the topic decides or how a session works;
//! the pump carries what it hears (`Road`).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use json::Splice;
use model::{Era, LinkId, OperationId, ParticipantId, Refusal};
use platform::Mutex;
use upstream::{Answer, CallEvents, CallNumber, QuestionId, Session};
use wire::mcp::{Params, method};
use wire::rpc::{Id, Message, Shape};

use crate::caller::{Caller, Open, Question};
use crate::sight::Sight;
use crate::stream::{Refused, Stream};
use crate::tasks::{Place, Relayed};

/// What the pump does for an operation.
pub(crate) trait Road: Send + Sync {
    /// The upstream has answered or will not: asks the topic whether this still counts.
    fn settles(&self, operation: &Operation, outcome: model::Outcome, answer: Option<&Answer>) -> bool;
    /// The id of this question in the topic, if it may be put to the caller.
    fn lets_ask(&self, operation: &Operation, method: &str) -> Option<OperationId>;
    /// A question that the topic let through could not be put, or was taken back.
    fn unasked(&self, ask: OperationId);
    /// The upstream has answered: whoever proposed it may want to know.
    fn noted(&self, operation: &Operation, answer: &Answer);
    /// It is refused: nobody waits for an answer any more.
    fn refused(&self, operation: &Operation);
    /// The caller takes the request back.
    fn cancelled(&self, operation: &Operation);
    /// The answer as this caller reads it: public URIs, its era.
    fn spell(&self, operation: &Operation, answer: &Answer) -> (Bytes, Option<i64>);
    /// A question as this caller reads it, but for its id.
    fn spell_question(&self, operation: &Operation, question: &Message, splice: &mut Splice);
    /// A notification as this caller reads it: its own ids of tasks.
    fn spell_notice(&self, session: &Session, frame: Bytes) -> Bytes;
    /// The task of a server that this caller knows by this id.
    fn task(&self, caller: &Caller, public: &str) -> Option<Arc<Relayed>>;
    /// A refusal as this caller reads it.
    fn spell_refusal(&self, operation: &Operation, refusal: &Refusal) -> (Bytes, i64);
}

/// What a request has to do with tasks.
pub(crate) enum Tasked {
    /// It may become a task; with the caller's progress token, which outlives it then.
    Asks {
        /// The token.
        token: Option<Id>,
        /// The room that is kept for the task.
        place: Mutex<Option<Place>>,
    },
    /// It is about this task of a server.
    About(Arc<Relayed>),
}

/// How names and URIs are spelled in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// As the topic shows them to its callers.
    Public,
    /// As the upstream itself has them.
    Own,
}

/// One open request.
pub struct Operation {
    /// Its id in the topic.
    pub id: OperationId,
    /// Who asked.
    pub caller: Arc<Caller>,
    /// The id of the request, as the caller spelled it.
    pub request: Id,
    /// The method.
    pub method: &'static str,
    /// What it aims at, under its public spelling; for refusals.
    pub target: Option<Box<str>>,
    /// The stream that takes its answer.
    pub out: Arc<Stream>,
    /// How names and URIs are spelled to whoever asked.
    pub names: Names,
    /// The upstream that has it, once the topic has said so.
    pub upstream: OnceLock<(ParticipantId, LinkId)>,
    /// The approved proposal that it carries out, if it carries out one.
    pub proposal: OnceLock<OperationId>,
    /// As the room was shown it, if it was.
    pub(crate) shown: OnceLock<Arc<Sight>>,
    /// What it has to do with tasks, if it has.
    pub(crate) tasked: OnceLock<Tasked>,
    road: Arc<dyn Road>,
    session: OnceLock<Arc<Session>>,
    ticket: OnceLock<CallNumber>,
    over: AtomicBool,
}

impl Operation {
    /// An operation that nobody has been asked for yet.
    pub(crate) fn new(
        id: OperationId,
        road: Arc<dyn Road>,
        caller: Arc<Caller>,
        message: &Message,
        target: Option<&str>,
        out: Arc<Stream>,
        names: Names,
    ) -> Option<Arc<Self>> {
        Some(Arc::new(Self {
            id,
            caller,
            request: message.id()?.clone(),
            method: method::lookup(message.method()).map_or("", |method| method.name),
            target: target.map(Into::into),
            out,
            names,
            upstream: OnceLock::new(),
            proposal: OnceLock::new(),
            shown: OnceLock::new(),
            tasked: OnceLock::new(),
            road,
            session: OnceLock::new(),
            ticket: OnceLock::new(),
            over: AtomicBool::new(false),
        }))
    }

    /// The task of a server that it is about.
    pub(crate) fn about(&self) -> Option<&Arc<Relayed>> {
        match self.tasked.get()? {
            Tasked::About(task) => Some(task),
            Tasked::Asks { .. } => None,
        }
    }

    /// The room that is kept for what it may still become, taken. Who reads its answer may hold it long after it is over.
    pub(crate) fn take_place(&self) -> Option<Place> {
        match self.tasked.get()? {
            Tasked::Asks { place, .. } => place.lock().take(),
            Tasked::About(_) => None,
        }
    }

    /// The task of a server that its caller knows by this id.
    pub(crate) fn road_task(&self, public: &str) -> Option<Arc<Relayed>> {
        self.road.task(&self.caller, public)
    }

    /// Notes the session that it is sent to. An operation is sent once.
    pub fn goes_to(&self, session: &Arc<Session>) {
        let _ = self.session.set(Arc::clone(session));
    }

    /// The session that it was sent to.
    pub fn session(&self) -> Option<&Arc<Session>> {
        self.session.get()
    }

    /// Notes that the session has it. If it was taken back meanwhile, the session is told.
    pub fn is_sent(&self, ticket: CallNumber) {
        let _ = self.ticket.set(ticket);
        if self.is_over() {
            drop(self.take_place());
            self.take_back("the caller is gone");
        }
    }

    /// It is over: nothing is kept for it any more.
    fn leave(&self) {
        self.caller.finish(self.id);
        drop(self.take_place());
    }

    /// Whether it has been answered or taken back.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Ends it with a refusal, unless it is over.
    pub fn refuse(&self, refusal: &Refusal) {
        if !self.over.swap(true, Ordering::AcqRel) {
            self.leave();
            self.road.refused(self);
            let (frame, code) = self.road.spell_refusal(self, refusal);
            self.out.answer_with(frame, Some(code));
        }
    }

    /// Tells the upstream that nobody waits any more.
    pub fn take_back(&self, reason: &str) {
        if let (Some(session), Some(ticket)) = (self.session.get(), self.ticket.get()) {
            session.cancel(*ticket, reason);
        }
    }

    /// Ends it with this answer, unless it is over.
    pub fn answer(&self, frame: Bytes, error: Option<i64>) {
        if !self.out.bounds().held.has_room(frame.len()) {
            let why = "too many answers wait to be read";
            return self.refuse(&Refusal::new(model::RefusalCode::Overloaded, why));
        }
        if !self.over.swap(true, Ordering::AcqRel) {
            self.leave();
            self.out.answer_with(frame, error);
        }
    }
}

impl Open for Operation {
    fn cancel(&self) {
        if !self.over.swap(true, Ordering::AcqRel) {
            self.leave();
            self.road.cancelled(self);
            self.out.skip();
        }
    }

    fn refuse(&self, refusal: &Refusal) {
        Operation::refuse(self, refusal);
        self.take_back("the gateway ended the request");
    }

    fn take_back(&self) {
        Operation::take_back(self, "the gateway ended the request");
    }

    fn about(&self) -> Option<(&str, Option<&str>)> {
        Some((self.method, self.target.as_deref()))
    }
}

impl CallEvents for Operation {
    fn notice(&self, method: &str, mut frame: Bytes) {
        if let Some(session) = self.session.get().filter(|session| session.tasks() > 0) {
            frame = self.road.spell_notice(session, frame);
        }
        let mut progress = None;
        if method == "notifications/progress" || method == "notifications/message" {
            let Ok(message) = Message::read(frame.clone()) else { return };
            let Ok(params) = Params::read(&message) else { return };
            progress = params.progress_token().map(|token| Bytes::copy_from_slice(token.raw()));
            if self.caller.era() == Era::Legacy && params.level().is_some_and(|l| !self.caller.wants_log(&l))
            {
                return;
            }
        }
        if self.out.say(frame, progress) == Err(Refused::Full) {
            tracing::info!(participant = %self.caller.participant().id, "reader too slow, its request is cancelled");
            self.cancel();
        }
    }

    fn question(&self, question: QuestionId, message: Message) {
        let Some(session) = self.session.get() else { return };
        let fits = self.caller.era() == session.era() && !self.is_over();
        let Some(ask) = fits.then(|| self.road.lets_ask(self, message.method())).flatten() else {
            return decline(session, question);
        };
        let about = Some(self.id);
        let asked = Question { session: Arc::clone(session), id: question, about, ask, task: None };
        let Some(id) = self.caller.ask(asked) else {
            self.road.unasked(ask);
            return decline(session, question);
        };
        let mut splice = Splice::default();
        message.set_id(&mut splice, &id);
        self.road.spell_question(self, &message, &mut splice);
        if self.out.say(message.edited(&splice), None) == Err(Refused::Full) {
            self.cancel();
        }
    }

    fn withdrawn(&self, question: QuestionId) {
        if let Some((id, ask)) = self.session.get().and_then(|session| self.caller.unask(session, question)) {
            self.road.unasked(ask);
            let params = [b"{\"requestId\":", id.raw(), b"}"].concat();
            // A reader too slow for this is too slow for the rest as well, and pays there.
            let _ = self.out.say(wire::rpc::notification("notifications/cancelled", Some(&params)), None);
        }
    }

    fn done(&self, end: Result<Answer, Refusal>) {
        let outcome = match &end {
            Ok(answer) if answer.message.shape() == Shape::Result => model::Outcome::Ok,
            Ok(_) => model::Outcome::Error,
            Err(_) => model::Outcome::Refused,
        };
        if let Ok(answer) = &end {
            self.road.noted(self, answer);
        }
        if !self.road.settles(self, outcome, end.as_ref().ok()) {
            return;
        }
        match end {
            Ok(answer) => {
                let (frame, error) = self.road.spell(self, &answer);
                self.answer(frame, error);
            }
            Err(refusal) => self.refuse(&refusal),
        }
    }
}

/// Answers a server that its question cannot be asked.
pub fn decline(session: &Session, question: QuestionId) {
    let error = wire::rpc::error(Some(&Id::number(0)), -32601, "the client cannot be asked this now", None);
    let Ok(error) = Message::read(error) else { return };
    if let Err(refusal) = session.answer(question, &error) {
        tracing::debug!(%refusal, "a question could not be declined");
    }
}
