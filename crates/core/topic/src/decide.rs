//! Decisions about proposals: the right to decide, and the two steps of every decision and every
//! end.

use std::sync::Arc;

use model::{Capabilities, KindRef, OperationId, ParticipantId, ProposalState};

use crate::{
    Handles, Topic,
    catalog::ClientName,
    effect::{Cause, Effect, ProposalChange, RefusedDecision},
    event::{Decision, Terms},
    expiry::{EXTENSION_MS, PROPOSAL_EXTENSIONS_MAX},
    members::Member,
    operations::State,
    proposals::{
        Approval, Decided, LastState, Phase, Proposal, Ruling, RulingForm, TermsChange, Unpublished,
    },
    refusals,
};

/// The names by which capabilities judge what is proposed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NamedBy {
    /// Servers' own, as in envelopes.
    Servers,
    /// Public ones, as MCP clients know them.
    Clients,
}

impl<H: Handles> Topic<H> {
    /// Takes a participant's decision, or refuses it.
    pub(crate) fn decide(&mut self, id: OperationId, ruling: Ruling<H>) {
        if let Err(cause) = self.may_decide(id, &ruling) {
            return self.refuse_ruling(id, ruling, cause);
        }
        match self.rest_of_plan(id, &ruling) {
            Some(step) => self.rule(step, ruling),
            None => self.settle_decision(id, ruling),
        }
    }

    /// Takes a decision of a participant that may decide, if the proposal is still open to it.
    fn settle_decision(&mut self, id: OperationId, ruling: Ruling<H>) {
        let Some(proposal) = self.proposals.get_mut(id) else {
            return self.refuse_ruling(id, ruling, Cause::Decided);
        };
        let is_awaited = match &proposal.phase {
            Phase::Opening => true,
            Phase::Deciding(before) => before.leaves_it_open(),
            Phase::Pending | Phase::Waiting | Phase::Due | Phase::Running | Phase::Ending(_) => {
                false
            }
        };
        if is_awaited {
            return self.queue_decision(id, ruling);
        }
        match self.is_decidable(id, &ruling) {
            Ok(()) => self.rule(id, ruling),
            Err(cause) => self.refuse_ruling(id, ruling, cause),
        }
    }

    /// Has a decision wait until the opening is on disk, or the change before it: it is judged then.
    /// One waits at a time. More time gives way to all others. Other arguments, and an approval where
    /// several are needed, end nothing: they give way to a rejection or withdrawal.
    fn queue_decision(&mut self, id: OperationId, ruling: Ruling<H>) {
        let Some(proposal) = self.proposals.get_mut(id) else {
            return;
        };
        let needs_several = proposal.terms.needs_several();
        let Some(first) = proposal.queued.take() else {
            proposal.queued = Some(Box::new(ruling));
            return;
        };
        let ends_nothing = first.change.is_some() || needs_several && first.approves.is_some();
        let ends_it = ruling.approves.is_none() && ruling.change.is_none();
        let gives_way = if first.is_extension() {
            !ruling.is_extension()
        } else {
            ends_nothing && ends_it
        };
        if gives_way {
            proposal.queued = Some(Box::new(ruling));
            let cause = if ends_it {
                Cause::Decided
            } else {
                Cause::Limit
            };
            self.refuse_ruling(id, *first, cause);
            return;
        }
        // The next one may count a moment later, if the first leaves the proposal open.
        let cause = if ends_nothing {
            Cause::Limit
        } else {
            Cause::Decided
        };
        proposal.queued = Some(first);
        self.refuse_ruling(id, ruling, cause);
    }

