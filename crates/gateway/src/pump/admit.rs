//! The way in of a request: ADMIT, ROUTE, hand over. Must not know doors.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use model::{OperationId, Refusal, RefusalCode};
use topic::{Effect, Effects, Event, Target};
use wire::mcp::method::TargetKind;
use wire::mcp::{self, Params, method};
use wire::rpc::Message;

use super::send::{read, translate, untranslated};
use super::{Incoming, Pump, Routed, Seat, target_of, unknown_method};
use crate::caller::Caller;
use crate::operation::{Names, Operation};
use crate::own;
use crate::spell;
use crate::stream::Stream;
use crate::upstream::{CallSink, Hello};

impl Pump {
    /// Takes a request: admits it and hands it to its upstream, or answers with a refusal.
    pub fn request(&self, caller: &Arc<Caller>, incoming: Incoming) -> Option<Arc<Operation>> {
        let Incoming { message, hello, out } = incoming;
        let params = read(&message, &out)?;
        match self.admit_read(caller, &params, &out)? {
            (operation, Routed::Upstream(seat, own)) => {
                self.hand_over(&operation, &seat, own, &params, hello);
                Some(operation)
            }
            (operation, Routed::Held(seat, own)) => {
                self.hold(&operation, &seat, own.as_deref(), &params, hello);
                Some(operation)
            }
            (operation, Routed::Gateway) => {
                own::answer(&self.this.upgrade()?, &operation, &params);
                Some(operation)
            }
        }
    }

    /// Admits a request and says who has to answer it; a refusal is answered here.
    pub fn admit(
        &self,
        caller: &Arc<Caller>,
        message: &Message,
        out: &Arc<Stream>,
    ) -> Option<(Arc<Operation>, Routed)> {
        let (operation, routed) = self.admit_read(caller, &read(message, out)?, out)?;
        if let Routed::Held(..) = routed {
            // What is no call to be carried out later is not held.
            self.step(Event::Cancel { link: caller.link(), operation: operation.id });
            operation.refuse(&Refusal::new(RefusalCode::UnknownTarget, "there is nothing of this name"));
            return None;
        }
        Some((operation, routed))
    }

    fn admit_read(
        &self,
        caller: &Arc<Caller>,
        params: &Params<'_>,
        out: &Arc<Stream>,
    ) -> Option<(Arc<Operation>, Routed)> {
        let (message, seats) = (params.message(), self.seats());
        let known = method::lookup(message.method());
        let target = match known {
            Some(known) if known.list.is_some() || known.target == TargetKind::None => None,
            Some(known) => target_of(known.target, message.method(), params),
            // A method that we do not know belongs to the one upstream that is shown as it is, if there is one.
            None => {
                let plain = seats.iter().find(|seat| seat.upstream.spec().config.prefix.is_empty());
                plain.map(|seat| Target::Upstream(seat.id.as_str()))
            }
        };
        let text = target.and_then(Target::context);
        let operation = self.open(caller, message, text, out, Names::Public)?;
        let (link, id) = (caller.link(), operation.id);
        // Waiting for one's own proposals needs no capability, as it needs none by a task.
        let (method, target) = match own::serves_own(params) && !self.lists_tool(text) {
            true => ("tasks/result", None),
            false => (message.method(), target),
        };
        let event = Event::Request { link, operation: id, method, target };
        let effects = self.topic().step(self.ground.now_ms(), event);
        let routed = self.routed(&operation, &seats, effects);
        match routed {
            // Set once: an operation is routed once.
            Some(Routed::Gateway) => {
                let _ = operation.upstream.set(self.own.clone());
            }
            Some(Routed::Upstream(ref seat, _)) => {
                let _ = operation.upstream.set((seat.id.clone(), seat.link));
            }
            Some(Routed::Held(..)) => {}
            None => operation.refuse(&unknown_method(message.method())),
        }
        Some((operation, routed?))
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
        if let Some(Routed::Upstream(seat, own)) = self.routed(&operation, &self.seats(), effects) {
            let _ = operation.upstream.set((seat.id.clone(), seat.link));
            self.hand_over(&operation, &seat, own, &params, caller.hello().clone());
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

    fn routed(&self, operation: &Arc<Operation>, seats: &[Seat], effects: Effects) -> Option<Routed> {
        let mut routed = None;
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
                Effect::Refuse { operation: id, refusal, .. } if id == operation.id => {
                    operation.refuse(&refusal)
                }
                other => self.carry(other),
            }
        }
        let count = if routed.is_some() { &self.admitted } else { &self.refused };
        count.fetch_add(1, Ordering::Relaxed);
        routed
    }

    /// Gives the request to the session that this caller uses, opening it on the side if it is not open.
    pub(super) fn hand_over(
        &self,
        operation: &Arc<Operation>,
        seat: &Seat,
        own: Option<Arc<str>>,
        params: &Params<'_>,
        hello: Hello,
    ) {
        let (key, era) = (spell::session_key(&operation.caller, &hello), operation.caller.era());
        if let Some(session) = seat.upstream.open_session(&key, &hello, era) {
            return translate(operation, &session, own.as_deref(), params, &hello);
        }
        let (operation, upstream, message) =
            (Arc::clone(operation), Arc::clone(&seat.upstream), params.message().clone());
        tokio::spawn(async move {
            match upstream.session(&key, &hello, era).await {
                Ok(session) if operation.is_over() => drop(session),
                Ok(session) => match Params::read(&message) {
                    Ok(params) => translate(&operation, &session, own.as_deref(), &params, &hello),
                    Err(_) => operation.refuse(&untranslated()),
                },
                Err(refusal) => operation.done(Err(refusal)),
            }
        });
    }
}
