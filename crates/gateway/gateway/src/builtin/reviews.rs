//! Built-in tools with which a model reviews proposals: list, show, approve, reject.

use std::sync::Arc;

use model::{Capabilities, OperationId, ParticipantId, ProposalState, Refusal, RefusalCode};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use wire::{mcpx::payload, time::rfc3339};

use super::{arguments, safe_text};
use crate::by_rule::decided_by::{code_of, decider, notes_of, rule_of};
use crate::live::{ProposalView, Topic};
use crate::proposals::decide::{Choice, Decider, chosen_reason, digest, unknown_proposal};
use crate::{call::Call, dispatch::Dispatch};

/// Proposals of one page, without a `limit`.
const PAGE_PROPOSALS: usize = 20;
/// Most proposals of one page.
pub const PAGE_PROPOSALS_MAX: usize = 100;
/// Longest params and tool of a proposal that a list shows in full, in bytes together.
pub const LISTED_BYTES_MAX: usize = 8 * 1024;
/// Longest answer that is shown in full, in bytes.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024;

const APPROVED: &str = "It is approved and runs once, on your authority; its proposer gets the answer, and show_proposal returns it.";
const CLAIMED: &str = "Others who may decide see for five minutes that you look at it; claim it again to go on, or decide.";
const EXTENDED: &str = "There are ten minutes more to decide about it.";
const AMENDED: &str =
    "The proposal has these arguments from now on. Approvals and views of the former are void.";
