//! One proposal, and decisions about it: `/api/v1/proposals/{id}`.

use gateway::by_rule::decided_by::{code_of, decider, notes_of, rule_of};
use gateway::proposals::decide::{Choice, Decider, chosen_reason, digest, unknown_proposal};
use gateway::{Dispatch, ProposalView};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::{collections::HashMap, net::IpAddr, sync::Arc};
use utoipa::ToSchema;
use wire::{mcpx::payload, time::rfc3339};

use auth::Participant;
use axum::extract::{FromRequestParts, Path, Query};
use axum::{Json, http::request::Parts};
use model::{OperationId, ProposalState};

use crate::error::{ApiError, ApiResult, Problem};
use crate::seen_rules::may_see;
use crate::state::{Api, Body, Caller, address};

/// One proposal that the caller may see, in full.
///
/// The client shows it to a person, unless it says `shown=false`: rules are learned only from decisions
/// about what was shown for a while.
#[utoipa::path(
    get,
    path = "/api/v1/proposals/{id}",
    params(("id" = String, Path), ("shown" = Option<bool>, Query)),
    responses((status = 200, body = Proposal), (status = "4XX", body = Problem))
)]
pub(crate) async fn proposal(
    Review {
        dispatch,
        caller,
        id,
        address: _,
    }: Review,
    Query(query): Query<HashMap<String, String>>,
) -> ApiResult<Json<Proposal>> {
    let found = dispatch.with(|topic| {
        if topic.may_see_proposal(id, &caller.id, &caller.capabilities) {
            topic.proposal(id)
        } else {
            None
        }
    });
    let found = found.ok_or_else(unknown_proposal)?;
    if query.get("shown").is_none_or(|shown| shown != "false") {
        dispatch.note_shown(&caller.id, &caller.capabilities, &[&found]);
    }
    Ok(Json(Proposal::seen(&dispatch, &caller, &found)))
}

/// Approves a proposal: the proposed request runs once, for its proposer.
#[utoipa::path(
    post,
    path = "/api/v1/proposals/{id}/approve",
    params(("id" = String, Path)),
    request_body = Approval,
    responses((status = 200, body = Proposal), (status = "4XX", body = Problem))
)]
pub(crate) async fn approve(
    review: Review,
    Body(Approval {
        digest: shown,
        arguments,
        note,
    }): Body<Approval>,
) -> ApiResult<Json<Proposal>> {
    let arguments = arguments.map(|raw| raw.get().to_owned());
    review
        .decide(Choice::Approve {
            digest: digest(&shown)?,
            arguments,
            note,
        })
        .await
}

/// Rejects a proposal: it never runs.
#[utoipa::path(
    post,
    path = "/api/v1/proposals/{id}/reject",
    params(("id" = String, Path)),
    request_body = Rejection,
    responses((status = 200, body = Proposal), (status = "4XX", body = Problem))
)]
pub(crate) async fn reject(
    review: Review,
    Body(Rejection { code, reason }): Body<Rejection>,
) -> ApiResult<Json<Proposal>> {
    let code = chosen_reason(code.as_deref())?;
    review.decide(Choice::Reject { reason, code }).await
}

/// Withdraws a proposal of the caller's own.
#[utoipa::path(
    post,
    path = "/api/v1/proposals/{id}/withdraw",
    params(("id" = String, Path)),
    request_body = Withdrawal,
    responses((status = 200, body = Proposal), (status = "4XX", body = Problem))
)]
pub(crate) async fn withdraw(
    review: Review,
    Body(Withdrawal { reason }): Body<Withdrawal>,
) -> ApiResult<Json<Proposal>> {
    review.decide(Choice::Withdraw { reason }).await
}

/// Shows others who may decide about a proposal that the caller looks at it.
///
/// It ends by itself after five minutes, unless the caller claims again, and with the proposal. It
/// stops no participant from deciding.
#[utoipa::path(
    post,
    path = "/api/v1/proposals/{id}/claim",
    params(("id" = String, Path)),
    responses((status = 200, body = Proposal), (status = "4XX", body = Problem))
)]
pub(crate) async fn claim(review: Review) -> ApiResult<Json<Proposal>> {
    review.dispatch.claim(review.id, review.decider())?;
    review.shown()
}

