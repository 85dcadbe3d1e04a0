//! Tasks of servers on their way: which server a task's request goes to, and how tasks are spelled towards callers and servers.
//!
//! Must not know doors, nor how tasks are kept.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use bytes::Bytes;
use json::{Splice, quote};
use model::{Era, ParticipantId, Refusal, RefusalCode};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use wire::mcp::task::{self, Glimpse, Status};
use wire::mcp::{Params, Target, meta};
use wire::rpc::{self, Message};

use super::Pump;
use crate::caller::Caller;
use crate::operation::{Operation, Tasked};
use crate::own;
use crate::spell;
use crate::tasks::{Origin, Place, Relayed, Sealed, TASK_ID_BYTES_MAX};
use platform::unix_ms;
use upstream::{CallNumber, ClientProfile, Session};

/// Between two looks at what has been kept long enough.
const SWEEP: Duration = Duration::from_secs(10);

/// Whose ids a session's server gives: the session's own, or (0) the server's.
fn birth(session: &Session) -> u64 {
    if session.shares_tasks() { 0 } else { session.instance() }
}

/// A task of which a listen request has its caller told, as it is known at its server: it can be unwatched when its id says
/// nothing any more.
pub(crate) struct Watched {
    public: String,
    upstream: ParticipantId,
    /// Of the session; 0 where any session of the server will do.
    birth: u64,
    own: Arc<str>,
    session: Weak<Session>,
}

impl Pump {
    /// The task of a server that a request of this caller names, if it is this caller's.
    pub(super) fn named_task(&self, caller: &Caller, params: &Params<'_>) -> Option<Arc<Relayed>> {
        let Some(Target::Task(public)) = params.target() else { return None };
        self.task_of(caller, public)
    }

    /// The task of a server that this caller knows by this id.
    pub(crate) fn task_of(&self, caller: &Caller, public: &str) -> Option<Arc<Relayed>> {
        let who = &caller.participant().id;
        let state = Sealed::open(self.ground.sealer(), who, unix_ms(), public)?;
        let said = Sealed::read(&state).filter(|said| said.topic == self.name.as_str())?;
        let seats = self.seats();
        let seat = seats.iter().find(|seat| seat.id.as_str() == said.upstream)?;
        // Tasks of the other era are not translated: to this caller they do not exist.
        (said.era == caller.era()).then_some(())?;
        // Nor does a task to whoever may not call its tool any more.
        self.may_have(who, &seat.id, said.tool, said.held).then_some(())?;
        if let Some(known) = self.tasks.find(&seat.id, said.birth, said.own) {
            // An id that the server has given again is the new one's.
            let theirs = known.origin.who == *who && known.public == public;
            theirs.then(|| known.heard_by(caller.link()))?;
            return Some(known);
        }
        // What is listed must be known here; the modern era has no list.
        (said.era == Era::Modern).then_some(())?;
        let session = match said.birth {
            0 => None,
            birth => Some(seat.upstream.session_by_instance(birth)?),
        };
        let origin = Origin {
            who: who.clone(),
            upstream: seat.id.clone(),
            birth: said.birth,
            era: said.era,
            tool: said.tool.into(),
            held: said.held,
            own: said.own.into(),
            call: None,
            token: None,
            created_ms: unix_ms(),
        };
        let found = Arc::new(Relayed::new(public.to_owned(), origin, caller.link(), session.as_ref()));
        self.enter_task(&found, None);
        Some(found)
    }

    /// Whether a participant may have tasks of this tool: as long as it may call it, or have calls of it held where this one
    /// was held.
    fn may_have(&self, who: &ParticipantId, upstream: &ParticipantId, tool: &str, held: bool) -> bool {
        self.with(|topic| topic.may_call(who, upstream, tool, held))
    }

    /// Whether whose task this is may still have it.
    pub(super) fn may_keep(&self, task: &Relayed) -> bool {
        let Origin { who, upstream, tool, held, .. } = &task.origin;
        self.may_have(who, upstream, tool, *held)
    }

