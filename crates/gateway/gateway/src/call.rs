//! Call: one request of a link from its admission to its end, and its way back.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use access::account;
use auth::Bearer;
use model::{
    Answer, Digest, LinkId, ListKind, LogLevel, Narrowing, Notice, OperationId, ParticipantId,
    Refusal, RefusalCode, Request,
};
use platform::{Full, Mutex, Taken};
use tokio::sync::Notify;
use upstream::tasks::CallTask;
use upstream::{CallEvents, CallNumber, Caller, ClientProfile, Outgoing, Question, Session};
use wire::mcp::{relay, task::TaskWish};

use crate::incoming::{Incoming, Names, Parks, Tag};
use crate::link::{Link, Passed, Questioned, Requester, Respell, Undelivered};
use schema::ToolSchema;
use transcode::shown::JsonView;

use crate::{context::call_number, proposals::content::Waits};

/// Receives the answer of a call, and what belongs to the call before it. Each call ends with one
/// of `settle`, `refuse` and `abandon`. Without other methods of its own a reply passes on nothing
/// but the end.
pub trait Reply: Send + Sync {
    /// The call's answer.
    fn settle(&self, call: &Call, answer: &Answer, respell: &Respell<'_>);
    /// The call has no answer, for this reason.
    fn refuse(&self, call: &Call, refusal: &Refusal);
    /// No answer follows, and the caller waits for none.
    fn abandon(&self, _call: &Call) {}
    /// A notification about the call, or for its listen request.
    ///
    /// # Errors
    /// [`Undelivered::Overrun`]: the call is then cancelled.
    fn notify(&self, _call: &Call, _notice: &Passed<'_>) -> Result<(), Undelivered> {
        Ok(())
    }
    /// A server's question about the call.
    ///
    /// # Errors
    /// Why the caller cannot get it. After an overrun the call is cancelled.
    fn ask(&self, _call: &Call, _question: &Questioned<'_>) -> Result<(), Undelivered> {
        Err(Undelivered::OtherForm)
    }
    /// The question is withdrawn.
    fn withdraw_question(&self, _call: &Call, _operation: OperationId) {}
    /// A list may have changed that its listen request names.
    ///
    /// # Errors
    /// As [`Reply::notify`].
    fn list_changed(&self, _call: &Call, _list: ListKind) -> Result<(), Undelivered> {
        Ok(())
    }
}

/// The reply of a call whose caller was answered for now.
struct NoReply;

impl Reply for NoReply {
    fn settle(&self, _: &Call, _: &Answer, _: &Respell<'_>) {}

    fn refuse(&self, _: &Call, _: &Refusal) {}
}

/// Where the answer of a call goes: the request that its caller waits for, and the reply of that
/// request.
pub(crate) struct Answering<'c> {
    call: &'c Call,
    /// The request with which the caller came back, if it did.
    back: Option<Arc<Call>>,
    /// Whether the caller was answered for now.
    is_away: bool,
}

impl Answering<'_> {
    /// Whether an answer reaches no caller now.
    pub(crate) fn is_away(&self) -> bool {
        self.is_away
    }

    pub(crate) fn request(&self) -> &Call {
        self.back.as_deref().unwrap_or(self.call)
    }

    fn reply(&self) -> &dyn Reply {
        if self.is_away {
            &NoReply
        } else {
            &*self.request().reply
        }
    }

    pub(crate) fn settle(&self, answer: &Answer, respell: &Respell<'_>) {
        self.reply().settle(self.request(), answer, respell);
    }

    pub(crate) fn refuse(&self, refusal: &Refusal) {
        self.reply().refuse(self.request(), refusal);
    }

    pub(crate) fn abandon(&self) {
        self.reply().abandon(self.request());
    }

    /// Passes a notification on. A caller that came back may have chosen another progress token, or
    /// none.
    pub(crate) fn notify(&self, notice: &Passed<'_>) -> Result<(), Undelivered> {
        let (reply, request) = (self.reply(), self.request());
        let token = &request.request.progress;
        let is_same = *token == notice.notice.latest;
        if self.back.is_none()
            || is_same
            || notice.notice.method.as_str() != "notifications/progress"
        {
            return reply.notify(request, notice);
        }
        match token
            .as_ref()
            .and_then(|token| relay::with_progress_token(notice.notice, token))
        {
            Some(renamed) => reply.notify(
                request,
                &Passed {
                    notice: &renamed,
                    ..*notice
                },
            ),
            None => Ok(()),
        }
    }

    pub(crate) fn ask(&self, question: &Questioned<'_>) -> Result<(), Undelivered> {
        self.reply().ask(self.request(), question)
    }

