//! Announcements about proposals: to proposers, to the room, and into the audit log.

use std::sync::Arc;

use model::{Answer, Form, OperationId, ParticipantId, ProposalState, Refusal, RefusalCode};
use platform::unix_ms;
use topic::section::McpCalls;
use topic::{Audience, Cause, Claim, CountedDecision, PlanPlace, Reach};
use wire::mcp::{relay, task::TaskWish};
use wire::mcpx::{Draft, Envelope, Head, kind_of, payload};
use wire::rpc::{Id, Message};
use wire::time::rfc3339;

use super::{
    content::{Proposed, Ruling},
    journal,
};
use crate::by_rule::decided_by::{
    ApprovalNote, AuthoredRule, code_of, decider, notes_of, rule_of, write_notes,
};
use crate::holds;
use crate::incoming::{Incoming, Names};
use crate::judges;
use crate::live::{Event, Live, ProposalView};
use crate::proposals::kept::OpenedProposal;
use crate::shadow_acts;
use crate::span::CallSpan;
use crate::traces;
use crate::{call::Call, dispatch::Dispatch, link::Link, record::Record, room_reply::RoomReply};

/// The kind of the envelope that tells a proposer the state of its proposal.
pub const PROPOSAL_STATE: &str = "portmoot/proposal";

/// A message that is put into the room in a participant's name.
struct Post<'p> {
    from: &'p str,
    to: &'p [&'p str],
    head: Head,
    opened: &'p OpenedProposal,
    id: &'p str,
    correlation: Option<&'p str>,
    payload: &'p [u8],
}

/// A proposal is open to decisions: the proposer gets its id, and a held call is shown to the room.
pub(crate) fn proposed(dispatch: &Arc<Dispatch>, proposal: &ProposalView) {
    let content = &proposal.content;
    Record(dispatch).proposed(proposal, content.call.map(|call| call.id));
    content.finish_opening(Ok(()));
    if proposal
        .plan
        .as_ref()
        .is_some_and(|place| !place.is_first())
    {
        // It is not decided about: reviewers get the plan with its first step.
        return;
    }
    // No request in the room fulfils a plan.
    if proposal.held && proposal.plan.is_none() {
        let opened = &content.opened;
        let payload =
            payload::proposal(&opened.method, opened.params.as_deref().map(str::as_bytes));
        let to: Vec<&str> = opened.to.iter().map(String::as_str).collect();
        let from = opened.by.as_str();
        let id = opened.envelope.as_str();
        let head = Head::Proposal;
        let correlation = None;
        post(
            dispatch,
            &Post {
                from,
                to: &to,
                head,
                opened,
                id,
                correlation,
                payload: &payload,
            },
        );
    }
    notify(dispatch, proposal);
}

/// A proposal was not taken. A held call's caller is refused by the topic.
pub(crate) fn not_proposed(
    dispatch: &Arc<Dispatch>,
    id: OperationId,
    by: &ParticipantId,
    content: &Proposed,
    held: bool,
    refusal: &Refusal,
    cause: Cause,
) {
    Record(dispatch).not_proposed(id, content, cause);
    content.finish_opening(Err(refusal.clone()));
    if content.opened.plan.is_some() {
        return;
    }
    if !held {
        no_proposal(dispatch, by, &content.opened.envelope, &refusal.to_string());
    }
}

/// Notifies a participant alone that its envelope proposes nothing.
pub(crate) fn no_proposal(dispatch: &Arc<Dispatch>, by: &ParticipantId, envelope: &str, why: &str) {
    let state = State {
        reason: Some(why),
        ..State::new(envelope, ProposalState::Rejected)
    };
    send_state_alone(dispatch, by, envelope, &state.payload());
}

/// A participant has approved a proposal that others must approve too: the proposer and the reviewers
/// are notified.
pub(crate) fn counted(dispatch: &Arc<Dispatch>, counted: &CountedDecision<Live>) {
    Record(dispatch).counted(counted);
    if counted.ruling.rule.is_none() {
        shadow_acts::decision(dispatch, &counted.proposal, &counted.by);
    }
    notify(dispatch, &counted.proposal);
    judges::after_approval(dispatch, counted.proposal.id);
}

/// Other participants look at a proposal than before.
pub(crate) fn claimed(dispatch: &Arc<Dispatch>, proposal: &ProposalView) {
    notify(dispatch, proposal);
}

