//! Callers' requests: admission, delivery, and exactly one end.

use std::sync::Arc;

use model::method::{CALL_TOOL, TASK_RESULT};
use model::{
    LinkId, ListKind, LogLevel, Method, Narrowing, OperationId, Outcome, ParticipantId, Refusal,
};

use crate::{
    BuiltinTool, Handles, Topic,
    admission::{Looker, judge, proposes},
    catalog::{Catalog, Route},
    effect::{Cause, Effect, Mirrored, RoomEffect, Rule, Verdict},
    event::{End, Interest, OperationRef, PublicTarget, RequestEvent},
    members::Seat,
    names::APP_SCHEME,
    operations::{Handle, Operation, Rare, State},
    proposals::{RoomCall, RoomRequests},
    refusals::{self, Refused},
    view::OfferedEntry,
};

/// The method under which a request about the caller's own proposals, or its own kept results, is
/// judged.
pub(crate) const OWN_PROPOSAL: Method = Method::Known(TASK_RESULT.name);

impl<H: Handles> Topic<H> {
    pub(crate) fn request(&mut self, request: RequestEvent<'_, H>) {
        let RequestEvent {
            link,
            operation,
            tag,
            method,
            target,
            interest,
            logs,
            returns,
            narrowing,
            call,
        } = request;
        if self.operations.contains(operation) {
            return;
        }
        self.members.narrow(link, narrowing);
        if let Err(refused) = self.may_open(link) {
            let cause = refused.cause;
            let refusal = refused.or_else(|cause| refusals::of_request(cause, target));
            return self.refuse_request(call, refusal, cause);
        }
        let mut about = None;
        let mut target = target;
        if let Some(PublicTarget::Task(named)) = target {
            match self.admit_about(link, narrowing, named) {
                Ok((task, server)) => (about, target) = (Some(task), server),
                Err(cause) => {
                    let refusal = refusals::of_request(cause, target);
                    return self.refuse_request(call, refusal, cause);
                }
            }
        }
        // What is about the caller's own proposals needs no capability of its own, because requests
        // about their tasks need none; neither does a result that was the caller's before.
        let (method, target) = if self.serves_own(link, &method, target) {
            (OWN_PROPOSAL, None)
        } else {
            (method, target)
        };
        let (route, server, rule) = match self.admit(link, narrowing, &method, target, &interest) {
            Ok(admitted) => admitted,
            Err(cause) => {
                let lacking = (cause == Cause::NotAdmitted)
                    .then(|| self.lacking(link, narrowing, method.as_str(), target))
                    .flatten();
                let refusal = lacking.unwrap_or_else(|| refusals::of_request(cause, target));
                return self.refuse_request(call, refusal, cause);
            }
        };
        if !self.has_room_for(link, &interest) {
            return self.refuse_request(call, refusals::of_interest(&interest), Cause::Limit);
        }
        let asked = target.and_then(PublicTarget::context);
        let context = asked.map(|asked| match (&route.ruled, route.public) {
            (Some(ruled), _) => Arc::from(&**ruled),
            (None, Some(public)) => Arc::clone(public),
            (None, None) => asked.into(),
        });
        let respelled = || Catalog::respelled_own(&route, asked).map(Arc::from);
        let own = route.renamed.cloned().or_else(respelled);
        let to = route.upstream.clone();
        let named = own.clone();
        let reads_app = method.facts().acts_on == Some(ListKind::Resources)
            && route.own.starts_with(APP_SCHEME);
        let app = (reads_app && rule.is_some()).then_some(route.index);
        let (state, verdict) = match rule {
            Some(rule) => (
                State::Delivered { proposal: None },
                Verdict::Admitted {
                    to: Some(to),
                    own: named,
                    rule,
                },
            ),
            None => (
                State::Held { proposal: None },
                Verdict::Held { to, own: named },
            ),
        };
        self.effects.verdict = Some(verdict);
        let pauses = returns && self.is_asked_by_answers(link, &method);
        let opened = Operation::new(state, link, server, method, Handle::Call(call));
        self.open(
            operation,
            Operation {
                context,
                own,
                tag,
                pauses,
                logs,
                ..opened
            },
        );
        self.take_interest(operation, interest, narrowing);
        if let Some(about) = about {
            self.begin_about(operation, about);
        }
        if let Some((app, link)) = app.zip(self.members.link_mut(link)) {
            link.own_mut().read_app(app);
        }
        self.hand_over(operation);
    }

