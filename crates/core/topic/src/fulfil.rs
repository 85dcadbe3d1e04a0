//! Execution of approved proposals, once each, and recognition of their outcomes.

use model::{DeliveryMode, LinkId, OperationId, Outcome, ParticipantId, ProposalState, Refusal};

use crate::{
    Handles, Topic,
    admission::admits_kind,
    brakes::is_braked_request,
    catalog::Overrides,
    effect::{Cause, Effect},
    event::PublicTarget,
    members::Seat,
    operations::{Handle, Operation, State},
    proposals::{Decided, Phase, RoomCall, RoomRequests, Ruling},
    refusals,
    say::Said,
};

/// The time that a participant has to answer an approved request in the room, milliseconds.
pub const ROOM_ANSWER_MS_MAX: u64 = 600_000;

impl<H: Handles> Topic<H> {
    /// Runs a proposal whose approval is on disk.
    pub(crate) fn approved(&mut self, id: OperationId, ruling: Ruling<H>) {
        let Some(proposal) = self.proposals.get_mut(id) else {
            return;
        };
        if let Some(reason) = proposal.recalled.take() {
            // Its proposer is gone, and the request has not begun.
            self.refuse_ruling(id, ruling, Cause::Moot);
            return self.ending(id, ProposalState::Withdrawn, Some(reason));
        }
        let Ruling {
            by,
            outside,
            handle,
            fulfilment,
            mut requested,
            named,
            beside,
            ..
        } = ruling;
        proposal.approved_by.retain(|one| beside.contains(&one.by));
        let is_plan = proposal.terms.plan.is_some();
        proposal.decided = Some(Decided {
            by: by.clone(),
            ruling: handle.clone(),
        });
        proposal.updated_ms = self.now_ms;
        let call = proposal.call;
        let to = proposal.terms.to.clone();
        let held = proposal.held;
        if is_plan {
            self.carry_approval(id, by, outside);
        }
        self.proposals.fulfil(id, fulfilment);
        self.proposals.turn(id, Phase::Running);
        self.claims.drop_on(id);
        // Its envelope, if it came as one: participants may carry it out from now on.
        if let Some(requests) = &mut requested {
            self.publish_withheld(requests);
        }
        let mut servers = Vec::new();
        if call.is_none() && requested.is_none() {
            servers = self.carried_out_by(&to, held);
        }
        let in_room = call.is_none() && servers.is_empty();
        if let Some(view) = self.view_of(id) {
            self.effects.push(Effect::Approved {
                proposal: view,
                servers,
            });
        }
        self.effects.extend_ruled(handle);
        if let Some(call) = call {
            // The held call runs, and its answer reaches the caller and the proposal. The calls of
            // an approving envelope would run it a second time.
            if let Some(requests) = requested {
                self.drop_calls(requests);
            }
            self.release(id, call);
        } else if let Some(requests) = requested {
            self.run_requests(requests, Some(id));
        }
        let is_carried_out = self
            .proposals
            .get(id)
            .is_some_and(|proposal| proposal.call.is_some());
        if in_room && !is_carried_out {
            self.await_answer(id, named);
        }
        self.fail_unanswerable(id, "not in the topic: it was not carried out");
    }

    pub(crate) fn drop_calls(&mut self, requests: RoomRequests<H>) {
        for RoomCall { call, .. } in requests.calls {
            self.effects.push(Effect::Drop { call });
        }
    }

    /// Waits for the answer of a participant in the room: of those that the proposal names, else of
    /// those that the request names.
    fn await_answer(&mut self, id: OperationId, named: Box<[ParticipantId]>) {
        let Some(proposal) = self.proposals.get(id) else {
            return;
        };
        if !proposal.is_running() {
            return;
        }
        let terms = &proposal.terms;
        let asked = match &*terms.to {
            // The proposer may be named so that it gets the request.
            [] => named.into_iter().filter(|one| *one != terms.by).collect(),
            to => to.into(),
        };
        let until_ms = self.now_ms.saturating_add(ROOM_ANSWER_MS_MAX);
        self.proposals.await_answer(id, asked, until_ms);
    }

    /// Fails the proposals that this participant was asked to carry out, if it has left and no
    /// other is there to answer.
    pub(crate) fn fail_asked(&mut self, gone: &ParticipantId) {
        for id in self.proposals.asked_of(gone) {
            self.fail_unanswerable(
                id,
                "not in the topic any more and has not answered: it may have carried it out",
            );
        }
    }

