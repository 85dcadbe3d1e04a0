//! A caller: one link of a participant to a topic, from this side of the door.
//!
//! Owns what is open for it: operations, questions that servers asked it, what it wants to hear about. Must not know
//! sockets, nor how an operation runs.

mod listens;
mod openings;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use auth::Participant;
use bytes::Bytes;
use model::{Era, LinkId, OperationId, TopicName};
use platform::{Mutex, MutexGuard};
use room::Cursor;
use upstream::{ClientProfile, QuestionId, Session, SessionKey};
use wire::mcp::ListKind;
use wire::rpc::{self, Id};

use crate::bounds::Bounds;
use crate::stream::{Lifetime, Refused, Stream};
use crate::tasks::Relayed;
pub use listens::Filter;
use listens::{About, Listen};
pub use openings::Open;
use openings::Openings;

/// Questions of servers that may wait for one caller's answer at once.
pub const CALLER_QUESTIONS_MAX: usize = 64;
/// Listen requests that one modern caller may hold open at once.
pub const LISTENS_MAX: usize = 256;
/// Resources that one caller may be subscribed to at once.
pub const SUBSCRIPTIONS_MAX: usize = 1024;

/// A server's question that waits for this caller's answer.
pub struct Question {
    /// The session that asked.
    pub session: Arc<Session>,
    /// What the session calls it.
    pub id: QuestionId,
    /// The operation for which it was asked, if it was for one.
    pub about: Option<OperationId>,
    /// The question's own id in the topic.
    pub ask: OperationId,
    /// The task of the server to which it belongs, if it belongs to one.
    pub(crate) task: Option<Arc<Relayed>>,
}

/// What few callers ever have: made when it is first needed, so that the others have no place for it.
struct Seldom<T>(OnceLock<Box<Mutex<T>>>);

impl<T: Default> Seldom<T> {
    fn new() -> Self {
        Self(OnceLock::new())
    }

    /// What there is, if there ever was anything.
    fn lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.get().map(|inner| inner.lock())
    }

    /// The same, made now if need be.
    fn lock_or_make(&self) -> MutexGuard<'_, T> {
        self.0.get_or_init(Box::default).lock()
    }
}

#[derive(Default)]
struct Questions {
    next: u64,
    open: HashMap<u64, Question>,
}

#[derive(Default)]
struct Interests {
    listens: Vec<Listen>,
    uris: HashSet<String>,
}

/// One link of a participant to a topic.
pub struct Caller {
    link: LinkId,
    participant: Arc<Participant>,
    topic: TopicName,
    era: Era,
    hello: ClientProfile,
    key: SessionKey,
    /// Where everything is said on one stream (stdio, the 2024-11-05 pair), that stream; over HTTP made when first needed.
    home: OnceLock<Arc<Stream>>,
    bounds: Arc<Bounds>,
    open: Mutex<Openings>,
    questions: Seldom<Questions>,
    interests: Seldom<Interests>,
    log_level: AtomicU8,
    /// From where on it may read what is said.
    came: OnceLock<Cursor>,
}

/// Log levels from the mildest (MCP, "Logging"); the position is the severity.
pub const LOG_LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
const NO_LEVEL: u8 = u8::MAX;

impl Caller {
    /// A legacy caller, as its `initialize` described it. `home` is given where there is only one stream.
    pub fn legacy(
        link: LinkId,
        participant: Arc<Participant>,
        topic: &TopicName,
        hello: ClientProfile,
        home: Option<Arc<Stream>>,
        bounds: &Arc<Bounds>,
    ) -> Self {
        let key = SessionKey::Legacy(link.0);
        Self { hello, key, ..Self::new(link, participant, topic, Era::Legacy, home, bounds) }
    }

    /// A modern caller: all requests of one participant. What it declares comes with each request.
    pub fn modern(
        link: LinkId,
        participant: Arc<Participant>,
        topic: &TopicName,
        home: Option<Arc<Stream>>,
        bounds: &Arc<Bounds>,
    ) -> Self {
        Self::new(link, participant, topic, Era::Modern, home, bounds)
    }