    pub(crate) fn withdraw_question(&self, operation: OperationId) {
        self.reply().withdraw_question(self.request(), operation);
    }

    pub(crate) fn list_changed(&self, list: ListKind) -> Result<(), Undelivered> {
        self.reply().list_changed(self.request(), list)
    }
}

/// The topic of a call at its server, to which everything that the server sends about the call
/// goes.
pub(crate) trait CallTopic: Send + Sync {
    /// Takes a notification about the call.
    fn noticed(self: Arc<Self>, call: &Call, delivered: &Delivered, notice: Notice);

    /// Takes a question to the caller.
    fn asked(self: Arc<Self>, call: &Call, delivered: &Delivered, question: Question);

    /// Takes the end of the call.
    fn ended(self: Arc<Self>, call: &Call, delivered: &Delivered, end: Result<Answer, Refusal>);
}

/// Where a call was delivered.
pub(crate) struct Delivered {
    /// The topic.
    pub(crate) topic: Weak<dyn CallTopic>,
    /// The server's link in the topic, by which it answers.
    pub(crate) link: LinkId,
    /// The server.
    pub(crate) server: ParticipantId,
    /// The level from which on its caller wants log messages.
    pub(crate) logs: Option<LogLevel>,
    /// The approved proposal that it carries out.
    pub(crate) proposal: Option<OperationId>,
    /// The participant that proposed it.
    pub(crate) proposer: Option<ParticipantId>,
}

/// One request of a link.
pub struct Call {
    /// Its id in the topic.
    pub id: OperationId,
    /// The caller's link.
    pub link: Arc<Link>,
    /// The request as the caller wrote it.
    pub request: Request,
    /// The same in JSON, if it is written in protobuf.
    shown: Option<Box<JsonView>>,
    /// The name that the client gave it.
    pub tag: Option<Tag>,
    pub(crate) client: Option<ClientProfile>,
    /// What the access token says with which it came.
    pub(crate) bearer: Option<Arc<Bearer>>,
    pub(crate) parks: Parks,
    pub(crate) wish: TaskWish,
    pub(crate) names: Names,
    /// What it has to do with tasks.
    pub(crate) task: CallTask,
    pub(crate) delivered: OnceLock<Delivered>,
    /// A built-in tool or task request that waits for a proposal in its own way.
    pub(crate) waits: OnceLock<Waits>,
    /// Whether it has a state that is not the gateway's: its server must know it.
    pub(crate) is_retry: bool,
    /// Whether its person refused to open the link to a connect page.
    pub(crate) declined: bool,
    reply: Arc<dyn Reply>,
    /// The last request with which its caller came back, after it was answered for now with
    /// questions.
    back: Mutex<Option<Arc<Call>>>,
    /// The session that it is sent to, and the one after it if that did not take it.
    sessions: [OnceLock<Arc<Session>>; 2],
    /// The session to which it was moved, because it waited too long behind another call.
    moved: Mutex<Option<Arc<Session>>>,
    /// The bytes of a long request on its caller's account, for as long as the call is in memory.
    held: OnceLock<Taken>,
    /// The same of its answer while that waits for the caller.
    kept: OnceLock<Taken>,
    /// [`PARKED`], [`OVER`], [`BACK`] and [`MOVED`].
    state: AtomicU8,
    /// Wakes what serves the call when it is over, if that wants to know.
    over: OnceLock<Box<Notify>>,
}

/// Requests up to this length, in bytes, are not entered in the account of bytes that wait: there
/// are no more of them than open calls.
const UNCOUNTED_BYTES_MAX: usize = 4096;

/// Its caller was answered for now.
const PARKED: u8 = 1;
/// It has ended.
const OVER: u8 = 2;
/// Its caller came back with another request, which has the answer.
const BACK: u8 = 4;
/// It was moved to another session.
const MOVED: u8 = 8;

impl Call {
    /// A call that is not in the topic yet.
    pub(crate) fn new(
        id: OperationId,
        by: Requester<'_>,
        incoming: Incoming,
        names: Names,
        reply: Arc<dyn Reply>,
    ) -> Arc<Self> {
        let Incoming {
            request,
            tag,
            client,
            parks,
            wish,
            schema,
            state,
            declined,
            ..
        } = incoming;
        let (is_retry, shown) = (state.is_some(), JsonView::of(&request, schema));
        let (delivered, waits, back, sessions, moved, held, kept, state, over) = <_>::default();
        let task = CallTask::default();
        let (link, bearer) = (Arc::clone(by.link), by.bearer.cloned());
        Arc::new(Self {
            id,
            link,
            request,
            shown,
            tag,
            client,
            bearer,
            parks,
            wish,
            names,
            task,
            delivered,
            waits,
            is_retry,
            declined,
            reply,
            back,
            sessions,
            moved,
            held,
            kept,
            state,
            over,
        })
    }