/// Gives ten minutes more to decide about a proposal, at most ten times.
#[utoipa::path(
    post,
    path = "/api/v1/proposals/{id}/extend",
    params(("id" = String, Path)),
    responses((status = 200, body = Proposal), (status = "4XX", body = Problem))
)]
pub(crate) async fn extend(review: Review) -> ApiResult<Json<Proposal>> {
    review.decide(Choice::Extend).await
}

/// Replaces the arguments of a proposal of the caller's own that is not decided yet.
///
/// Reviewers look at it again: approvals of the former arguments are void.
#[utoipa::path(
    post,
    path = "/api/v1/proposals/{id}/amend",
    params(("id" = String, Path)),
    request_body = Amendment,
    responses((status = 200, body = Proposal), (status = "4XX", body = Problem))
)]
pub(crate) async fn amend(
    review: Review,
    Body(Amendment { arguments }): Body<Amendment>,
) -> ApiResult<Json<Proposal>> {
    let arguments = arguments.get().to_owned();
    review.decide(Choice::Amend { arguments }).await
}

/// A proposal that the request names, in its topic, and the caller with its capabilities there.
/// Whether the caller may see it is not known yet: a decision about a proposal that it may not see
/// is refused, and recorded, where the proposal is.
pub(crate) struct Review {
    pub(crate) dispatch: Arc<Dispatch>,
    pub(crate) caller: Arc<Participant>,
    pub(crate) id: OperationId,
    /// The address of the request.
    pub(crate) address: Option<IpAddr>,
}

impl FromRequestParts<Api> for Review {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> ApiResult<Self> {
        let Caller(caller) = Caller::from_request_parts(parts, api).await?;
        let named = Path::<String>::from_request_parts(parts, api).await.ok();
        let id: Option<OperationId> = named.and_then(|Path(id)| id.parse().ok());
        let id = id.ok_or_else(unknown_proposal)?;
        for (dispatch, caller) in api.registry.topics_of(&caller) {
            if dispatch.with(|topic| topic.proposed(id).is_some()) {
                return Ok(Self {
                    dispatch,
                    caller,
                    id,
                    address: address(parts),
                });
            }
        }
        Err(unknown_proposal().into())
    }
}

impl Review {
    /// Decides, and returns the proposal as it is then.
    async fn decide(self, choice: Choice) -> ApiResult<Json<Proposal>> {
        let by = self.decider();
        self.dispatch.decide(self.id, by, choice).await?;
        self.shown()
    }

    /// The caller as one that decides.
    fn decider(&self) -> Decider<'_> {
        Decider {
            id: &self.caller.id,
            outside: Some(&self.caller.capabilities),
            narrowing: self.caller.narrowing(),
            address: self.address,
            by_person: true,
        }
    }

    /// The proposal as it is now.
    fn shown(&self) -> ApiResult<Json<Proposal>> {
        let found = self.dispatch.with(|topic| topic.proposal(self.id));
        let found = found.ok_or_else(unknown_proposal)?;
        Ok(Json(Proposal::seen(&self.dispatch, &self.caller, &found)))
    }
}