    /// The gateway's own participant, in whose name approved proposals are carried out.
    pub fn own(link: LinkId, topic: &TopicName, bounds: &Arc<Bounds>) -> Self {
        let participant = Participant {
            id: model::ParticipantId::gateway(),
            capabilities: Arc::default(),
            topics: vec![topic.clone()],
            rate: None,
        };
        let hello = ClientProfile {
            capabilities: Bytes::from_static(b"{}"),
            client_info: None,
            version: wire::mcp::Version::NEWEST_LEGACY,
        };
        Self::legacy(link, Arc::new(participant), topic, hello, None, bounds)
    }

    fn new(
        link: LinkId,
        participant: Arc<Participant>,
        topic: &TopicName,
        era: Era,
        home: Option<Arc<Stream>>,
        bounds: &Arc<Bounds>,
    ) -> Self {
        let cell = OnceLock::new();
        if let Some(home) = home {
            // A new cell is empty, so this cannot fail.
            let _ = cell.set(home);
        }
        let hello = ClientProfile {
            capabilities: Bytes::from_static(b"{}"),
            client_info: None,
            version: wire::mcp::Version::NEWEST,
        };
        Self {
            link,
            participant,
            topic: topic.clone(),
            era,
            hello,
            key: SessionKey::Shared,
            home: cell,
            bounds: Arc::clone(bounds),
            open: Mutex::default(),
            questions: Seldom::new(),
            interests: Seldom::new(),
            log_level: AtomicU8::new(NO_LEVEL),
            came: OnceLock::new(),
        }
    }

    /// Its link in the topic.
    pub fn link(&self) -> LinkId {
        self.link
    }

    /// Who it is.
    pub fn participant(&self) -> &Arc<Participant> {
        &self.participant
    }

    /// The topic that it is in.
    pub fn topic(&self) -> &TopicName {
        &self.topic
    }

    /// Which era it speaks.
    pub fn era(&self) -> Era {
        self.era
    }

    /// What it said of itself; for modern callers that is in each request instead.
    pub fn hello(&self) -> &ClientProfile {
        &self.hello
    }

    /// Which upstream sessions are its.
    pub fn key(&self) -> &SessionKey {
        &self.key
    }

    /// The stream for what belongs to no request; modern callers over HTTP have none.
    pub fn home(&self) -> Option<&Arc<Stream>> {
        self.home.get()
    }

    /// The bounds of its streams.
    pub fn bounds(&self) -> &Arc<Bounds> {
        &self.bounds
    }

    /// The same, made now if it was not needed before (legacy HTTP).
    pub fn home_or_open(&self) -> &Arc<Stream> {
        self.home.get_or_init(|| Stream::new(0, Lifetime::Resumable, 0, &self.bounds))
    }

    /// Notes what had been said when it came.
    pub(crate) fn came_at(&self, place: Cursor) {
        // It comes once.
        let _ = self.came.set(place);
    }

    /// From where on it may read what is said; none if nothing was kept when it came.
    pub(crate) fn came(&self) -> Option<Cursor> {
        self.came.get().copied()
    }

    /// Notes an operation as open.
    pub fn begin(&self, operation: OperationId, id: Id, open: Arc<dyn Open>) {
        self.open.lock().add(operation, id, open);
    }

    /// Notes that an operation has ended, and forgets the questions asked for it.
    pub fn finish(&self, operation: OperationId) {
        self.open.lock().remove(operation);
        if let Some(mut questions) = self.questions.lock() {
            questions.open.retain(|_, question| question.about != Some(operation));
        }
    }

    /// The open operation with this request id.
    pub fn find(&self, id: &Id) -> Option<Arc<dyn Open>> {
        self.open.lock().named(id).cloned()
    }

    /// The open operation with this id in the topic.
    pub fn operation(&self, id: OperationId) -> Option<Arc<dyn Open>> {
        self.open.lock().get(id).cloned()
    }

    /// Whether any operation is open.
    pub fn has_open_operations(&self) -> bool {
        !self.open.lock().is_empty()
    }

