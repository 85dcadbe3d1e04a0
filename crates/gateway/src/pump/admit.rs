//! The way in of a request: ADMIT, ROUTE, hand over. Must not know doors.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use model::{OperationId, Refusal, RefusalCode};
use topic::{Cause, Effect, Effects, Event, Target};
use upstream::{CallEvents, ClientProfile};
use wire::mcp::method::TargetKind;
use wire::mcp::{self, Params};
use wire::rpc::{self, Message};

use super::record::Judged;
use super::send::{read, translate, untranslated};
use super::{Pump, Routed, Seat, target_of, unknown_method};
use crate::caller::Caller;
use crate::operation::{Names, Operation, Tasked};
use crate::own;
use crate::spell;
use crate::stream::Stream;
use crate::tasks::LOST;

impl Pump {
    /// Takes a request: admits it and hands it to its upstream, or answers with a refusal.
    pub fn request(
        &self,
        caller: &Arc<Caller>,
        params: &Params<'_>,
        hello: &ClientProfile,
        out: &Arc<Stream>,
    ) -> Option<Arc<Operation>> {
        match self.judge(caller, params, out, true)? {
            (operation, Routed::Upstream(seat, own)) => {
                let own = operation.about().map(|task| Arc::clone(&task.origin.own)).or(own);
                self.hand_over(&operation, &seat, own, params, hello);
                Some(operation)
            }
            (operation, Routed::Held(seat, own)) => {
                self.hold(&operation, &seat, own.as_deref(), params, hello.clone());
                Some(operation)
            }
            (operation, Routed::Gateway) => {
                own::answer(&self.this.upgrade()?, &operation, params);
                Some(operation)
            }
        }
    }

    /// Admits a request and says who has to answer it; a refusal is answered here.
    pub fn admit(
        &self,
        caller: &Arc<Caller>,
        params: &Params<'_>,
        out: &Arc<Stream>,
    ) -> Option<(Arc<Operation>, Routed)> {
        self.judge(caller, params, out, false)
    }

    fn judge(
        &self,
        caller: &Arc<Caller>,
        params: &Params<'_>,
        out: &Arc<Stream>,
        holds: bool,
    ) -> Option<(Arc<Operation>, Routed)> {
        let (message, seats, known) = (params.message(), self.seats(), params.known());
        let task = known.filter(|known| known.target == TargetKind::Task);
        let task = task.and_then(|_| self.named_task(caller, params));
        let target = match known {
            // Of a task whose server cannot be asked any more the gateway itself tells.
            Some(known) if known.target == TargetKind::Task => {
                let there = task.as_ref().filter(|task| !task.is_lost());
                there.map(|task| Target::Upstream(task.origin.upstream.as_str()))
            }
            Some(known) if known.list.is_some() || known.target == TargetKind::None => None,
            Some(known) => target_of(known.target, params.method(), params),
            // A method that we do not know belongs to the one upstream that is shown as it is, if there is one.
            None => {
                let plain = seats.iter().find(|seat| seat.upstream.spec().config.prefix.is_empty());
                plain.map(|seat| Target::Upstream(seat.id.as_str()))
            }
        };
        let text = target.and_then(Target::context);
        let operation = self.open(caller, message, text, out, Names::Public)?;
        if let Some(task) = &task {
            let _ = operation.tasked.set(Tasked::About(Arc::clone(task)));
        }
        let (link, id) = (caller.link(), operation.id);
        // Waiting for one's own proposals needs no capability, as it needs none by a task.
        let (method, target) = match own::serves_own(params) && !self.lists_tool(caller.link(), text) {
            true => ("tasks/result", None),
            false => (params.method(), target),
        };
        // Handshakes, pings and lists name nothing: they are recorded only if they are refused.
        let (names, place) = (target.is_some(), self.audit.reserve());
        if let (true, Err(refusal)) = (names, &place) {
            operation.refuse(refusal);
            return None;
        }
        let event = Event::Request { link, operation: id, method, target };
        let (effects, authority) = {
            let mut topic = self.topic();
            let effects = topic.step(self.ground.now_ms(), event);
            self.show_call(&topic, &effects, &operation, params);
            (effects, topic.capabilities(&caller.participant().id).cloned())
        };
        let mut routed = self.routed(&operation, &seats, effects);
        if let (Ok(Routed::Held(..)), false) = (&routed, holds) {
            // What is no call to be carried out later is not held.
            self.step(Event::Cancel { link, operation: id });
            operation.refuse(&Refusal::new(RefusalCode::UnknownTarget, "there is nothing of this name"));
            routed = Err(Cause::NotAdmitted.as_str());
        }
        if let Some(place) = place.ok().filter(|_| names || routed.is_err()) {
            let routed = routed.as_ref().map_err(|why| *why);
            let judged = Judged { target: text, routed, authority: authority.as_deref() };
            self.record_call(place, &operation, params, &judged);
        }
        match routed {
            // Set once: an operation is routed once.
            Ok(Routed::Gateway) => {
                let _ = operation.upstream.set(self.own.clone());
            }
            Ok(Routed::Upstream(ref seat, _)) => {
                let _ = operation.upstream.set((seat.id.clone(), seat.link));
            }
            Ok(Routed::Held(..)) => {}
            Err(_) => operation.refuse(&unknown_method(params.method())),
        }
        Some((operation, routed.ok()?))
    }

