//! Owns the life of a caller's request: admitted, delivered, and ended exactly once.
//! Must not know how participants come and go.

use std::sync::Arc;

use model::{LinkId, OperationId, Outcome};

use crate::{
    admission::{Verdict, judge, proposes},
    catalog::{Catalog, Route},
    effect::{Cause, Effect, Effects},
    event::{Role, Target},
    members::{Member, Seat},
    operations::{Method, Open, Way},
    refusals,
    topic::Topic,
};

impl Topic {
    pub(crate) fn request(
        &mut self,
        effects: &mut Effects,
        now_ms: u64,
        link: LinkId,
        operation: OperationId,
        method: &str,
        target: Option<Target<'_>>,
    ) {
        let Some(own) = self.members.link(link) else { return };
        if self.operations.contains(operation) {
            return;
        }
        let refuse = |refusal, cause| Effect::Refuse { operation, to: link, refusal, cause };
        let full = own.open.len() >= self.limits.operations_per_link_max
            || self.operations.len() >= self.limits.operations_max;
        let seat = own.seat;
        let Some(member) = self.members.get_mut(seat) else { return };
        if let Err(wait_ms) = member.take_token(now_ms) {
            return effects.push(refuse(refusals::too_soon(wait_ms), Cause::RateLimited));
        }
        if full || member.open >= self.limits.operations_per_participant_max {
            return effects.push(refuse(refusals::of_request(Cause::Limit, target), Cause::Limit));
        }
        let (Some(own), Some(member)) = (self.members.link(link), self.members.get(seat)) else { return };
        let route = self.catalog.resolve(&own.overrides, target);
        let promotes = own.promotes && route.is_some_and(|route| Some(route.index) != self.catalog.builtin());
        let (route, upstream, way) = match admit(member, method, target, route, promotes, &self.present) {
            Ok(admitted) => admitted,
            Err(cause) => return effects.push(refuse(refusals::of_request(cause, target), cause)),
        };
        let context = target.and_then(Target::context);
        let asked = context.map(|context| route.public.cloned().unwrap_or_else(|| context.into()));
        let respelled = || Catalog::respelled_own(&route, context).map(Arc::from);
        let own = route.renamed.cloned().or_else(respelled);
        let (from, to) = (link, route.upstream.clone());
        effects.push(match way {
            Way::Held { .. } => Effect::Hold { operation, from, to, own },
            _ => Effect::Deliver { operation, from, to, own },
        });
        let method = Method::new(method);
        let open = Open { order: 0, way, link, upstream, method, context: asked, asks: 0 };
        self.operations.insert(operation, open);
        self.members.begin(link, operation);
    }

    pub(crate) fn answer(
        &mut self,
        effects: &mut Effects,
        link: LinkId,
        operation: OperationId,
        outcome: Outcome,
    ) {
        let (Some(seat), Some(open)) =
            (self.members.link(link).map(|own| own.seat), self.operations.get(operation))
        else {
            return;
        };
        match open.way {
            Way::Call | Way::Run { .. } if open.upstream == seat => {
                let to = open.link;
                self.close_call(effects, operation, outcome);
                effects.push(Effect::Settle { operation, to, outcome });
            }
            Way::Ask { .. } if open.link == link => {
                let upstream = open.upstream;
                self.close_ask(operation);
                self.to_upstream(effects, upstream, |to| Effect::SettleAsk { operation, to, outcome });
            }
            Way::Call | Way::Held { .. } | Way::Run { .. } | Way::Ask { .. } => {}
        }
    }

    pub(crate) fn cancel(&mut self, effects: &mut Effects, link: LinkId, operation: OperationId) {
        let (Some(seat), Some(open)) =
            (self.members.link(link).map(|own| own.seat), self.operations.get(operation))
        else {
            return;
        };
        let (to, upstream) = (open.link, open.upstream);
        let outcome = Outcome::Cancelled;
        match open.way {
            Way::Call | Way::Held { .. } | Way::Run { .. } if to == link => {
                self.cancel_call(effects, operation, outcome);
                effects.push(Effect::Settle { operation, to, outcome });
            }
            Way::Ask { .. } if upstream == seat => {
                self.close_ask(operation);
                effects.push(Effect::CancelAsk { operation, to });
                self.to_upstream(effects, upstream, |to| Effect::SettleAsk { operation, to, outcome });
            }
            Way::Call | Way::Held { .. } | Way::Run { .. } | Way::Ask { .. } => {}
        }
    }