/// A proposal.
#[derive(Serialize, ToSchema)]
pub(crate) struct Proposal {
    /// Its id.
    pub(crate) id: String,
    /// Its topic.
    topic: String,
    /// `pending`, `running`, `completed`, `failed`, `rejected`, `withdrawn` or `expired`.
    state: String,
    /// The proposer.
    by: String,
    /// The participants that are to carry it out; empty means every one.
    to: Vec<String>,
    /// The proposed method.
    method: String,
    /// The target of the method, such as the name of a tool at its server.
    context: Option<String>,
    /// The id of the envelope that proposed it. A request that fulfils the proposal has it as its
    /// `correlation_id`.
    envelope: String,
    /// The params, as the proposer wrote them, unless they are `amended`.
    #[schema(value_type = Option<Object>)]
    params: Option<Box<RawValue>>,
    /// The tool's definition, as its server lists it.
    #[schema(value_type = Option<Object>)]
    tool: Option<Box<RawValue>>,
    /// Whether every part is here. A list leaves out long ones.
    in_full: bool,
    /// The digest of the whole. An approval names it.
    digest: String,
    /// Whether it is a call that the gateway holds until the decision.
    held: bool,
    /// Whether the caller of that call waits for it now. One that was answered for now, or has gone,
    /// does not.
    waited_for: bool,
    /// When it was made, RFC 3339.
    at: String,
    /// When it expires without a decision, RFC 3339.
    expires: String,
    /// The number of times that its expiry was moved.
    extensions: usize,
    /// The number of times that its proposer replaced its arguments.
    amendments: usize,
    /// The participants that look at it, by name; empty unless it is pending.
    claims: Vec<ProposalClaim>,
    /// Whether a reviewer has changed the params, of one that needs several approvals: these are what
    /// others approve.
    amended: bool,
    /// The number of different participants that must approve it before it runs.
    approvals: usize,
    /// The participants whose approvals count so far, before the last one; for a rule its author.
    approved_by: Vec<String>,
    /// The participant that decided, or `rules`.
    decided_by: Option<String>,
    /// The rule that decided, with its version.
    rule: Option<String>,
    /// The author of the rule, on whose authority it decided.
    rule_author: Option<String>,
    /// The decisions that rules in shadow would have made, of those that the caller may see.
    would: Vec<WouldDecide>,
    /// The params that ran, if the reviewer edited them.
    #[schema(value_type = Option<Object>)]
    edited: Option<Box<RawValue>>,
    /// The reason that its reviewer chose from the list to reject it: `arguments` or `context`.
    code: Option<String>,
    /// The reason for its state, in words.
    reason: Option<String>,
    /// Notes of reviewers to the proposer, in the order of their approvals.
    notes: Vec<ReviewerNote>,
    /// The JSON-RPC answer to the request that ran.
    #[schema(value_type = Option<Object>)]
    answer: Option<Box<RawValue>>,
    /// Whether it ran without success: also one that is `completed`, with an error that the tool
    /// returned.
    failed: bool,
    /// Its place in a plan, if it is a step of one. A later step is pending until its turn comes, and
    /// is not decided about.
    plan: Option<PlanPosition>,
    /// Of the first step of a plan: all its steps, in their order. A decision is about all of them, so
    /// its own `context`, `params` and `tool` are here alone.
    steps: Vec<PlannedStep>,
}

/// The place of a proposal in a plan.
#[derive(Serialize, ToSchema)]
struct PlanPosition {
    /// The plan: the id of its first step.
    id: String,
    /// The number of the step; the first is 1.
    step: usize,
    /// The number of steps.
    of: usize,
}

/// One step of a plan.
#[derive(Serialize, ToSchema)]
pub(crate) struct PlannedStep {
    /// The id of its proposal.
    id: String,
    /// Its state, if it is known.
    state: Option<String>,
    /// Whether it has ended without success: also one that is `completed`, with an error that the tool
    /// returned. The plan goes on after no such step.
    failed: bool,
    /// The server that carries it out.
    to: Vec<String>,
    /// The method.
    method: String,
    /// The name of the tool at its server.
    context: Option<String>,
    /// The params.
    #[schema(value_type = Option<Object>)]
    params: Option<Box<RawValue>>,
    /// The tool's definition, as its server lists it.
    #[schema(value_type = Option<Object>)]
    tool: Option<Box<RawValue>>,
}

impl PlannedStep {
    /// The steps of a plan, without their states; none of another proposal.
    fn all(view: &ProposalView, parts: &mut LongParts) -> Vec<Self> {
        if view.content.is_single() {
            return Vec::new();
        }
        let steps = view.content.steps().map(|step| Self {
            id: step.id.clone(),
            state: None,
            failed: false,
            to: step.to.clone(),
            method: step.method.clone(),
            context: step.context.clone(),
            params: parts.json(step.params.as_deref()),
            tool: parts.json(step.tool.as_deref()),
        });
        steps.collect()
    }