/// There is more time to decide about a proposal.
pub(crate) fn extended(
    dispatch: &Arc<Dispatch>,
    proposal: &ProposalView,
    by: &ParticipantId,
    ruling: &Ruling,
) {
    Record(dispatch).extended(proposal, by, ruling);
    notify(dispatch, proposal);
    // While it was written no rule that came could decide it.
    judges::one(dispatch, proposal.id);
}

/// The proposer of a proposal has replaced its arguments: those that may decide get the new ones, and
/// the judges judge them.
pub(crate) fn amended(dispatch: &Arc<Dispatch>, proposal: &ProposalView, ruling: &Ruling) {
    Record(dispatch).amended(proposal, ruling);
    let state = State {
        params: proposal.content.opened.params.as_deref(),
        ..State::of(proposal)
    };
    notify_of(dispatch, proposal, &state);
    // What they decided was about the former ones.
    judges::conclude(dispatch, proposal.id);
    judges::one(dispatch, proposal.id);
}

/// A proposal expires soon: those that may decide are warned.
pub(crate) fn expiring(dispatch: &Arc<Dispatch>, proposal: &ProposalView) {
    let state = State {
        is_expiring: true,
        ..State::of(proposal)
    };
    notify_of(dispatch, proposal, &state);
}

/// A proposal runs now: the proposer is notified, and these servers carry it out. An approval that
/// did not come as an envelope is shown to the room.
pub(crate) fn approved(
    dispatch: &Arc<Dispatch>,
    proposal: &ProposalView,
    servers: &[ParticipantId],
) {
    let opened = &proposal.content.opened;
    let ruling = proposal.ruling.as_ref();
    let params = ruling
        .and_then(|ruling| ruling.params.as_deref())
        .or(opened.params.as_deref());
    Record(dispatch).approved(proposal, params);
    holds::note(dispatch, proposal);
    shadow_acts::decided(dispatch, proposal);
    let request = payload::request(&opened.method, params.map(str::as_bytes));
    let from = decider(proposal).unwrap_or(proposal.by.as_str());
    let fulfilment = proposal.fulfilment.as_deref().unwrap_or_default();
    if ruling.is_none_or(|ruling| ruling.envelope.is_none()) {
        let to: Vec<&str> = opened.to.iter().map(String::as_str).collect();
        let head = Head::Request;
        let correlation = Some(opened.envelope.as_str());
        post(
            dispatch,
            &Post {
                from,
                to: &to,
                head,
                opened,
                id: fulfilment,
                correlation,
                payload: &request,
            },
        );
    }
    notify(dispatch, proposal);
    for server in servers {
        execute(dispatch, proposal, server, params, fulfilment);
    }
}

/// Has a server carry out an approved proposal behind which no call waits.
fn execute(
    dispatch: &Arc<Dispatch>,
    proposal: &ProposalView,
    server: &ParticipantId,
    params: Option<&str>,
    fulfilment: &str,
) {
    let opened = &proposal.content.opened;
    let params = params.map(str::as_bytes);
    let Ok(request) = relay::request_of(&opened.method, params, Form::ENVELOPE) else {
        return;
    };
    let wish = if json::at(request.payload.body_bytes(), &["task"]).is_some() {
        TaskWish::Asks
    } else {
        TaskWish::None
    };
    let kind =
        kind_of(Head::Response, &opened.method, opened.context.as_deref()).unwrap_or_default();
    let to = concerned(proposal).into_iter().map(str::to_owned).collect();
    let reply = RoomReply::new(dispatch, server, to, kind, fulfilment);
    let operation = dispatch.context.operation();
    let incoming = Incoming {
        wish,
        ..Incoming::plain(request, None)
    };
    let call = Call::new(
        operation,
        dispatch.gateway_link.opener(),
        incoming,
        Names::Own,
        Arc::new(reply),
    );
    if let Some(context) = traces::context_of(dispatch, proposal) {
        let _ = call.span.set(CallSpan::of_proposal(context));
    }
    // A step from inside an effect: what is carried out is a call like any, and admitted by a step.
    dispatch.take(Event::Execute {
        proposal: proposal.id,
        operation,
        server,
        call,
    });
}

/// Shows the room the answer to a held call that was carried out.
pub(crate) fn answered(
    dispatch: &Arc<Dispatch>,
    server: Option<&ParticipantId>,
    answer: &Answer,
    proposal: &ProposalView,
) {
    let (Some(server), Some(fulfilment)) = (server, proposal.fulfilment.as_deref()) else {
        return;
    };
    let opened = &proposal.content.opened;
    let payload = payload::room_answer(answer, &opened.method, asked_by(proposal).as_ref());
    let to = concerned(proposal);
    let id = dispatch.context.operation().to_string();
    let from = server.as_str();
    let correlation = Some(fulfilment);
    let id = id.as_str();
    let head = Head::Response;
    post(
        dispatch,
        &Post {
            from,
            to: &to,
            head,
            opened,
            id,
            correlation,
            payload: &payload,
        },
    );
}

