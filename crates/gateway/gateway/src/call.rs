//! Call: one request of a link from its admission to its end, and its way back.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use auth::Bearer;
use model::{
    Answer, Digest, LinkId, ListKind, LogLevel, Narrowing, Notice, OperationId, ParticipantId,
    Refusal, RefusalCode, Request,
};
use platform::{Full, Taken};
use tokio::sync::Notify;
use upstream::tasks::CallTask;
use upstream::{AtServer, CallEvents, CallNumber, Caller, ClientProfile, Outgoing, Question};
use wire::mcp::{relay, task::TaskWish};

use crate::incoming::{Incoming, Names, Parks, Tag};
use crate::link::{Link, Passed, Questioned, Requester, Respell, Undelivered};
use crate::mailbox::Mailbox;
use crate::overhead::CallTime;
use schema::ToolSchema;
use transcode::shown::JsonView;

use crate::proposals::content::Waits;
use crate::span::CallSpan;
use sessions::Sessions;
use waiter::{Waiter, WaitsWith};

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
    fn withdraw_question(&self, _call: &Call, _number: u64) {}
    /// A list may have changed that its listen request names.
    ///
    /// # Errors
    /// As [`Reply::notify`].
    fn list_changed(&self, _call: &Call, _list: ListKind) -> Result<(), Undelivered> {
        Ok(())
    }
}

/// Where what belongs to a call goes: to the request that its caller waits with, or nowhere.
pub(crate) struct Answering<'c> {
    call: &'c Call,
    with: WaitsWith<Call>,
}

