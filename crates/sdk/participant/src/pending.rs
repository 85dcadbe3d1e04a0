//! Pending requests and proposals of a participant, and the envelopes that may answer them.
//!
//! An answer counts only when its sender is in the request's `to`, its JSON-RPC id is the request's
//! and its kind fits.

use std::collections::{HashMap, VecDeque};

use model::{GATEWAY, KindRef, ProposalState};
use tokio::sync::{mpsc, oneshot};
use wire::mcpx::check::{Act, answer_to, answers, strict};
use wire::mcpx::system::SystemError;
use wire::mcpx::{Envelope, Head};
use wire::rpc::{Id, Message};

use crate::error::CallError;

/// Requests and proposals that may be pending at one time.
pub const PENDING_MAX: usize = 1024;
/// Fulfilments of one proposal whose answers are followed.
const FULFILMENTS_MAX: usize = 16;
/// Answers that came before the report which request they answer, and are kept.
const UNPLACED_MAX: usize = 64;
/// Updates of one proposal that may wait to be read.
const UPDATES_MAX: usize = 16;

/// The outcome that the caller of a pending request gets.
pub(crate) type RequestOutcome = Result<Message, CallError>;

/// A request that was sent.
#[derive(Debug)]
pub(crate) struct PendingRequest {
    /// The participants that may answer.
    pub(crate) to: Vec<String>,
    /// Its kind, with context.
    pub(crate) kind: String,
    /// Its JSON-RPC id.
    pub(crate) rpc_id: Id,
    /// The receiver of its outcome.
    pub(crate) outcome: oneshot::Sender<RequestOutcome>,
}

/// An update of a pending proposal.
#[derive(Debug)]
pub(crate) enum ProposalUpdate {
    /// The answer to its fulfilment.
    Answer(Box<Message>),
    /// Its state, as the gateway reports it, with the reason.
    State(ProposalState, Option<String>),
    /// The gateway refused it.
    Refused(SystemError),
}

/// A proposal that was sent.
#[derive(Debug)]
struct PendingProposal {
    to: Vec<String>,
    /// The kind of the request that fulfils it.
    kind: String,
    /// The requests that may fulfil it, by envelope id.
    fulfilments: HashMap<String, Fulfilment>,
    /// The participant whose approval counted, once the gateway has reported it.
    approved_by: Option<String>,
    /// The request whose approval counted, once the gateway has reported it.
    fulfilment: Option<String>,
    /// Answers that came before that report.
    early: Vec<EarlyAnswer>,
    updates: mpsc::Sender<ProposalUpdate>,
}

/// An answer that came before the report whose approval counted.
#[derive(Debug)]
struct EarlyAnswer {
    /// The request that it answers.
    request: String,
    /// That one's sender, if it is known.
    by: Option<String>,
    message: Message,
}

/// The state of a proposal, as the gateway reports it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StateReport<'r> {
    pub(crate) state: ProposalState,
    /// The participant that decided.
    pub(crate) by: Option<&'r str>,
    pub(crate) reason: Option<&'r str>,
    /// The request that fulfils it.
    pub(crate) fulfilment: Option<&'r str>,
}

/// A request that may fulfil a proposal.
#[derive(Debug)]
struct Fulfilment {
    by: String,
    to: Vec<String>,
}

impl PendingProposal {
    /// Records the gateway's report that the approval of the participant `by` counted, and passes
    /// on the answers that waited for it.
    fn approved(&mut self, by: &str, fulfilment: Option<&str>) {
        self.approved_by = Some(by.to_owned());
        self.fulfilment = fulfilment.map(str::to_owned).or(self.fulfilment.take());
        for EarlyAnswer {
            request,
            by,
            message,
        } in std::mem::take(&mut self.early)
        {
            if self.is_answered_by(&request, by.as_deref()) {
                self.answered(message);
            }
        }
    }

    /// Whether the answer to this request is the outcome; `fulfiller` sent the request, if that is
    /// known.
    fn is_answered_by(&self, request: &str, fulfiller: Option<&str>) -> bool {
        match &self.fulfilment {
            Some(fulfilment) => request == fulfilment,
            None => {
                fulfiller.is_none_or(|fulfiller| Some(fulfiller) == self.approved_by.as_deref())
            }
        }
    }

    fn answered(&self, answer: Message) {
        let _ = self
            .updates
            .try_send(ProposalUpdate::Answer(Box::new(answer)));
    }
}

/// The relation of a response to the pending requests.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Match {
    /// It answered a pending request or proposal.
    Delivered,
    /// It answers nothing that is pending here.
    None,
    /// It names something that is pending, but violates the protocol.
    Violation(String),
}

/// Part of the topic's envelopes that this participant receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct View {
    /// It may not receive every fulfilment. The gateway's report names the one that counts; without
    /// reports, a response that names the participant and fits exactly one proposal answers that
    /// proposal.
    pub(crate) misses_fulfilments: bool,
    /// The gateway reports whose approval of a proposal counts: an answer to another participant's
    /// request is no outcome.
    pub(crate) reports_approvals: bool,
}