    /// Cancels all that is open and ends what it listens to.
    pub fn leave(&self) {
        let open = self.open.lock().take();
        open.iter().for_each(|operation| operation.cancel());
        if let Some(mut questions) = self.questions.lock() {
            questions.open.clear();
        }
        if let Some(mut interests) = self.interests.lock() {
            interests.listens.drain(..).for_each(|listen| listen.end());
            interests.uris.clear();
        }
        if let Some(home) = self.home.get() {
            home.end();
        }
    }

    /// Notes a question and gives the id under which this caller is asked; `None` when too many wait.
    pub fn ask(&self, question: Question) -> Option<Id> {
        let mut questions = self.questions.lock_or_make();
        if questions.open.len() >= CALLER_QUESTIONS_MAX {
            return None;
        }
        questions.next += 1;
        let number = questions.next;
        questions.open.insert(number, question);
        Some(Id::number(number))
    }

    /// The question that this answer is for; each is answered once.
    pub fn asked(&self, id: &Id) -> Option<Question> {
        let mut questions = self.questions.lock()?;
        let question = questions.open.remove(&id.as_number()?);
        if questions.open.is_empty() {
            questions.open.shrink_to(0);
        }
        question
    }

    /// The session that a progress notification of the client with this question's token is for, and all sessions
    /// that wait for an answer of it.
    pub fn asking(&self) -> Vec<Arc<Session>> {
        let Some(questions) = self.questions.lock() else { return Vec::new() };
        questions.open.values().map(|question| Arc::clone(&question.session)).collect()
    }

    /// Forgets a question that its server took back, and gives the id under which the caller knows it.
    pub fn unask(&self, session: &Arc<Session>, id: QuestionId) -> Option<(Id, OperationId)> {
        let mut questions = self.questions.lock()?;
        let is_it = |question: &Question| question.id == id && Arc::ptr_eq(&question.session, session);
        let number =
            questions.open.iter().find(|(_, question)| is_it(question)).map(|(number, _)| *number)?;
        let question = questions.open.remove(&number)?;
        Some((Id::number(number), question.ask))
    }

    /// From which severity on this legacy caller wants log messages.
    pub fn set_log_level(&self, level: &str) -> bool {
        let position =
            LOG_LEVELS.iter().position(|known| *known == level).and_then(|at| u8::try_from(at).ok());
        if let Some(position) = position {
            self.log_level.store(position, Ordering::Relaxed);
        }
        position.is_some()
    }

    /// The severity from which on it wants log messages, if it has said so: a place in [`LOG_LEVELS`].
    pub fn log_level(&self) -> Option<usize> {
        let from = self.log_level.load(Ordering::Relaxed);
        (from != NO_LEVEL).then_some(usize::from(from))
    }

    /// Whether a log message of this level is wanted; without a wish all are (MCP 2025-11-25, "Logging").
    pub fn wants_log(&self, level: &str) -> bool {
        let at = LOG_LEVELS.iter().position(|known| *known == level);
        self.log_level().is_none_or(|from| at.is_none_or(|at| at >= from))
    }

    /// Opens a modern listen request on `out`, which is told nothing before [`Caller::acknowledge`]; false when there are too
    /// many.
    pub fn listen(&self, id: Id, filter: Filter, out: Arc<Stream>) -> bool {
        let mut interests = self.interests.lock_or_make();
        interests.listens.retain(|listen| !listen.has_ended());
        if interests.listens.len() >= LISTENS_MAX {
            return false;
        }
        interests.listens.push(Listen::new(id, filter, out));
        true
    }

    /// Acknowledges a listen request: from now on it is told of these of its tasks only, and first of what was told since
    /// it was opened. False, and nothing is said, when there was no room for that.
    pub fn acknowledge(&self, id: &Id, out: &Arc<Stream>, acknowledgement: &Bytes, tasks: &[String]) -> bool {
        let Some(mut interests) = self.interests.lock() else { return true };
        let found = interests.listens.iter_mut().find(|listen| listen.is(id, out));
        // Whoever has ended it meanwhile has said so.
        found.is_none_or(|listen| listen.acknowledge(acknowledgement, tasks))
    }