    /// Whether a proposal is still open to a decision: an approval must be about the request as it
    /// was proposed and as it is now, and the request must be one that can be carried out.
    fn is_decidable(&self, id: OperationId, ruling: &Ruling<H>) -> Result<(), Cause> {
        let proposal = self.proposals.get(id).ok_or(Cause::Decided)?;
        let terms = &proposal.terms;
        if !matches!(proposal.phase, Phase::Pending) {
            return Err(Cause::Decided);
        }
        if terms.is_over(self.now_ms, self.wall_ms) {
            return Err(Cause::Expired);
        }
        if ruling.is_extension() && terms.extensions >= PROPOSAL_EXTENSIONS_MAX {
            return Err(Cause::Extended);
        }
        if ruling.is_amendment() {
            return self.may_amend(proposal, ruling);
        }
        let Some(Approval { shown, current }) = ruling.approves else {
            return Ok(());
        };
        let mut steps = self.decided_with(proposal);
        if steps.any(|step| self.is_withheld(step)) {
            return Err(Cause::ToolChanged);
        }
        if shown != terms.digest {
            return Err(Cause::Differs);
        }
        if current != Some(terms.digest) {
            return Err(Cause::Redefined);
        }
        let mut steps = self.decided_with(proposal);
        if steps.any(|step| self.are_away(&step.terms, &ruling.named)) {
            return Err(Cause::Away);
        }
        self.may_count(proposal, ruling)
    }

    /// Whether a server has changed what is proposed, and callers do not get it.
    pub(crate) fn is_withheld(&self, proposal: &Proposal<H>) -> bool {
        let terms = &proposal.terms;
        let method = terms.method.as_str();
        let own_name = terms.context.as_deref();
        let mut to = terms.to.iter();
        to.any(|server| self.withholds(server, method, own_name))
    }

    /// Whether none of the participants that would carry out a proposal is there, and one may be
    /// back in a moment: an approval would be used up in vain. A configured server is waited for
    /// when it runs.
    pub(crate) fn are_away(&self, terms: &Terms, named: &[ParticipantId]) -> bool {
        let asked = if terms.to.is_empty() {
            named
        } else {
            &terms.to
        };
        let mut is_one_away = false;
        // The proposer may be named so that it gets the request.
        for one in asked.iter().filter(|one| **one != terms.by) {
            let is_server = self.catalog.index(one).is_some() && !self.serves(one);
            if is_server || self.is_here(one) {
                return false;
            }
            is_one_away |= self
                .departures
                .is_recent(one, self.now_ms, self.limits.away_ms);
        }
        is_one_away
    }

    /// Whether a participant is in the topic to answer in the room.
    pub(crate) fn is_here(&self, participant: &ParticipantId) -> bool {
        self.members
            .of_id(participant)
            .is_some_and(Member::is_caller)
    }

    /// Gives a decision to the journal. It counts once it is on disk: see [`Topic::written`].
    pub(crate) fn rule(&mut self, id: OperationId, mut ruling: Ruling<H>) {
        ruling.is_partial = self.is_partial(id, &ruling);
        ruling.beside = self.approvers_beside(id, &ruling);
        ruling.older_bytes = self.proposals.get(id).map_or(0, |one| one.terms.bytes);
        let Ruling {
            by,
            state,
            reason,
            handle,
            fulfilment,
            amended,
            change,
            is_partial,
            ..
        } = ruling.clone();
        self.proposals.turn(id, Phase::Deciding(Box::new(ruling)));
        let Some(proposal) = self.proposals.get_mut(id) else {
            return;
        };
        proposal.updated_ms = self.now_ms;
        let is_amended = amended.is_some();
        let older_bytes = proposal.terms.bytes;
        let bytes = amended.as_ref().map(|amended| amended.bytes);
        let content = match amended {
            Some(amended) => amended.content,
            None => proposal.content.clone(),
        };
        let record = match handle {
            Some(ruling) if is_partial => ProposalChange::Counted {
                by,
                amended: is_amended,
                ruling,
            },
            Some(ruling) if change == Some(TermsChange::Amendment) => {
                ProposalChange::Amended { by, ruling }
            }
            Some(ruling) if change == Some(TermsChange::Extension) => ProposalChange::Extended {
                by,
                expires_wall_ms: proposal.terms.expires_wall_ms.saturating_add(EXTENSION_MS),
                ruling,
            },
            handle => ProposalChange::Decided {
                by,
                state,
                reason,
                fulfilment,
                ruling: handle,
            },
        };
        if let Some(bytes) = bytes {
            // Both are there until one is on disk.
            self.proposals.book(id, bytes.max(older_bytes));
        }
        self.effects.push(Effect::Store {
            proposal: id,
            content,
            record: Box::new(record),
        });
    }

