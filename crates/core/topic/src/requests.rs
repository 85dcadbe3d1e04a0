//! Callers' requests: admission, delivery, and exactly one end.
//!
//! All ends go through `close_call`, which removes the operation. A server's answer comes by
//! `answer_call`; `cancel_call` and `refuse_call` end a call from outside by `stop_call`, which cancels
//! it at its server. Then the caller gets one effect: `finish` settles or refuses its call, `refuse`
//! refuses it, and one that cancelled is dropped.

use std::sync::Arc;

use model::method::{CALL_TOOL, TASK_RESULT};
use model::{
    LinkId, ListKind, Method, MethodFacts, Narrowing, OperationId, Outcome, ParticipantId, Refusal,
};

use crate::{
    BuiltinTool, Handles, Topic,
    admission::{Looker, judge, proposes},
    catalog::{Route, UpstreamIndex},
    effect::{AdmittedBy, Cause, Effect, HeldFor, Mirrored, RoomEffect, Verdict},
    event::{End, Interest, OperationRef, PublicTarget, RequestEvent, Tightening},
    members::{Link, Seat},
    names::APP_SCHEME,
    operations::{AboutTask, Handle, Operation, Rare, State},
    proposals::{RoomCall, RoomRequests},
    refusals::{self, Refused},
};

/// The method under which a request about the caller's own proposals, or its own kept results, is
/// judged and open. Requests about a caller's own tasks need no capability, and neither do these.
pub(crate) const OWN_PROPOSAL: Method = Method::Known(TASK_RESULT.name);

/// A request that is not refused.
struct Accepted<'a> {
    route: Route<'a>,
    /// The seat of its server.
    server: Seat,
    judgement: Judgement,
}

/// A request that was judged, with all that its operation begins with.
struct Opening {
    /// The seat of its server.
    server: Seat,
    state: State,
    context: Option<Arc<str>>,
    own_name: Option<Arc<str>>,
    /// The server whose app it reads.
    read_app: Option<UpstreamIndex>,
    /// Its part in a task.
    about: Option<AboutTask>,
    verdict: Verdict,
}

/// A request that is refused.
struct NotOpened {
    refusal: Box<Refusal>,
    cause: Cause,
}

/// The judgement about a request that is not refused.
enum Judgement {
    /// It runs, by this capability.
    Admitted(AdmittedBy),
    /// It is held as a proposal.
    Held { why: HeldFor },
}

impl Judgement {
    fn state(&self) -> State {
        match self {
            Self::Admitted(_) => State::Delivered { proposal: None },
            Self::Held { .. } => State::Held { proposal: None },
        }
    }

    /// The judgement with what a rule takes of it. What may only be proposed is left to the rules for
    /// proposals.
    fn tightened(self, by: Option<&Tightening>, can_be_held: bool) -> Result<Self, Cause> {
        match (by, self) {
            (Some(Tightening::Ask), Self::Admitted(_)) if can_be_held => {
                Ok(Self::Held { why: HeldFor::Rule })
            }
            (Some(Tightening::Ask), Self::Admitted(_)) => Err(Cause::RuleAsks),
            (Some(Tightening::Reject { .. }), Self::Admitted(_)) => Err(Cause::RuleRejects),
            (_, judgement) => Ok(judgement),
        }
    }

    /// The judgement with what a pause of its caller takes of it: all that needs a capability.
    fn braked(self, can_be_held: bool) -> Result<Self, Cause> {
        match self {
            Self::Admitted(by) if by.at.is_some() && can_be_held => Ok(Self::Held {
                why: HeldFor::Pause,
            }),
            Self::Admitted(by) if by.at.is_some() => Err(Cause::Paused),
            judgement => Ok(judgement),
        }
    }

    /// The verdict for records, about a request to this server under its own name there.
    fn verdict(self, to: ParticipantId, own: Option<Arc<str>>) -> Verdict {
        match self {
            Self::Admitted(by) => Verdict::Admitted {
                to: Some(to),
                own,
                by,
            },
            Self::Held { why } => Verdict::Held { to, own, why },
        }
    }
}