impl Answering<'_> {
    /// Whether an answer reaches no caller now.
    pub(crate) fn is_away(&self) -> bool {
        matches!(self.with, WaitsWith::Nothing)
    }

    /// The request that is answered: the call itself, unless its caller came back with another one.
    pub(crate) fn request(&self) -> &Call {
        match &self.with {
            WaitsWith::Later(request) => request,
            WaitsWith::First | WaitsWith::Nothing => self.call,
        }
    }

    /// The request with which a caller waits.
    fn waiting(&self) -> Option<&Call> {
        match &self.with {
            WaitsWith::First => Some(self.call),
            WaitsWith::Later(request) => Some(request),
            WaitsWith::Nothing => None,
        }
    }

    pub(crate) fn settle(&self, answer: &Answer, respell: &Respell<'_>) {
        if let Some(request) = self.waiting() {
            request.reply.settle(request, answer, respell);
        }
    }

    pub(crate) fn refuse(&self, refusal: &Refusal) {
        if let Some(request) = self.waiting() {
            request.reply.refuse(request, refusal);
        }
    }

    pub(crate) fn abandon(&self) {
        if let Some(request) = self.waiting() {
            request.reply.abandon(request);
        }
    }

    /// Passes a notification on. A caller that came back may have chosen another progress token, or
    /// none.
    pub(crate) fn notify(&self, notice: &Passed<'_>) -> Result<(), Undelivered> {
        let Some(request) = self.waiting() else {
            return Ok(());
        };
        let token = &request.request.progress;
        let is_same = *token == notice.notice.latest;
        let is_first = matches!(self.with, WaitsWith::First);
        if is_first || is_same || notice.notice.method.as_str() != "notifications/progress" {
            return request.reply.notify(request, notice);
        }
        let Some(token) = token else {
            // The request with which its caller came back asks for no progress.
            return Ok(());
        };
        let Some(renamed) = relay::with_progress_token(notice.notice, token) else {
            return Ok(());
        };
        let notice = Passed {
            notice: &renamed,
            ..*notice
        };
        request.reply.notify(request, &notice)
    }

    pub(crate) fn ask(&self, question: &Questioned<'_>) -> Result<(), Undelivered> {
        match self.waiting() {
            Some(request) => request.reply.ask(request, question),
            // Away, it cannot be asked: as if its form had no questions.
            None => Err(Undelivered::OtherForm),
        }
    }

    pub(crate) fn withdraw_question(&self, number: u64) {
        if let Some(request) = self.waiting() {
            request.reply.withdraw_question(request, number);
        }
    }

    pub(crate) fn list_changed(&self, list: ListKind) -> Result<(), Undelivered> {
        match self.waiting() {
            Some(request) => request.reply.list_changed(request, list),
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

/// A delivered call for whose answer rules may ask later.
pub(crate) struct AwaitedCall {
    /// The name or URI of its target at its server.
    pub(crate) own: Box<str>,
    /// The params of the proposal that it carries out, as they were approved.
    pub(crate) approved: Option<Option<String>>,
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
    /// What rules that ask for earlier calls need of it, while there are some.
    pub(crate) awaited: Option<Box<AwaitedCall>>,
}

/// One request of a link, from its admission to its end.
///
/// A caller that was answered for now comes back with a request that is a `Call` too, of the same id
/// and another round. That one is sent nowhere: `Call::come_back` gives it to the first call, which
/// goes on, and whose effects answer it.
pub struct Call {
    // What came.
    /// Its id in the topic.
    pub id: OperationId,
    /// The caller's link.
    pub link: Arc<Link>,
    /// The request as the caller wrote it.
    pub request: Request,
    /// The request in JSON, if the caller wrote protobuf.
    shown: Option<Box<JsonView>>,
    /// The JSON-RPC id, or what stands for it, under which its client knows it.
    pub tag: Option<Tag>,
    /// The client that the request declares; `None` if the link's counts.
    pub(crate) client: Option<ClientProfile>,
    /// The statements of the access token with which it came.
    pub(crate) bearer: Option<Arc<Bearer>>,
    /// The address from which it came.
    pub(crate) address: Option<IpAddr>,
    /// Spelling of names and URIs to its caller.
    pub(crate) names: Names,
    /// Whether it came with a state that is its server's: only a modern server can know it.
    pub(crate) is_retry: bool,
    /// Whether its person refused to open the link to a connect page.
    pub(crate) declined: bool,
    /// The round in which its caller came back with this very request; 0 if it is the first one.
    pub(crate) round: u32,

    // Where it went.
    /// Its span, if it is traced.
    pub(crate) span: OnceLock<Box<CallSpan>>,
    /// Its time, if that is measured.
    pub(crate) time: OnceLock<CallTime>,
    /// Where the topic delivered it, once it has.
    pub(crate) delivered: OnceLock<Delivered>,
    /// The sessions that it was sent to.
    pub(crate) sessions: Sessions,
    /// Wish of its caller about becoming a task.
    pub(crate) wish: TaskWish,
    /// Its relation to tasks: whether it becomes one, is about one, or waits for one.
    pub(crate) task: CallTask,
    /// Wakes what serves the call in the gateway when it is cancelled.
    cancelled: OnceLock<Box<Notify>>,

    // How it is answered.
    /// The mailbox of effects for it.
    pub(crate) mailbox: Mailbox,
    reply: Arc<dyn Reply>,
    /// The request with which its caller waits.
    pub(crate) waiter: Waiter<Call>,
    /// Answer for now that its caller gets while a proposal waits.
    pub(crate) parks: Parks,
    /// A built-in tool or task request that waits for a proposal in its own way.
    pub(crate) waits: OnceLock<Waits>,

    // What it takes of the bytes that its caller may have in memory.
    /// The bytes of a long request, for as long as the call is in memory.
    request_bytes: OnceLock<Taken>,
    /// The bytes of its answer, while the answer waits for the caller.
    answer_bytes: OnceLock<Taken>,
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
        let Incoming {
            request,
            tag,
            client,
            parks,
            wish,
            schema,
            state,
            declined,
            round,
            // Its span has it.
            trace: _,
            // The topic gets these.
            interest: _,
            logs: _,
        } = incoming;
        Arc::new(Self {
            id,
            link: Arc::clone(by.link),
            shown: JsonView::of(&request, schema),
            request,
            tag,
            client,
            bearer: by.bearer.cloned(),
            address: by.address,
            names,
            is_retry: state.is_some(),
            declined,
            round,
            span: OnceLock::new(),
            time: OnceLock::new(),
            delivered: OnceLock::new(),
            sessions: Sessions::default(),
            wish,
            task: CallTask::default(),
            cancelled: OnceLock::new(),
            mailbox: Mailbox::default(),
            reply,
            waiter: Waiter::default(),
            parks,
            waits: OnceLock::new(),
            request_bytes: OnceLock::new(),
            answer_bytes: OnceLock::new(),
        })
    }

    /// Its caller, for what follows from the call.
    pub(crate) fn requester(&self) -> Requester<'_> {
        Requester {
            link: &self.link,
            bearer: self.bearer.as_ref(),
            address: self.address,
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

    /// Notes, if its time is measured, that it waits for more than the answer of its server.
    pub(crate) fn note_wait(&self) {
        if let Some(time) = self.time.get() {
            time.note_wait();
        }
    }

    /// The time that the gateway has added to it until now, if that is measured and it has waited for
    /// nothing but its server.
    pub(crate) fn overhead(&self) -> Option<Duration> {
        let time = self.time.get()?;
        // One that was reviewed has waited for its decision.
        if self.is_reviewed() {
            return None;
        }
        time.overhead()
    }

    /// The topic at its server, and where it has delivered the call.
    fn delivery(&self) -> Option<(Arc<dyn CallTopic>, &Delivered)> {
        let delivered = self.delivered.get()?;
        Some((delivered.topic.upgrade()?, delivered))
    }

    /// Whether it may move from a session in which it still waits to another one. A call that
    /// becomes a task, is about one or waits for one belongs to the session that knows the task.
    pub(crate) fn may_move(&self) -> bool {
        let task = &self.task;
        self.wish == TaskWish::None && task.about().is_none() && !task.asks() && !task.follows()
    }

    /// Whether it carries out a proposal: it runs as it was shown.
    pub(crate) fn is_reviewed(&self) -> bool {
        let delivered = self.delivered.get();
        delivered.is_some_and(|delivered| delivered.proposal.is_some())
    }

    /// Whether it may be sent again in a new session after the old one did not take it: nothing of it
    /// is at the server. The new session knows no task of the old one.
    pub(crate) fn may_go_again(&self) -> bool {
        self.wish == TaskWish::None && self.task.about().is_none()
    }

    /// Enters a long request in the account of its caller.
    ///
    /// # Errors
    /// The refusal if the account, or that of all, is full.
    pub(crate) fn account_request(&self) -> Result<(), Refusal> {
        let bytes = self.request.payload.bytes.len();
        if bytes <= UNCOUNTED_BYTES_MAX {
            return Ok(());
        }
        self.account_for(bytes, &self.request_bytes)
    }

    /// Whether an answer is long enough for the account.
    pub(crate) fn is_long(answer: &Answer) -> bool {
        answer.payload.bytes.len() > UNCOUNTED_BYTES_MAX
    }

    /// Enters a long answer that waits for the caller in the same account.
    ///
    /// # Errors
    /// As [`Call::account_request`].
    pub(crate) fn account_answer(&self, answer: &Answer) -> Result<(), Refusal> {
        self.account_for(answer.payload.bytes.len(), &self.answer_bytes)
    }

    /// Whether the bytes of its answer are on its caller's account already: it asks for a result
    /// that is kept as a task.
    pub fn answer_is_kept(&self) -> bool {
        self.task.about().is_some_and(|task| task.kept.is_some())
    }

    fn account_for(&self, bytes: usize, place: &OnceLock<Taken>) -> Result<(), Refusal> {
        // A link that has not joined has no account, and opens no calls.
        let Some(share) = self.link.held.get() else {
            return Ok(());
        };
        let taken = share.take(bytes).map_err(|full| {
            let why = match full {
                Full::Share => "your open calls and unread messages hold too many bytes",
                Full::Pool => "open calls and unread messages hold too many bytes",
            };
            Refusal::new(RefusalCode::Overloaded, why)
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

    /// An answer to the call in JSON.
    pub(crate) fn shown_answer<'a>(&self, answer: &'a Answer) -> Cow<'a, Answer> {
        self.shown.as_ref().map_or(Cow::Borrowed(answer), |shown| {
            Cow::Owned(shown.answer(answer))
        })
    }

    /// A request that a session sends for the call: its own, or one in its place.
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
            trace: None,
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
        Answering {
            call: self,
            with: self.waiter.waits_with(),
        }
    }

    /// Where the answer for now goes. What follows reaches no caller until it comes back.
    pub(crate) fn answer_for_now(&self) -> Answering<'_> {
        // First: this one answer still goes to the request that waits.
        let answering = self.reply();
        self.waiter.leave();
        answering
    }

    /// Lets its caller wait with another request, which is not sent anywhere.
    pub(crate) fn come_back(&self, by: Arc<Call>) {
        self.waiter.come_back(by);
    }

    /// A notification of the call's cancellation. To be asked for while the call is delivered: its
    /// cancellation comes after that.
    pub(crate) fn cancelled(&self) -> &Notify {
        self.cancelled.get_or_init(Box::default)
    }

    /// Lets its server know that it need not go on, be that a session or the gateway. The call itself
    /// ends by another effect.
    pub(crate) fn cancel_at_server(&self, reason: &str) {
        if let Some(cancelled) = self.cancelled.get() {
            cancelled.notify_one();
        }
        if let Some(session) = self.sessions.last() {
            session.cancel(CallNumber::of(self.id), reason);
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

/// Gives the call's topic each event of the session. Without a topic there is no caller any more:
/// the topic was closed, and has ended all its calls.
impl CallEvents for Call {
    fn notice(&self, notice: Notice) {
        if let Some((topic, delivered)) = self.delivery() {
            topic.noticed(self, delivered, notice);
        }
    }

    fn question(&self, question: Question) {
        self.note_wait();
        if let Some((topic, delivered)) = self.delivery() {
            topic.asked(self, delivered, question);
        }
    }

    fn deferred(&self) {
        if let Some((topic, _)) = self.delivery() {
            topic.deferred(self);
        }
    }

    fn measured(&self, at_server: AtServer) {
        if let Some(time) = self.time.get() {
            time.note_server(at_server.time);
        }
        if let Some(span) = self.span.get() {
            span.note_server(at_server);
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