    /// Whether a participant may decide about a proposal at all.
    pub(crate) fn may_decide(&self, id: OperationId, ruling: &Ruling<H>) -> Result<(), Cause> {
        let proposal = self.proposals.known(id).ok_or(Cause::Unknown)?;
        let narrowing = ruling.narrowing.as_ref();
        let withdraws = ruling.state == ProposalState::Withdrawn;
        if proposal.terms.by == ruling.by {
            if !self.covers_proposal(narrowing, id) {
                return Err(Cause::NotAdmitted);
            }
            return if withdraws || ruling.is_amendment() {
                may_be_about(proposal, ruling)
            } else {
                Err(Cause::Own)
            };
        }
        if self.is_braked(&ruling.by) {
            return Err(Cause::Paused);
        }
        if withdraws || ruling.is_amendment() {
            return Err(Cause::NotAdmitted);
        }
        // Proposals that are over cannot be decided, and their targets may be gone.
        if proposal.over.is_some() {
            return Err(Cause::Decided);
        }
        let granted = self.granted_to(&ruling.by, ruling.outside.as_ref(), narrowing);
        let has_right = match ruling.form() {
            // It is the request itself, so the right to approve is not enough.
            RulingForm::Request => proposal.is_asked_for(&granted),
            RulingForm::Envelope => self.has_right_to_decide(&granted, proposal, NamedBy::Servers),
            RulingForm::Plain => self.has_right_to_decide(&granted, proposal, NamedBy::Clients),
        };
        if has_right {
            may_be_about(proposal, ruling)
        } else {
            Err(Cause::NotAdmitted)
        }
    }

    /// Whether a participant with these capabilities may decide about another one's proposal: it
    /// could make the request itself, or may approve it; of a plan, each of its steps. An envelope
    /// names what servers call it; a decision without one (API, command line, built-in tools), what
    /// clients call it.
    pub(crate) fn has_right_to_decide(
        &self,
        capabilities: &Capabilities,
        proposal: &Proposal<H>,
        by: NamedBy,
    ) -> bool {
        self.holds_of_all(proposal, |step| {
            self.has_right_to_one(capabilities, step, by)
        })
    }

    /// Whether it may decide about one request by itself.
    pub(crate) fn has_right_to_one(
        &self,
        capabilities: &Capabilities,
        proposal: &Proposal<H>,
        by: NamedBy,
    ) -> bool {
        let terms = &proposal.terms;
        if by == NamedBy::Servers || terms.to.is_empty() {
            return proposal.is_decidable_by(capabilities);
        }
        let own = terms.context.as_deref();
        terms.to.iter().all(|one| {
            let called = self.as_called(proposal, one);
            called.is_decidable(capabilities, terms.method.as_str(), own, one)
        })
    }

    /// Whether it may decide under one of the names at least.
    pub(crate) fn could_rule(&self, capabilities: &Capabilities, proposal: &Proposal<H>) -> bool {
        let mut names = [NamedBy::Servers, NamedBy::Clients].into_iter();
        names.any(|by| self.has_right_to_decide(capabilities, proposal, by))
    }

    /// Whether a participant with these capabilities could make the proposed request: as an
    /// envelope under the server's own name, or as a call under its public one.
    fn covers(&self, capabilities: &Capabilities, proposal: &Proposal<H>) -> bool {
        proposal.is_asked_for(capabilities) || self.covers_as_call(capabilities, proposal)
    }

    /// Whether it could make the proposed request as MCP clients name it: at each server under the
    /// public name, at other participants by the kind.
    fn covers_as_call(&self, capabilities: &Capabilities, proposal: &Proposal<H>) -> bool {
        if proposal.terms.to.is_empty() {
            return proposal.is_asked_for(capabilities);
        }
        let mut to = proposal.terms.to.iter();
        to.all(|one| self.admits_as_call(capabilities, proposal, one))
    }