/// The end with which a call is closed.
pub(crate) struct Closing<'a, A> {
    outcome: Outcome,
    answer: Option<&'a A>,
    /// The reason for which there is no answer, if that is known.
    failure: Option<&'a str>,
}

impl<'a, A> Closing<'a, A> {
    pub(crate) fn with(end: &'a End<A>) -> Self {
        Self {
            outcome: end.outcome(),
            answer: end.answer(),
            failure: end.failure(),
        }
    }

    fn as_outcome(outcome: Outcome) -> Self {
        Self {
            outcome,
            answer: None,
            failure: None,
        }
    }
}

/// A call that is not open any more.
pub(crate) struct ClosedCall<H: Handles> {
    pub(crate) call: H::Call,
    /// Its last state.
    state: State,
}

impl<H: Handles> Topic<H> {
    /// Opens a caller's request and hands it over to its server, or refuses it.
    pub(crate) fn request(&mut self, mut request: RequestEvent<'_, H>) {
        // No id is given twice: one that is open already comes by a mistake of the shell, and the
        // operation that has it goes on.
        if self.operations.contains(request.operation) {
            return;
        }
        self.members.narrow(request.link, request.narrowing);
        match self.opening(&mut request) {
            Ok(opening) => self.open_request(request, opening),
            Err(NotOpened { refusal, cause }) => {
                self.refuse_request(request.call, refusal, cause);
            }
        }
    }

    /// Takes a token for a request, and judges it.
    ///
    /// # Errors
    /// The refusal of the request, with its cause.
    fn opening(&mut self, request: &mut RequestEvent<'_, H>) -> Result<Opening, NotOpened> {
        let (link, narrowing) = (request.link, request.narrowing);
        if let Err(refused) = self.pass_limits(link) {
            let cause = refused.cause;
            let refusal = refused.or_else(|cause| refusals::of_request(cause, request.target));
            return Err(NotOpened { refusal, cause });
        }
        let mut about = None;
        if let Some(PublicTarget::Task(named)) = request.target {
            let admitted = self
                .admit_about(link, narrowing, named)
                .map_err(|cause| NotOpened {
                    refusal: refusals::of_request(cause, request.target),
                    cause,
                })?;
            about = Some(admitted.about);
            request.target = admitted.target;
        }
        if self.serves_own(link, &request.method, request.target) {
            request.method = OWN_PROPOSAL;
            request.target = None;
        }
        let Accepted {
            route,
            server,
            judgement,
        } = self
            .admit(request)
            .map_err(|cause| self.not_admitted(request, cause))?;
        if !self.has_room_for(link, &request.interest) {
            return Err(NotOpened {
                refusal: refusals::of_interest(&request.interest),
                cause: Cause::Limit,
            });
        }
        let asked = request.target.and_then(PublicTarget::context);
        let own_name = own_name_of(&route, asked);
        let is_admitted = matches!(judgement, Judgement::Admitted(_));
        if self.is_branch && !is_admitted {
            return Err(self.not_admitted(request, Cause::Elsewhere));
        }
        // A held read may never run.
        let reads_app = is_admitted && reads_app(&request.method, &route);
        Ok(Opening {
            server,
            state: judgement.state(),
            context: context_of(&route, asked),
            read_app: reads_app.then_some(route.index),
            about,
            verdict: judgement.verdict(route.upstream.clone(), own_name.clone()),
            own_name,
        })
    }

    /// Whether there is a listener to whom calls of others are shown.
    pub fn shows_calls(&self) -> bool {
        self.mirrors && self.members.watchers() > 0
    }

