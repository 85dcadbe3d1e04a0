//! How an approved proposal is carried out, once, and how its outcome comes back to all whom it concerns.
//!
//! Must not know who approved it, or why.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use json::{ObjectEdit, Span, Splice};
use model::{OperationId, ParticipantId, ProposalState};
use store::OpenedProposal;
use topic::Event;
use upstream::Answer;
use wire::mcp::Params;
use wire::mcpx::check::{Act, strict};
use wire::mcpx::{self, Draft, Envelope, Head, kind_of};
use wire::rpc::{self, Id, Message, Shape};

use super::{Pump, Seat};
use crate::caller::Caller;
use crate::desk::{Case, Fulfilment, Heard};
use crate::hosted::{Reply, carry_out_proposal};
use crate::operation::Operation;

/// How long somebody who is not hosted here may take to answer what was approved.
const RUN_MAX: Duration = Duration::from_secs(600);

/// A proposal or its fulfilment, as the room is shown it.
pub(super) struct Shown<'s> {
    /// In whose name.
    pub(super) from: &'s str,
    pub(super) head: Head,
    pub(super) opened: &'s OpenedProposal,
    /// The envelope's id.
    pub(super) id: &'s str,
    pub(super) correlation_id: Option<&'s str>,
    pub(super) params: Option<&'s str>,
}

impl Pump {
    /// A proposal runs now. A call that is held goes with the same step; anything else is carried out from here.
    pub(super) fn approved(&self, id: OperationId, by: &ParticipantId) {
        let seen = self.desk.with(id, |case| {
            let envelope = case.ruling.as_ref().and_then(|ruling| ruling.envelope.clone());
            (envelope, case.opened.clone(), case.held.is_some(), case.params().map(str::to_owned))
        });
        let Some((envelope, opened, held, params)) = seen else { return };
        let said_already = envelope.is_some();
        let envelope = envelope.unwrap_or_else(|| self.ground.operation().to_string());
        let fulfilment = Fulfilment { by: by.to_string(), envelope };
        // It is known before anybody hears it, and counts only after its proposer has heard that it runs.
        self.desk.claim(id, &fulfilment);
        self.desk.stands(id, ProposalState::Running, None);
        if !said_already {
            self.show(&Shown {
                from: by.as_str(),
                head: Head::Request,
                opened: &opened,
                id: &fulfilment.envelope,
                correlation_id: Some(&opened.envelope),
                params: params.as_deref(),
            });
        }
        if let Ok(proposer) = ParticipantId::new(&opened.by) {
            self.tell_state(&proposer, &opened.envelope, Some(id), ProposalState::Running, None);
        }
        let early = self.desk.runs(id, &fulfilment);
        self.desk.with(id, |case| case.ruled(Ok(())));
        if held {
            return;
        }
        // Whoever fulfils by an envelope has its servers carry it out.
        if said_already {
            self.await_answer(id);
        } else {
            self.carry_out(id, by, &opened, &fulfilment.envelope, params.as_deref());
        }
        if let Some((caller, envelope)) = early {
            self.answered_in_room(&caller, &envelope);
        }
    }

    fn carry_out(
        &self,
        id: OperationId,
        by: &ParticipantId,
        opened: &OpenedProposal,
        fulfilment: &str,
        params: Option<&str>,
    ) {
        let frame = rpc::request(&Id::number(1), &opened.method, params.map(str::as_bytes));
        let seats = self.seats();
        // Who serves by itself hears the request in the room, unless a call was held for it.
        let here = |seat: &&Seat| seat.served.is_none() || opened.held;
        let named = |seat: &&Seat| opened.to.iter().any(|to| to == seat.id.as_str());
        let hosted: Vec<&Seat> = seats.iter().filter(here).filter(named).collect();
        let (Some(pump), Ok(message)) = (self.this.upgrade(), Message::read(frame)) else { return };
        for seat in &hosted {
            let kind = kind_of(Head::Response, &opened.method, opened.context.as_deref());
            let to = concerned(by.as_str(), &opened.by);
            let reply = Reply::of_proposal(&pump, seat, to, kind.unwrap_or_default(), fulfilment);
            carry_out_proposal(&pump, &self.runner, seat, &message, id, reply);
        }
        if hosted.is_empty() {
            self.await_answer(id);
        }
    }