    /// Whether a participant receives every message of the room.
    fn receives_all(&self, participant: &ParticipantId) -> bool {
        let Some(link) = self.listener(participant) else {
            return false;
        };
        let listener = self.members.link(link).and_then(|link| link.listener);
        listener.is_some_and(|listener| listener.mode == DeliveryMode::All)
    }

    /// Fails a running proposal if none of the participants that were asked to carry it out in the
    /// room is there to answer.
    fn fail_unanswerable(&mut self, id: OperationId, why: &str) {
        let Some(proposal) = self.proposals.get(id) else {
            return;
        };
        let asked = &proposal.asked;
        // If none is named, any participant that joins may answer.
        if asked.is_empty() || asked.iter().any(|one| self.is_here(one)) {
            return;
        }
        let names: Vec<&str> = asked.iter().map(ParticipantId::as_str).collect();
        let reason = match names.as_slice() {
            [one] => format!("{one} is {why}"),
            several => format!("none of {} is {why}", several.join(", ")),
        };
        self.fail(id, &reason);
    }

    /// The servers at which the gateway carries out a proposal. A participant that serves gets the
    /// request in the room, unless a call was held for it.
    fn carried_out_by(&self, to: &[ParticipantId], held: bool) -> Vec<ParticipantId> {
        let mut servers = Vec::new();
        for id in to {
            if let Some(names) = self.catalog.names_of(id)
                && !names.builtin
                && (held || !names.serves)
            {
                servers.push(id.clone());
            }
        }
        servers
    }

    /// Carries out requests in the room: the fulfilment of `proposal`, or what its sender may
    /// request itself.
    pub(crate) fn run_requests(
        &mut self,
        mut requests: RoomRequests<H>,
        proposal: Option<OperationId>,
    ) {
        self.publish_withheld(&mut requests);
        for call in std::mem::take(&mut requests.calls) {
            self.run(&requests, call, proposal);
        }
    }

    /// Publishes the envelope of a request that names a proposal, unless it is published already.
    fn publish_withheld(&mut self, requests: &mut RoomRequests<H>) {
        if let Some(envelope) = requests.unpublished.take() {
            self.publish(envelope.message, envelope.bytes, envelope.audience);
        }
    }

    /// Carries out the requests of a proposer that waited for the withdrawal of its own proposal,
    /// if it still may make them.
    pub(crate) fn run_deferred(&mut self, mut requests: RoomRequests<H>) {
        if self.is_braked_since(&requests) {
            return self.refuse_room(requests, Cause::Paused);
        }
        let granted = self
            .members
            .linked(requests.link)
            .map(|(link, member)| link.granted(member, requests.narrowing.as_ref()));
        let mut refused = RoomRequests {
            calls: Vec::new(),
            unpublished: None,
            ..requests.clone()
        };
        let method = refused.method.as_str();
        let context = refused.context.as_deref();
        // The calls of a sender that has left are refused as they run: see `room_for`.
        if let Some(granted) = &granted {
            let calls = std::mem::take(&mut requests.calls);
            for call in calls {
                if admits_kind(granted, method, context, call.server.as_str()) {
                    requests.calls.push(call);
                } else {
                    refused.calls.push(call);
                }
            }
        }
        if let Some(envelope) = &requests.unpublished {
            let may_publish = granted
                .as_ref()
                .is_some_and(|granted| envelope.is_admitted(granted, method, context));
            if !may_publish {
                refused.unpublished = requests.unpublished.take();
            }
        }
        self.refuse_room(refused, Cause::Withdrawn);
        self.run_requests(requests, None);
    }

    /// Whether the sender of a request that waited may not make it now, as it is paused.
    fn is_braked_since(&self, requests: &RoomRequests<H>) -> bool {
        let sender = self.participant(requests.link);
        if !sender.is_some_and(|sender| self.is_braked(sender)) {
            return false;
        }
        let to = match &requests.unpublished {
            Some(envelope) => envelope.addressees(),
            None => requests
                .calls
                .iter()
                .map(|call| call.server.as_str())
                .collect(),
        };
        is_braked_request(requests.method.as_str(), requests.context.as_deref(), &to)
    }

