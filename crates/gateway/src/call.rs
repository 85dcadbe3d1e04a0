//! Call: one request of a link from its admission to its end, and its way back.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use access::account;
use model::{
    Answer, LinkId, ListKind, LogLevel, Notice, OperationId, ParticipantId, Refusal, RefusalCode, Request,
};
use platform::{Full, Taken};
use tokio::sync::Notify;
use topic::{Interest, Logs};
use upstream::tasks::CallTask;
use upstream::{CallEvents, CallNumber, ClientProfile, Outgoing, Question, Session};
use wire::mcp::{relay, task::Wish};
use wire::rpc::Id;

use crate::link::{Link, Passed, Questioned, Respell, Undelivered};
use crate::{context::call_number, proposals::content::Waits};

/// The name that a client or a server gave its request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag {
    /// The instance number of the server's session; 0 for a client.
    session: u64,
    /// The name as its owner wrote it.
    pub id: Id,
}

impl Tag {
    /// The name of a client's request.
    pub fn of_client(id: Id) -> Self {
        Self { session: 0, id }
    }

    /// The name of a server's question.
    pub(crate) fn of_server(session: u64, id: Id) -> Self {
        Self { session, id }
    }
}

/// A request as its door decoded it.
pub struct Incoming {
    /// The request.
    pub request: Request,
    /// The name that the client gave it.
    pub tag: Option<Tag>,
    /// What the client declares with it, if it declares something with each request.
    pub client: Option<ClientProfile>,
    /// What it changes about the link's notifications.
    pub interest: Interest,
    /// The log messages that the caller gets about it.
    pub logs: Logs,
    /// How the caller is answered for now while a proposal waits.
    pub parks: Parks,
    /// What it says about becoming a task.
    pub wish: Wish,
    /// The state with which a caller comes back (`requestState`).
    pub state: Option<String>,
}

impl Incoming {
    /// A request that says nothing more.
    pub fn plain(request: Request, tag: Option<Tag>) -> Self {
        let (client, interest, logs, state) = (None, Interest::None, Logs::OfLink, None);
        Self { request, tag, client, interest, logs, parks: Parks::Words, wish: Wish::None, state }
    }
}

/// How a caller is answered for now whose call waits for a proposal (ARCHITECTURE.md, "A proposal"), and whether it can come back
/// with answers to questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parks {
    /// At once, with a task.
    Task,
    /// After a while, with a sealed state to come back with.
    Retry,
    /// After a while, in words: it does not come back.
    Words,
}

/// How names and URIs are spelled to a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Names {
    /// As the topic's lists show them.
    Public,
    /// As the server has them.
    Own,
}

/// Receives the answer of a call, and what belongs to the call before it. Each call ends with one of `settle`, `refuse` and
/// `abandon`. Without other methods of its own a reply passes on nothing but the end.
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

/// Where the answer of a call goes: a request of its caller, and the reply of that request.
pub(crate) struct Answering<'c> {
    call: &'c Call,
    reply: &'c dyn Reply,
    /// Whether the request is one with which the caller came back.
    is_back: bool,
}

impl Answering<'_> {
    pub(crate) fn settle(&self, answer: &Answer, respell: &Respell<'_>) {
        self.reply.settle(self.call, answer, respell);
    }

    pub(crate) fn refuse(&self, refusal: &Refusal) {
        self.reply.refuse(self.call, refusal);
    }

    pub(crate) fn abandon(&self) {
        self.reply.abandon(self.call);
    }

    /// Passes a notification on. A caller that came back may have chosen another progress token, or none.
    pub(crate) fn notify(&self, notice: &Passed<'_>) -> Result<(), Undelivered> {
        let token = &self.call.request.progress;
        let is_same = *token == notice.notice.latest;
        if !self.is_back || is_same || notice.notice.method.as_str() != "notifications/progress" {
            return self.reply.notify(self.call, notice);
        }
        match token.as_ref().and_then(|token| relay::with_progress_token(notice.notice, token)) {
            Some(renamed) => self.reply.notify(self.call, &Passed { notice: &renamed, ..*notice }),
            None => Ok(()),
        }
    }

    pub(crate) fn ask(&self, question: &Questioned<'_>) -> Result<(), Undelivered> {
        self.reply.ask(self.call, question)
    }

    pub(crate) fn withdraw_question(&self, operation: OperationId) {
        self.reply.withdraw_question(self.call, operation);
    }

    pub(crate) fn list_changed(&self, list: ListKind) -> Result<(), Undelivered> {
        self.reply.list_changed(self.call, list)
    }
}