    /// Whether these capabilities admit the proposed request to one of its addressees, as MCP
    /// clients name it.
    fn admits_as_call(
        &self,
        capabilities: &Capabilities,
        proposal: &Proposal<H>,
        to: &ParticipantId,
    ) -> bool {
        let method = proposal.terms.method.as_str();
        let own = proposal.terms.context.as_deref();
        self.as_called(proposal, to)
            .is_admitted(capabilities, method, own, to)
    }

    /// Whether a participant with these capabilities could decide about a request for an entry of
    /// one addressee, as [`Topic::may_see_proposal`] judges a proposal of it that is no longer kept.
    pub fn covers_request(
        &self,
        capabilities: &Capabilities,
        method: &str,
        target: &str,
        to: &ParticipantId,
    ) -> bool {
        let called = self.catalog.client_name(to, method, target);
        capabilities.admits_deciding(method, Some(target), &[to.as_str()])
            || called.is_decidable(capabilities, method, Some(target), to)
    }

    /// The public name or URI of what is proposed to a server.
    fn as_called(&self, proposal: &Proposal<H>, server: &ParticipantId) -> ClientName {
        let method = &proposal.terms.method;
        let own_name = proposal.terms.context.as_deref();
        if proposal.held {
            if let Some(public) = &proposal.public {
                return ClientName::Public(public.to_string());
            }
            // A held call without another spelling was made under this one.
            if method.facts().names_in().is_none()
                && let Some(uri) = own_name
            {
                return ClientName::Public(uri.to_owned());
            }
        }
        match own_name {
            Some(own_name) => self.catalog.client_name(server, method.as_str(), own_name),
            None => ClientName::None,
        }
    }

    /// Goes on with a proposal whose latest change is on disk, or undoes a change that the journal
    /// cannot write.
    pub(crate) fn written(&mut self, id: OperationId, stored: bool) {
        let Some(proposal) = self.proposals.get(id) else {
            return;
        };
        match proposal.phase.clone() {
            Phase::Opening if stored => self.opened(id),
            Phase::Opening => self.not_opened(id),
            Phase::Deciding(ruling) if stored && ruling.is_void => self.drop_void(id, *ruling),
            Phase::Deciding(ruling) if stored && ruling.is_partial => {
                self.count_approval(id, *ruling);
            }
            Phase::Deciding(ruling) if stored && ruling.is_extension() => {
                self.extended(id, *ruling);
            }
            Phase::Deciding(ruling) if stored && ruling.is_amendment() => {
                self.amended(id, *ruling);
            }
            Phase::Deciding(ruling) if stored && ruling.state == ProposalState::Running => {
                self.approved(id, *ruling);
            }
            // If the topic itself withdraws the proposal, it is over even if the journal fails.
            Phase::Deciding(ruling) if stored || ruling.handle.is_none() => {
                self.closed(id, *ruling, stored)
            }
            // Nothing more of a plan runs without a journal.
            Phase::Deciding(ruling) if proposal.terms.is_later_step() => {
                let why = refusals::of_decision(Cause::LogUnavailable).message;
                self.refuse_ruling(id, *ruling, Cause::LogUnavailable);
                self.ending(id, ProposalState::Withdrawn, Some(Arc::from(&*why)));
            }
            Phase::Deciding(ruling) => {
                self.proposals.turn(id, Phase::Pending);
                if ruling.amended.is_some() {
                    self.proposals.book(id, ruling.older_bytes);
                }
                self.refuse_ruling(id, *ruling, Cause::LogUnavailable);
                self.go_on_undecided(id);
            }
            // The proposal is over even if the journal fails. After a restart it is settled once
            // more, and never runs again.
            Phase::Ending(last) => self.end(id, last, stored),
            Phase::Pending | Phase::Waiting | Phase::Due | Phase::Running => {}
        }
    }