/// The JSON-RPC id of the request in the room that fulfilled a proposal, if one did.
fn asked_by(proposal: &ProposalView) -> Option<Id> {
    let (_, envelope) = proposal.ruling.as_ref()?.sender.as_ref()?;
    Message::id_in(envelope.payload_bytes())
}

/// A proposal is over: the proposer is notified, and the topic keeps the digest of its envelope.
pub(crate) fn concluded(dispatch: &Arc<Dispatch>, proposal: &ProposalView) {
    journal::close(dispatch, [&*proposal.envelope]);
    // A plan that was withdrawn before it was open.
    let why = "it was withdrawn before it was open to decisions";
    let withdrawn = Refusal::new(RefusalCode::Conflict, why);
    proposal.content.finish_opening(Err(withdrawn));
    let method = proposal.content.opened.method.as_str();
    let answer = proposal
        .answer
        .as_ref()
        .map(|answer| payload::answer(answer, method, None));
    Record(dispatch).concluded(proposal, answer.as_deref());
    holds::note(dispatch, proposal);
    if proposal.state == ProposalState::Rejected {
        shadow_acts::decided(dispatch, proposal);
    }
    notify(dispatch, proposal);
    tell_fulfiller(dispatch, proposal);
}

/// Tells a proposer an outcome whose envelope does not name it.
pub(crate) fn relay(dispatch: &Arc<Dispatch>, envelope: &Envelope, to: &ParticipantId) {
    let kind = envelope.kind();
    let correlation = envelope.correlation_id();
    let gateway = ParticipantId::gateway();
    dispatch.announce(
        &gateway,
        &[to.as_str()],
        kind,
        correlation,
        envelope.payload(),
        None,
    );
}

/// Tells the sender of a proposal that it had sent already what became of it.
pub(crate) fn remind(dispatch: &Arc<Dispatch>, link: &Link, proposal: &ProposalView) {
    let from = ParticipantId::gateway();
    let to = link.participant.id.as_str();
    let payload = State::of(proposal).payload();
    dispatch.answer_alone(
        link.id,
        &from,
        &[to],
        PROPOSAL_STATE,
        &proposal.envelope,
        &payload,
    );
}

/// Notifies the proposer of the state of its proposal, and all that receive proposals, so that
/// reviewers learn what is decided.
fn notify(dispatch: &Arc<Dispatch>, proposal: &ProposalView) {
    notify_of(dispatch, proposal, &State::of(proposal));
}

fn notify_of(dispatch: &Arc<Dispatch>, proposal: &ProposalView, state: &State<'_>) {
    dispatch.context.notifications.look_again();
    let payload = state.payload();
    let by = &proposal.by;
    let envelope = &*proposal.envelope;
    if proposal.held && dispatch.settings().topic.mcp_calls == McpCalls::None {
        // The room has not seen the call.
        return send_state_alone(dispatch, by, envelope, &payload);
    }
    let mut to = vec![by.as_str()];
    if state.params.is_some() {
        // They had the former ones, too.
        let addressees = proposal.content.opened.to.iter();
        to.extend(addressees.map(String::as_str));
    }
    let audience = Audience {
        proposes: true,
        ..Audience::new(None, &to, PROPOSAL_STATE, Reach::Listeners)
    };
    let gateway = ParticipantId::gateway();
    dispatch.announce(
        &gateway,
        &to,
        PROPOSAL_STATE,
        Some(envelope),
        &payload,
        Some(audience),
    );
}

/// Answers the envelope that fulfilled a proposal which no participant in the room has answered, or
/// can; or a held call to which its server gave no answer.
fn tell_fulfiller(dispatch: &Arc<Dispatch>, proposal: &ProposalView) {
    let awaited = proposal.in_room || proposal.held;
    let unanswered =
        awaited && proposal.answer.is_none() && proposal.state == ProposalState::Failed;
    let sender = proposal
        .ruling
        .as_ref()
        .and_then(|ruling| ruling.sender.as_ref());
    let Some((link, envelope)) = sender.filter(|_| unanswered) else {
        return;
    };
    let reason = proposal
        .reason
        .as_deref()
        .unwrap_or("there was no answer")
        .to_owned();
    let refusal = Refusal::new(RefusalCode::UpstreamFailed, reason);
    dispatch.tell_refused(link.id, &link.participant.id, envelope, &refusal);
}