    fn enter_task(&self, task: &Arc<Relayed>, place: Option<Place>) {
        if !self.tasks.enter(task, place) {
            return;
        }
        let pump: Weak<Pump> = self.this.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(SWEEP).await;
                let Some(pump) = pump.upgrade() else { return };
                if !pump.tasks.sweep(unix_ms()) {
                    return;
                }
            }
        });
    }

    /// Writes the caller's ids for the server's into an answer.
    pub(super) fn spell_tasks(
        &self,
        operation: &Operation,
        answer: &Message,
        splice: &mut Splice,
    ) -> Result<(), Refusal> {
        let Some(session) = operation.session() else { return Ok(()) };
        let mut known = None;
        match operation.tasked.get() {
            None => {}
            Some(Tasked::Asks { token, .. }) => {
                if let Some(made) = task::made(answer, session.era()) {
                    let task = self.made(operation, session, answer, &made, token.clone())?;
                    made.named.respell(&task.public, splice);
                    known = Some(task);
                }
            }
            // It may have been withdrawn while its answer was waited for.
            Some(Tasked::About(task)) if !self.may_keep(task) => {
                return Err(own::unknown_task());
            }
            Some(Tasked::About(task)) => {
                let glimpse = task::glimpse(answer).filter(|glimpse| *glimpse.named.id == *task.origin.own);
                if let Some(glimpse) = glimpse {
                    task.saw(&glimpse, answer.frame());
                    glimpse.named.respell(&task.public, splice);
                }
                task.answered(operation.method, answer.shape());
                known = Some(Arc::clone(task));
            }
        }
        if let Some(named) = task::related_to(answer) {
            let same = known.filter(|task| *task.origin.own == *named.id);
            if let Some(task) = same.or_else(|| self.task_in(session, &named.id)) {
                named.respell(&task.public, splice);
            }
        }
        Ok(())
    }

    /// A call has become a task.
    fn made(
        &self,
        operation: &Operation,
        session: &Arc<Session>,
        answer: &Message,
        made: &Glimpse,
        token: Option<rpc::Id>,
    ) -> Result<Arc<Relayed>, Refusal> {
        let own = made.named.id.as_str();
        let Some((upstream, _)) = operation.upstream.get().filter(|_| own.len() <= TASK_ID_BYTES_MAX) else {
            let what = format!("the server `{}` gave its task an id that is too long", session.upstream());
            return Err(Refusal::new(RefusalCode::UpstreamFailed, what));
        };
        let who = &operation.caller.participant().id;
        let (topic, era, now) = (self.name.as_str(), session.era(), unix_ms());
        // What was held or proposed runs on the authority of whoever approved it.
        let held = operation.proposal.get().is_some() || self.desk.behind(operation.id).is_some();
        let (upstream_name, tool) = (upstream.as_str(), operation.target.as_deref().unwrap_or_default());
        let birth = birth(session);
        let sealed = Sealed { topic, upstream: upstream_name, birth, era, held, tool, own };
        let public = sealed.seal(self.ground.sealer(), who, now);
        let origin = Origin {
            who: who.clone(),
            upstream: upstream.clone(),
            birth: sealed.birth,
            era,
            tool: tool.into(),
            held,
            own: own.into(),
            call: CallNumber::of_answer(answer).map(|call| (session.instance(), call)),
            token,
            created_ms: now,
        };
        let task = Arc::new(Relayed::new(public, origin, operation.caller.link(), Some(session)));
        task.saw(made, answer.frame());
        self.enter_task(&task, operation.take_place());
        Ok(task)
    }

    fn task_in(&self, session: &Session, own: &str) -> Option<Arc<Relayed>> {
        self.tasks.find(&ParticipantId::new(session.upstream()).ok()?, birth(session), own)
    }

    /// The task of this topic to which a message of a server belongs.
    pub(super) fn related_task(&self, session: &Session, message: &Message) -> Option<Arc<Relayed>> {
        (session.tasks() > 0).then_some(())?;
        self.task_in(session, &task::related_to(message)?.id)
    }

    /// A message of a server with the caller's id of the task to which it belongs.
    pub(super) fn spelled_notice(&self, session: &Session, frame: Bytes) -> Bytes {
        if session.tasks() == 0 {
            return frame;
        }
        let Ok(message) = Message::read(frame.clone()) else { return frame };
        let Some(named) = task::related_to(&message) else { return frame };
        let Some(task) = self.task_in(session, &named.id) else { return frame };
        let mut splice = Splice::default();
        named.respell(&task.public, &mut splice);
        message.edited(&splice)
    }

    /// A server has told how one of its tasks stands: whoever has it in this topic hears of it.
    pub(super) fn task_told(&self, session: &Session, frame: &Bytes) {
        let Ok(message) = Message::read(frame.clone()) else { return };
        let Some(glimpse) = task::glimpse(&message) else { return };
        let Some(task) = self.task_in(session, &glimpse.named.id) else { return };
        task.saw(&glimpse, message.frame());
        let mut splice = Splice::default();
        glimpse.named.respell(&task.public, &mut splice);
        if let Ok(spelled) = Message::read(message.edited(&splice)) {
            self.tell_task(&task, spelled.params().unwrap_or(b"{}"));
        }
    }

    fn tell_task(&self, task: &Relayed, params: &[u8]) {
        if !self.may_keep(task) {
            return;
        }
        let links = task.links();
        // A legacy caller hears it once, where it dealt with the task last; modern ones where they listen for it.
        let last = match task.origin.era {
            Era::Legacy => 1,
            Era::Modern => links.len(),
        };
        let here = links.into_iter().rev().filter_map(|link| self.caller(link));
        let theirs = here.filter(|caller| caller.participant().id == task.origin.who);
        theirs.take(last).for_each(|caller| caller.tell_task(&task.public, params));
    }

    /// Has a modern caller told of these tasks; gives those of which it is told, as far as their servers have said so within
    /// this time. What must be unwatched at the end is put into `watched`.
    pub(crate) async fn watch_tasks(
        &self,
        caller: &Caller,
        hello: &ClientProfile,
        tasks: &[String],
        within: Duration,
        watched: &OnceLock<Vec<Watched>>,
    ) -> Vec<String> {
        let deadline = Instant::now() + within;
        let (mut told, mut asked, mut all) = (Vec::new(), JoinSet::new(), Vec::new());
        for public in tasks {
            let Some(task) = self.task_of(caller, public) else { continue };
            let Some(session) = self.session_for(caller, hello, &task) else { continue };
            let (own, link) = (Arc::clone(&task.origin.own), caller.link());
            let public = public.clone();
            all.push(Watched {
                public: public.clone(),
                upstream: task.origin.upstream.clone(),
                birth: task.origin.birth,
                own: Arc::clone(&own),
                session: Arc::downgrade(&session),
            });
            // All are asked for before the first is waited for: one stream carries them.
            asked.spawn(async move { session.watch_task(link, &own).await.then_some(public) });
        }
        // Known before anything is waited for: the listen request may end meanwhile. A request watches once.
        let _ = watched.set(all);
        // One server that keeps us waiting does not keep what the others said.
        while let Ok(Some(asked)) = timeout_at(deadline, asked.join_next()).await {
            told.extend(asked.ok().flatten());
        }
        told
    }

    /// Ends that, for those that the caller listens for nowhere else.
    pub(crate) fn unwatch_tasks(&self, caller: &Caller, hello: &ClientProfile, watched: &[Watched]) {
        for one in watched.iter().filter(|one| !caller.watches(&one.public)) {
            // Of a session that has ended the successor has what was wanted of it.
            let there = match one.birth {
                0 => None,
                _ => one.session.upgrade(),
            };
            if let Some(session) = there.or_else(|| self.session_at(&one.upstream, caller, hello)) {
                session.unwatch_task(caller.link(), &one.own);
            }
        }
    }

    fn session_for(&self, caller: &Caller, hello: &ClientProfile, task: &Relayed) -> Option<Arc<Session>> {
        if task.origin.birth != 0 {
            return task.session();
        }
        self.session_at(&task.origin.upstream, caller, hello)
    }

    /// The session at this server that serves this caller, if it is open now.
    fn session_at(
        &self,
        upstream: &ParticipantId,
        caller: &Caller,
        hello: &ClientProfile,
    ) -> Option<Arc<Session>> {
        let seats = self.seats();
        let seat = seats.iter().find(|seat| seat.id == *upstream)?;
        seat.upstream.open_session(&spell::session_key(caller, hello), hello, caller.era())
    }

    /// Progress of a call that has become a task.
    pub(super) fn task_progress(&self, session: &Session, frame: &Bytes) {
        let Ok(message) = Message::read(self.spelled_notice(session, frame.clone())) else { return };
        let Ok(params) = Params::read(&message) else { return };
        let Some(call) = params.progress_token().and_then(|token| CallNumber::of_token(&token)) else {
            return;
        };
        let Some(task) = self.tasks.of_call(session.instance(), call) else { return };
        let Some(token) = task.origin.token.as_ref().filter(|_| self.may_keep(&task)) else { return };
        let mut splice = Splice::default();
        params.edit().set_progress_token(token).finish(&mut splice);
        let (frame, key) = (message.edited(&splice), Bytes::copy_from_slice(token.raw()));
        let said = task.waits().map(|stream| stream.say(frame.clone(), Some(key.clone())));
        let caller = task.links().last().and_then(|link| self.caller(*link));
        if let (Some(caller), false) = (caller, said.is_some_and(|said| said.is_ok())) {
            caller.tell_progress(key, frame);
        }
    }

    /// A session has ended: its tasks that were not over have failed, and whose they are is told.
    pub(super) fn tasks_lost(&self, session: &Session) {
        for task in self.tasks.lost(session.instance()) {
            let era = task.origin.era;
            self.tell_task(&task, &task.view(|view| task::changed(view, era)));
        }
    }

    /// What a request about a task is answered whose session is gone.
    pub(crate) fn about_lost(&self, task: &Relayed, operation: &Operation) -> Result<Bytes, Refusal> {
        use crate::tasks::LOST;
        let (request, era) = (&operation.request, task.origin.era);
        let status = task.view(|view| view.status(era));
        match (operation.method, era) {
            ("tasks/get", _) => Ok(rpc::result(request, &task.view(|view| task::get(view, era)))),
            (_, Era::Modern) => Ok(rpc::result(request, task::ACKNOWLEDGED.as_bytes())),
            ("tasks/cancel", Era::Legacy) => {
                let over = match status {
                    Status::Completed => "it is completed",
                    Status::Cancelled => "it is cancelled",
                    Status::Failed | Status::Working | Status::InputRequired => LOST,
                };
                Err(Refusal::new(RefusalCode::Malformed, format!("the task cannot be cancelled: {over}")))
            }
            (_, Era::Legacy) => Err(Refusal::new(RefusalCode::UpstreamDown, LOST)
                .hint("call the tool again if its outcome is still needed")),
        }
    }

    /// An answer of a caller to a question that belonged to a task, with the server's id of it.
    pub(crate) fn task_answer(task: &Relayed, answer: &Message) -> Option<Message> {
        let named = task::related_to(answer).filter(|named| named.id == task.public)?;
        let mut splice = Splice::default();
        named.respell(&task.origin.own, &mut splice);
        Message::read(answer.edited(&splice)).ok()
    }

    /// The server's id of the task to which a request says that it belongs, as the value of its key in `_meta`.
    pub(super) fn own_relation(
        operation: &Operation,
        session: &Session,
        params: &Params<'_>,
    ) -> Option<String> {
        params.meta_raw(meta::RELATED_TASK)?;
        let named = task::related_to(params.message())?;
        let task = operation.road_task(&named.id)?;
        let same = task.origin.upstream.as_str() == session.upstream();
        same.then(|| format!("{{\"taskId\":{}}}", quote(&task.origin.own)))
    }
}