const REJECTED: &str = "The proposal is rejected, and its proposer is notified.";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListArguments {
    #[serde(default)]
    all: bool,
    after: Option<String>,
    limit: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ShowArguments {
    id: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ApproveArguments {
    id: String,
    digest: String,
    arguments: Option<Box<RawValue>>,
    note: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AmendArguments {
    id: String,
    arguments: Box<RawValue>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RejectArguments {
    /// Envelopes call it `proposal`.
    #[serde(alias = "proposal")]
    id: String,
    code: Option<String>,
    reason: Option<String>,
}

/// A page of proposals.
#[derive(Serialize)]
pub(super) struct ProposalPage {
    proposals: Vec<ShownProposal>,
    more: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// One proposal as a model sees it.
#[derive(Serialize)]
pub(super) struct ShownProposal {
    id: String,
    /// The id of the envelope that proposed, which a request that fulfils it names.
    envelope: String,
    state: &'static str,
    by: String,
    to: Vec<String>,
    method: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    own: bool,
    may_decide: bool,
    /// Whether everything is included that a decision is bound to.
    in_full: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    at: String,
    expires: String,
    /// The participants that look at it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    claims: Vec<ShownClaim>,
    /// The number of participants that must approve it, if it is more than one.
    #[serde(skip_serializing_if = "Option::is_none")]
    approvals: Option<usize>,
    /// The participants whose approvals count so far.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    approved_by: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_by: Option<String>,
    /// The rule that decided, and its author.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule_author: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    edited: Option<Box<RawValue>>,
    /// Why it was rejected, from the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Notes of reviewers, given with their approvals.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<ShownNote>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer_begins: Option<String>,
    /// Its place in a plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<ShownPlace>,
    /// Of the first step of a plan, all its steps.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    steps: Vec<ShownStep>,
}

/// The place of a proposal in a plan, as a model sees it.
#[derive(Serialize)]
struct ShownPlace {
    id: String,
    step: usize,
    of: usize,
}

/// A step of a plan, as a model sees it.
#[derive(Serialize)]
struct ShownStep {
    id: String,
    to: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<Box<RawValue>>,
}

/// The steps of a plan with its first one, in full or without what was proposed.
fn steps_of(proposal: &ProposalView, in_full: bool) -> Vec<ShownStep> {
    if proposal.content.is_single() {
        return Vec::new();
    }
    let text = |text: &str| json::visible::lines(text);
    let raw = |part: Option<&str>| part.filter(|_| in_full).and_then(safe_text::raw);
    let steps = proposal.content.steps().map(|step| ShownStep {
        id: step.id.clone(),
        to: step.to.iter().map(|to| text(to)).collect(),
        target: step.context.as_deref().map(text),
        params: raw(step.params.as_deref()),
        tool: raw(step.tool.as_deref()),
    });
    steps.collect()
}

/// The note of a reviewer, as a model sees it.
#[derive(Serialize)]
struct ShownNote {
    by: String,
    note: String,
}

/// A participant that looks at a proposal, as a model sees it.
#[derive(Serialize)]
struct ShownClaim {
    by: String,
    since: String,
}

/// The outcome of a decision.
#[derive(Serialize)]
pub(super) struct Decided {
    id: String,
    state: &'static str,
    #[serde(rename = "said")]
    message: &'static str,
}

/// A proposal, and whether the caller could decide about it.
struct Seen {
    proposal: ProposalView,
    may_decide: bool,
}

/// A page of the proposals that the caller may see, oldest first.
pub(super) fn list(dispatch: &Dispatch, call: &Call) -> Result<ProposalPage, Refusal> {
    let ListArguments { all, after, limit } = arguments::read(&call.request)?;
    let limit = limit.unwrap_or(PAGE_PROPOSALS).clamp(1, PAGE_PROPOSALS_MAX);
    let who = &call.link.participant.id;
    let (page, more) = dispatch.with(|topic| {
        let after = after
            .as_deref()
            .map(|after| find(topic, call, after))
            .transpose()?;
        let capabilities = held(topic, call);
        // A proposal that is over since the page before is the place where this one begins all the
        // same.
        let mut proposals = topic.proposals(who, &capabilities, all || after.is_some());
        if let Some(after) = after {
            let at = proposals.iter().position(|proposal| proposal.id == after);
            proposals.drain(..at.map_or(0, |at| at + 1));
        }
        proposals.retain(|proposal| all || !proposal.state.is_over());
        let more = proposals.len() > limit;
        let page = proposals.into_iter().take(limit).map(|proposal| {
            let may_decide =
                topic.could_decide(proposal.id, who, &capabilities) && !topic.is_braked(who);
            Seen {
                proposal,
                may_decide,
            }
        });
        Ok::<_, Refusal>((page.collect::<Vec<_>>(), more))
    })?;
    let next = page
        .last()
        .filter(|_| more)
        .map(|last| last.proposal.id.to_string());
    let in_full = page.iter().filter(|seen| is_listed_in_full(seen));
    note_shown(dispatch, call, &in_full.collect::<Vec<_>>());
    let proposals = page.iter().map(|seen| shown(seen, who, false)).collect();
    Ok(ProposalPage {
        proposals,
        more,
        next,
    })
}

/// One proposal in full.
pub(super) fn show(dispatch: &Dispatch, call: &Call) -> Result<ShownProposal, Refusal> {
    let ShowArguments { id } = arguments::read(&call.request)?;
    let who = &call.link.participant.id;
    let seen = dispatch.with(|topic| {
        let proposal = topic
            .proposal(find(topic, call, &id)?)
            .ok_or_else(unknown_proposal)?;
        let capabilities = held(topic, call);
        let may_decide =
            topic.could_decide(proposal.id, who, &capabilities) && !topic.is_braked(who);
        Ok::<_, Refusal>(Seen {
            proposal,
            may_decide,
        })
    })?;
    note_shown(dispatch, call, &[&seen]);
    Ok(shown(&seen, who, true))
}

/// Notes that the caller is shown these proposals in full.
fn note_shown(dispatch: &Dispatch, call: &Call, seen: &[&Seen]) {
    let capabilities = dispatch.with(|topic| held(topic, call));
    let views: Vec<&ProposalView> = seen.iter().map(|seen| &seen.proposal).collect();
    dispatch.note_shown(&call.link.participant.id, &capabilities, &views);
}

/// Whether a list shows a proposal in full.
fn is_listed_in_full(seen: &Seen) -> bool {
    let len = |part: &Option<String>| part.as_ref().map_or(0, String::len);
    let steps = seen.proposal.content.steps();
    let bytes = steps.map(|step| len(&step.params) + len(&step.tool));
    bytes.sum::<usize>() <= LISTED_BYTES_MAX
}

/// Approves another participant's proposal.
pub(super) async fn approve(dispatch: Arc<Dispatch>, call: Arc<Call>) -> Result<Decided, Refusal> {
    let ApproveArguments {
        id,
        digest: seen,
        arguments,
        note,
    } = arguments::read(&call.request)?;
    let arguments = arguments.map(|raw| raw.get().to_owned());
    decide(
        &dispatch,
        &call,
        &id,
        Choice::Approve {
            digest: digest(&seen)?,
            arguments,
            note,
        },
        APPROVED,
    )
    .await
}

/// Shows others that the caller looks at a proposal.
pub(super) fn claim(dispatch: &Arc<Dispatch>, call: &Call) -> Result<Decided, Refusal> {
    let ShowArguments { id } = arguments::read(&call.request)?;
    let id = dispatch.with(|topic| find(topic, call, &id))?;
    dispatch.claim(id, deciding_caller(call))?;
    Ok(outcome(dispatch, id, CLAIMED))
}

/// Gives more time to decide about another participant's proposal.
pub(super) async fn extend(dispatch: Arc<Dispatch>, call: Arc<Call>) -> Result<Decided, Refusal> {
    let ShowArguments { id } = arguments::read(&call.request)?;
    decide(&dispatch, &call, &id, Choice::Extend, EXTENDED).await
}

/// Replaces the arguments of a proposal of the caller's own.
pub(super) async fn amend(dispatch: Arc<Dispatch>, call: Arc<Call>) -> Result<Decided, Refusal> {
    let AmendArguments { id, arguments } = arguments::read(&call.request)?;
    let arguments = arguments.get().to_owned();
    decide(&dispatch, &call, &id, Choice::Amend { arguments }, AMENDED).await
}

/// Rejects another participant's proposal.
pub(super) async fn reject(dispatch: Arc<Dispatch>, call: Arc<Call>) -> Result<Decided, Refusal> {
    let RejectArguments { id, code, reason } = arguments::read(&call.request)?;
    let choice = Choice::Reject {
        reason: reason.filter(|reason| !reason.is_empty()),
        code: chosen_reason(code.as_deref())?,
    };
    decide(&dispatch, &call, &id, choice, REJECTED).await
}

async fn decide(
    dispatch: &Arc<Dispatch>,
    call: &Call,
    id: &str,
    choice: Choice,
    message: &'static str,
) -> Result<Decided, Refusal> {
    let id = dispatch
        .with(|topic| named(topic, id))
        .ok_or_else(unknown)?;
    // The decision finds out whether the caller may see the proposal: after it is on disk, and with
    // an audit entry.
    let decided = dispatch.decide(id, deciding_caller(call), choice).await;
    decided.map_err(|refusal| match refusal.code {
        RefusalCode::UnknownTarget => unknown(),
        _ => refusal,
    })?;
    Ok(outcome(dispatch, id, message))
}

fn outcome(dispatch: &Dispatch, id: OperationId, message: &'static str) -> Decided {
    let state = dispatch.with(|topic| topic.proposal(id).map(|proposal| proposal.state));
    Decided {
        id: id.to_string(),
        state: state.unwrap_or(ProposalState::Pending).as_str(),
        message,
    }
}

/// The caller as one that decides.
pub(super) fn deciding_caller(call: &Call) -> Decider<'_> {
    Decider {
        id: &call.link.participant.id,
        outside: None,
        narrowing: call.narrowing(),
        address: call.address,
        by_person: call.link.participant.is_signed_in(),
    }
}

/// Capabilities of the caller, as far as its access token is good for them.
pub(super) fn held(topic: &Topic, call: &Call) -> Arc<Capabilities> {
    topic.granted_to(&call.link.participant.id, None, call.narrowing())
}

/// The proposal of this id, if the caller may see it.
fn find(topic: &Topic, call: &Call, text: &str) -> Result<OperationId, Refusal> {
    let who = &call.link.participant.id;
    let capabilities = held(topic, call);
    let visible = |id: &OperationId| topic.may_see_proposal(*id, who, &capabilities);
    named(topic, text).filter(visible).ok_or_else(unknown)
}

/// The proposal of this id, or else the one that an envelope of this id made: envelope ids are
/// chosen by their senders.
pub(super) fn named(topic: &Topic, text: &str) -> Option<OperationId> {
    let own = text
        .parse::<OperationId>()
        .ok()
        .filter(|id| topic.proposal(*id).is_some());
    own.or_else(|| topic.proposed_by(text).map(|(id, _)| id))
}

fn unknown() -> Refusal {
    unknown_proposal().hint("list_proposals returns those that you may see")
}

fn shown(seen: &Seen, who: &ParticipantId, whole: bool) -> ShownProposal {
    let Seen {
        proposal,
        may_decide,
    } = seen;
    let opened = &proposal.content.opened;
    let text = |text: &str| json::visible::lines(text);
    let in_full = whole || is_listed_in_full(seen);
    let raw = |part: Option<&str>| part.filter(|_| in_full).and_then(safe_text::raw);
    let edited = proposal
        .ruling
        .as_ref()
        .and_then(|ruling| ruling.params.as_deref());
    // In the legacy form, as in the room.
    let answer = proposal.answer.as_ref().filter(|_| whole);
    let answer = answer.map(|answer| payload::answer(answer, &opened.method, None));
    let (answer, long) = match answer
        .as_deref()
        .and_then(|answer| std::str::from_utf8(answer).ok())
    {
        Some(answer) if answer.len() > ANSWER_BYTES_MAX => (None, Some(answer)),
        answer => (answer, None),
    };
    let rule = rule_of(proposal);
    // A reviewer that looks for one call must not take a plan for its first step.
    let is_single = proposal.content.is_single();
    ShownProposal {
        id: proposal.id.to_string(),
        envelope: text(&proposal.envelope),
        state: proposal.state.as_str(),
        by: text(&opened.by),
        to: proposal
            .content
            .receivers()
            .iter()
            .map(|to| text(to))
            .collect(),
        method: text(&opened.method),
        target: opened.context.as_deref().filter(|_| is_single).map(text),
        own: proposal.by == *who,
        may_decide: *may_decide && proposal.state == ProposalState::Pending,
        in_full,
        params: raw(opened.params.as_deref().filter(|_| is_single)),
        tool: raw(opened.tool.as_deref().filter(|_| is_single)),
        digest: in_full.then(|| opened.digest.clone()),
        at: rfc3339(opened.at_ms),
        expires: rfc3339(proposal.expires_wall_ms),
        claims: proposal
            .claims
            .iter()
            .map(|one| ShownClaim {
                by: text(one.by.as_str()),
                since: rfc3339(one.since_ms),
            })
            .collect(),
        approvals: Some(proposal.approvals).filter(|count| *count > 1),
        approved_by: proposal
            .approved_by
            .iter()
            .map(|by| text(by.as_str()))
            .collect(),
        decided_by: decider(proposal).map(text),
        rule: rule.map(|one| one.rule.to_string()),
        rule_author: rule.map(|one| text(one.author.as_str())),
        edited: raw(edited),
        code: code_of(proposal),
        reason: proposal.reason.as_deref().map(text),
        notes: notes_of(proposal)
            .iter()
            .map(|one| ShownNote {
                by: text(one.by.as_str()),
                note: text(one.note),
            })
            .collect(),
        answer: answer.and_then(safe_text::raw),
        answer_begins: long.map(|long| safe_text::beginning(long, ANSWER_BYTES_MAX)),
        plan: proposal.plan.as_ref().map(|place| ShownPlace {
            id: place.plan.to_string(),
            step: place.number(),
            of: place.of(),
        }),
        steps: steps_of(proposal, in_full),
    }
}
