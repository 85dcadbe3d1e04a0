//! Owns an upstream's questions: only to its current caller, and ended exactly once.
//! Must not know what is asked.

use model::{KindRef, LinkId, OperationId, ParticipantId};

use crate::{
    effect::{Cause, Effect, Effects},
    event::{About, Role},
    members::Seat,
    operations::{Method, Open, Way},
    refusals,
    topic::Topic,
};

impl Topic {
    pub(crate) fn ask(
        &mut self,
        effects: &mut Effects,
        now_ms: u64,
        upstream: &ParticipantId,
        operation: OperationId,
        about: About,
        method: &str,
    ) {
        let Some(seat) = self.members.server(upstream) else { return };
        if self.operations.contains(operation) {
            return;
        }
        let refuse = |refusal, cause| Effect::RefuseAsk { operation, to: upstream.clone(), refusal, cause };
        let Some(member) = self.members.get_mut(seat) else { return };
        if let Err(wait_ms) = member.take_token(now_ms) {
            return effects.push(refuse(refusals::too_soon(wait_ms), Cause::RateLimited));
        }
        let (to, call) = match self.admit_ask(seat, about, method) {
            Ok(admitted) => admitted,
            Err(cause) => return effects.push(refuse(Box::new(refusals::plain(cause)), cause)),
        };
        let way = Way::Ask { about: call };
        let method = Method::new(method);
        let open = Open { order: 0, way, link: to, upstream: seat, method, context: None, asks: 0 };
        self.operations.insert(operation, open);
        self.members.begin(to, operation);
        if let Some(call) = call.and_then(|call| self.operations.get_mut(call)) {
            call.asks += 1;
        }
        effects.push(Effect::DeliverAsk { operation, from: upstream.clone(), to, about: call });
    }

    /// Whom an ask goes to, and about which call. A question is never guessed to a caller.
    fn admit_ask(
        &self,
        seat: Seat,
        about: About,
        method: &str,
    ) -> Result<(LinkId, Option<OperationId>), Cause> {
        let member = self.members.get(seat).filter(|member| member.role == Role::Upstream);
        let member = member.ok_or(Cause::NotAdmitted)?;
        let (to, call) = match about {
            About::Call(call) => {
                let open =
                    self.operations.get(call).filter(|open| open.way.is_call() && open.upstream == seat);
                (open.ok_or(Cause::Moot)?.link, Some(call))
            }
            About::Session(link) => {
                let index = self.catalog.index(&member.id).ok_or(Cause::Moot)?;
                let own = self.members.link(link).filter(|own| own.attached.contains(&index));
                own.ok_or(Cause::Moot)?;
                (link, None)
            }
        };
        let (link, caller) = self.members.link(to).zip(self.members.of_link(to)).ok_or(Cause::Moot)?;
        let kind = KindRef::request(method, None).map_err(|_| Cause::Malformed)?;
        if !member.capabilities.admits(kind, &[caller.id.as_str()]) {
            return Err(Cause::NotAdmitted);
        }
        let full = link.open.len() >= self.limits.operations_per_link_max
            || self.operations.len() >= self.limits.operations_max;
        if full { Err(Cause::Limit) } else { Ok((to, call)) }
    }

    /// Ends an ask from our side: its caller need not go on, its upstream is told why.
    pub(crate) fn refuse_ask(&mut self, effects: &mut Effects, operation: OperationId, cause: Cause) {
        let Some(open) = self.close_ask(operation) else { return };
        if self.members.link(open.link).is_some() {
            effects.push(Effect::CancelAsk { operation, to: open.link });
        }
        let refusal = Box::new(refusals::plain(cause));
        self.to_upstream(effects, open.upstream, |to| Effect::RefuseAsk { operation, to, refusal, cause });
    }

    /// Ends the asks of a session that is over.
    pub(crate) fn end_session_asks(&mut self, effects: &mut Effects, link: LinkId, upstream: &ParticipantId) {
        let (Some(own), Some(seat)) = (self.members.link(link), self.members.server(upstream)) else {
            return;
        };
        for operation in self.operations.in_order(&own.open) {
            let ask = self.operations.get(operation);
            if ask.is_some_and(|ask| ask.upstream == seat && ask.way == (Way::Ask { about: None })) {
                self.refuse_ask(effects, operation, Cause::Moot);
            }
        }
    }

    /// Takes an ask out of the books. Whoever closes it settles it.
    pub(crate) fn close_ask(&mut self, operation: OperationId) -> Option<Open> {
        let open = self.operations.remove(operation)?;
        self.members.finish(open.link, operation);
        let about = match open.way {
            Way::Ask { about } => about,
            Way::Call | Way::Held { .. } | Way::Run { .. } => None,
        };
        if let Some(call) = about.and_then(|call| self.operations.get_mut(call)) {
            call.asks = call.asks.saturating_sub(1);
        }
        Some(open)
    }
}