    /// Notes the state that it has now.
    fn note_state(&mut self, dispatch: &Dispatch) {
        let Ok(id) = self.id.parse() else { return };
        let step = dispatch.with(|topic| topic.proposal(id));
        self.failed = step.as_ref().is_some_and(has_failed);
        self.state = step.map(|step| step.state.as_str().to_owned());
    }
}

/// Whether a proposal ran without success: a plan does not go on after such a step.
fn has_failed(ran: &ProposalView) -> bool {
    match ran.state {
        ProposalState::Failed => true,
        ProposalState::Completed => !ran.answer.as_ref().is_some_and(gateway::is_plain_result),
        ProposalState::Pending
        | ProposalState::Running
        | ProposalState::Rejected
        | ProposalState::Withdrawn
        | ProposalState::Expired => false,
    }
}

/// A decision that a rule in shadow would have made.
#[derive(Serialize, ToSchema)]
struct WouldDecide {
    /// The rule, with its version.
    rule: String,
    /// Its author.
    author: String,
    /// `approve`, `reject`, or `ask`, which leaves it to people.
    decision: String,
    /// It in English.
    words: String,
}

/// A participant that looks at a proposal.
#[derive(Serialize, ToSchema)]
struct ProposalClaim {
    /// The participant.
    by: String,
    /// Since when, RFC 3339.
    since: String,
}

impl ProposalClaim {
    /// The participants that look at a proposal.
    fn all(view: &ProposalView) -> Vec<Self> {
        let claims = view.claims.iter().map(|one| Self {
            by: one.by.to_string(),
            since: rfc3339(one.since_ms),
        });
        claims.collect()
    }
}

/// The note of a reviewer with an approval.
#[derive(Serialize, ToSchema)]
struct ReviewerNote {
    /// The reviewer.
    by: String,
    /// The note.
    note: String,
}

impl ReviewerNote {
    /// The notes of a proposal's reviewers.
    fn all(view: &ProposalView) -> Vec<Self> {
        let notes = notes_of(view);
        let notes = notes.iter().map(|one| Self {
            by: one.by.to_string(),
            note: one.note.to_owned(),
        });
        notes.collect()
    }
}

/// An approval.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Approval {
    /// The digest of the proposal that the reviewer was shown.
    pub digest: String,
    /// Arguments for the tool in place of the proposed ones.
    #[schema(value_type = Option<Object>)]
    pub arguments: Option<Box<RawValue>>,
    /// A note for the proposer, in words; at most 4096 bytes.
    pub note: Option<String>,
}

/// Other arguments of a proposal.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Amendment {
    /// Arguments for the tool in place of the proposed ones.
    #[schema(value_type = Object)]
    pub arguments: Box<RawValue>,
}

/// A rejection.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rejection {
    /// The reason, from a list: `arguments` (the call itself, as its arguments show it) or
    /// `context` (the moment or the context, which no argument shows).
    pub code: Option<String>,
    /// The reason, in words for the proposer; at most 4096 bytes.
    pub reason: Option<String>,
}

/// A withdrawal.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Withdrawal {
    /// The reason, in words for the record; at most 4096 bytes.
    pub reason: Option<String>,
}

/// A proposal in a list.
pub(crate) struct ListedProposal {
    pub(crate) proposal: Proposal,
    /// Bytes in it that participants and servers wrote.
    pub(crate) written_bytes: usize,
}

/// Parts of a proposal that are as long as what was proposed.
struct LongParts {
    /// The longest that is taken over.
    bytes_max: usize,
    /// Whether all were.
    in_full: bool,
    /// Bytes of those that were.
    bytes: usize,
}

impl LongParts {
    /// A part as it is spelled, unless it is too long.
    fn json(&mut self, text: Option<&str>) -> Option<Box<RawValue>> {
        let text = text?;
        if text.len() > self.bytes_max {
            self.in_full = false;
            return None;
        }
        self.bytes += text.len();
        RawValue::from_string(text.to_owned()).ok()
    }
}