    /// Settles a rejection or withdrawal.
    fn closed(&mut self, id: OperationId, ruling: Ruling<H>, stored: bool) {
        let Ruling {
            by,
            state,
            reason,
            handle,
            unpublished,
            ..
        } = ruling;
        if let Some(envelope) = unpublished {
            let Unpublished {
                message,
                bytes,
                audience,
            } = *envelope;
            self.publish(message, bytes, audience);
        }
        if let Some(proposal) = self.proposals.get_mut(id) {
            proposal.decided = Some(Decided {
                by,
                ruling: handle.clone(),
            });
        }
        self.end(id, LastState { state, reason }, stored);
        self.effects.extend_ruled(handle);
    }

    /// Ends a proposal with the end of the operation that carries it out, or because no operation
    /// can.
    pub(crate) fn conclude(
        &mut self,
        id: OperationId,
        state: ProposalState,
        reason: Option<Arc<str>>,
    ) {
        if self.proposals.get(id).is_some_and(Proposal::is_running) {
            self.ending(id, state, reason);
        }
    }

    /// Ends a proposal that runs as failed.
    pub(crate) fn fail(&mut self, id: OperationId, why: &str) {
        self.conclude(id, ProposalState::Failed, Some(why.into()));
    }

    /// Ends proposals whose time has run out: pending ones expire, and those that wait for an
    /// answer in the room fail.
    pub(crate) fn expire_due(&mut self) {
        while let Some(id) = self.proposals.due(self.now_ms, self.wall_ms) {
            if self.proposals.get(id).is_some_and(Proposal::is_running) {
                self.fail(id, "there was no answer");
            } else {
                self.ending(id, ProposalState::Expired, None);
            }
        }
    }

    /// Gives the end of a proposal to the journal. It is over once that is on disk: see
    /// [`Topic::written`].
    pub(crate) fn ending(
        &mut self,
        id: OperationId,
        state: ProposalState,
        reason: Option<Arc<str>>,
    ) {
        let last = LastState {
            state,
            reason: reason.clone(),
        };
        self.proposals.turn(id, Phase::Ending(last));
        let Some(proposal) = self.proposals.get(id) else {
            return;
        };
        let record = ProposalChange::Ended {
            state,
            reason,
            answer: proposal.answer.clone(),
        };
        self.effects.push(Effect::Store {
            proposal: id,
            content: proposal.content.clone(),
            record: Box::new(record),
        });
    }

    /// Ends a proposal, and reports its outcome to the callers that wait for it. The proposer's own
    /// requests run only if the end is on disk: otherwise the proposal would be pending again after
    /// a restart, and could run too.
    fn end(&mut self, id: OperationId, last: LastState, stored: bool) {
        let onward = self.onward(id, &last, stored);
        let Some(proposal) = self.proposals.get_mut(id) else {
            return;
        };
        let call = proposal.call.take();
        let waiting = std::mem::take(&mut proposal.waiting);
        let deferred = std::mem::take(&mut proposal.deferred);
        proposal.end_lost = !stored;
        self.proposals.end(id, last, self.now_ms);
        self.claims.drop_on(id);
        let Some(view) = self.view_of(id) else { return };
        self.effects.push(Effect::Concluded { proposal: view });
        if let Some(call) = call {
            self.end_behind(id, call);
        }
        for operation in waiting {
            self.report(operation, id);
        }
        for requests in deferred {
            if stored {
                self.run_deferred(requests)
            } else {
                self.refuse_room(requests, Cause::LogUnavailable)
            }
        }
        self.go_onward(onward);
    }

    /// Ends the call behind a proposal that is over: its caller gets the outcome, if it still waits
    /// for that. A call that a server has ends by itself.
    fn end_behind(&mut self, proposal: OperationId, call: OperationId) {
        let Some(open) = self.operations.get(call) else {
            return;
        };
        match open.state {
            State::Held { .. } => self.report(call, proposal),
            // Its caller was answered for now, and asks for the outcome when it comes back.
            State::Parked { .. } => {
                self.operations.remove(call);
            }
            State::Delivered { .. } | State::Paused { .. } | State::Kept => {}
            State::Waiting { .. } | State::Asked { .. } => {}
        }
    }

