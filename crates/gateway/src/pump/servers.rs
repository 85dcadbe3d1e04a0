//! What servers say of themselves and ask for no call: lists, questions to a session's owner, updates. Must not know doors.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use json::Splice;
use model::{LinkId, OperationId, Outcome, ParticipantId};
use topic::{About, Effect, Event, View};
use upstream::{Manifest, QuestionId, Session};
use wire::mcp::{self, ListKind, Params};
use wire::rpc::{Message, Shape};

use super::Pump;
use crate::caller::{Caller, Question};
use crate::spell;

impl Pump {
    /// Tells the topic what an upstream has now. `told` are the lists that it said have changed.
    pub fn listed(&self, upstream: &ParticipantId, view: View, lists: &[Arc<Manifest>], told: &[ListKind]) {
        let manifest = spell::manifest(lists);
        let told: Vec<_> = told.iter().map(|list| spell::topic_list(*list)).collect();
        self.step(Event::Listed { upstream, view, manifest, told: &told });
    }

    /// A session's lists have changed, or its server says that these have.
    pub fn changed(&self, session: &Session, told: &[ListKind]) {
        let seats = self.seats();
        let Some(seat) = seats.iter().find(|seat| seat.id.as_str() == session.upstream()) else { return };
        match self.owner(session) {
            Some(caller) => self.listed(&seat.id, View::Link(caller.link()), &[session.manifest()], told),
            None if session.key().is_own() => {}
            None => self.listed(&seat.id, View::Shared, &seat.manifests(), told),
        }
    }

    /// A session was opened, or its server has changed: it learns which log messages are wanted.
    pub fn opened(&self, session: &Arc<Session>) {
        let (pump, session) = (self.this.clone(), Arc::clone(session));
        tokio::spawn(async move {
            if let Some(pump) = pump.upgrade() {
                pump.pass_level(&session).await;
            }
        });
    }

    /// A session has ended: its owner sees the shared lists again.
    pub fn ended(&self, session: &Session) {
        self.tasks_lost(session);
        let seats = self.seats();
        let seat = seats.iter().find(|seat| seat.id.as_str() == session.upstream());
        if let (Some(caller), Some(seat)) = (self.owner(session), seat) {
            self.step(Event::Detach { link: caller.link(), upstream: &seat.id });
        }
    }

    /// The legacy caller to whom a session belongs, if it is in this topic.
    pub fn owner(&self, session: &Session) -> Option<Arc<Caller>> {
        let link = session.key().owner()?;
        self.callers().get(&link).and_then(Weak::upgrade)
    }

    /// A question to a session's owner that belongs to no call; `false` if it cannot be asked.
    pub fn ask_owner(&self, session: &Arc<Session>, question: QuestionId, message: &Message) -> bool {
        let Some(caller) = self.owner(session) else { return false };
        let seats = self.seats();
        let Some(seat) = seats.iter().find(|seat| seat.id.as_str() == session.upstream()) else {
            return false;
        };
        let about = About::Session(caller.link());
        if caller.era() != session.era() {
            return false;
        }
        let task = self.related_task(session, message);
        if task.as_ref().is_some_and(|task| !self.may_keep(task)) {
            return false;
        }
        // A server may ask as soon as the session is open, before it has listed anything.
        self.step(Event::Attach { link: caller.link(), upstream: &seat.id });
        let Some(ask) = self.lets(&seat.id, about, message.method()) else { return false };
        let asked = task.clone();
        let question = Question { session: Arc::clone(session), id: question, about: None, ask, task: asked };
        let Some(id) = caller.ask(question) else {
            self.expire(ask);
            return false;
        };
        let mut splice = Splice::default();
        message.set_id(&mut splice, &id);
        let public = |own: &str| self.with(|topic| topic.respelled_uri(caller.link(), &seat.id, own));
        spell::respell(message, message.method(), &public, &mut splice);
        let frame = self.spelled_notice(session, message.edited(&splice));
        // What belongs to a task is asked where its result is waited for, if anywhere.
        let waits = task.and_then(|task| task.waits());
        if waits.is_none_or(|stream| stream.say(frame.clone(), None).is_err()) {
            caller.tell_home(frame);
        }
        true
    }

