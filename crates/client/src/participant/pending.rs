//! Pending requests and proposals of a participant, and the envelopes that may answer them.
//!
//! An answer counts only when its sender is in the request's `to`, its JSON-RPC id is the request's and its kind fits.

use std::collections::HashMap;

use model::{GATEWAY, KindRef, ProposalState};
use tokio::sync::{mpsc, oneshot};
use wire::mcpx::check::{Act, answer_to, answers, strict};
use wire::mcpx::system::SystemError;
use wire::mcpx::{Envelope, Head};
use wire::rpc::{Id, Message};

use super::error::CallError;

/// Requests and proposals that may be pending at one time.
pub const PENDING_MAX: usize = 1024;
/// Fulfilments of one proposal whose answers are followed.
const FULFILMENTS_MAX: usize = 16;
/// Updates of one proposal that may wait to be read.
const UPDATES_MAX: usize = 16;

/// The outcome that the caller of a pending request gets.
pub(super) type RequestOutcome = Result<Message, CallError>;

/// A request that was sent.
#[derive(Debug)]
pub(super) struct PendingRequest {
    /// The participants that may answer.
    pub(super) to: Vec<String>,
    /// Its kind, with context.
    pub(super) kind: String,
    /// Its JSON-RPC id.
    pub(super) rpc_id: Id,
    /// The receiver of its outcome.
    pub(super) outcome: oneshot::Sender<RequestOutcome>,
}

/// An update of a pending proposal.
#[derive(Debug)]
pub(super) enum ProposalUpdate {
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
    /// The addressees of the requests that fulfil it, by envelope id.
    fulfilments: HashMap<String, Vec<String>>,
    updates: mpsc::Sender<ProposalUpdate>,
}

/// The relation of a response to the pending requests.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Match {
    /// It answered a pending request or proposal.
    Delivered,
    /// It answers nothing that is pending here.
    None,
    /// It names something that is pending, but violates the protocol.
    Violation(String),
}

/// Everything that is pending.
#[derive(Debug, Default)]
pub(super) struct PendingCalls {
    requests: HashMap<String, PendingRequest>,
    proposals: HashMap<String, PendingProposal>,
}

impl PendingCalls {
    /// Adds a request, before it is sent.
    pub(super) fn add_request(&mut self, id: &str, request: PendingRequest) -> Result<(), CallError> {
        self.check_limit()?;
        self.requests.insert(id.to_owned(), request);
        Ok(())
    }

    /// Adds a proposal, before it is sent.
    pub(super) fn add_proposal(
        &mut self,
        id: &str,
        to: Vec<String>,
        kind: String,
    ) -> Result<mpsc::Receiver<ProposalUpdate>, CallError> {
        self.check_limit()?;
        let (updates, receiver) = mpsc::channel(UPDATES_MAX);
        let proposal = PendingProposal { to, kind, fulfilments: HashMap::new(), updates };
        self.proposals.insert(id.to_owned(), proposal);
        Ok(receiver)
    }

    fn check_limit(&self) -> Result<(), CallError> {
        if self.requests.len() + self.proposals.len() < PENDING_MAX { Ok(()) } else { Err(CallError::Busy) }
    }

    /// Removes a request or a proposal whose caller gave up or has its outcome.
    pub(super) fn remove(&mut self, id: &str) {
        self.requests.remove(id);
        self.proposals.remove(id);
    }

    /// Fails every request, because the connection broke. Proposals stay pending; the gateway keeps them.
    pub(super) fn fail_requests(&mut self) {
        for (_, request) in self.requests.drain() {
            let _ = request.outcome.send(Err(CallError::Lost));
        }
    }