/// Everything that is pending.
#[derive(Debug, Default)]
pub(crate) struct PendingCalls {
    requests: HashMap<String, PendingRequest>,
    proposals: HashMap<String, PendingProposal>,
    /// Answers to requests that this participant has not received, oldest first.
    unplaced: VecDeque<Envelope>,
}

impl PendingCalls {
    /// Adds a request, before it is sent.
    pub(crate) fn add_request(
        &mut self,
        id: &str,
        request: PendingRequest,
    ) -> Result<(), CallError> {
        self.check_limit()?;
        self.requests.insert(id.to_owned(), request);
        Ok(())
    }

    /// Adds a proposal, before it is sent.
    pub(crate) fn add_proposal(
        &mut self,
        id: &str,
        to: Vec<String>,
        kind: String,
    ) -> Result<mpsc::Receiver<ProposalUpdate>, CallError> {
        self.check_limit()?;
        let (updates, receiver) = mpsc::channel(UPDATES_MAX);
        let (fulfilments, approved_by, fulfilment, early) = <_>::default();
        let proposal = PendingProposal {
            to,
            kind,
            fulfilments,
            approved_by,
            fulfilment,
            early,
            updates,
        };
        self.proposals.insert(id.to_owned(), proposal);
        Ok(receiver)
    }

    fn check_limit(&self) -> Result<(), CallError> {
        if self.requests.len() + self.proposals.len() < PENDING_MAX {
            Ok(())
        } else {
            Err(CallError::Busy)
        }
    }

    /// Removes a request or a proposal whose caller gave up or has its outcome.
    pub(crate) fn remove(&mut self, id: &str) {
        self.requests.remove(id);
        self.proposals.remove(id);
    }

    /// Fails every request, because the connection broke. Proposals stay pending; the gateway keeps
    /// them.
    pub(crate) fn fail_requests(&mut self) {
        for (_, request) in self.requests.drain() {
            let _ = request.outcome.send(Err(CallError::Lost));
        }
    }

    /// Delivers an error of the gateway about this envelope. Returns the error when the envelope is
    /// not pending.
    pub(crate) fn refuse(
        &mut self,
        envelope_id: Option<&str>,
        error: SystemError,
    ) -> Option<SystemError> {
        let Some(id) = envelope_id else {
            return Some(error);
        };
        if let Some(request) = self.requests.remove(id) {
            let _ = request.outcome.send(Err(CallError::Refused(error)));
            return None;
        }
        match self.proposals.get(id) {
            Some(proposal) => {
                let _ = proposal.updates.try_send(ProposalUpdate::Refused(error));
                None
            }
            None => Some(error),
        }
    }

    /// Delivers the state of a proposal, and the answers to the request that fulfils it which came
    /// before.
    pub(crate) fn update_state(
        &mut self,
        proposal: &str,
        report: StateReport<'_>,
        me: &str,
        view: View,
    ) {
        use ProposalState::{Completed, Failed, Running};
        let StateReport {
            state,
            by,
            reason,
            fulfilment,
        } = report;
        let Some(proposal) = self.proposals.get_mut(proposal) else {
            return;
        };
        if let Some(by) = by.filter(|_| matches!(state, Running | Completed | Failed)) {
            proposal.approved(by, fulfilment);
        }
        let _ = proposal
            .updates
            .try_send(ProposalUpdate::State(state, reason.map(str::to_owned)));
        let Some(fulfilment) = fulfilment else { return };
        let is_placed = |answer: &Envelope| answer.correlation_id() == Some(fulfilment);
        let (placed, unplaced): (VecDeque<Envelope>, _) = std::mem::take(&mut self.unplaced)
            .into_iter()
            .partition(is_placed);
        self.unplaced = unplaced;
        for answer in &placed {
            // One that violates the protocol was forwarded as any other when it came.
            let _ = self.deliver(answer, me, view);
        }
    }

    /// Adds a request that names a pending proposal to the proposal's fulfilments, if it is the
    /// proposed call, of another participant than `me`, and to the proposed participants. `Err`
    /// when its kind and payload disagree. Does nothing with any other request.
    pub(crate) fn add_fulfilment(&mut self, request: &Envelope, me: &str) -> Result<(), String> {
        let proposal = request
            .correlation_id()
            .and_then(|id| self.proposals.get_mut(id));
        let Some(proposal) = proposal else {
            return Ok(());
        };
        let act = strict(request.kind(), request.payload_bytes()).map_err(|why| why.to_string())?;
        let Act::Request(call) = act else {
            return Ok(());
        };
        let is_same_call = call.kind(Head::Request).as_ref() == Ok(&proposal.kind);
        let to: Vec<String> = request.to().map(str::to_owned).collect();
        // It may name the proposer too, so that the proposer gets it.
        let is_proposed =
            |one: &String| proposal.to.is_empty() || proposal.to.contains(one) || one == me;
        let is_addressed = !to.is_empty()
            && to.iter().all(is_proposed)
            && proposal.to.iter().all(|proposed| to.contains(proposed));
        let is_others = request.from() != me;
        if is_same_call && is_addressed && is_others && proposal.fulfilments.len() < FULFILMENTS_MAX
        {
            let by = request.from().to_owned();
            proposal
                .fulfilments
                .insert(request.id().to_owned(), Fulfilment { by, to });
        }
        Ok(())
    }