    /// Carries out an approved proposal at a server, in the gateway's own name.
    pub(crate) fn execute(
        &mut self,
        proposal: OperationId,
        operation: OperationId,
        server: &ParticipantId,
        call: H::Call,
    ) {
        let Some(approved) = self.proposals.get(proposal) else {
            return self.refuse_plainly(call, Cause::Moot);
        };
        // A participant that answers in the room may have begun already.
        if approved.run_until_ms.is_some() {
            return self.refuse_plainly(call, Cause::Moot);
        }
        let method = approved.terms.method.clone();
        let context = approved.terms.context.clone();
        let Some(link) = self.gateway_link() else {
            self.refuse_plainly(call, Cause::UpstreamDown);
            return self.not_carried_out(proposal, Cause::UpstreamDown);
        };
        let call = RoomCall {
            server: server.clone(),
            operation,
            call,
        };
        let requests = RoomRequests {
            link,
            narrowing: None,
            tag: None,
            method,
            context,
            calls: vec![call],
            unpublished: None,
        };
        self.run_requests(requests, Some(proposal));
    }

    /// The link of the gateway's own participant.
    pub(crate) fn gateway_link(&self) -> Option<LinkId> {
        self.server_link(self.gateway_seat()?)
    }

    /// Delivers one call of a request that was admitted as an envelope, or by an approval.
    fn run(
        &mut self,
        requests: &RoomRequests<H>,
        call: RoomCall<H>,
        proposal: Option<OperationId>,
    ) {
        let RoomCall {
            server,
            operation,
            call,
        } = call;
        if self.operations.contains(operation) {
            return;
        }
        if let Some(proposal) = proposal
            && let Err(cause) = self.may_carry_out(proposal, &server, requests)
        {
            return self.refuse_plainly(call, cause);
        }
        let link = self.link_of(requests.link, proposal);
        // What a topic does not offer reads like what does not exist.
        if let Some(tool) = self.unoffered(&server, requests) {
            let refusal = refusals::of_request(Cause::Unknown, Some(PublicTarget::Tool(tool)));
            return self.refuse_run(call, proposal, refusal, Cause::Unknown);
        }
        let seat = match self.room_for(link, &server, requests) {
            Ok(seat) => seat,
            Err(cause) => return self.refuse_run(call, proposal, refusals::plain(cause), cause),
        };
        if let Some(proposal) = proposal.and_then(|id| self.proposals.get_mut(id)) {
            proposal.call = Some(operation);
        }
        self.effects.requests.begin();
        let state = State::Delivered { proposal };
        let method = requests.method.clone();
        let opened = Operation::new(state, link, seat, method, Handle::Call(call));
        self.open(
            operation,
            Operation {
                context: requests.context.clone(),
                tag: requests.tag.clone(),
                in_room: true,
                ..opened
            },
        );
        self.hand_over(operation);
    }

    /// Refuses a call of a request in the room, and ends the proposal that it was to carry out.
    fn refuse_run(
        &mut self,
        call: H::Call,
        proposal: Option<OperationId>,
        refusal: Box<Refusal>,
        cause: Cause,
    ) {
        self.effects.requests.turn_away();
        self.refuse(call, refusal, cause);
        if let Some(proposal) = proposal {
            self.not_carried_out(proposal, cause);
        }
    }