/// Sends a state to the link alone on which the proposer listens, if it listens.
fn send_state_alone(
    dispatch: &Arc<Dispatch>,
    proposer: &ParticipantId,
    envelope: &str,
    payload: &[u8],
) {
    let gateway = ParticipantId::gateway();
    let to = [proposer.as_str()];
    if let Some(link) = dispatch.with(|topic| topic.listener(proposer)) {
        dispatch.answer_alone(link, &gateway, &to, PROPOSAL_STATE, envelope, payload);
    }
}

/// The state of a proposal, as its proposer gets it.
struct State<'p> {
    /// The id of the envelope that proposed.
    envelope: &'p str,
    /// The proposal's id, if there is a proposal.
    id: Option<OperationId>,
    state: ProposalState,
    /// The participant that decided, or `rules`.
    by: Option<&'p str>,
    /// The rule that decided.
    rule: Option<AuthoredRule<'p>>,
    reason: Option<&'p str>,
    /// The reason that its reviewer chose from the list.
    code: Option<&'p str>,
    /// Notes of the reviewers with their approvals.
    notes: Vec<ApprovalNote<'p>>,
    /// The envelope that fulfils it: its answer names that one, not the proposal.
    fulfilment: Option<&'p str>,
    /// Whether other params run than the proposed ones.
    edited: bool,
    /// The number of participants that must approve it.
    approvals: usize,
    /// The participants whose approvals count, before the last one.
    approved_by: &'p [ParticipantId],
    /// When it expires without a decision, in Unix milliseconds, while it is pending.
    expires_ms: Option<u64>,
    /// Whether that is soon.
    is_expiring: bool,
    /// The number of times that its proposer replaced its arguments.
    amendments: usize,
    /// The params that it has from now on, if its proposer has just replaced them.
    params: Option<&'p str>,
    /// Participants that look at it, while it is pending.
    claims: &'p [Claim],
    /// Participants that the proposal names and that are not here.
    absent: &'p [ParticipantId],
    /// Its place in a plan.
    plan: Option<&'p PlanPlace>,
}

impl<'p> State<'p> {
    fn new(envelope: &'p str, state: ProposalState) -> Self {
        Self {
            envelope,
            id: None,
            state,
            by: None,
            rule: None,
            reason: None,
            code: None,
            notes: Vec::new(),
            fulfilment: None,
            edited: false,
            approvals: 1,
            approved_by: &[],
            expires_ms: None,
            is_expiring: false,
            amendments: 0,
            params: None,
            claims: &[],
            absent: &[],
            plan: None,
        }
    }

    fn of(proposal: &'p ProposalView) -> Self {
        let ProposalView {
            id,
            envelope,
            state,
            reason,
            fulfilment,
            absent,
            claims,
            ..
        } = proposal;
        let by = decider(proposal);
        let rule = rule_of(proposal);
        let reason = reason.as_deref();
        let fulfilment = fulfilment.as_deref();
        let edited = proposal
            .ruling
            .as_ref()
            .is_some_and(|ruling| ruling.params.is_some())
            || proposal.content.is_amended;
        let is_pending = *state == ProposalState::Pending;
        Self {
            approvals: proposal.approvals,
            approved_by: &proposal.approved_by,
            id: Some(*id),
            by,
            rule,
            reason,
            code: code_of(proposal),
            notes: notes_of(proposal),
            fulfilment,
            edited,
            amendments: proposal.amendments,
            expires_ms: is_pending.then_some(proposal.expires_wall_ms),
            claims,
            absent,
            plan: proposal.plan.as_ref(),
            ..Self::new(envelope, *state)
        }
    }