    /// Delivers a response to the participant `me`.
    pub(crate) fn deliver(&mut self, response: &Envelope, me: &str, view: View) -> Match {
        let Some(request_id) = response.correlation_id() else {
            return Match::None;
        };
        if self.requests.contains_key(request_id) {
            return self.answer_request(request_id, response, me);
        }
        let fulfils = |(_, proposal): &(&String, &PendingProposal)| {
            proposal.fulfilment.as_deref() == Some(request_id)
        };
        let may_fulfil = |(_, proposal): &(&String, &PendingProposal)| {
            proposal.fulfilments.contains_key(request_id)
        };
        let known = self
            .proposals
            .iter()
            .find(fulfils)
            .or_else(|| self.proposals.iter().find(may_fulfil));
        let id = match known.map(|(id, _)| id.clone()) {
            None if view.misses_fulfilments && response.to().any(|to| to == me) => {
                match (self.fitting(response).as_slice(), view.reports_approvals) {
                    ([], _) => None,
                    // The report that a proposal runs names the request which fulfils it.
                    (_, true) => {
                        self.keep_unplaced(response.clone());
                        None
                    }
                    ([only], false) => Some(only.clone()),
                    (_, false) => None,
                }
            }
            known => known,
        };
        let Some(proposal) = id.and_then(|id| self.proposals.get_mut(&id)) else {
            return Match::None;
        };
        let fulfilment = proposal.fulfilments.get(request_id);
        let may_answer = fulfilment.map_or(&proposal.to, |fulfilment| &fulfilment.to);
        // The gateway may repeat an answer that left the proposer out; any participant may answer
        // what names none.
        let is_asked = may_answer.is_empty() || may_answer.iter().any(|one| one == response.from());
        if response.from() != GATEWAY && !is_asked {
            return Match::Violation("it answers a request to others".to_owned());
        }
        match answer_to(&proposal.kind, response) {
            Ok(message) => {
                let by = fulfilment.map(|fulfilment| fulfilment.by.clone());
                match &proposal.approved_by {
                    // The request was no approval, whatever its receiver has made of it.
                    Some(_) if !proposal.is_answered_by(request_id, by.as_deref()) => {
                        return Match::None;
                    }
                    None if view.reports_approvals => {
                        if proposal.early.len() < FULFILMENTS_MAX {
                            proposal.early.push(EarlyAnswer {
                                request: request_id.to_owned(),
                                by,
                                message,
                            });
                        }
                    }
                    _ => proposal.answered(message),
                }
                Match::Delivered
            }
            Err(why) => Match::Violation(why.to_string()),
        }
    }

    fn answer_request(&mut self, id: &str, response: &Envelope, me: &str) -> Match {
        let Some(request) = self.requests.get(id) else {
            return Match::None;
        };
        if !request.to.iter().any(|one| one == response.from()) {
            return Match::Violation("it answers a request to others".to_owned());
        }
        if !response.is_broadcast() && !response.to().any(|to| to == me) {
            return Match::Violation(
                "it answers a request but does not name the requester".to_owned(),
            );
        }
        let message = match answer_to(&request.kind, response) {
            Ok(message) => message,
            Err(why) => return Match::Violation(why.to_string()),
        };
        // An error may lack an id, when the request's could not be read.
        if message.id().is_some_and(|id| *id != request.rpc_id)
            || (message.id().is_none() && message.error().is_none())
        {
            return Match::Violation("its payload answers another JSON-RPC id".to_owned());
        }
        if let Some(request) = self.requests.remove(id) {
            let _ = request.outcome.send(Ok(message));
        }
        Match::Delivered
    }

    /// The ids of the proposals that this response may answer, by its sender and its kind.
    fn fitting(&self, response: &Envelope) -> Vec<String> {
        let Ok(kind) = KindRef::parse(response.kind()) else {
            return Vec::new();
        };
        let fits = |proposal: &PendingProposal| {
            let is_asked =
                proposal.to.is_empty() || proposal.to.iter().any(|one| one == response.from());
            (response.from() == GATEWAY || is_asked)
                && KindRef::parse(&proposal.kind).is_ok_and(|request| answers(kind, request))
        };
        self.proposals
            .iter()
            .filter(|(_, proposal)| fits(proposal))
            .map(|(id, _)| id.clone())
            .collect()
    }

    fn keep_unplaced(&mut self, answer: Envelope) {
        if self.unplaced.len() >= UNPLACED_MAX {
            self.unplaced.pop_front();
        }
        self.unplaced.push_back(answer);
    }
}
