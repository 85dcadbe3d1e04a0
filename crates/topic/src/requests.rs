//! Callers' requests: admission, delivery, and exactly one end.

use std::sync::Arc;

use model::{LinkId, Method, OperationId, Outcome, Refusal};

use crate::{
    Handles, Topic,
    admission::{judge, proposes},
    builtin::BuiltinTool,
    catalog::{Catalog, Route},
    effect::{Cause, Effect, Mirrored, RoomEffect, Rule, Verdict},
    event::{End, Interest, OperationRef, Request, Target},
    members::{Member, Seat},
    operations::{Handle, Operation, State},
    proposals::RoomCall,
    refusals::{self, Refused},
};

/// The method under which a request about the caller's own proposals is judged.
pub(crate) const OWN_PROPOSAL: Method = Method::Known("tasks/result");

/// A request that is admitted, or held as a proposal.
struct Admitted<'a> {
    route: Route<'a>,
    server: Seat,
    rule: Option<Option<usize>>,
}

impl<H: Handles> Topic<H> {
    pub(crate) fn request(&mut self, request: Request<'_, H>) {
        let Request { link, operation, tag, method, target, interest, call } = request;
        if self.operations.contains(operation) {
            return;
        }
        if let Err(Refused { cause, refusal }) = self.may_open(link) {
            let refusal = refusal.unwrap_or_else(|| refusals::of_request(cause, target));
            return self.refuse_request(call, refusal, cause);
        }
        // A tool for the caller's own proposals needs no capability, because requests about their tasks need none.
        let (method, target) = match self.serves_own(link, &method, target) {
            true => (OWN_PROPOSAL, None),
            false => (method, target),
        };
        let Some((own, member)) = self.members.linked(link) else { return };
        let route = self.catalog.resolve(own.overrides(), target);
        // A method that is not of the protocol goes to the one server whose names have no prefix.
        let unknown = target.is_none() && matches!(method, Method::Other(_));
        let route = unknown.then(|| self.catalog.bare_route()).flatten().or(route);
        // Only a call that can be carried out later is held.
        let promotes = own.promotes
            && interest == Interest::None
            && route.is_some_and(|route| Some(route.index) != self.catalog.builtin());
        let admitted = admit(member, method.as_str(), target, route, promotes, &self.present);
        let Admitted { route, server, rule } = match admitted {
            Ok(admitted) => admitted,
            Err(cause) => {
                return self.refuse_request(call, refusals::of_request(cause, target), cause);
            }
        };
        if !self.has_room_for(link, &interest) {
            let refusal = Box::new(refusals::of_interest(&interest));
            return self.refuse_request(call, refusal, Cause::Limit);
        }
        let asked = target.and_then(Target::context);
        let context = asked.map(|asked| route.public.cloned().unwrap_or_else(|| asked.into()));
        let respelled = || Catalog::respelled_own(&route, asked).map(Arc::from);
        let own = route.renamed.cloned().or_else(respelled);
        let (to, capabilities) = (route.upstream.clone(), Arc::clone(&member.capabilities));
        let state = match rule {
            Some(_) => State::Delivered { proposal: None },
            None => State::Held { proposal: None },
        };
        self.effects.verdict = Some(match rule {
            Some(at) => {
                let rule = Rule { capabilities, at };
                Verdict::Admitted { to: Some(to.clone()), own: own.clone(), rule }
            }
            None => Verdict::Held { to: to.clone(), own: own.clone() },
        });
        let opened = Operation::new(state, link, server, method, Handle::Call(call));
        self.open(operation, Operation { context, own, tag, ..opened });
        self.take_interest(operation, interest);
        match rule {
            Some(_) => self.deliver(operation),
            None => self.hold(operation),
        }
    }

    /// Whether a request is for one of the tools for a caller's own proposals. They work whether or not they are listed, unless a
    /// server lists a tool of this name.
    fn serves_own(&self, link: LinkId, method: &Method, target: Option<Target<'_>>) -> bool {
        let (Some(Target::Tool(name)), "tools/call") = (target, method.as_str()) else { return false };
        let serves = |tool| matches!(tool, BuiltinTool::WaitForProposal | BuiltinTool::WithdrawProposal);
        let is_server = |route: Route<'_>| route.is_listed() && Some(route.index) != self.catalog.builtin();
        BuiltinTool::of(name).is_some_and(serves)
            && !self.lookup(link, Target::Tool(name)).is_some_and(is_server)
    }

    /// Whether a caller's link may open one more operation now; takes a token.
    pub(crate) fn may_open(&mut self, link: LinkId) -> Result<(), Refused> {
        let own = self.members.link(link).ok_or(Cause::Moot)?;
        let (seat, open) = (own.seat, own.open.len());
        let full = open >= self.limits.operations_per_link_max
            || self.operations.len() >= self.limits.operations_max;
        let member = self.members.get_mut(seat).ok_or(Cause::Moot)?;
        member.take_token(self.now_ms)?;
        let full = full || member.open >= self.limits.operations_per_participant_max;
        if full { Err(Cause::Limit.into()) } else { Ok(()) }
    }