    fn payload(&self) -> Vec<u8> {
        let id = self.id.map(|id| id.to_string());
        let decider = self.by.filter(|_| self.state != ProposalState::Withdrawn);
        json::object(|payload| {
            payload
                .text("proposal", self.envelope)
                .optional_text("operation", id.as_deref());
            payload.text("state", self.state.as_str());
            if let Some(place) = self.plan {
                payload.object("plan", |plan| {
                    plan.text("id", &place.plan.to_string())
                        .number("step", place.number())
                        .number("of", place.of());
                });
            }
            payload.optional_text("by", decider);
            if let Some(rule) = self.rule {
                rule.write_members(payload);
            }
            payload
                .optional_text("code", self.code)
                .optional_text("reason", self.reason)
                .optional_text("fulfilment", self.fulfilment);
            write_notes(&self.notes, payload);
            if self.edited {
                payload.bool("edited", true);
            }
            if self.approvals > 1 {
                payload.number("approvals", self.approvals);
                let approved_by = self.approved_by.iter();
                payload.texts("approved_by", approved_by.map(ParticipantId::as_str));
            }
            if let Some(expires_ms) = self.expires_ms {
                payload.text("expires", &rfc3339(expires_ms));
            }
            if self.is_expiring {
                payload.bool("expiring", true);
            }
            if self.amendments > 0 {
                payload.number("amendments", self.amendments);
            }
            if let Some(params) = self.params {
                payload.raw("params", params.as_bytes());
            }
            if !self.claims.is_empty() {
                payload.array("claims", |all| {
                    for Claim { by, since_ms } in self.claims {
                        all.object(|one| {
                            one.text("by", by.as_str())
                                .text("since", &rfc3339(*since_ms));
                        });
                    }
                });
            }
            if !self.absent.is_empty() {
                payload.texts("absent", self.absent.iter().map(ParticipantId::as_str));
            }
        })
    }
}

/// The participants that an outcome concerns: the proposer, and the reviewer unless a rule decided.
fn concerned(proposal: &ProposalView) -> Vec<&str> {
    let proposer = proposal.by.as_str();
    let reviewer = proposal.decided_by.as_ref().map(ParticipantId::as_str);
    reviewer
        .filter(|_| rule_of(proposal).is_none())
        .filter(|reviewer| *reviewer != proposer)
        .into_iter()
        .chain([proposer])
        .collect()
}

/// Puts a message into the room that follows from what the topic has decided, in the name of the
/// participant that proposed, approved or answered. Messages about held calls are shown only where
/// the topic shows calls.
fn post(dispatch: &Arc<Dispatch>, post: &Post<'_>) {
    let Post {
        from,
        to,
        head,
        opened,
        id,
        correlation,
        payload,
    } = *post;
    if opened.held && dispatch.settings().topic.mcp_calls == McpCalls::None {
        return;
    }
    let Ok(kind) = kind_of(head, &opened.method, opened.context.as_deref()) else {
        return;
    };
    let ts = rfc3339(unix_ms());
    let draft = Draft {
        id,
        ts: Some(&ts),
        from,
        to,
        kind: &kind,
        correlation_id: correlation,
        payload,
    };
    tracing::debug!(from, kind, "posted");
    let asked = (head == Head::Request && opened.held)
        .then(|| asked_by_gateway(dispatch, opened))
        .flatten();
    let reach = asked.map_or(Reach::Listeners, Reach::Except);
    dispatch.publish(&draft, Some(Audience::new(None, to, &kind, reach)));
}

/// The participant that serves and that a held call is for. The gateway asks it, so it must not be
/// asked again by what the room is shown.
fn asked_by_gateway(dispatch: &Dispatch, opened: &OpenedProposal) -> Option<ParticipantId> {
    let mut to = opened.to.iter().filter_map(|to| dispatch.server_named(to));
    to.find(|server| server.serves())
        .map(|server| server.id.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proposer_gets_the_state_in_full() {
        let notice = |state, id, by, reason| {
            let state = State {
                id,
                by,
                reason,
                ..State::new("p\"1", state)
            };
            String::from_utf8(state.payload()).unwrap()
        };
        let id = Some(OperationId(7));
        let by = Some("boss");
        let operation = OperationId(7).to_string();
        assert_eq!(
            notice(ProposalState::Rejected, id, by, Some("no")),
            format!(
                r#"{{"proposal":"p\"1","operation":"{operation}","state":"rejected","by":"boss","reason":"no"}}"#
            )
        );
        assert_eq!(
            notice(ProposalState::Pending, None, None, None),
            r#"{"proposal":"p\"1","state":"pending"}"#
        );
        let ghost = [ParticipantId::new("ghost").unwrap()];
        let pending = State {
            absent: &ghost,
            ..State::new("p1", ProposalState::Pending)
        };
        let expected = r#"{"proposal":"p1","state":"pending","absent":["ghost"]}"#;
        assert_eq!(String::from_utf8(pending.payload()).unwrap(), expected);
        let running = State {
            fulfilment: Some("f1"),
            edited: true,
            ..State::new("p1", ProposalState::Running)
        };
        let expected = r#"{"proposal":"p1","state":"running","fulfilment":"f1","edited":true}"#;
        assert_eq!(String::from_utf8(running.payload()).unwrap(), expected);
        let withdrawn = notice(ProposalState::Withdrawn, id, by, None);
        assert!(!withdrawn.contains("boss"), "{withdrawn}");
    }
}