    /// Whoever carries it out is not hosted here: its answer is heard in the room, or does not come.
    fn await_answer(&self, id: OperationId) {
        let pump: Weak<Self> = self.this.clone();
        tokio::spawn(async move {
            tokio::time::sleep(RUN_MAX).await;
            if let Some(pump) = pump.upgrade() {
                pump.outcome(id, ProposalState::Failed, Some("nobody answered"));
            }
        });
    }

    fn outcome(&self, id: OperationId, state: ProposalState, reason: Option<&str>) {
        self.step(Event::Outcome { proposal: id, state, reason });
    }

    /// A call that was held goes to its upstream.
    pub(super) fn let_go(&self, operation: OperationId, own: Option<Arc<str>>) {
        let Some(id) = self.desk.behind(operation) else { return };
        let seen = self.desk.with(id, |case| {
            let held = case.held.as_ref()?;
            let edited = case.decided.as_ref().and_then(|decided| decided.params.clone());
            Some((Arc::clone(&held.operation), held.message.clone(), held.hello.clone(), edited))
        });
        let Some((operation, message, hello, edited)) = seen.flatten() else { return };
        let message = match edited.as_deref().and_then(|edited| with_params_of(&message, edited)) {
            Some(edited) => edited,
            None => message,
        };
        let seats = self.seats();
        let seat = operation.upstream.get().and_then(|(to, _)| seats.iter().find(|seat| seat.id == *to));
        let (Some(seat), Ok(params)) = (seat, Params::read(&message)) else { return };
        self.hand_over(&operation, seat, own, &params, &hello);
    }

    /// What a proposal led to, as it came: kept for its proposer, and told to the room if a call was held behind it.
    pub(super) fn noted(&self, operation: &Operation, answer: &Answer) {
        let id = operation.proposal.get().copied().or_else(|| self.desk.behind(operation.id));
        let Some(id) = id else { return };
        let frame = answer.message.frame().clone();
        let seen = self.desk.with(id, |case| {
            case.answer = Some(frame.clone());
            let decided = case.decided.as_ref().map(|decided| decided.by.clone());
            let fulfilment = case.fulfilment.as_ref().map(|fulfilment| fulfilment.envelope.clone());
            case.held.is_some().then(|| (case.opened.clone(), decided, fulfilment))
        });
        let Some((opened, decided, fulfilment)) = seen.flatten() else { return };
        let Some((from, fulfilment)) = operation.upstream.get().map(|(id, _)| id.to_string()).zip(fulfilment)
        else {
            return;
        };
        let to = concerned(decided.as_deref().unwrap_or_default(), &opened.by);
        let to: Vec<&str> = to.iter().map(String::as_str).filter(|to| !to.is_empty()).collect();
        let Ok(kind) = kind_of(Head::Response, &opened.method, opened.context.as_deref()) else { return };
        if self.shows_calls() {
            let (stamp, ts) = self.stamp();
            let draft = Draft {
                id: &stamp,
                ts: Some(&ts),
                from: &from,
                to: &to,
                kind: &kind,
                correlation_id: Some(&fulfilment),
                payload: &frame,
            };
            self.post(&from, &to, &kind, mcpx::envelope(&draft), None);
        }
    }

    /// Shows a proposal of a call, or its fulfilment, to the room, as an envelope of whoever asked or decided.
    pub(super) fn show(&self, shown: &Shown<'_>) {
        let Shown { from, head, opened, id, correlation_id, params } = *shown;
        if opened.held && !self.shows_calls() {
            return;
        }
        let params = params.map(str::as_bytes);
        let payload = match head {
            Head::Proposal => said(&opened.method, params).into(),
            Head::Request | Head::Response => rpc::request(&Id::number(1), &opened.method, params),
        };
        let Ok(kind) = kind_of(head, &opened.method, opened.context.as_deref()) else { return };
        let (_, ts) = self.stamp();
        let to: Vec<&str> = opened.to.iter().map(String::as_str).collect();
        let ts = Some(ts.as_str());
        let draft = Draft { id, ts, from, to: &to, kind: &kind, correlation_id, payload: &payload };
        let skip = (head == Head::Request).then(|| self.asked_otherwise(opened)).flatten();
        self.post(from, &to, &kind, mcpx::envelope(&draft), skip);
    }