    /// The server of a tool, if a branch may make a call of it for a link whose requests are narrowed
    /// by no token: its caller may make it without a decision, and has no limit of its own. Rules
    /// aside; the query takes no token of the rate.
    pub fn plain_server(&self, link: LinkId, tool: &str) -> Option<H::Server> {
        let (link, member) = self.members.linked(link)?;
        if member.bucket.is_some() || self.is_braked(&member.id) {
            return None;
        }
        let target = PublicTarget::Tool(tool);
        let route = self.catalog.resolve(link.overrides(), Some(target))?;
        if Some(route.index) == self.catalog.builtin() {
            return None;
        }
        let granted = link.granted(member, None);
        let context = route.ruled_context(Some(tool));
        let method = CALL_TOOL.name;
        judge(&granted, method, context, route.upstream.as_str()).ok()?;
        let overrides = link.overrides();
        if self
            .catalog
            .withholds(overrides, route.index, method, &route.own)
        {
            return None;
        }
        self.members.get(self.seat_at(route.index)?)?.server.clone()
    }

    /// The refusal of a request that is not admitted.
    fn not_admitted(&self, request: &RequestEvent<'_, H>, cause: Cause) -> NotOpened {
        let refusal = match &request.tightening {
            Some(by) if by.cause() == cause => refusals::of_tightening(by),
            _ => {
                let method = request.method.as_str();
                self.refusal_of(
                    request.link,
                    request.narrowing,
                    method,
                    request.target,
                    cause,
                )
            }
        };
        NotOpened { refusal, cause }
    }