    /// Enters an operation as open at its link.
    pub(crate) fn open(&mut self, id: OperationId, operation: Operation<H>) {
        self.members.begin(operation.link, id);
        self.operations.insert(id, operation);
    }

    /// The open operations of a link, in the order of opening.
    pub(crate) fn open_of(&self, link: LinkId) -> Vec<OperationId> {
        self.members.link(link).map(|own| self.operations.in_order(&own.open)).unwrap_or_default()
    }

    /// Delivers an open call to its server, and mirrors it to watchers unless it calls a built-in tool.
    pub(crate) fn deliver(&mut self, id: OperationId) {
        let Some(operation) = self.operations.get(id) else { return };
        let Handle::Call(call) = operation.handle.clone() else { return };
        let own = operation.own.clone();
        let State::Delivered { proposal } = operation.state else { return };
        let Some(member) = self.members.get(operation.server) else { return };
        let (Some(server), Some(link)) = (member.server().cloned(), member.links.first().copied()) else {
            return;
        };
        let is_gateway =
            self.catalog.builtin().is_some_and(|index| self.catalog.id(index) == Some(&member.id));
        let mirrors = self.mirrors && self.members.watchers() > 0 && !is_gateway && proposal.is_none();
        let by_call = self.members.link(operation.link).is_some_and(|own| own.promotes);
        if mirrors && by_call {
            self.mirror(id, None);
            if let Some(operation) = self.operations.get_mut(id) {
                operation.mirrored = true;
            }
        }
        let proposal = proposal.and_then(|proposal| self.view_of(proposal));
        self.effects.push(Effect::Deliver { call, link, server, own, proposal });
    }

    fn hold(&mut self, id: OperationId) {
        let Some(operation) = self.operations.get(id) else { return };
        let Handle::Call(call) = operation.handle.clone() else { return };
        let Some(member) = self.members.get(operation.server) else { return };
        let (Some(server), to) = (member.server().cloned(), member.id.clone()) else { return };
        self.effects.push(Effect::Hold { call, to, server, own: operation.own.clone() });
    }

    /// Shows a call or its end to watchers.
    fn mirror(&mut self, id: OperationId, end: Option<(Outcome, Option<H::Answer>)>) {
        let Some(operation) = self.operations.get(id) else { return };
        let (Some(caller), Some(server)) =
            (self.members.of_link(operation.link), self.members.get(operation.server))
        else {
            return;
        };
        let Some(call) = operation.handle.call().cloned() else { return };
        let mirrored = Mirrored {
            operation: id,
            from: caller.id.clone(),
            to: server.id.clone(),
            call,
            own: operation.own.clone(),
            end,
        };
        // The server gets the request itself, so it sees no mirror of it. All watchers see the end, which may be the gateway's.
        let audience = match &mirrored.end {
            None => crate::Audience::mirror(&mirrored.to, Some(&mirrored.to)),
            Some(_) => crate::Audience::mirror(&mirrored.from, None),
        };
        self.effects.publish(RoomEffect::Mirror { mirrored, audience });
    }

    pub(crate) fn answer(&mut self, link: LinkId, id: OperationId, end: End<H::Answer>) {
        let Some(seat) = self.members.link(link).map(|own| own.seat) else { return };
        let Some(operation) = self.operations.get(id) else { return };
        match operation.state {
            State::Delivered { .. } | State::Waiting { .. } if operation.server == seat => {
                self.answer_call(id, end);
            }
            State::Asked { .. } if operation.link == link => self.answer_ask(id, end),
            State::Delivered { .. }
            | State::Held { .. }
            | State::Parked { .. }
            | State::Waiting { .. }
            | State::Asked { .. } => {}
        }
    }

    fn answer_call(&mut self, id: OperationId, end: End<H::Answer>) {
        let (outcome, answer) = match end {
            End::Answered { outcome, answer } => (outcome, answer),
            End::Failed(refusal) => return self.fail_call(id, refusal),
        };
        self.mirror_end(id, outcome, Some(&answer));
        let carried_out = self.keep_answer(id, &answer);
        let Some(closed) = self.close_call(id, outcome) else { return };
        if let Handle::Call(call) = closed.handle {
            let proposal = carried_out.and_then(|proposal| self.view_of(proposal));
            self.effects.push(Effect::Settle { call, answer, proposal });
        }
    }

    /// Ends a call without an answer.
    fn fail_call(&mut self, id: OperationId, refusal: Box<Refusal>) {
        self.mirror_end(id, Outcome::Refused, None);
        let Some(closed) = self.close_call(id, Outcome::Refused) else { return };
        if let Handle::Call(call) = closed.handle {
            self.effects.push(Effect::Refuse { call, refusal, cause: Cause::Failed });
        }
    }

    pub(crate) fn mirror_end(&mut self, id: OperationId, outcome: Outcome, answer: Option<&H::Answer>) {
        if self.operations.get(id).is_some_and(|open| open.mirrored) && self.members.watchers() > 0 {
            self.mirror(id, Some((outcome, answer.cloned())));
        }
    }