    /// Withdraws a proposal whose proposer is gone, or whose held call. An approved one goes on.
    pub(crate) fn recall(&mut self, id: OperationId, reason: Arc<str>) {
        let Some(proposal) = self.proposals.get_mut(id) else {
            return;
        };
        let is_later_step = proposal.terms.is_later_step();
        if is_later_step && matches!(proposal.phase, Phase::Opening | Phase::Waiting | Phase::Due) {
            return self.recall_step(id, reason);
        }
        match proposal.phase {
            Phase::Pending => {
                let withdrawal = Decision::Withdraw {
                    reason: Some(&reason),
                };
                let ruling = Ruling::new(proposal.terms.by.clone(), withdrawal, None);
                self.rule(id, ruling);
            }
            // Not before the change that is being written is on disk.
            Phase::Opening | Phase::Deciding(_) => proposal.recalled = Some(reason),
            Phase::Waiting | Phase::Due | Phase::Running | Phase::Ending(_) => {}
        }
    }

    /// Withdraws the proposals that a participant may no longer make: all, if it has no access to
    /// the topic.
    pub(crate) fn recall_of(&mut self, by: &ParticipantId, capabilities: Option<&Capabilities>) {
        for id in self.proposals.of(by) {
            let Some(proposal) = self.proposals.get(id) else {
                continue;
            };
            let why = match capabilities {
                None => "its proposer may not be here any more",
                Some(granted) if !self.may_still(granted, proposal) => {
                    "its proposer may not propose it any more"
                }
                Some(_) => continue,
            };
            self.recall(id, why.into());
        }
    }

    /// Whether a participant with these capabilities could still make the proposal.
    pub(crate) fn may_still(&self, capabilities: &Capabilities, proposal: &Proposal<H>) -> bool {
        let method = proposal.terms.method.as_str();
        let context = proposal.terms.context.as_deref();
        let by_envelope = KindRef::proposal(method, context)
            .is_ok_and(|kind| capabilities.admits(kind, &proposal.addressees()));
        by_envelope
            || self.may_propose_as_call(capabilities, proposal)
            || self.covers(capabilities, proposal)
    }

    /// Whether these capabilities admit the proposal as a call that is held, under its public name
    /// at its one server.
    fn may_propose_as_call(&self, capabilities: &Capabilities, proposal: &Proposal<H>) -> bool {
        let [server] = &*proposal.terms.to else {
            return false;
        };
        let ClientName::Public(public) = self.as_called(proposal, server) else {
            return false;
        };
        KindRef::proposal(proposal.terms.method.as_str(), Some(&public))
            .is_ok_and(|kind| capabilities.admits(kind, &[server.as_str()]))
    }

    /// Refuses a decision, and the calls that came with it.
    pub(crate) fn refuse_ruling(&mut self, proposal: OperationId, ruling: Ruling<H>, cause: Cause) {
        let Ruling {
            by,
            handle,
            requested,
            ..
        } = ruling;
        let plan = self.plan_of(proposal).filter(|_| cause == Cause::LaterStep);
        let refusal = plan.map_or_else(|| refusals::of_decision(cause), refusals::of_later_step);
        let mut answered = false;
        if let Some(requested) = requested {
            answered = !requested.calls.is_empty();
            for call in requested.calls {
                self.refuse(call.call, refusal.clone(), cause);
            }
        }
        if let Some(ruling) = handle {
            let known = self.proposals.known(proposal);
            let refused = RefusedDecision {
                proposal,
                content: known.map(|known| known.content.clone()),
                by,
                ruling,
                answered,
                refusal,
                cause,
            };
            self.effects.push(Effect::RefuseDecision(refused));
        }
    }
}

/// Whether a decision of a participant that has the right to it can be about a proposal: a plan is
/// decided about by its first step, and as it is.
fn may_be_about<H: Handles>(proposal: &Proposal<H>, ruling: &Ruling<H>) -> Result<(), Cause> {
    let terms = &proposal.terms;
    if terms.is_later_step() {
        return Err(Cause::LaterStep);
    }
    let is_other_request = ruling.amended.is_some() || ruling.is_amendment();
    if terms.plan.is_some() && (ruling.requested.is_some() || is_other_request) {
        return Err(Cause::WholePlan);
    }
    Ok(())
}