    /// Ends a listen request.
    pub fn unlisten(&self, id: &Id, out: &Arc<Stream>) {
        if let Some(mut interests) = self.interests.lock() {
            interests.listens.retain(|listen| !listen.is(id, out));
        }
    }

    /// Subscribes this legacy caller to a resource; false when there are too many.
    pub fn subscribe(&self, uri: &str) -> bool {
        let mut interests = self.interests.lock_or_make();
        if interests.uris.len() >= SUBSCRIPTIONS_MAX && !interests.uris.contains(uri) {
            return false;
        }
        interests.uris.insert(uri.to_owned());
        true
    }

    /// Ends a subscription.
    pub fn unsubscribe(&self, uri: &str) {
        if let Some(mut interests) = self.interests.lock() {
            interests.uris.remove(uri);
        }
    }

    /// Tells that a list has changed, if this caller wants to hear it.
    pub fn tell_changed(&self, list: ListKind) {
        match self.era {
            Era::Legacy => {
                let key = Bytes::from_static(list.changed().as_bytes());
                self.said(self.home_or_open().say_latest(key, rpc::notification(list.changed(), None)));
            }
            Era::Modern => self.tell_listens(&About::List(list), list.changed(), b"{}"),
        }
    }

    /// Tells that a resource was updated, if this caller is subscribed to it under this URI.
    pub fn tell_updated(&self, uri: &str, params: &[u8]) {
        const METHOD: &str = "notifications/resources/updated";
        match self.era {
            Era::Legacy if self.interests.lock().is_some_and(|interests| interests.uris.contains(uri)) => {
                let frame = rpc::notification(METHOD, Some(params));
                self.said(self.home_or_open().say_latest(Bytes::copy_from_slice(uri.as_bytes()), frame));
            }
            Era::Legacy => {}
            Era::Modern => self.tell_listens(&About::Resource(uri), METHOD, params),
        }
    }

    /// Tells how a task stands, if this caller wants to hear it: a legacy one of its latest state only.
    pub fn tell_task(&self, public: &str, params: &[u8]) {
        match self.era {
            Era::Legacy => {
                let frame = rpc::notification("notifications/tasks/status", Some(params));
                let key = Bytes::copy_from_slice(public.as_bytes());
                self.said(self.home_or_open().say_latest(key, frame));
            }
            Era::Modern => {
                self.tell_listens(&About::Task(public), "notifications/tasks", params);
            }
        }
    }

    /// Whether anything of this caller listens for this task.
    pub fn watches(&self, public: &str) -> bool {
        let Some(interests) = self.interests.lock() else { return false };
        interests.listens.iter().any(|listen| listen.filter.tasks.contains(public))
    }

    /// Says progress that belongs to no request any more.
    pub fn tell_progress(&self, token: Bytes, frame: Bytes) {
        self.said(self.home_or_open().say(frame, Some(token)));
    }

    /// Whether anything of this caller is subscribed to this resource.
    pub fn follows(&self, uri: &str) -> bool {
        let Some(interests) = self.interests.lock() else { return false };
        interests.uris.contains(uri)
            || interests.listens.iter().any(|listen| listen.filter.uris.contains(uri))
    }

    /// Says something that belongs to no request.
    pub fn tell_home(&self, frame: Bytes) {
        self.said(self.home_or_open().say(frame, None));
    }

    fn said(&self, said: Result<(), Refused>) {
        if said == Err(Refused::Full) {
            tracing::info!(participant = %self.participant.id, "reader too slow, stream ended");
        }
    }

    fn tell_listens(&self, about: &About<&str>, method: &str, params: &[u8]) {
        let Some(mut interests) = self.interests.lock() else { return };
        interests.listens.retain(|listen| !listen.has_ended());
        if interests.listens.is_empty() {
            return;
        }
        let notification = rpc::notification(method, Some(params));
        interests.listens.iter_mut().for_each(|listen| listen.tell(about, &notification));
    }
}

#[cfg(test)]
mod tests;