    pub(crate) fn cancel(&mut self, link: LinkId, which: OperationRef<H::Tag>) {
        let Some(own) = self.members.link(link) else { return };
        let (seat, id) = match which {
            OperationRef::Id(id) => (own.seat, Some(id)),
            OperationRef::Tag(tag) => (own.seat, self.tagged(link, &tag)),
        };
        let Some((id, operation)) = id.and_then(|id| Some((id, self.operations.get(id)?))) else { return };
        match operation.state {
            State::Delivered { .. } | State::Held { .. } | State::Waiting { .. }
                if operation.link == link =>
            {
                self.cancel_call(id, Outcome::Cancelled);
            }
            State::Asked { .. } if operation.server == seat => self.withdraw_ask(id),
            State::Delivered { .. }
            | State::Held { .. }
            | State::Parked { .. }
            | State::Waiting { .. }
            | State::Asked { .. } => {}
        }
    }

    /// The youngest operation that a link opened under this name: a caller's request, or a server's question.
    fn tagged(&self, link: LinkId, tag: &H::Tag) -> Option<OperationId> {
        let own = self.members.link(link)?;
        let serves = !self.members.get(own.seat)?.is_caller();
        let named = own.open.iter().filter_map(|id| Some((self.operations.get(*id)?, *id)));
        let named = named.filter(|(open, _)| open.tag.as_ref() == Some(tag) && open.state.is_ask() == serves);
        named.max_by_key(|(open, _)| open.order).map(|(_, id)| id)
    }

    /// Closes a call for which its caller no longer waits, and cancels it at its server.
    pub(crate) fn cancel_call(&mut self, id: OperationId, outcome: Outcome) {
        self.mirror_end(id, outcome, None);
        let Some(closed) = self.stop_call(id, outcome) else { return };
        if let Handle::Call(call) = closed.handle {
            self.effects.push(Effect::Drop { call });
        }
    }

    /// Ends a call from the gateway's side: the topic cancels it at its server and refuses its caller.
    pub(crate) fn refuse_call(&mut self, id: OperationId, cause: Cause) {
        self.mirror_end(id, Outcome::Refused, None);
        let Some(closed) = self.stop_call(id, Outcome::Refused) else { return };
        if let Handle::Call(call) = closed.handle {
            self.refuse_plainly(call, cause);
        }
    }

    fn stop_call(&mut self, id: OperationId, outcome: Outcome) -> Option<Operation<H>> {
        let closed = self.close_call(id, outcome)?;
        if let (true, Handle::Call(call)) = (closed.state.is_at_server(), &closed.handle) {
            self.effects.push(Effect::Cancel { call: call.clone() });
        }
        Some(closed)
    }

    /// Removes a call, its interests and the questions about it. The caller of this function settles it.
    pub(crate) fn close_call(&mut self, id: OperationId, outcome: Outcome) -> Option<Operation<H>> {
        self.end_asks_about(id);
        let mut closed = self.operations.remove(id)?;
        self.members.finish(closed.link, id);
        if let Some(until_ms) = closed.until_ms {
            self.deadlines.remove(&(until_ms, id));
        }
        if let Some(rare) = closed.rare.take() {
            self.lose_interest(id, closed.link, *rare, outcome);
        }
        self.call_is_over(id, closed.state, outcome);
        Some(closed)
    }

    /// Refuses a request that was not opened.
    pub(crate) fn refuse_request(&mut self, call: H::Call, refusal: Box<Refusal>, cause: Cause) {
        self.effects.verdict = Some(Verdict::Refused(cause));
        self.refuse(call, refusal, cause);
    }

    /// Refuses the calls of a request in the room.
    pub(crate) fn refuse_all(&mut self, calls: Vec<RoomCall<H>>, cause: Cause) {
        for (.., call) in calls {
            self.refuse_plainly(call, cause);
        }
    }

    /// Refuses a call in the words of its cause.
    pub(crate) fn refuse_plainly(&mut self, call: H::Call, cause: Cause) {
        self.refuse(call, Box::new(refusals::plain(cause)), cause);
    }

    pub(crate) fn refuse(&mut self, call: H::Call, refusal: Box<Refusal>, cause: Cause) {
        self.effects.push(Effect::Refuse { call, refusal, cause });
    }
}

/// The route of a request that may go on, the seat of its server, and the rule that admits it; a held request has no rule.
fn admit<'a, H: Handles>(
    member: &Member<H>,
    method: &str,
    target: Option<Target<'_>>,
    route: Option<Route<'a>>,
    promotes: bool,
    present: &[Option<Seat>],
) -> Result<Admitted<'a>, Cause> {
    if !member.is_caller() {
        return Err(Cause::NotAdmitted);
    }
    let route = route.ok_or(Cause::Unknown)?;
    let context = target.and_then(Target::context);
    let (granted, at) = (&member.capabilities, route.upstream.as_str());
    let rule = match judge(granted, method, context, at) {
        Ok(rule) => Some(rule),
        Err(Cause::NotAdmitted) if promotes && proposes(granted, method, context, at) => None,
        Err(cause) => return Err(cause),
    };
    let server = present.get(route.index.0).copied().flatten().ok_or(Cause::UpstreamDown)?;
    Ok(Admitted { route, server, rule })
}