    /// Hears an answer in the room: of somebody who carries out what was approved.
    pub(crate) fn answered_in_room(&self, caller: &Arc<Caller>, envelope: &Envelope) {
        let Some((id, fulfilment)) = self.desk.claimed(envelope) else { return };
        let Ok(Act::Answer(message)) = strict(envelope.kind(), envelope.payload_bytes()) else { return };
        let heard = self.desk.answered(id, &fulfilment, (caller, envelope), message.frame());
        let Some(Heard::Counts(proposer)) = heard else { return };
        // The responder may have left the proposer out (MCPx v0.1, 3.2.1).
        if !envelope.to().any(|to| to == proposer) {
            let (link, payload) = (self.own_link(), envelope.payload());
            let kind = envelope.kind();
            let correlation = envelope.correlation_id();
            self.announce(link, model::GATEWAY, &[&proposer], kind, correlation, payload);
        }
        let (state, why) = match message.shape() {
            Shape::Result => (ProposalState::Completed, None),
            Shape::Error | Shape::Request | Shape::Notification => {
                (ProposalState::Failed, Some("it was answered with an error"))
            }
        };
        self.outcome(id, state, why);
    }

    /// A participant that serves and that a held call is for: the gateway asks it, so it must not be asked again by what
    /// the room is shown.
    fn asked_otherwise(&self, opened: &OpenedProposal) -> Option<ParticipantId> {
        let seats = self.seats();
        let for_it =
            |seat: &&Seat| seat.served.is_some() && opened.to.iter().any(|to| to == seat.id.as_str());
        seats.iter().find(for_it).filter(|_| opened.held).map(|seat| seat.id.clone())
    }

    /// The same for an envelope that fulfils a proposal.
    pub(super) fn skips(&self, envelope: &Envelope) -> Option<ParticipantId> {
        if !envelope.kind().starts_with("mcp/request:") {
            return None;
        }
        let id = self.proposal_of(envelope.correlation_id()?)?;
        let opened = self.desk.with(id, |case| case.opened.held.then(|| case.opened.clone())).flatten()?;
        self.asked_otherwise(&opened)
    }

    /// Looks at a proposal in full.
    pub(crate) fn case<T>(&self, id: OperationId, look: impl FnOnce(&Case) -> T) -> Option<T> {
        self.desk.with(id, |case| look(case))
    }
}

/// Whom an outcome concerns: whoever decided, and the proposer.
fn concerned(decider: &str, proposer: &str) -> Vec<String> {
    if decider == proposer {
        vec![proposer.to_owned()]
    } else {
        vec![decider.to_owned(), proposer.to_owned()]
    }
}

/// The payload of a proposal (MCPx v0.1, 3.2).
fn said(method: &str, params: Option<&[u8]>) -> Vec<u8> {
    let (head, params) = (format!("{{\"method\":{}", json::quote(method)), params.unwrap_or_default());
    let key: &[u8] = if params.is_empty() { b"" } else { b",\"params\":" };
    [head.as_bytes(), key, params, b"}"].concat()
}

/// Params with other arguments.
pub(super) fn with_arguments(params: &str, arguments: &str) -> Option<String> {
    let members = json::members(params.as_bytes(), Span::all(params.as_bytes())).ok()?;
    let (mut splice, mut edit) = (Splice::new(), ObjectEdit::new(&members));
    edit.set("arguments", arguments.as_bytes());
    edit.finish(&mut splice);
    let edited = splice.apply_within(params.as_bytes(), Span::all(params.as_bytes()));
    String::from_utf8(edited.to_vec()).ok()
}

/// A call with the arguments of these params.
fn with_params_of(message: &Message, edited: &str) -> Option<Message> {
    let members = json::members(edited.as_bytes(), Span::all(edited.as_bytes())).ok()?;
    let arguments = std::str::from_utf8(members.get("arguments")?.raw).ok()?;
    let params = with_arguments(std::str::from_utf8(message.params()?).ok()?, arguments)?;
    let frame: Bytes = rpc::request(message.id()?, message.method(), Some(params.as_bytes()));
    Message::read(frame).ok()
}