    pub(crate) fn expire(&mut self, effects: &mut Effects, operation: OperationId) {
        match self.operations.get(operation).map(|open| open.way) {
            None => {}
            Some(Way::Ask { .. }) => self.refuse_ask(effects, operation, Cause::Expired),
            Some(_) => self.refuse_call(effects, operation, Cause::Expired),
        }
    }

    /// Ends a call from our side: its upstream stops, its caller is told why.
    pub(crate) fn refuse_call(&mut self, effects: &mut Effects, operation: OperationId, cause: Cause) {
        if let Some(open) = self.cancel_call(effects, operation, Outcome::Refused) {
            let refusal = Box::new(refusals::plain(cause));
            effects.push(Effect::Refuse { operation, to: open.link, refusal, cause });
        }
    }

    /// Closes a call and tells its upstream to stop.
    fn cancel_call(
        &mut self,
        effects: &mut Effects,
        operation: OperationId,
        outcome: Outcome,
    ) -> Option<Open> {
        let open = self.close_call(effects, operation, outcome)?;
        if open.way.is_call() {
            self.to_upstream(effects, open.upstream, |upstream| Effect::CancelAt { operation, upstream });
        }
        Some(open)
    }

    /// Takes a call out of the books and ends the asks about it. Whoever closes it settles it.
    pub(crate) fn close_call(
        &mut self,
        effects: &mut Effects,
        operation: OperationId,
        outcome: Outcome,
    ) -> Option<Open> {
        let open = self.operations.remove(operation)?;
        let mut moot = Vec::new();
        self.members.finish(open.link, operation);
        if let Some(link) = self.members.link(open.link).filter(|_| open.asks > 0) {
            moot.clone_from(&link.open);
        }
        for ask in self.operations.in_order(&moot) {
            if self.operations.get(ask).is_some_and(|ask| ask.way == (Way::Ask { about: Some(operation) })) {
                self.refuse_ask(effects, ask, Cause::Moot);
            }
        }
        self.call_is_over(effects, open.way, outcome);
        Some(open)
    }

    /// An effect for an upstream, if it is still in the topic.
    pub(crate) fn to_upstream(
        &self,
        effects: &mut Effects,
        upstream: Seat,
        effect: impl FnOnce(model::ParticipantId) -> Effect,
    ) {
        // Whoever calls itself and goes is told nothing any more.
        if let Some(member) = self.members.get(upstream).filter(|member| !member.links.is_empty()) {
            effects.push(effect(member.id.clone()));
        }
    }
}

/// The route of a request that may go on, the seat of its upstream, and whether it goes there or waits.
fn admit<'a>(
    member: &Member,
    method: &str,
    target: Option<Target<'_>>,
    route: Option<Route<'a>>,
    promotes: bool,
    present: &[Option<Seat>],
) -> Result<(Route<'a>, Seat, Way), Cause> {
    if member.role != Role::Caller {
        return Err(Cause::NotAdmitted);
    }
    let route = route.ok_or(Cause::Unknown)?;
    let context = target.and_then(Target::context);
    let (granted, at) = (&member.capabilities, route.upstream.as_str());
    let way = match judge(granted, method, context, at) {
        Verdict::Admit => Way::Call,
        Verdict::Refuse(Cause::NotAdmitted) if promotes && proposes(granted, method, context, at) => {
            Way::Held { proposal: None }
        }
        Verdict::Refuse(cause) => return Err(cause),
    };
    let seat = present.get(usize::from(route.index.0)).copied().flatten();
    seat.map(|seat| (route, seat, way)).ok_or(Cause::UpstreamDown)
}