/// The topic of a call at its server, to which everything that the server sends about the call goes.
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
    /// The name that the client gave it.
    pub tag: Option<Tag>,
    pub(crate) client: Option<ClientProfile>,
    pub(crate) parks: Parks,
    pub(crate) wish: Wish,
    pub(crate) names: Names,
    /// What it has to do with tasks.
    pub(crate) task: CallTask,
    pub(crate) delivered: OnceLock<Delivered>,
    /// A built-in tool or task request that waits for a proposal in its own way.
    pub(crate) waits: OnceLock<Waits>,
    /// Whether it has a state that is not the gateway's: its server must know it.
    pub(crate) is_retry: bool,
    reply: Arc<dyn Reply>,
    /// The request with which its caller came back, after it was answered for now with questions.
    next: OnceLock<Arc<Call>>,
    /// The session that it is sent to, and the one after it if that did not take it.
    sessions: [OnceLock<Arc<Session>>; 2],
    /// The bytes of a long request on its caller's account, for as long as the call is in memory.
    held: OnceLock<Taken>,
    /// The same of its answer while that waits for the caller.
    kept: OnceLock<Taken>,
    /// [`PARKED`] and [`OVER`].
    state: AtomicU8,
    /// Wakes what serves the call when it is over, if that wants to know.
    over: OnceLock<Box<Notify>>,
}

/// Requests up to this length, in bytes, are not entered in the account of bytes that wait: there are no more of them than open
/// calls.
const UNCOUNTED_BYTES_MAX: usize = 4096;

/// Its caller was answered for now.
const PARKED: u8 = 1;
/// It has ended.
const OVER: u8 = 2;

impl Call {
    /// A call that is not in the topic yet.
    pub(crate) fn new(
        id: OperationId,
        link: &Arc<Link>,
        incoming: Incoming,
        names: Names,
        reply: Arc<dyn Reply>,
    ) -> Arc<Self> {
        let Incoming { request, tag, client, parks, wish, .. } = incoming;
        let is_retry = incoming.state.is_some();
        let (delivered, waits, next, sessions, held, kept, state, over) = <_>::default();
        let task = CallTask::default();
        Arc::new(Self {
            id,
            link: Arc::clone(link),
            request,
            tag,
            client,
            parks,
            wish,
            names,
            task,
            delivered,
            waits,
            is_retry,
            reply,
            next,
            sessions,
            held,
            kept,
            state,
            over,
        })
    }

    /// The topic at its server, and where it has delivered the call.
    fn delivery(&self) -> Option<(Arc<dyn CallTopic>, &Delivered)> {
        let delivered = self.delivered.get()?;
        Some((delivered.topic.upgrade()?, delivered))
    }

    /// The session that it was sent to.
    pub(crate) fn session(&self) -> Option<&Arc<Session>> {
        self.sessions.iter().rev().find_map(OnceLock::get)
    }

    /// Enters the session that it is sent to; false if it was sent twice before.
    pub(crate) fn enter(&self, session: &Arc<Session>) -> bool {
        self.sessions.iter().any(|place| place.set(Arc::clone(session)).is_ok())
    }

    /// Whether a session that did not take it can have a successor that does.
    pub(crate) fn may_go_again(&self) -> bool {
        self.sessions.iter().any(|place| place.get().is_none())
            && self.wish == Wish::None
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

    fn account_for(&self, bytes: usize, place: &OnceLock<Taken>) -> Result<(), Refusal> {
        let Some(share) = self.link.held.get().filter(|_| bytes > UNCOUNTED_BYTES_MAX) else { return Ok(()) };
        let why = |full| match full {
            Full::Share => "your open calls and unread messages hold too many bytes",
            Full::Pool => "open calls and unread messages hold too many bytes",
        };
        let taken = share.take(bytes).map_err(|full| {
            Refusal::new(RefusalCode::Overloaded, why(full)).hint("wait until some of your calls have ended")
        })?;
        // It is entered once.
        let _ = place.set(taken);
        Ok(())
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

    /// What its caller's client declares.
    pub(crate) fn client(&self) -> &ClientProfile {
        self.client.as_ref().unwrap_or(&self.link.client)
    }

    /// The request that its caller waits for: this one, or the last with which it came back.
    pub(crate) fn current(&self) -> &Call {
        let mut current = self;
        while let Some(next) = current.next.get() {
            current = next;
        }
        current
    }

    /// Where its answer goes: nowhere while its caller has been answered for now.
    pub(crate) fn reply(&self) -> Answering<'_> {
        let call = self.current();
        let reply = if self.is_parked() { &NoReply } else { &*call.reply };
        Answering { call, reply, is_back: !std::ptr::eq(call, self) }
    }

    /// Where the answer for now goes, once. What follows reaches no caller until one comes back. `None` if it has been answered.
    pub(crate) fn park(&self) -> Option<Answering<'_>> {
        let call = self.current();
        // In one step with the look at its end: of the answer for now and the answer itself one reaches the caller.
        let open = call.state.compare_exchange(0, PARKED, Ordering::AcqRel, Ordering::Acquire);
        let is_back = !std::ptr::eq(call, self);
        open.is_ok().then_some(Answering { call, reply: &*call.reply, is_back })
    }