    /// Opens a request that was judged, and hands it over.
    fn open_request(&mut self, request: RequestEvent<'_, H>, opening: Opening) {
        let RequestEvent {
            link,
            operation,
            method,
            ..
        } = request;
        self.effects.verdict = Some(opening.verdict);
        let pauses = request.returns && self.is_asked_by_answers(link, &method);
        let handle = Handle::Call(request.call);
        let opened = Operation::new(opening.state, link, opening.server, method, handle);
        self.open(
            operation,
            Operation {
                context: opening.context,
                own_name: opening.own_name,
                tag: request.tag,
                pauses,
                logs: request.logs,
                ..opened
            },
        );
        self.take_interest(operation, request.interest, request.narrowing);
        if let Some(about) = opening.about {
            self.begin_about(operation, about);
        }
        if let Some(app) = opening.read_app
            && let Some(link) = self.members.link_mut(link)
        {
            link.holdings_mut().read_app(app);
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
        let (link, member) = self.members.linked(link)?;
        if !member.is_caller() {
            return None;
        }
        let looker = Looker {
            capabilities: &link.granted(member, narrowing),
            promotes: link.promotes,
        };
        let read = match &link.holdings {
            Some(holdings) => &*holdings.apps,
            None => &[],
        };
        self.catalog
            .named_by_app(link.overrides(), read, name, looker)
            .cloned()
    }

    /// Judges a request: first whether it has a target, then whether its caller may reach it, and
    /// last whether the target can be reached. So a caller learns of no target that is not granted
    /// to it.
    fn admit<'a>(&'a self, request: &RequestEvent<'a, H>) -> Result<Accepted<'a>, Cause> {
        let (link, member) = self
            .members
            .linked(request.link)
            .ok_or(Cause::NotAdmitted)?;
        if !member.is_caller() {
            return Err(Cause::NotAdmitted);
        }
        let target = request.target;
        let route = self
            .route_of(link, &request.method, target)
            .ok_or(Cause::Unknown)?;
        // Only a call that can be carried out later is held: no change of the notifications of a
        // link, and no call of the gateway's own tools.
        let promotes = link.promotes
            && request.interest == Interest::None
            && Some(route.index) != self.catalog.builtin();
        let method = request.method.as_str();
        let context = route.ruled_context(target.and_then(PublicTarget::context));
        let granted = link.granted(member, request.narrowing);
        let server = route.upstream.as_str();
        let judgement = match judge(&granted, method, context, server) {
            Ok(at) => Judgement::Admitted(AdmittedBy {
                capabilities: granted,
                at,
            }),
            Err(Cause::NotAdmitted) if promotes && proposes(&granted, method, context, server) => {
                Judgement::Held {
                    why: HeldFor::Capability,
                }
            }
            Err(cause) => return Err(cause),
        };
        if self
            .catalog
            .withholds(link.overrides(), route.index, method, &route.own)
        {
            return Err(Cause::ToolChanged);
        }
        let server = self.seat_at(route.index).ok_or(Cause::UpstreamDown)?;
        let can_be_held = promotes && MethodFacts::of(method).is_proposable;
        let mut judgement = judgement.tightened(request.tightening.as_ref(), can_be_held)?;
        if self.is_braked(&member.id) && !MethodFacts::of(method).is_ending {
            judgement = judgement.braked(can_be_held)?;
        }
        Ok(Accepted {
            judgement,
            route,
            server,
        })
    }

    /// The route of a request, whether or not its caller may make it. A method that is not of the
    /// protocol goes to the one server whose names have no prefix.
    pub(crate) fn route_of<'a>(
        &'a self,
        link: &'a Link<H>,
        method: &Method,
        target: Option<PublicTarget<'a>>,
    ) -> Option<Route<'a>> {
        let mut route = None;
        if target.is_none() && matches!(method, Method::Other(_)) {
            route = self.catalog.bare_route();
        }
        route.or_else(|| self.catalog.resolve(link.overrides(), target))
    }

    /// Whether a request is for a result that is kept for its caller, or for one of the tools for a
    /// caller's own proposals. They work whether or not they are listed, unless a server lists a
    /// tool of this name.
    pub(crate) fn serves_own(
        &self,
        link: LinkId,
        method: &Method,
        target: Option<PublicTarget<'_>>,
    ) -> bool {
        if target == Some(PublicTarget::Kept) {
            return true;
        }
        let Some(PublicTarget::Tool(name)) = target else {
            return false;
        };
        let is_for_own = BuiltinTool::of(name).is_some_and(BuiltinTool::serves_own);
        if !method.facts().calls_tool() || !is_for_own {
            return false;
        }
        match self.lookup(link, PublicTarget::Tool(name)) {
            Some(route) => !route.is_listed() || Some(route.index) == self.catalog.builtin(),
            None => true,
        }
    }

    /// Takes a token for one more operation of a caller's link, and looks for a place for it. The token
    /// is gone whether or not there is a place.
    ///
    /// # Errors
    /// There is no token, or no place.
    pub(crate) fn pass_limits(&mut self, link: LinkId) -> Result<(), Refused> {
        self.take_token_of(link)?;
        if self.has_place(link) {
            Ok(())
        } else {
            Err(Cause::Limit.into())
        }
    }

    /// Takes a token of the participant that a link belongs to, and returns its seat.
    pub(crate) fn take_token_of(&mut self, link: LinkId) -> Result<Seat, Refused> {
        let seat = self.members.link(link).ok_or(Cause::Moot)?.seat;
        let member = self.members.get_mut(seat).ok_or(Cause::Moot)?;
        member.take_token(self.now_ms)?;
        Ok(seat)
    }

    /// Whether the limits admit one more operation of a link.
    pub(crate) fn has_place(&self, link: LinkId) -> bool {
        let Some((link, member)) = self.members.linked(link) else {
            return false;
        };
        link.open.len() < self.limits.operations_per_link_max
            && self.members.open_on_account(member) < self.limits.operations_per_participant_max
            && self.operations.len() < self.limits.operations_max
    }

    /// Enters an operation as open at its link.
    pub(crate) fn open(&mut self, id: OperationId, operation: Operation<H>) {
        self.members.begin(operation.link, id);
        self.operations.insert(id, operation);
    }

    /// The open operations of a link, in the order of opening.
    pub(crate) fn open_of(&self, link: LinkId) -> Vec<OperationId> {
        match self.members.link(link) {
            Some(link) => self.operations.in_order(&link.open),
            None => Vec::new(),
        }
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
        let own = operation.own_name.clone();
        // The seat of a server has a handle and a link for as long as it is taken.
        let Some(member) = self.members.get(operation.server) else {
            return;
        };
        let Some(server) = member.server.clone() else {
            return;
        };
        let Some(link) = member.links.first().copied() else {
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
        let of_caller = self.members.link(operation.link);
        let logs = operation.log_level(of_caller.and_then(|link| link.level));
        if self.is_mirrored(operation, &member.id) {
            self.mirror(id, None);
            if let Some(operation) = self.operations.get_mut(id) {
                operation.mirrored = true;
            }
        }
        let proposal = proposal.and_then(|proposal| self.view_of(proposal));
        self.effects.push(Effect::Deliver {
            call,
            link,
            server,
            own,
            logs,
            proposal,
        });
    }

    /// Whether watchers are shown a call that goes to this server: one that an MCP client makes
    /// itself. What participants request in the room is there as an envelope.
    fn is_mirrored(&self, operation: &Operation<H>, server: &ParticipantId) -> bool {
        if !self.shows_calls() {
            return false;
        }
        let calls_builtin = self
            .catalog
            .builtin()
            .is_some_and(|index| self.catalog.id(index) == Some(server));
        let by_client = self
            .members
            .link(operation.link)
            .is_some_and(|link| link.promotes);
        by_client && !calls_builtin && operation.state == State::Delivered { proposal: None }
    }

    /// Shows a call or its end to watchers.
    fn mirror(&mut self, id: OperationId, end: Option<(Outcome, Option<H::Answer>)>) {
        let Some(operation) = self.operations.get(id) else {
            return;
        };
        let Some(caller) = self.members.of_link(operation.link) else {
            return;
        };
        let Some(server) = self.members.get(operation.server) else {
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
            own: operation.own_name.clone(),
            end,
        };
        // The server gets the request itself, so it sees no mirror of it. All watchers see the end,
        // which may be the gateway's.
        let audience = match &mirrored.end {
            None => crate::Audience::mirror(&mirrored.to, Some(&mirrored.to)),
            Some(_) => crate::Audience::mirror(&mirrored.from, None),
        };
        self.effects.publish(RoomEffect::Mirror {
            mirrored: Box::new(mirrored),
            audience,
        });
    }

    /// Ends an operation with its receiver's answer: a question at its caller, a call at its server.
    /// Answers of other links, and late ones, are ignored.
    pub(crate) fn answer(&mut self, link: LinkId, id: OperationId, end: End<H::Answer>) {
        let Some(by) = self.members.link(link) else {
            return;
        };
        let Some(operation) = self.operations.get(id) else {
            return;
        };
        if operation.state.is_ask() {
            if operation.link == link {
                self.answer_ask(id, end);
            }
        } else if operation.server == by.seat && operation.state.is_served() {
            self.answer_call(id, end);
        }
    }

    fn answer_call(&mut self, id: OperationId, end: End<H::Answer>) {
        let Some(open) = self.operations.get(id) else {
            return;
        };
        if open.state == (State::Paused { proposal: None }) {
            return self.keep_end(id, end);
        }
        // Before the call is closed, which concludes its proposal.
        let carried_out = end.answer().and_then(|answer| self.keep_answer(id, answer));
        if let Some(closed) = self.close_call(id, Closing::with(&end)) {
            self.finish(closed.call, end, carried_out);
        }
    }

    /// Shows the end of a call to the watchers that have seen the call.
    pub(crate) fn mirror_end(
        &mut self,
        id: OperationId,
        outcome: Outcome,
        answer: Option<&H::Answer>,
    ) {
        let was_mirrored = self.operations.get(id).is_some_and(|open| open.mirrored);
        if was_mirrored && self.members.watchers() > 0 {
            self.mirror(id, Some((outcome, answer.cloned())));
        }
    }

    /// Cancels an operation for the link that opened it: a caller's call, or a server's question.
    pub(crate) fn cancel(&mut self, link: LinkId, which: OperationRef<H::Tag>) {
        let Some(by) = self.members.link(link) else {
            return;
        };
        let found = match which {
            OperationRef::Request { operation, round } => self.waiting_as(operation, round),
            OperationRef::Tag(tag) => self.tagged(link, &tag),
        };
        let Some(id) = found else {
            return;
        };
        let Some(operation) = self.operations.get(id) else {
            return;
        };
        if operation.state.is_ask() {
            if operation.server == by.seat {
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
        if open.rounds != round || open.answered {
            return None;
        }
        Some(id)
    }

    /// The youngest operation that a link opened under this name and that waits for its end: a
    /// caller's request, or a server's question.
    pub(crate) fn tagged(&self, link: LinkId, tag: &H::Tag) -> Option<OperationId> {
        let (link, member) = self.members.linked(link)?;
        // At a caller's link questions are open too, under the names that servers gave them.
        let opens_asks = !member.is_caller();
        self.operations.youngest(&link.open, |open| {
            open.tag.as_ref() == Some(tag)
                && open.state.is_ask() == opens_asks
                && !open.state.is_paused()
        })
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
        let ClosedCall { call, state } = self.close_call(id, Closing::as_outcome(outcome))?;
        if state.is_at_server() {
            self.effects.push(Effect::Cancel { call: call.clone() });
        }
        Some(call)
    }

    /// Removes a call, its interests and the questions about it, and shows its end to watchers.
    pub(crate) fn close_call(
        &mut self,
        id: OperationId,
        closing: Closing<'_, H::Answer>,
    ) -> Option<ClosedCall<H>> {
        let Closing {
            outcome,
            answer,
            failure,
        } = closing;
        // While the operation is in the table: these look it up there.
        self.mirror_end(id, outcome, answer);
        self.end_asks_about(id);
        self.forget_deadline(id);
        // From here on nothing finds it, so nothing that follows can end it once more.
        let mut closed = self.operations.remove(id)?;
        self.members.finish(closed.link, id);
        if let Some(rare) = closed.rare.take() {
            self.end_rare(id, closed.link, *rare, outcome);
        }
        self.call_is_over(id, closed.state, outcome, failure);
        let Handle::Call(call) = closed.handle else {
            return None;
        };
        Some(ClosedCall {
            call,
            state: closed.state,
        })
    }

    /// Ends what few requests have: interests, and their part in tasks.
    fn end_rare(&mut self, id: OperationId, link: LinkId, mut rare: Rare<H>, outcome: Outcome) {
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
        for call in calls {
            self.refuse_plainly(call.call, cause);
        }
    }

    /// Refuses a request in the room that names a proposal. Its sender gets the refusal with the
    /// calls; if there are none, about the envelope.
    pub(crate) fn refuse_room(&mut self, requests: RoomRequests<H>, cause: Cause) {
        self.effects.requests.turn_away();
        if requests.calls.is_empty()
            && let Some(envelope) = requests.unpublished
            && let Some(handle) = self.handle(requests.link)
        {
            self.effects.push(Effect::Withhold {
                handle,
                message: envelope.message,
                refusal: refusals::plain(cause),
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

    /// Refuses a call in these words.
    pub(crate) fn refuse(&mut self, call: H::Call, refusal: Box<Refusal>, cause: Cause) {
        self.effects.push(Effect::Refuse {
            call,
            refusal,
            cause,
        });
    }
}

/// The name or URI by which capabilities judge a request, as its operation keeps it.
fn context_of(route: &Route<'_>, asked: Option<&str>) -> Option<Arc<str>> {
    let asked = asked?;
    if let Some(ruled) = &route.ruled {
        return Some(Arc::from(&**ruled));
    }
    match route.public {
        // A listed name is shared with the catalog.
        Some(public) => Some(Arc::clone(public)),
        None => Some(asked.into()),
    }
}

/// The server's own name or URI of what a request names, if that differs from the requested one.
fn own_name_of(route: &Route<'_>, asked: Option<&str>) -> Option<Arc<str>> {
    match route.renamed {
        Some(renamed) => Some(Arc::clone(renamed)),
        None => route.respelled(asked).map(Arc::from),
    }
}

/// Whether a request reads the resource of an app.
fn reads_app(method: &Method, route: &Route<'_>) -> bool {
    method.facts().acts_on == Some(ListKind::Resources) && route.own.starts_with(APP_SCHEME)
}