    /// A server takes back a question that belonged to no call.
    pub fn unask_owner(&self, session: &Arc<Session>, question: QuestionId) {
        let Some(caller) = self.owner(session) else { return };
        if let Some((id, ask)) = caller.unask(session, question) {
            self.expire(ask);
            let params = [b"{\"requestId\":", id.raw(), b"}"].concat();
            caller.tell_home(wire::rpc::notification("notifications/cancelled", Some(&params)));
        }
    }

    /// Something about no call: to the session's owner, or to every caller that follows this resource.
    pub fn tell(&self, session: &Arc<Session>, method: &str, frame: &Bytes) {
        match method {
            "notifications/resources/updated" => return self.updated(session, frame),
            "notifications/tasks/status" | "notifications/tasks" => return self.task_told(session, frame),
            "notifications/progress" => return self.task_progress(session, frame),
            _ => {}
        }
        match self.owner(session) {
            Some(caller) if method != "notifications/message" || wants(&caller, frame) => {
                caller.tell_home(self.spelled_notice(session, frame.clone()));
            }
            Some(_) => {}
            None => tracing::debug!(upstream = session.upstream(), method, "a notification that is nobody's"),
        }
    }

    pub(super) fn updated(&self, session: &Arc<Session>, frame: &Bytes) {
        let Ok(message) = Message::read(frame.clone()) else { return };
        let Ok(params) = Params::read(&message) else { return };
        let Some(mcp::Target::Uri(own)) = params.target() else { return };
        let Ok(id) = ParticipantId::new(session.upstream()) else { return };
        let owner = session.key().owner();
        for caller in self.everyone() {
            if owner.is_some_and(|owner| owner != caller.link()) {
                continue;
            }
            let public = self.with(|topic| topic.respelled_uri(caller.link(), &id, own));
            let mut splice = Splice::default();
            if let Some(public) = &public {
                params.edit().set_target(public).finish(&mut splice);
            }
            let uri = public.as_deref().unwrap_or(own);
            // What it may not follow any more it hears nothing of.
            if caller.follows(uri) && self.may_follow(&caller, uri) {
                let respelled = Message::read(message.edited(&splice));
                let raw = respelled.as_ref().ok().and_then(Message::params).unwrap_or(b"{}");
                caller.tell_updated(uri, raw);
            }
        }
    }

    /// Asks the topic whether an upstream may ask this; gives the question's id there.
    pub(super) fn lets(&self, upstream: &ParticipantId, about: About, method: &str) -> Option<OperationId> {
        let id = self.ground.operation();
        let effects =
            self.topic().step(self.ground.now_ms(), Event::Ask { upstream, operation: id, about, method });
        let mut ask = None;
        for effect in effects {
            match effect {
                Effect::DeliverAsk { operation, .. } if operation == id => ask = Some(id),
                Effect::RefuseAsk { operation, .. } if operation == id => {}
                other => self.carry(other),
            }
        }
        ask
    }

    /// A caller has answered a question; whether the topic still counts it.
    pub fn answered(&self, link: LinkId, ask: OperationId, shape: Shape) -> bool {
        let outcome = if shape == Shape::Result { Outcome::Ok } else { Outcome::Error };
        let effects =
            self.topic().step(self.ground.now_ms(), Event::Answer { link, operation: ask, outcome });
        let mut counts = false;
        for effect in effects {
            match effect {
                Effect::SettleAsk { operation, .. } if operation == ask => counts = true,
                other => self.carry(other),
            }
        }
        counts
    }

    /// A question was taken back by its server, or could not be put.
    pub fn expire(&self, ask: OperationId) {
        self.step(Event::Expire { operation: ask });
    }
}

fn wants(caller: &Caller, frame: &Bytes) -> bool {
    let Ok(message) = Message::read(frame.clone()) else { return false };
    let Ok(params) = Params::read(&message) else { return false };
    params.level().is_none_or(|level| caller.wants_log(&level))
}
