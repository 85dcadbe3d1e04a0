//! Execution of approved proposals, once each, and recognition of their outcomes.

use std::sync::Arc;

use model::{DeliveryMode, KindRef, LinkId, OperationId, Outcome, ParticipantId, ProposalState};

use crate::{
    Handles, Topic,
    admission::{admits_kind, judge_kind},
    catalog::Overrides,
    effect::{Cause, Effect},
    event::PublicTarget,
    members::{Member, Seat},
    operations::{Handle, Operation, State},
    proposals::{Phase, Proposal, RoomCall, RoomRequests, Ruling, Unpublished},
    refusals,
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
            handle,
            fulfilment,
            mut requested,
            named,
            ..
        } = ruling;
        proposal.decided = Some((by, handle.clone()));
        proposal.updated_ms = self.now_ms;
        let call = proposal.call;
        let to = proposal.terms.to.clone();
        let held = proposal.held;
        self.proposals.fulfil(id, fulfilment);
        self.proposals.turn(id, Phase::Running);
        if let Some(requests) = &mut requested {
            self.publish_kept(requests);
        }
        let servers = match (call, &requested) {
            (None, None) => self.carried_out_by(&to, held),
            (Some(_), _) | (None, Some(_)) => Vec::new(),
        };
        let in_room = call.is_none() && servers.is_empty();
        if let Some(view) = self.view_of(id) {
            self.effects.push(Effect::Approved {
                proposal: view,
                servers,
            });
        }
        self.effects.extend_ruled(handle);
        match (call, requested) {
            // The held call runs, and its answer reaches the caller and the proposal.
            (Some(call), requested) => {
                let calls = requested
                    .map(|requested| requested.calls)
                    .unwrap_or_default();
                self.effects
                    .all
                    .extend(calls.into_iter().map(|(.., call)| Effect::Drop { call }));
                self.release(id, call);
            }
            (None, Some(requests)) => self.run_requests(requests, Some(id)),
            (None, None) => {}
        }
        let carried_out = self
            .proposals
            .get(id)
            .is_some_and(|proposal| proposal.call.is_some());
        if in_room && !carried_out {
            self.await_answer(id, named);
        }
        self.fail_unanswerable(id, "not in the topic: it was not carried out");
    }

    /// Waits for the answer of a participant in the room: of those that the proposal names, else of
    /// those that the request names.
    fn await_answer(&mut self, id: OperationId, named: Box<[ParticipantId]>) {
        let Some(Proposal { terms, .. }) = self.proposals.get(id).filter(|own| own.is_running())
        else {
            return;
        };
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
    fn hears_all(&self, participant: &ParticipantId) -> bool {
        let listener = self
            .listener(participant)
            .and_then(|link| self.members.link(link)?.listener);
        listener.is_some_and(|listener| listener.mode == DeliveryMode::All)
    }

    /// Fails a running proposal if none of the participants that were asked to carry it out in the
    /// room is there to answer.
    fn fail_unanswerable(&mut self, id: OperationId, why: &str) {
        let Some(asked) = self.proposals.get(id).map(|own| &*own.asked) else {
            return;
        };
        let is_here = |one: &ParticipantId| self.members.of_id(one).is_some_and(Member::is_caller);
        if asked.is_empty() || asked.iter().any(is_here) {
            return;
        }
        let names: Vec<&str> = asked.iter().map(ParticipantId::as_str).collect();
        let reason = match names.as_slice() {
            [one] => format!("{one} is {why}"),
            several => format!("none of {} is {why}", several.join(", ")),
        };
        self.conclude(id, ProposalState::Failed, Some(reason.into()));
    }

    /// The servers at which the gateway carries out a proposal. A participant that serves gets the
    /// request in the room, unless a call was held for it.
    fn carried_out_by(&self, to: &[ParticipantId], held: bool) -> Vec<ParticipantId> {
        let serves_here = |id: &&ParticipantId| {
            let names = self.catalog.names_of(id);
            names.is_some_and(|names| !names.builtin && (held || !names.serves))
        };
        to.iter().filter(serves_here).cloned().collect()
    }

    /// Carries out requests in the room: the fulfilment of `proposal`, or what its sender may
    /// request itself.
    pub(crate) fn run_requests(
        &mut self,
        mut requests: RoomRequests<H>,
        proposal: Option<OperationId>,
    ) {
        self.publish_kept(&mut requests);
        for call in std::mem::take(&mut requests.calls) {
            self.run(&requests, call, proposal);
        }
    }

    /// Publishes the envelope of a request that names a proposal: participants may carry it out
    /// from now on.
    fn publish_kept(&mut self, requests: &mut RoomRequests<H>) {
        if let Some(kept) = requests.unpublished.take() {
            self.publish(kept.message, kept.bytes, kept.audience);
        }
    }

    /// Carries out the requests of a proposer that waited for the withdrawal of its own proposal,
    /// if it still may make them.
    pub(crate) fn run_deferred(&mut self, mut requests: RoomRequests<H>) {
        let granted = self
            .members
            .linked(requests.link)
            .map(|(own, member)| own.granted(member, requests.narrowing.as_ref()));
        let method = requests.method.as_str();
        let context = requests.context.as_deref();
        let may = |server: &ParticipantId| {
            granted
                .as_ref()
                .is_none_or(|granted| admits_kind(granted, method, context, server.as_str()))
        };
        let (calls, withdrawn) = requests.calls.into_iter().partition(|(to, ..)| may(to));
        requests.calls = calls;
        let may_all = |kept: &mut Unpublished<H>| {
            let to: Vec<&str> = kept.audience.to.iter().map(|to| &**to).collect();
            let kind = KindRef::request(method, context).ok();
            granted
                .as_ref()
                .zip(kind)
                .is_some_and(|(granted, kind)| judge_kind(granted, kind, &to).is_ok())
        };
        let unpublished = requests.unpublished.take_if(|kept| !may_all(kept));
        let refused = RoomRequests {
            calls: withdrawn,
            unpublished,
            ..requests.clone()
        };
        self.refuse_room(refused, Cause::Withdrawn);
        self.run_requests(requests, None);
    }

    /// Carries out an approved proposal at a server, in the gateway's own name.
    pub(crate) fn execute(
        &mut self,
        proposal: OperationId,
        operation: OperationId,
        server: &ParticipantId,
        call: H::Call,
    ) {
        // A participant that answers in the room may have begun already.
        let Some(own) = self
            .proposals
            .get(proposal)
            .filter(|own| own.run_until_ms.is_none())
        else {
            return self.refuse_plainly(call, Cause::Moot);
        };
        let method = own.terms.method.clone();
        let context = own.terms.context.clone();
        let Some(link) = self.gateway_seat().and_then(|seat| self.server_link(seat)) else {
            self.refuse_plainly(call, Cause::UpstreamDown);
            return self.not_carried_out(proposal, Cause::UpstreamDown);
        };
        let calls = vec![(server.clone(), operation, call)];
        let tag = None;
        let unpublished = None;
        self.run_requests(
            RoomRequests {
                link,
                narrowing: None,
                tag,
                method,
                context,
                calls,
                unpublished,
            },
            Some(proposal),
        );
    }

    /// Delivers one call of a request that was admitted as an envelope, or by an approval.
    fn run(
        &mut self,
        requests: &RoomRequests<H>,
        call: RoomCall<H>,
        proposal: Option<OperationId>,
    ) {
        let (server, operation, call) = call;
        if self.operations.contains(operation) {
            return;
        }
        if let Some(proposal) = proposal
            && let Err(cause) = self.may_carry_out(proposal, &server, requests)
        {
            return self.refuse_plainly(call, cause);
        }
        let RoomRequests {
            tag,
            method,
            context,
            ..
        } = requests;
        let link = self.link_of(requests.link, proposal);
        let named = context.as_deref();
        if let Some(own) = named.filter(|own| !self.catalog.offers(&server, method.as_str(), own)) {
            let refusal = refusals::of_request(Cause::Unknown, Some(PublicTarget::Tool(own)));
            self.refuse(call, refusal, Cause::Unknown);
            if let Some(proposal) = proposal {
                self.not_carried_out(proposal, Cause::Unknown);
            }
            return;
        }
        let withheld = self.withholds(&server, method.as_str(), context.as_deref());
        let seat = match self.room_for(link, &server).and_then(|seat| {
            if withheld {
                Err(Cause::ToolChanged)
            } else {
                Ok(seat)
            }
        }) {
            Ok(seat) => seat,
            Err(cause) => {
                self.refuse_plainly(call, cause);
                if let Some(proposal) = proposal {
                    self.not_carried_out(proposal, cause);
                }
                return;
            }
        };
        if let Some(own) = proposal.and_then(|proposal| self.proposals.get_mut(proposal)) {
            own.call = Some(operation);
        }
        let state = State::Delivered { proposal };
        let opened = Operation::new(state, link, seat, method.clone(), Handle::Call(call));
        let context = context.clone();
        let tag = tag.clone();
        self.open(
            operation,
            Operation {
                context,
                tag,
                in_room: true,
                ..opened
            },
        );
        self.hand_over(operation);
    }

    /// The link that opens the call of a request in the room: its sender's; the gateway's own, if
    /// it carries out a proposal and its sender has left since it approved.
    fn link_of(&self, sender: LinkId, proposal: Option<OperationId>) -> LinkId {
        let is_here = self.members.link(sender).is_some();
        let own = || self.gateway_seat().and_then(|seat| self.server_link(seat));
        proposal
            .filter(|_| !is_here)
            .and_then(|_| own())
            .unwrap_or(sender)
    }

    /// Whether a server's entry, by its own name, is withheld from all callers.
    pub(crate) fn withholds(
        &self,
        server: &ParticipantId,
        method: &str,
        own: Option<&str>,
    ) -> bool {
        let index = self.catalog.index(server);
        let place = index.zip(own);
        place.is_some_and(|(index, own)| {
            self.catalog
                .withholds(&Overrides::default(), index, method, own)
        })
    }

    /// Ends an approved proposal that no operation carries out as failed, for this reason.
    fn not_carried_out(&mut self, proposal: OperationId, cause: Cause) {
        if self
            .proposals
            .get(proposal)
            .is_some_and(|own| own.call.is_none())
        {
            let reason = refusals::plain(cause).message;
            self.conclude(proposal, ProposalState::Failed, Some((&*reason).into()));
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
        let own = self.proposals.get(proposal).ok_or(Cause::Moot)?;
        let same = requests.asks_for(own);
        let meant = own.terms.to.is_empty() || own.terms.to.contains(server);
        if own.is_running() && own.call.is_none() && same && meant {
            Ok(())
        } else {
            Err(Cause::Moot)
        }
    }

    /// The seat of a server, if this link may open one more operation there.
    fn room_for(&self, link: LinkId, server: &ParticipantId) -> Result<Seat, Cause> {
        self.members.linked(link).ok_or(Cause::Moot)?;
        if !self.has_place(link) {
            return Err(Cause::Limit);
        }
        self.seat_at(self.catalog.index(server).ok_or(Cause::Unknown)?)
            .ok_or(Cause::UpstreamDown)
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
        let proposal = proposal?;
        let own = self.proposals.get_mut(proposal)?;
        if own.is_running() {
            own.answer = Some(answer.clone());
        }
        Some(proposal)
    }

    /// Takes an answer in the room: the outcome of a proposal, if it answers the envelope that
    /// fulfils one. Two participants may use one id; then the answer is for the participant that it
    /// names.
    pub(crate) fn answered_in_room(
        &mut self,
        from: &ParticipantId,
        kind: KindRef<'_>,
        to: &[&str],
        correlation: &str,
        (outcome, answer, message): (Outcome, H::Answer, H::Message),
    ) {
        let hears = |proposer: &ParticipantId| to.is_empty() || self.hears_all(proposer);
        let is_named = |id: &&OperationId| {
            let decided = self
                .proposals
                .get(**id)
                .and_then(|own| own.decided.as_ref());
            decided.is_some_and(|(by, _)| to.contains(&by.as_str()))
        };
        let meant = match self.proposals.of_fulfilment(correlation) {
            [only] => Some(only),
            several => several.iter().find(is_named),
        };
        let Some(id) = meant.copied() else { return };
        // A server carries out a held call, and its answer counts.
        let fits =
            |own: &&Proposal<H>| own.is_running() && !own.held && own.is_answered_by(from, kind);
        let Some(proposal) = self.proposals.get(id).filter(fits) else {
            return;
        };
        let proposer = proposal.terms.by.clone();
        // The responder may have left the proposer out (MCPx v0.1, section 3.2.1), which may hear
        // everything all the same.
        if !to.contains(&proposer.as_str()) && !hears(&proposer) {
            self.effects.push(Effect::Relay {
                message,
                to: proposer,
            });
        }
        if let Some(proposal) = self.proposals.get_mut(id) {
            proposal.answer = Some(answer);
        }
        let (state, reason) = match outcome {
            Outcome::Ok => (ProposalState::Completed, None),
            Outcome::Error | Outcome::Refused | Outcome::Cancelled => (
                ProposalState::Failed,
                Some(Arc::from("it was answered with an error")),
            ),
        };
        self.conclude(id, state, reason);
    }
}