    /// Lets its caller wait with another request, which is not sent anywhere.
    pub(crate) fn come_back(&self, by: Arc<Call>) {
        // The current request was answered, and comes back once.
        let _ = self.current().next.set(by);
    }

    /// Whether its caller was answered for now.
    pub(crate) fn is_parked(&self) -> bool {
        self.current().state.load(Ordering::Acquire) & PARKED != 0
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
mod tests {
    use std::sync::atomic::AtomicUsize;

    use auth::Participant;
    use model::{Form, Method, Outcome, Payload};

    use super::*;
    use crate::link::{NoOutlet, plain_client};

    /// Counts ends.
    #[derive(Default)]
    struct Ends(AtomicUsize);

    impl Ends {
        fn count(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }
    }

    impl Reply for Ends {
        fn settle(&self, _: &Call, _: &Answer, _: &Respell<'_>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }

        fn refuse(&self, _: &Call, _: &Refusal) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }

        fn abandon(&self, _: &Call) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn call(reply: &Arc<Ends>) -> Arc<Call> {
        let participant = Participant {
            id: ParticipantId::new("scout").unwrap(),
            capabilities: Arc::default(),
            topics: Vec::new(),
            rate: None,
            mode: <_>::default(),
            wires: auth::Wires::ALL,
            expires_ms: None,
        };
        let (participant, form) = (Arc::new(participant), Form::Legacy);
        let link = Link::new(LinkId(1), participant, form, plain_client(), Arc::new(NoOutlet));
        let (method, payload) = (Method::Known("tools/call"), Payload::body(form, "{}"));
        let request = Request { method, target: None, progress: None, payload };
        let (incoming, reply) = (Incoming::plain(request, None), Arc::<Ends>::clone(reply));
        Call::new(OperationId(1), &link, incoming, Names::Public, reply)
    }

    #[test]
    fn a_parked_call_answers_its_caller_once() {
        let (reply, answer) = (
            Arc::<Ends>::default(),
            Answer { outcome: Outcome::Ok, payload: Payload::body(Form::Legacy, "{}") },
        );
        let call = call(&reply);
        call.park().unwrap().settle(&answer, &|_| None);
        assert!(call.park().is_none() && call.is_parked() && !call.is_over());
        call.end();
        call.reply().settle(&answer, &|_| None);
        call.reply().abandon();
        assert_eq!(reply.count(), 1);
    }

    #[test]
    fn a_call_that_ends_while_it_is_parked_answers_its_caller_once() {
        let answer = Answer { outcome: Outcome::Ok, payload: Payload::body(Form::Legacy, "{}") };
        for _ in 0..2_000 {
            let reply = Arc::<Ends>::default();
            let call = call(&reply);
            let barrier = std::sync::Barrier::new(2);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    barrier.wait();
                    if let Some(reply) = call.park() {
                        reply.settle(&answer, &|_| None);
                    }
                });
                barrier.wait();
                call.end();
                call.reply().settle(&answer, &|_| None);
            });
            assert_eq!(reply.count(), 1);
        }
    }

    #[test]
    fn a_call_that_has_ended_is_not_parked() {
        let reply = Arc::<Ends>::default();
        let call = call(&reply);
        call.end();
        call.reply().abandon();
        assert!(call.park().is_none());
        assert_eq!(reply.count(), 1);
    }
}
