//! Call: one request of a link from its admission to its end, and its way back.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock, Weak};

use auth::Bearer;
use model::{
    Answer, Digest, LinkId, ListKind, LogLevel, Narrowing, Notice, OperationId, ParticipantId,
    Refusal, RefusalCode, Request,
};
use platform::{Full, Taken};
use tokio::sync::Notify;
use upstream::tasks::CallTask;
use upstream::{CallEvents, CallNumber, Caller, ClientProfile, Outgoing, Question, Session};
use wire::mcp::{relay, task::TaskWish};

use crate::incoming::{Incoming, Names, Parks, Tag};
use crate::link::{Link, Passed, Questioned, Requester, Respell, Undelivered};
use crate::mailbox::Mailbox;
use schema::ToolSchema;
use transcode::shown::JsonView;

use crate::{context::call_number, proposals::content::Waits};
use sessions::Sessions;
use waiter::Waiter;

mod sessions;
mod waiter;

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

/// Where what belongs to a call goes: to the request that its caller waits for, or nowhere.
pub(crate) struct Answering<'c> {
    call: &'c Call,
    /// The request with which the caller came back, if it did.
    back: Option<Arc<Call>>,
    is_away: bool,
}

impl<'c> Answering<'c> {
    fn of(call: &'c Call) -> Self {
        Self {
            call,
            back: call.waiter.back(),
            is_away: call.waiter.is_away(),
        }
    }

    /// Whether an answer reaches no caller now.
    pub(crate) fn is_away(&self) -> bool {
        self.is_away
    }

    pub(crate) fn request(&self) -> &Call {
        self.back.as_deref().unwrap_or(self.call)
    }

    /// The reply of a caller that waits.
    fn reply(&self) -> Option<&dyn Reply> {
        if self.is_away {
            None
        } else {
            Some(&*self.request().reply)
        }
    }

    pub(crate) fn settle(&self, answer: &Answer, respell: &Respell<'_>) {
        if let Some(reply) = self.reply() {
            reply.settle(self.request(), answer, respell);
        }
    }

    pub(crate) fn refuse(&self, refusal: &Refusal) {
        if let Some(reply) = self.reply() {
            reply.refuse(self.request(), refusal);
        }
    }

    pub(crate) fn abandon(&self) {
        if let Some(reply) = self.reply() {
            reply.abandon(self.request());
        }
    }

    /// Passes a notification on. A caller that came back may have chosen another progress token, or
    /// none.
    pub(crate) fn notify(&self, notice: &Passed<'_>) -> Result<(), Undelivered> {
        let Some(reply) = self.reply() else {
            return Ok(());
        };
        let request = self.request();
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
        match self.reply() {
            Some(reply) => reply.ask(self.request(), question),
            None => Err(Undelivered::OtherForm),
        }
    }

    pub(crate) fn withdraw_question(&self, operation: OperationId) {
        if let Some(reply) = self.reply() {
            reply.withdraw_question(self.request(), operation);
        }
    }

    pub(crate) fn list_changed(&self, list: ListKind) -> Result<(), Undelivered> {
        match self.reply() {
            Some(reply) => reply.list_changed(self.request(), list),
            None => Ok(()),
        }
    }
}

/// The topic of a call at its server, to which everything that the server sends about the call
/// goes.
pub(crate) trait CallTopic: Send + Sync {
    /// Takes a notification about the call.
    fn noticed(self: Arc<Self>, call: &Call, delivered: &Delivered, notice: Notice);

    /// Takes a question to the caller.
    fn asked(self: Arc<Self>, call: &Call, delivered: &Delivered, question: Question);

    /// Receives that a call waits in its session behind one whose server asks the caller.
    fn deferred(self: Arc<Self>, call: &Call);

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
    /// The request in JSON, if the caller wrote protobuf.
    shown: Option<Box<JsonView>>,
    /// The name that the client gave it.
    pub tag: Option<Tag>,
    pub(crate) client: Option<ClientProfile>,
    /// What the access token says with which it came.
    pub(crate) bearer: Option<Arc<Bearer>>,
    pub(crate) parks: Parks,
    pub(crate) wish: TaskWish,
    pub(crate) names: Names,
    /// Its relation to tasks: whether it becomes one, is about one, or waits for one.
    pub(crate) task: CallTask,
    pub(crate) delivered: OnceLock<Delivered>,
    /// A built-in tool or task request that waits for a proposal in its own way.
    pub(crate) waits: OnceLock<Waits>,
    /// Whether it has a state that is not the gateway's: its server must know it.
    pub(crate) is_retry: bool,
    /// Whether its person refused to open the link to a connect page.
    pub(crate) declined: bool,
    /// The round in which its caller came back with this very request; 0 if it is the first one.
    pub(crate) round: u32,
    /// The mailbox of effects for it.
    pub(crate) mailbox: Mailbox,
    reply: Arc<dyn Reply>,
    /// The request with which its caller waits.
    waiter: Waiter<Call>,
    /// The sessions that it was sent to.
    sessions: Sessions,
    /// The bytes of a long request on its caller's account, for as long as the call is in memory.
    held: OnceLock<Taken>,
    /// The bytes of its answer on that account, while the answer waits for the caller.
    kept: OnceLock<Taken>,
    /// Wakes what serves the call in the gateway when it is cancelled.
    cancelled: OnceLock<Box<Notify>>,
}

/// Requests up to this length, in bytes, are not entered in the account of bytes that wait: there
/// are no more of them than open calls.
const UNCOUNTED_BYTES_MAX: usize = 4096;