    /// The public name of the tool that an app calls by this name, which its page has from its
    /// server: that of the server whose app the link has read last and that has such a tool, else
    /// that of the one server that has it. Only tools count that the link's caller could call or
    /// propose. `None` if the name is a public one itself, or leads to none.
    pub fn named_by_app(
        &self,
        link: LinkId,
        narrowing: Option<&Narrowing>,
        name: &str,
    ) -> Option<Arc<str>> {
        let (own, member) = self
            .members
            .linked(link)
            .filter(|(_, member)| member.is_caller())?;
        let looker = Looker {
            capabilities: &own.granted(member, narrowing),
            promotes: own.promotes,
        };
        let sees = |server: &ParticipantId, entry: &OfferedEntry| {
            looker
                .holds(CALL_TOOL.name, &entry.ruled, server.as_str())
                .is_some()
        };
        let read = own.own.as_ref().map_or(&[][..], |own| &own.apps);
        self.catalog
            .named_by_app(own.overrides(), read, name, &sees)
            .cloned()
    }

    /// The route of a request that may go on, the seat of its server, and the rule that admits it;
    /// a held request has no rule.
    fn admit<'a>(
        &'a self,
        link: LinkId,
        narrowing: Option<&Narrowing>,
        method: &Method,
        target: Option<PublicTarget<'a>>,
        interest: &Interest,
    ) -> Result<(Route<'a>, Seat, Option<Rule>), Cause> {
        let linked = self
            .members
            .linked(link)
            .filter(|(_, member)| member.is_caller());
        let (own, member) = linked.ok_or(Cause::NotAdmitted)?;
        // A method that is not of the protocol goes to the one server whose names have no prefix.
        let unknown = target.is_none() && matches!(method, Method::Other(_));
        let bare = unknown.then(|| self.catalog.bare_route()).flatten();
        let route = bare
            .or_else(|| self.catalog.resolve(own.overrides(), target))
            .ok_or(Cause::Unknown)?;
        // Only a call that can be carried out later is held.
        let promotes = own.promotes
            && *interest == Interest::None
            && Some(route.index) != self.catalog.builtin();
        let method = method.as_str();
        let context = route.ruled_context(target.and_then(PublicTarget::context));
        let granted = own.granted(member, narrowing);
        let at = route.upstream.as_str();
        let rule = match judge(&granted, method, context, at) {
            Ok(at) => Some(Rule {
                capabilities: granted,
                at,
            }),
            Err(Cause::NotAdmitted) if promotes && proposes(&granted, method, context, at) => None,
            Err(cause) => return Err(cause),
        };
        if self
            .catalog
            .withholds(own.overrides(), route.index, method, &route.own)
        {
            return Err(Cause::ToolChanged);
        }
        let seat = self.seat_at(route.index).ok_or(Cause::UpstreamDown)?;
        Ok((route, seat, rule))
    }

    /// Whether a request is for a result that is kept for its caller, or for one of the tools for a
    /// caller's own proposals. They work whether or not they are listed, unless a server lists a
    /// tool of this name.
    fn serves_own(&self, link: LinkId, method: &Method, target: Option<PublicTarget<'_>>) -> bool {
        if target == Some(PublicTarget::Kept) {
            return true;
        }
        let Some(PublicTarget::Tool(name)) = target.filter(|_| method.facts().calls_tool()) else {
            return false;
        };
        let is_server =
            |route: Route<'_>| route.is_listed() && Some(route.index) != self.catalog.builtin();
        BuiltinTool::of(name).is_some_and(BuiltinTool::serves_own)
            && !self
                .lookup(link, PublicTarget::Tool(name))
                .is_some_and(is_server)
    }

    /// Whether a caller's link may open one more operation now; takes a token.
    pub(crate) fn may_open(&mut self, link: LinkId) -> Result<(), Refused> {
        let seat = self
            .members
            .link(link)
            .map(|own| own.seat)
            .ok_or(Cause::Moot)?;
        self.members
            .get_mut(seat)
            .ok_or(Cause::Moot)?
            .take_token(self.now_ms)?;
        if self.has_place(link) {
            Ok(())
        } else {
            Err(Cause::Limit.into())
        }
    }

    /// Whether the limits admit one more operation of a link.
    pub(crate) fn has_place(&self, link: LinkId) -> bool {
        self.members.linked(link).is_some_and(|(own, member)| {
            own.open.len() < self.limits.operations_per_link_max
                && self.members.open_on_account(member) < self.limits.operations_per_participant_max
                && self.operations.len() < self.limits.operations_max
        })
    }

    /// Enters an operation as open at its link.
    pub(crate) fn open(&mut self, id: OperationId, operation: Operation<H>) {
        self.members.begin(operation.link, id);
        self.operations.insert(id, operation);
    }

    /// The open operations of a link, in the order of opening.
    pub(crate) fn open_of(&self, link: LinkId) -> Vec<OperationId> {
        self.members
            .link(link)
            .map(|own| self.operations.in_order(&own.open))
            .unwrap_or_default()
    }

    /// Delivers an open call to its server, and mirrors it to watchers unless it calls a built-in
    /// tool. A held call waits.
    pub(crate) fn hand_over(&mut self, id: OperationId) {
        let Some(operation) = self.operations.get(id) else {
            return;
        };
        let Handle::Call(call) = operation.handle.clone() else {
            return;
        };
        let own = operation.own.clone();
        let Some(member) = self.members.get(operation.server) else {
            return;
        };
        let (Some(server), Some(link)) = (member.server.clone(), member.links.first().copied())
        else {
            return;
        };
        let State::Delivered { proposal } = operation.state else {
            let to = member.id.clone();
            return self.effects.push(Effect::Hold {
                call,
                to,
                server,
                own,
            });
        };
        let is_gateway = self
            .catalog
            .builtin()
            .is_some_and(|index| self.catalog.id(index) == Some(&member.id));
        let mirrors =
            self.mirrors && self.members.watchers() > 0 && !is_gateway && proposal.is_none();
        let by_call = self
            .members
            .link(operation.link)
            .is_some_and(|own| own.promotes);
        if mirrors && by_call {
            self.mirror(id, None);
            if let Some(operation) = self.operations.get_mut(id) {
                operation.mirrored = true;
            }
        }
        let proposal = proposal.and_then(|proposal| self.view_of(proposal));
        let logs = self.logs_of(id);
        self.effects.push(Effect::Deliver {
            call,
            link,
            server,
            own,
            logs,
            proposal,
        });
    }

    /// The level from which on the caller of an open call wants log messages.
    fn logs_of(&self, id: OperationId) -> Option<LogLevel> {
        let open = self.operations.get(id)?;
        open.log_level(self.members.link(open.link).and_then(|own| own.level))
    }

    /// Shows a call or its end to watchers.
    fn mirror(&mut self, id: OperationId, end: Option<(Outcome, Option<H::Answer>)>) {
        let Some(operation) = self.operations.get(id) else {
            return;
        };
        let (Some(caller), Some(server)) = (
            self.members.of_link(operation.link),
            self.members.get(operation.server),
        ) else {
            return;
        };
        let Some(call) = operation.handle.call().cloned() else {
            return;
        };
        let mirrored = Mirrored {
            operation: id,
            from: caller.id.clone(),
            to: server.id.clone(),
            call,
            own: operation.own.clone(),
            end,
        };
        // The server gets the request itself, so it sees no mirror of it. All watchers see the end,
        // which may be the gateway's.
        let audience = match &mirrored.end {
            None => crate::Audience::mirror(&mirrored.to, Some(&mirrored.to)),
            Some(_) => crate::Audience::mirror(&mirrored.from, None),
        };
        self.effects
            .publish(RoomEffect::Mirror { mirrored, audience });
    }

    pub(crate) fn answer(&mut self, link: LinkId, id: OperationId, end: End<H::Answer>) {
        let Some(seat) = self.members.link(link).map(|own| own.seat) else {
            return;
        };
        let Some(operation) = self.operations.get(id) else {
            return;
        };
        if operation.state.is_ask() {
            if operation.link == link {
                self.answer_ask(id, end);
            }
        } else if operation.server == seat && operation.state.is_served() {
            self.answer_call(id, end);
        }
    }

    fn answer_call(&mut self, id: OperationId, end: End<H::Answer>) {
        let (outcome, answer) = end.parts();
        if self
            .operations
            .get(id)
            .is_some_and(|open| open.state == State::Paused { proposal: None })
        {
            return self.keep_end(id, end);
        }
        // Before the call is closed, which concludes its proposal.
        let carried_out = answer.and_then(|answer| self.keep_answer(id, answer));
        let Some((call, _)) = self.close_call(id, outcome, answer) else {
            return;
        };
        self.finish(call, end, carried_out);
    }

    pub(crate) fn mirror_end(
        &mut self,
        id: OperationId,
        outcome: Outcome,
        answer: Option<&H::Answer>,
    ) {
        if self.operations.get(id).is_some_and(|open| open.mirrored) && self.members.watchers() > 0
        {
            self.mirror(id, Some((outcome, answer.cloned())));
        }
    }

    pub(crate) fn cancel(&mut self, link: LinkId, which: OperationRef<H::Tag>) {
        let Some(own) = self.members.link(link) else {
            return;
        };
        let seat = own.seat;
        let id = match which {
            OperationRef::Request { operation, round } => self.waiting_as(operation, round),
            OperationRef::Tag(tag) => self.tagged(link, &tag),
        };
        let Some((id, operation)) = id.and_then(|id| Some((id, self.operations.get(id)?))) else {
            return;
        };
        if operation.state.is_ask() {
            if operation.server == seat {
                self.withdraw_ask(id);
            }
        } else if operation.link == link
            && !operation.state.is_parked()
            && !operation.state.is_paused()
        {
            self.cancel_call(id);
        }
    }

    /// The operation, if the request that came in this round waits for its end: its caller was not
    /// answered for now, and has not come back with another.
    fn waiting_as(&self, id: OperationId, round: u32) -> Option<OperationId> {
        let open = self.operations.get(id)?;
        (open.rounds == round && !open.answered).then_some(id)
    }

    /// The youngest operation that a link opened under this name: a caller's request, or a server's
    /// question.
    pub(crate) fn tagged(&self, link: LinkId, tag: &H::Tag) -> Option<OperationId> {
        let own = self.members.link(link)?;
        let serves = !self.members.get(own.seat)?.is_caller();
        let named = own
            .open
            .iter()
            .filter_map(|id| Some((self.operations.get(*id)?, *id)));
        let named = named.filter(|(open, _)| {
            let waits = open.state.is_ask() == serves && !open.state.is_paused();
            open.tag.as_ref() == Some(tag) && waits
        });
        named.max_by_key(|(open, _)| open.order).map(|(_, id)| id)
    }

    /// Ends a call for which its caller no longer waits, and cancels it at its server.
    pub(crate) fn cancel_call(&mut self, id: OperationId) {
        if let Some(call) = self.stop_call(id, Outcome::Cancelled) {
            self.effects.push(Effect::Drop { call });
        }
    }

    /// Ends a call from the gateway's side: the topic cancels it at its server and refuses its
    /// caller.
    pub(crate) fn refuse_call(&mut self, id: OperationId, cause: Cause) {
        if let Some(call) = self.stop_call(id, Outcome::Refused) {
            self.refuse_plainly(call, cause);
        }
    }

    /// Ends a call and cancels it at its server, if a server has it. The caller of this function
    /// settles it.
    pub(crate) fn stop_call(&mut self, id: OperationId, outcome: Outcome) -> Option<H::Call> {
        let (call, state) = self.close_call(id, outcome, None)?;
        if state.is_at_server() {
            self.effects.push(Effect::Cancel { call: call.clone() });
        }
        Some(call)
    }

    /// Removes a call, its interests and the questions about it, and shows its end to watchers.
    pub(crate) fn close_call(
        &mut self,
        id: OperationId,
        outcome: Outcome,
        answer: Option<&H::Answer>,
    ) -> Option<(H::Call, State)> {
        // While the operation is in the table, which the mirror reads.
        self.mirror_end(id, outcome, answer);
        self.end_asks_about(id);
        self.forget_deadline(id);
        let mut closed = self.operations.remove(id)?;
        self.members.finish(closed.link, id);
        if let Some(rare) = closed.rare.take() {
            self.lose_rare(id, closed.link, *rare, outcome);
        }
        self.call_is_over(id, closed.state, outcome);
        match closed.handle {
            Handle::Call(call) => Some((call, closed.state)),
            Handle::Question(_) => None,
        }
    }

    /// Ends what few requests have: interests, and their part in tasks.
    fn lose_rare(&mut self, id: OperationId, link: LinkId, mut rare: Rare<H>, outcome: Outcome) {
        if let Some(about) = rare.about.take() {
            self.end_about(id, &about);
        }
        if let Some(becomes) = rare.becomes.take() {
            self.end_becoming(id, becomes, outcome);
        }
        self.lose_interest(id, link, rare, outcome);
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

    /// Refuses a request in the room that names a proposal. Its sender hears of it with the calls,
    /// or about the envelope.
    pub(crate) fn refuse_room(&mut self, requests: RoomRequests<H>, cause: Cause) {
        let withheld = requests.unpublished.filter(|_| requests.calls.is_empty());
        if let Some((kept, handle)) = withheld.zip(self.handle(requests.link)) {
            let refusal = refusals::plain(cause);
            self.effects.push(Effect::Withhold {
                handle,
                message: kept.message,
                refusal,
            });
        }
        self.refuse_all(requests.calls, cause);
    }

    /// Gives a caller the end of its call, with the proposal that it carried out.
    pub(crate) fn finish(
        &mut self,
        call: H::Call,
        end: End<H::Answer>,
        proposal: Option<OperationId>,
    ) {
        match end {
            End::Answered { answer, .. } => {
                let proposal = proposal.and_then(|proposal| self.view_of(proposal));
                self.effects.push(Effect::Settle {
                    call,
                    answer,
                    proposal,
                });
            }
            End::Failed(refusal) => self.refuse(call, refusal, Cause::Failed),
        }
    }

    /// Refuses a call in the words of its cause.
    pub(crate) fn refuse_plainly(&mut self, call: H::Call, cause: Cause) {
        self.refuse(call, refusals::plain(cause), cause);
    }

    pub(crate) fn refuse(&mut self, call: H::Call, refusal: Box<Refusal>, cause: Cause) {
        self.effects.push(Effect::Refuse {
            call,
            refusal,
            cause,
        });
    }
}
