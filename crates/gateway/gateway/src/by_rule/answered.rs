//! Answered calls that rules ask for: "only after `get_invoice` of the same id was answered".

use std::sync::Arc;

use model::{Answer, Outcome, ParticipantId, Target};
use platform::unix_ms;
use rules::{RuledCall, SpentEvent};

use super::facts::parts_of;
use super::judge;
use super::kept::RuleRecord;
use super::tighten::params::{Parts, kind_of, params_of, parts_at};
use crate::call::{AwaitedCall, Call, Delivered};
use crate::dispatch::Dispatch;
use crate::live::ProposalView;

/// The facts that rules need of a delivered call, if they ask for earlier calls. `own` is the name of its
/// target at its server, if that differs from the requested one.
pub(crate) fn awaited(
    dispatch: &Dispatch,
    call: &Call,
    own: Option<&str>,
    proposal: Option<&ProposalView>,
) -> Option<Box<AwaitedCall>> {
    if !dispatch.rules.awaits_answers() {
        return None;
    }
    let named = call.request.target.as_ref().map(Target::as_str);
    let approved = proposal.map(|proposal| {
        let ruling = proposal.ruling.as_ref();
        let edited = ruling.and_then(|ruling| ruling.params.clone());
        edited.or_else(|| proposal.content.opened.params.clone())
    });
    let own = own.or(named)?.into();
    Some(Box::new(AwaitedCall { own, approved }))
}

/// Takes an answer of a server, before its caller has it: with that it may make the next call.
pub(crate) fn take(dispatch: &Arc<Dispatch>, call: &Call, delivered: &Delivered, answer: &Answer) {
    let Some(awaited) = &delivered.awaited else {
        return;
    };
    let Some(kind) = kind_of(&call.request.method, Some(&awaited.own)) else {
        return;
    };
    let is_asked_for = {
        let state = dispatch.rules.lock();
        state.set.awaits(kind, &delivered.server)
    };
    if !is_asked_for || !succeeded(call, answer) {
        return;
    }
    let (arguments, beside) = parts(dispatch, call, awaited, &delivered.server);
    let beside: Vec<&str> = beside.iter().map(String::as_str).collect();
    let proposer = delivered.proposer.as_ref();
    let mut state = dispatch.rules.lock();
    let answered = state.set.remembers(&RuledCall {
        operation: call.id,
        proposer: proposer.unwrap_or(&call.link.participant.id),
        to: &delivered.server,
        kind,
        arguments: arguments.as_ref(),
        beside: &beside,
        definition: None,
        server: None,
        at_ms: state.book.spent.not_before(unix_ms()),
    });
    let Some(answered) = answered.map(SpentEvent::Answered) else {
        return;
    };
    let record = RuleRecord::of_spent(dispatch.name().as_str(), answered);
    state.book.apply(&record);
    drop(state);
    judge::write(dispatch, vec![record]);
}

/// The arguments of a call as they ran.
fn parts(dispatch: &Dispatch, call: &Call, awaited: &AwaitedCall, server: &ParticipantId) -> Parts {
    let method = &call.request.method;
    if let Some(approved) = &awaited.approved {
        return parts_of(method.as_str(), approved.as_deref());
    }
    let server = dispatch.with(|topic| topic.server(server));
    let server = server.map(|server| server.handle);
    parts_at(method, params_of(call, server.as_ref(), Some(&awaited.own)))
}

/// Whether an answer is a result of the call itself, and says of no error: not that a task has begun,
/// or that the caller is asked something.
fn succeeded(call: &Call, answer: &Answer) -> bool {
    let shown = call.shown_answer(answer);
    if shown.outcome != Outcome::Ok {
        return false;
    }
    let body = shown.payload.body_bytes();
    let is_complete = json::at(body, &["resultType"]).is_none_or(|it| it == br#""complete""#);
    let says_error = json::at(body, &["isError"]).is_some_and(|it| it != b"false");
    let is_task = call.task.asks() && json::at(body, &["task"]).is_some();
    is_complete && !says_error && !is_task
}