impl Call {
    /// A call that is not in the topic yet.
    pub(crate) fn new(
        id: OperationId,
        by: Requester<'_>,
        incoming: Incoming,
        names: Names,
        reply: Arc<dyn Reply>,
    ) -> Arc<Self> {
        Arc::new(Self::with(id, by, incoming, names, reply))
    }

    /// A request with which the caller of a paused call comes back in this round.
    pub(crate) fn returning(
        id: OperationId,
        by: Requester<'_>,
        incoming: Incoming,
        reply: Arc<dyn Reply>,
        round: u32,
    ) -> Arc<Self> {
        let call = Self::with(id, by, incoming, Names::Public, reply);
        Arc::new(Self { round, ..call })
    }

    fn with(
        id: OperationId,
        by: Requester<'_>,
        incoming: Incoming,
        names: Names,
        reply: Arc<dyn Reply>,
    ) -> Self {
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
        let is_retry = state.is_some();
        let shown = JsonView::of(&request, schema);
        let link = Arc::clone(by.link);
        let bearer = by.bearer.cloned();
        Self {
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
            task: CallTask::default(),
            delivered: OnceLock::new(),
            waits: OnceLock::new(),
            is_retry,
            declined,
            round: 0,
            mailbox: Mailbox::default(),
            reply,
            waiter: Waiter::default(),
            sessions: Sessions::default(),
            held: OnceLock::new(),
            kept: OnceLock::new(),
            cancelled: OnceLock::new(),
        }
    }

    /// Its caller, for what follows from the call.
    pub(crate) fn requester(&self) -> Requester<'_> {
        Requester {
            link: &self.link,
            bearer: self.bearer.as_ref(),
        }
    }

    /// The narrowing of its participant's capabilities by its access token.
    #[must_use]
    pub fn narrowing(&self) -> Option<&Narrowing> {
        self.bearer.as_ref()?.narrowing.as_ref()
    }

    /// The SHA-256 of the access token of an issuer with which it came: servers exchange this one
    /// for it, and no other.
    pub(crate) fn token(&self) -> Option<Digest> {
        self.bearer.as_ref()?.token
    }

    /// The participant that proposed it, if it carries out a proposal.
    pub(crate) fn proposer(&self) -> Option<&ParticipantId> {
        self.delivered.get()?.proposer.as_ref()
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

    /// The session that it was sent to last.
    pub(crate) fn session(&self) -> Option<Arc<Session>> {
        self.sessions.last().cloned()
    }

    /// Enters the session that it is sent to.
    pub(crate) fn enter(&self, session: &Arc<Session>) {
        self.sessions.enter(session);
    }

    /// Whether another session may send it: nothing of it depends on the one that has it.
    pub(crate) fn may_move(&self) -> bool {
        let task = &self.task;
        self.wish == TaskWish::None && task.about().is_none() && !task.asks() && !task.follows()
    }

    /// Whether a session that did not take it can have a successor that does.
    pub(crate) fn may_go_again(&self) -> bool {
        self.wish == TaskWish::None && self.task.about().is_none()
    }

    /// Enters a long request in the account of its caller.
    ///
    /// # Errors
    /// The refusal if the account, or that of all, is full.
    pub(crate) fn hold(&self) -> Result<(), Refusal> {
        self.account_for(self.request.payload.bytes.len(), &self.held)
    }

    /// Enters an answer that waits for the caller in the same account.
    ///
    /// # Errors
    /// As [`Call::hold`].
    pub(crate) fn hold_answer(&self, answer: &Answer) -> Result<(), Refusal> {
        self.account_for(answer.payload.bytes.len(), &self.kept)
    }

    /// Whether an answer would be entered in the account if it waited for the caller.
    pub(crate) fn counts(answer: &Answer) -> bool {
        answer.payload.bytes.len() > UNCOUNTED_BYTES_MAX
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
            account: proposer.unwrap_or(&self.link.participant.id).account(),
        }
    }

    /// Its caller as a server's session knows it.
    pub(crate) fn caller(&self) -> Caller<'_> {
        self.link.caller_with(self.client(), self.token())
    }

    /// The declarations of its caller's client.
    pub(crate) fn client(&self) -> &ClientProfile {
        self.client.as_ref().unwrap_or(&self.link.client)
    }

    /// Where what belongs to the call goes now: nowhere while its caller was answered for now.
    pub(crate) fn reply(&self) -> Answering<'_> {
        Answering::of(self)
    }

    /// Where the answer for now goes. What follows reaches no caller until it comes back.
    pub(crate) fn answer_for_now(&self) -> Answering<'_> {
        let answering = Answering::of(self);
        self.waiter.leave();
        answering
    }

    /// Lets its caller wait with another request, which is not sent anywhere.
    pub(crate) fn come_back(&self, by: Arc<Call>) {
        self.waiter.come_back(by);
    }

    /// Whether its caller was answered for now and is not back, as far as its effects have been
    /// carried out. Only these may ask: for all others the topic knows.
    pub(crate) fn is_away(&self) -> bool {
        self.waiter.is_away()
    }

    /// What is notified when the call is cancelled. To be asked for while the call is delivered:
    /// its cancellation comes after that.
    pub(crate) fn cancelled(&self) -> &Notify {
        self.cancelled.get_or_init(Box::default)
    }

    /// Tells the server that it need not go on.
    pub(crate) fn cancel_at_server(&self, reason: &str) {
        if let Some(cancelled) = self.cancelled.get() {
            cancelled.notify_one();
        }
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

    fn deferred(&self) {
        if let Some((topic, _)) = self.delivery() {
            topic.deferred(self);
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