impl Proposal {
    /// A proposal as the API shows it to a caller.
    pub(crate) fn seen(dispatch: &Dispatch, caller: &Participant, view: &ProposalView) -> Self {
        ListedProposal::of(dispatch, caller, view, usize::MAX).proposal
    }

    /// A proposal as the API shows it, without what rules in shadow would have decided.
    fn of(view: &ProposalView, parts: &mut LongParts) -> Self {
        let opened = &view.content.opened;
        let edited = view
            .ruling
            .as_ref()
            .and_then(|ruling| ruling.params.as_deref());
        let answer = view
            .answer
            .as_ref()
            .map(|answer| payload::answer(answer, &opened.method, None));
        let answer = answer
            .as_ref()
            .and_then(|answer| std::str::from_utf8(answer).ok());
        let rule = rule_of(view);
        let is_single = view.content.is_single();
        let params = parts.json(opened.params.as_deref().filter(|_| is_single));
        let tool = parts.json(opened.tool.as_deref().filter(|_| is_single));
        let edited = parts.json(edited);
        let answer = parts.json(answer);
        let steps = PlannedStep::all(view, parts);
        Self {
            id: view.id.to_string(),
            topic: opened.topic.clone(),
            state: view.state.as_str().to_owned(),
            by: opened.by.clone(),
            to: view.content.receivers(),
            method: opened.method.clone(),
            context: opened.context.clone().filter(|_| is_single),
            envelope: opened.envelope.clone(),
            params,
            tool,
            in_full: parts.in_full,
            digest: opened.digest.clone(),
            held: opened.held,
            waited_for: false,
            at: rfc3339(opened.at_ms),
            expires: rfc3339(view.expires_wall_ms),
            extensions: view.extensions,
            amendments: view.amendments,
            claims: ProposalClaim::all(view),
            amended: view.content.is_amended,
            approvals: view.approvals,
            approved_by: view.approved_by.iter().map(ToString::to_string).collect(),
            decided_by: decider(view).map(str::to_owned),
            rule: rule.map(|one| one.rule.to_string()),
            rule_author: rule.map(|one| one.author.to_string()),
            would: Vec::new(),
            edited,
            code: code_of(view).map(str::to_owned),
            reason: view.reason.as_deref().map(str::to_owned),
            notes: ReviewerNote::all(view),
            answer,
            // One that a participant has carried out in the room may have no answer.
            failed: view.answer.is_some() && has_failed(view)
                || view.state == ProposalState::Failed,
            plan: view.plan.as_ref().map(|place| PlanPosition {
                id: place.plan.to_string(),
                step: place.number(),
                of: place.of(),
            }),
            steps,
        }
    }
}

impl ListedProposal {
    /// A proposal for a caller. Parts that are longer than this are left out.
    pub(crate) fn of(
        dispatch: &Dispatch,
        caller: &Participant,
        view: &ProposalView,
        part_bytes_max: usize,
    ) -> Self {
        let would = dispatch.would_have(view).into_iter();
        let would = would.filter(|one| may_see(caller, &one.rule));
        let would = would.map(|one| WouldDecide {
            rule: one.rule.name.to_string(),
            author: one.rule.author.to_string(),
            decision: one.decision.as_str().to_owned(),
            words: one.words(),
        });
        let mut parts = LongParts {
            bytes_max: part_bytes_max,
            in_full: true,
            bytes: 0,
        };
        let waited_for = view.held && dispatch.with(|topic| topic.is_waited_for(view.id));
        let mut proposal = Proposal {
            would: would.collect(),
            waited_for,
            ..Proposal::of(view, &mut parts)
        };
        for step in &mut proposal.steps {
            step.note_state(dispatch);
        }
        let words = proposal.reason.as_ref().map_or(0, String::len)
            + proposal
                .notes
                .iter()
                .map(|one| one.note.len())
                .sum::<usize>();
        Self {
            proposal,
            written_bytes: parts.bytes + words,
        }
    }
}