    /// Its caller, for what follows from the call.
    pub(crate) fn requester(&self) -> Requester<'_> {
        Requester {
            link: &self.link,
            bearer: self.bearer.as_ref(),
        }
    }

    /// What its access token narrows its participant's capabilities to.
    #[must_use]
    pub fn narrowing(&self) -> Option<&Narrowing> {
        self.bearer.as_ref()?.narrowing.as_ref()
    }

    /// The SHA-256 of the access token of an issuer with which it came: servers exchange this one
    /// for it, and no other.
    pub(crate) fn token(&self) -> Option<Digest> {
        self.bearer.as_ref()?.token
    }

    /// The schema by which its arguments were checked when it came, if it is written in protobuf.
    pub(crate) fn checked_by(&self) -> Option<&ToolSchema> {
        self.shown.as_ref()?.schema()
    }

    /// The topic at its server, and where it has delivered the call.
    fn delivery(&self) -> Option<(Arc<dyn CallTopic>, &Delivered)> {
        let delivered = self.delivered.get()?;
        Some((delivered.topic.upgrade()?, delivered))
    }

    /// The session that it was sent to.
    pub(crate) fn session(&self) -> Option<Arc<Session>> {
        match self.state.load(Ordering::Acquire) & MOVED {
            0 => self.sessions.iter().rev().find_map(OnceLock::get).cloned(),
            _ => self.moved.lock().clone(),
        }
    }

    /// Enters the session to which it is moved; false if it depends on the one that has it.
    pub(crate) fn move_to(&self, session: &Arc<Session>) -> bool {
        let task = &self.task;
        if self.wish != TaskWish::None || task.about().is_some() || task.asks() || task.follows() {
            return false;
        }
        *self.moved.lock() = Some(Arc::clone(session));
        self.state.fetch_or(MOVED, Ordering::AcqRel);
        true
    }

    /// Enters the session that it is sent to; false if it was sent twice before.
    pub(crate) fn enter(&self, session: &Arc<Session>) -> bool {
        self.sessions
            .iter()
            .any(|place| place.set(Arc::clone(session)).is_ok())
    }

    /// Whether a session that did not take it can have a successor that does.
    pub(crate) fn may_go_again(&self) -> bool {
        self.sessions.iter().any(|place| place.get().is_none())
            && self.wish == TaskWish::None
            && self.task.about().is_none()
    }

    /// Enters a long request in the account of its caller.
    ///
    /// # Errors
    /// The refusal if the account, or that of all, is full.
    pub(crate) fn hold(&self) -> Result<(), Refusal> {
        self.account_for(self.request.payload.bytes.len(), &self.held)
    }

    /// The same of an answer that waits for the caller.
    pub(crate) fn hold_answer(&self, answer: &Answer) -> Result<(), Refusal> {
        self.account_for(answer.payload.bytes.len(), &self.kept)
    }

    /// Whether the bytes of its answer are on its caller's account already: it asks for a result
    /// that is kept as a task.
    pub fn answer_is_kept(&self) -> bool {
        self.task.about().is_some_and(|task| task.kept.is_some())
    }

    fn account_for(&self, bytes: usize, place: &OnceLock<Taken>) -> Result<(), Refusal> {
        let Some(share) = self.link.held.get().filter(|_| bytes > UNCOUNTED_BYTES_MAX) else {
            return Ok(());
        };
        let why = |full| match full {
            Full::Share => "your open calls and unread messages hold too many bytes",
            Full::Pool => "open calls and unread messages hold too many bytes",
        };
        let taken = share.take(bytes).map_err(|full| {
            Refusal::new(RefusalCode::Overloaded, why(full))
                .hint("wait until some of your calls have ended")
        })?;
        // It is entered once.
        let _ = place.set(taken);
        Ok(())
    }

    /// The request in JSON.
    ///
    /// # Errors
    /// It is protobuf, and JSON has no such value.
    pub(crate) fn shown(&self) -> Result<&Request, &Refusal> {
        self.shown
            .as_ref()
            .map_or(Ok(&self.request), |shown| shown.request(&self.request))
    }

    /// An answer to it in JSON.
    pub(crate) fn shown_answer<'a>(&self, answer: &'a Answer) -> Cow<'a, Answer> {
        self.shown.as_ref().map_or(Cow::Borrowed(answer), |shown| {
            Cow::Owned(shown.answer(answer))
        })
    }

    /// A request that is sent for it.
    pub(crate) fn outgoing<'c>(&'c self, request: &'c Request, number: CallNumber) -> Outgoing<'c> {
        // A proposal runs as its proposer's operation, also if the gateway sends it.
        let delivered = self.delivered.get();
        let proposer = delivered.and_then(|delivered| delivered.proposer.as_ref());
        Outgoing {
            request,
            number,
            own: None,
            related_task: None,
            tasks: false,
            client_info: self.client().client_info.as_deref(),
            capabilities: &self.client().capabilities,
            log_level: delivered.and_then(|delivered| delivered.logs),
            from: self.link.participant.id.as_str(),
            account: account(proposer.unwrap_or(&self.link.participant.id)),
        }
    }

    /// Its caller as a server's session knows it.
    pub(crate) fn caller(&self) -> Caller<'_> {
        self.link.caller_with(self.client(), self.token())
    }

    /// What its caller's client declares.
    pub(crate) fn client(&self) -> &ClientProfile {
        self.client.as_ref().unwrap_or(&self.link.client)
    }

    /// Where its answer goes: nowhere while its caller has been answered for now.
    pub(crate) fn reply(&self) -> Answering<'_> {
        let answering = self.answering();
        Answering {
            is_away: answering.request().was_answered(),
            ..answering
        }
    }

    /// Where the answer for now goes, once. What follows reaches no caller until one comes back.
    /// `None` if it has been answered.
    pub(crate) fn park(&self) -> Option<Answering<'_>> {
        let answering = self.answering();
        // In one step with the look at its end: of the answer for now and the answer itself one
        // reaches the caller.
        let parked = |state| (state & (PARKED | OVER) == 0).then_some(state | PARKED);
        let state = &answering.request().state;
        let open = state
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, parked)
            .is_ok();
        open.then_some(answering)
    }

    fn answering(&self) -> Answering<'_> {
        // Few callers come back: the others take no lock.
        let is_back = self.state.load(Ordering::Acquire) & BACK != 0;
        let back = if is_back {
            self.back.lock().clone()
        } else {
            None
        };
        Answering {
            call: self,
            back,
            is_away: false,
        }
    }

    /// Lets its caller wait with another request, which is not sent anywhere. Returns the one with
    /// which it came back before.
    pub(crate) fn come_back(&self, by: Arc<Call>) -> Option<Arc<Call>> {
        let before = self.back.lock().replace(by);
        self.state.fetch_or(BACK, Ordering::AcqRel);
        before
    }

    /// Whether its caller was answered for now and has not come back.
    pub(crate) fn is_parked(&self) -> bool {
        self.answering().request().was_answered()
    }

    /// Whether this very request was answered for now.
    pub(crate) fn was_answered(&self) -> bool {
        self.state.load(Ordering::Acquire) & PARKED != 0
    }

    /// Whether it has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.state.load(Ordering::Acquire) & OVER != 0
    }

    /// Notes its end. Room that was kept for a task is free again.
    pub(crate) fn end(&self) {
        self.mark_over();
        self.task.give_back();
    }

    fn mark_over(&self) {
        self.state.fetch_or(OVER, Ordering::AcqRel);
        if let Some(back) = self.answering().back {
            back.state.fetch_or(OVER, Ordering::AcqRel);
        }
        if let Some(over) = self.over.get() {
            over.notify_one();
        }
    }

    /// What is notified when the call is over.
    pub(crate) fn over(&self) -> &Notify {
        let over = self.over.get_or_init(Box::default);
        if self.is_over() {
            over.notify_one();
        }
        over
    }

    /// Tells the server that it need not go on.
    pub(crate) fn cancel_at_server(&self, reason: &str) {
        self.mark_over();
        if let Some(session) = self.session() {
            session.cancel(call_number(self.id), reason);
        }
        self.task.stop(reason);
    }
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call")
            .field("id", &self.id)
            .field("method", &self.request.method)
            .finish_non_exhaustive()
    }
}

impl CallEvents for Call {
    fn notice(&self, notice: Notice) {
        if let Some((topic, delivered)) = self.delivery() {
            topic.noticed(self, delivered, notice);
        }
    }

    fn question(&self, question: Question) {
        if let Some((topic, delivered)) = self.delivery() {
            topic.asked(self, delivered, question);
        }
    }

    fn done(&self, end: Result<Answer, Refusal>) {
        if let Some((topic, delivered)) = self.delivery() {
            topic.ended(self, delivered, end);
        }
    }
}

#[cfg(test)]
mod tests;