    /// Delivers an error of the gateway about this envelope. Returns the error when the envelope is not pending.
    pub(super) fn refuse(&mut self, envelope_id: Option<&str>, error: SystemError) -> Option<SystemError> {
        let Some(id) = envelope_id else { return Some(error) };
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

    /// Delivers the state of a proposal, as the gateway reports it.
    pub(super) fn update_state(&self, proposal: &str, state: ProposalState, reason: Option<&str>) {
        if let Some(proposal) = self.proposals.get(proposal) {
            let _ = proposal.updates.try_send(ProposalUpdate::State(state, reason.map(str::to_owned)));
        }
    }

    /// Adds a request that names a pending proposal to the proposal's fulfilments, if it is the proposed call and
    /// addresses only proposed participants. `Err` when its kind and payload disagree. Does nothing with any other request.
    pub(super) fn add_fulfilment(&mut self, request: &Envelope) -> Result<(), String> {
        let proposal = request.correlation_id().and_then(|id| self.proposals.get_mut(id));
        let Some(proposal) = proposal else { return Ok(()) };
        let act = strict(request.kind(), request.payload_bytes()).map_err(|why| why.to_string())?;
        let Act::Request(call) = act else { return Ok(()) };
        let is_same_call = call.kind(Head::Request).as_ref() == Ok(&proposal.kind);
        let to: Vec<String> = request.to().map(str::to_owned).collect();
        let is_proposed = |one: &String| proposal.to.is_empty() || proposal.to.contains(one);
        let is_addressed = !to.is_empty() && to.iter().all(is_proposed);
        if is_same_call && is_addressed && proposal.fulfilments.len() < FULFILMENTS_MAX {
            proposal.fulfilments.insert(request.id().to_owned(), to);
        }
        Ok(())
    }

    /// Delivers a response. `me` is the id of this participant. With `misses_fulfilments`, which says that it may not
    /// have received every fulfilment, a response that names it and fits exactly one proposal answers that proposal.
    pub(super) fn deliver(&mut self, response: &Envelope, me: &str, misses_fulfilments: bool) -> Match {
        let Some(request_id) = response.correlation_id() else { return Match::None };
        if self.requests.contains_key(request_id) {
            return self.answer_request(request_id, response, me);
        }
        let known = self.proposals.iter().find(|(_, proposal)| proposal.fulfilments.contains_key(request_id));
        let id = match known {
            Some((id, _)) => Some(id.clone()),
            None if misses_fulfilments && response.to().any(|to| to == me) => self.only_fit(response),
            None => None,
        };
        let Some(proposal) = id.and_then(|id| self.proposals.get(&id)) else { return Match::None };
        let may_answer = proposal.fulfilments.get(request_id).unwrap_or(&proposal.to);
        // The gateway may repeat an answer that left the proposer out.
        if response.from() != GATEWAY && !may_answer.iter().any(|one| one == response.from()) {
            return Match::Violation("it answers a request to others".to_owned());
        }
        match answer_to(&proposal.kind, response) {
            Ok(message) => {
                let _ = proposal.updates.try_send(ProposalUpdate::Answer(Box::new(message)));
                Match::Delivered
            }
            Err(why) => Match::Violation(why.to_string()),
        }
    }

    fn answer_request(&mut self, id: &str, response: &Envelope, me: &str) -> Match {
        let Some(request) = self.requests.get(id) else { return Match::None };
        if !request.to.iter().any(|one| one == response.from()) {
            return Match::Violation("it answers a request to others".to_owned());
        }
        if !response.is_broadcast() && !response.to().any(|to| to == me) {
            return Match::Violation("it answers a request but does not name the requester".to_owned());
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

    /// The id of the proposal that this response fits, if there is exactly one.
    fn only_fit(&self, response: &Envelope) -> Option<String> {
        let kind = KindRef::parse(response.kind()).ok()?;
        let mut fitting = self.proposals.iter().filter(|(_, proposal)| {
            (response.from() == GATEWAY || proposal.to.iter().any(|one| one == response.from()))
                && KindRef::parse(&proposal.kind).is_ok_and(|request| answers(kind, request))
        });
        let (id, _) = fitting.next()?;
        fitting.next().is_none().then(|| id.clone())
    }
}