    /// Has an upstream carry out what a link said to the room: it was admitted there, and names are the upstream's own.
    /// It carries out an approved proposal, or nobody's but its own.
    pub fn execute(
        &self,
        caller: &Arc<Caller>,
        seat: &Seat,
        message: &Message,
        out: &Arc<Stream>,
        proposal: Option<OperationId>,
    ) {
        let Some(params) = read(message, out) else { return };
        // Tasks are their callers': what a link said to the room has made none.
        if message.method().starts_with("tasks/") {
            let why = format!("method not found: {}", message.method());
            return out.answer(rpc::error(message.id(), rpc::code::METHOD_NOT_FOUND, &why, None));
        }
        let text = params.target().map(mcp::Target::text);
        let Some(operation) = self.open(caller, message, text, out, Names::Own) else { return };
        if let Some(proposal) = proposal {
            let _ = operation.proposal.set(proposal);
        }
        let event = Event::Execute {
            link: caller.link(),
            operation: operation.id,
            upstream: &seat.id,
            method: message.method(),
            context: text,
            proposal,
        };
        let effects = self.topic().step(self.ground.now_ms(), event);
        match self.routed(&operation, &self.seats(), effects) {
            Ok(Routed::Upstream(seat, own)) => {
                let _ = operation.upstream.set((seat.id.clone(), seat.link));
                self.hand_over(&operation, &seat, own, &params, caller.hello());
            }
            Ok(Routed::Gateway | Routed::Held(..)) => {}
            Err(why) => self.record_unexecuted(&operation, &params, seat.id.as_str(), why),
        }
    }

    fn open(
        &self,
        caller: &Arc<Caller>,
        message: &Message,
        target: Option<&str>,
        out: &Arc<Stream>,
        names: Names,
    ) -> Option<Arc<Operation>> {
        let (road, id) = (self.this.upgrade()?, self.ground.operation());
        let operation =
            Operation::new(id, road, Arc::clone(caller), message, target, Arc::clone(out), names)?;
        let open: Arc<Operation> = Arc::clone(&operation);
        caller.begin(id, operation.request.clone(), open);
        Some(operation)
    }

    /// Where an operation goes, or why it goes nowhere.
    fn routed(
        &self,
        operation: &Arc<Operation>,
        seats: &[Seat],
        effects: Effects,
    ) -> Result<Routed, &'static str> {
        let (mut routed, mut why) = (None, Cause::Unknown.as_str());
        for effect in effects {
            match effect {
                Effect::Deliver { operation: id, to, .. } if id == operation.id && to == self.own.0 => {
                    routed = Some(Routed::Gateway);
                }
                Effect::Deliver { operation: id, to, own, .. } if id == operation.id => {
                    let seat = seats.iter().find(|seat| seat.id == to).cloned();
                    routed = seat.map(|seat| Routed::Upstream(seat, own));
                }
                Effect::Hold { operation: id, to, own, .. } if id == operation.id => {
                    let seat = seats.iter().find(|seat| seat.id == to).cloned();
                    routed = seat.map(|seat| Routed::Held(seat, own));
                }
                Effect::Refuse { operation: id, refusal, cause, .. } if id == operation.id => {
                    why = cause.as_str();
                    operation.refuse(&refusal);
                }
                other => self.carry(other),
            }
        }
        let count = if routed.is_some() { &self.admitted } else { &self.refused };
        count.fetch_add(1, Ordering::Relaxed);
        routed.ok_or(why)
    }

    /// Gives the request to the session that this caller uses, opening it on the side if it is not open.
    pub(super) fn hand_over(
        &self,
        operation: &Arc<Operation>,
        seat: &Seat,
        own: Option<Arc<str>>,
        params: &Params<'_>,
        hello: &ClientProfile,
    ) {
        let (key, era) = (spell::session_key(&operation.caller, hello), operation.caller.era());
        // A task is asked for in the session in which it runs, if that matters.
        let session = match operation.about().filter(|task| task.origin.birth != 0) {
            Some(task) => match task.session() {
                None => return operation.done(Err(Refusal::new(RefusalCode::UpstreamDown, LOST))),
                there => there,
            },
            None => seat.upstream.open_session(&key, hello, era),
        };
        if let Some(session) = session {
            return translate(&self.tasks, operation, &session, own.as_deref(), params, hello);
        }
        let tasks = Arc::clone(&self.tasks);
        let (operation, upstream) = (Arc::clone(operation), Arc::clone(&seat.upstream));
        let (message, hello) = (params.message().clone(), hello.clone());
        tokio::spawn(async move {
            match upstream.session(&key, &hello, era).await {
                Ok(session) if operation.is_over() => drop(session),
                Ok(session) => match Params::read(&message) {
                    Ok(params) => translate(&tasks, &operation, &session, own.as_deref(), &params, &hello),
                    Err(_) => operation.refuse(&untranslated()),
                },
                Err(refusal) => operation.done(Err(refusal)),
            }
        });
    }
}