    /// The tool of a request in the room, if the topic does not offer it.
    fn unoffered<'r>(
        &self,
        server: &ParticipantId,
        requests: &'r RoomRequests<H>,
    ) -> Option<&'r str> {
        let named = requests.context.as_deref()?;
        if self.catalog.offers(server, requests.method.as_str(), named) {
            return None;
        }
        Some(named)
    }

    /// The link that opens the call of a request in the room: its sender's; the gateway's own, if
    /// it carries out a proposal and its sender has left since it approved.
    fn link_of(&self, sender: LinkId, proposal: Option<OperationId>) -> LinkId {
        if proposal.is_none() || self.members.link(sender).is_some() {
            return sender;
        }
        self.gateway_link().unwrap_or(sender)
    }

    /// Whether a server's entry, by its own name, is withheld from all callers.
    pub(crate) fn withholds(
        &self,
        server: &ParticipantId,
        method: &str,
        own_name: Option<&str>,
    ) -> bool {
        let Some(own_name) = own_name else {
            return false;
        };
        let Some(index) = self.catalog.index(server) else {
            return false;
        };
        self.catalog
            .withholds(&Overrides::default(), index, method, own_name)
    }

    /// Ends an approved proposal that no operation carries out as failed, for this reason.
    fn not_carried_out(&mut self, id: OperationId, cause: Cause) {
        if let Some(proposal) = self.proposals.get(id)
            && proposal.call.is_none()
        {
            self.fail(id, &refusals::plain(cause).message);
        }
    }

    /// Whether an operation may carry out a proposal: it is approved and has not begun, and the
    /// operation is the proposed request.
    fn may_carry_out(
        &self,
        proposal: OperationId,
        server: &ParticipantId,
        requests: &RoomRequests<H>,
    ) -> Result<(), Cause> {
        let proposal = self.proposals.get(proposal).ok_or(Cause::Moot)?;
        let terms = &proposal.terms;
        let is_proposed =
            requests.asks_for(proposal) && (terms.to.is_empty() || terms.to.contains(server));
        let may_begin = proposal.is_running() && proposal.call.is_none();
        if is_proposed && may_begin {
            Ok(())
        } else {
            Err(Cause::Moot)
        }
    }

    /// The seat of a server, if this link may open a call of such a request there.
    fn room_for(
        &self,
        link: LinkId,
        server: &ParticipantId,
        requests: &RoomRequests<H>,
    ) -> Result<Seat, Cause> {
        self.members.linked(link).ok_or(Cause::Moot)?;
        if !self.has_place(link) {
            return Err(Cause::Limit);
        }
        let index = self.catalog.index(server).ok_or(Cause::Unknown)?;
        let seat = self.seat_at(index).ok_or(Cause::UpstreamDown)?;
        if self.withholds(
            server,
            requests.method.as_str(),
            requests.context.as_deref(),
        ) {
            return Err(Cause::ToolChanged);
        }
        Ok(seat)
    }

    /// Keeps the answer of a call for the proposal that it carries out, unless that has ended with
    /// another.
    pub(crate) fn keep_answer(
        &mut self,
        call: OperationId,
        answer: &H::Answer,
    ) -> Option<OperationId> {
        let (State::Delivered { proposal } | State::Paused { proposal }) =
            self.operations.get(call)?.state
        else {
            return None;
        };
        let id = proposal?;
        let proposal = self.proposals.get_mut(id)?;
        if proposal.is_running() {
            proposal.answer = Some(answer.clone());
        }
        Some(id)
    }

    /// Concludes a proposal with an answer in the room, if that answers the envelope that fulfils
    /// the proposal.
    pub(crate) fn answered_in_room(
        &mut self,
        envelope: Said<'_, H>,
        correlation: &str,
        outcome: Outcome,
        answer: H::Answer,
    ) {
        let to = envelope.say.to;
        let Some(id) = self.fulfilled_by(correlation, to) else {
            return;
        };
        let Some(proposal) = self.proposals.get(id) else {
            return;
        };
        // A server carries out a held call, and its answer counts.
        if !proposal.is_running()
            || proposal.held
            || !proposal.is_answered_by(&envelope.from, envelope.kind)
        {
            return;
        }
        let proposer = proposal.terms.by.clone();
        // The responder may have left the proposer out (MCPx v0.1, section 3.2.1), which may get
        // every message all the same.
        let is_for_all = to.is_empty() || self.receives_all(&proposer);
        if !to.contains(&proposer.as_str()) && !is_for_all {
            self.effects.push(Effect::Relay {
                message: envelope.say.message,
                to: proposer,
            });
        }
        if let Some(proposal) = self.proposals.get_mut(id) {
            proposal.answer = Some(answer);
        }
        match outcome {
            Outcome::Ok => self.conclude(id, ProposalState::Completed, None),
            Outcome::Error | Outcome::Refused | Outcome::Cancelled => {
                self.fail(id, "it was answered with an error");
            }
        }
    }

    /// The proposal that an envelope of this id fulfils. Two participants may use one id; then an
    /// answer is for the participant that it names.
    fn fulfilled_by(&self, envelope: &str, to: &[&str]) -> Option<OperationId> {
        let fulfilled = self.proposals.of_fulfilment(envelope);
        if let [only] = fulfilled {
            return Some(*only);
        }
        for id in fulfilled {
            if let Some(proposal) = self.proposals.get(*id)
                && let Some(decided) = &proposal.decided
                && to.contains(&decided.by.as_str())
            {
                return Some(*id);
            }
        }
        None
    }
}
