//! Plans: several calls of tools that a participant proposes as one, and the turns of their steps.

use std::sync::Arc;

use model::method::CALL_TOOL;
use model::{Digest, Method, OperationId, ParticipantId, ProposalState, Refusal, RefusalCode};
use platform::{random, unix_ms};
use tokio::sync::oneshot;
use topic::{
    PLAN_STEPS_MAX, PLAN_STEPS_MIN, PlanStep, ProposePlan, PublicTarget, RequestWay, RunStep,
};
use upstream::curation::Author;

use super::content::{self, Proposed, Ruling};
use super::kept::{KeptProposal, OpenedProposal, PlanRecord};
use super::open::{self, Opening, Wanted};
use crate::by_rule::facts::CallFacts;
use crate::live::{Event, Live, ProposalView};
use crate::{curation, dispatch::Dispatch, link::Requester};

/// One call of a plan, as a participant proposes it.
#[derive(Debug, Clone)]
pub struct PlannedCall {
    /// The public name of the tool.
    pub name: String,
    /// Its arguments: a JSON object.
    pub arguments: String,
}

/// A step of a plan that is proposed: what the topic decides about, and the name that it was
/// proposed under.
struct Step {
    opening: Opening,
    public: String,
}

impl Dispatch {
    /// Proposes a plan, and waits until it is on disk. Returns its steps, in their order.
    ///
    /// # Errors
    /// Why it cannot be proposed; nothing of it is.
    pub async fn propose_plan(
        self: &Arc<Self>,
        by: Requester<'_>,
        calls: &[PlannedCall],
    ) -> Result<Vec<ProposalView>, Refusal> {
        if !(PLAN_STEPS_MIN..=PLAN_STEPS_MAX).contains(&calls.len()) {
            let why = format!("a plan has {PLAN_STEPS_MIN} to {PLAN_STEPS_MAX} steps");
            return Err(Refusal::new(RefusalCode::Malformed, why));
        }
        // After a restart servers list their tools a little later.
        self.wait_for_servers().await;
        let mut steps = Vec::new();
        for (at, call) in calls.iter().enumerate() {
            let step = step_of(self, by, call).and_then(|step| {
                refuse_rejected(self, &step.opening)?;
                Ok(step)
            });
            steps.push(step.map_err(|refusal| of_step(at, refusal))?);
        }
        let (steps, opened) = as_one(steps)?;
        // The first one has all of them in it.
        if let Some(first) = steps.first() {
            open::refuse_without_room(self, &first.content)?;
        }
        let ids: Vec<OperationId> = steps.iter().map(|step| step.proposal).collect();
        self.take(Event::ProposePlan(ProposePlan {
            by: &by.link.participant.id,
            outside: None,
            narrowing: by.narrowing(),
            steps,
        }));
        let lost = || Err(Refusal::new(RefusalCode::Internal, "the plan was lost"));
        opened.await.unwrap_or_else(|_| lost())?;
        let steps = self.with(|topic| ids.iter().filter_map(|id| topic.proposal(*id)).collect());
        Ok(steps)
    }
}

/// The refusal of a plan for one of its steps.
fn of_step(at: usize, refusal: Refusal) -> Refusal {
    let message = format!("step {}: {}", at + 1, refusal.message);
    Refusal {
        message: message.into(),
        ..refusal
    }
}

/// A call as a step: as a held call would be proposed, with the presets of its tool.
fn step_of(dispatch: &Dispatch, by: Requester<'_>, call: &PlannedCall) -> Result<Step, Refusal> {
    let participant = &by.link.participant.id;
    let (to, own) = receiver(dispatch, by, &call.name)?;
    let to = vec![to];
    let act = (CALL_TOOL.name, Some(own.as_str()));
    if !json::is_object(call.arguments.as_bytes()) {
        let why = "the arguments must be a JSON object";
        return Err(Refusal::new(RefusalCode::Malformed, why));
    }
    let params = json::object(|params| {
        params
            .text("name", &own)
            .raw("arguments", call.arguments.as_bytes());
    });
    let params = String::from_utf8_lossy(&params).into_owned();
    let whole = curation::completed_params(dispatch, &to, act, Some(&params), Author::Caller)?;
    let params = whole.unwrap_or(params);
    open::check_call(dispatch, participant, &to, act, &params)?;
    let definition = open::definition(dispatch, participant, &to, act.0, act.1);
    if definition.is_none() {
        let why = "its server has not listed this tool to you yet";
        let refusal = Refusal::new(RefusalCode::UpstreamDown, why);
        return Err(refusal.hint("list the tools, and propose the plan again"));
    }
    let wanted = Wanted {
        by: participant,
        to,
        method: act.0,
        context: act.1,
        // It has no envelope: its id must equal none that a participant chooses.
        envelope: format!("{:032x}", u128::from_le_bytes(random())),
        params: Some(params),
        call: None,
        envelope_bytes: 0,
    };
    Ok(Step {
        opening: open::open(dispatch, wanted, definition)?,
        public: call.name.clone(),
    })
}

/// Refuses a step that a rule would reject as a proposal of its own: people are not asked about it.
fn refuse_rejected(dispatch: &Dispatch, opening: &Opening) -> Result<(), Refusal> {
    let Some(facts) = CallFacts::of(dispatch, &opening.content.opened) else {
        return Ok(());
    };
    let beside = facts.beside_names();
    let call = facts.call(opening.id, &beside, unix_ms());
    match dispatch.rules.rejecting(&call) {
        None => Ok(()),
        Some(sentence) => Err(Refusal::new(RefusalCode::Forbidden, sentence)),
    }
}

/// The server of a tool that the proposer may call or propose, and the tool's name there. What it may
/// not reads like what does not exist.
fn receiver(
    dispatch: &Dispatch,
    by: Requester<'_>,
    name: &str,
) -> Result<(ParticipantId, String), Refusal> {
    let unknown = || topic::request_refusal(topic::Cause::Unknown, Some(PublicTarget::Tool(name)));
    dispatch.with(|topic| {
        let method = Method::Known(CALL_TOOL.name);
        let target = Some(PublicTarget::Tool(name));
        let found = topic.destination(by.link.id, &method, target);
        let granted = topic.granted_to(&by.link.participant.id, None, by.narrowing());
        let found = found.filter(|one| {
            let way = one.way(&granted, CALL_TOOL.name);
            way.is_some_and(|way| way != RequestWay::Refused)
        });
        let found = found.ok_or_else(|| *unknown())?;
        let own = found.own.as_deref().unwrap_or(name).to_owned();
        Ok((found.to, own))
    })
}

/// The end of an opening, once it is on disk or refused.
type Opened = oneshot::Receiver<Result<(), Refusal>>;

/// Facts that the steps of a plan have in common.
struct Whole {
    ids: Vec<String>,
    /// The digest of all steps in their order.
    digest: Digest,
    /// The approvals that the strictest step needs.
    approvals: usize,
}

impl Whole {
    fn of(steps: &[Step]) -> Self {
        let all = || steps.iter().map(|step| &step.opening);
        let digests: Vec<Digest> = all().map(|one| one.terms.digest).collect();
        Self {
            ids: all().map(|one| one.id.to_string()).collect(),
            digest: wire::digest::of_plan(&digests),
            approvals: all().map(|one| one.terms.approvals).max().unwrap_or(1),
        }
    }

    /// A step at this place. The first one is decided about, with the digest of all.
    fn step(&self, at: usize, step: Step) -> PlanStep<Live> {
        let Opening {
            id,
            content,
            mut terms,
        } = step.opening;
        if at == 0 {
            terms.digest = self.digest;
        }
        terms.approvals = self.approvals;
        let opened = OpenedProposal {
            held: true,
            digest: terms.digest.to_string(),
            approvals: (self.approvals > 1).then_some(self.approvals),
            plan: Some(PlanRecord {
                steps: self.ids.clone(),
                step: at + 1,
            }),
            ..content.opened.clone()
        };
        PlanStep {
            proposal: id,
            terms,
            content: content.as_step(opened),
            public: Some(Arc::from(step.public)),
        }
    }
}

/// Steps as one plan, and the end of its opening.
fn as_one(steps: Vec<Step>) -> Result<(Vec<PlanStep<Live>>, Opened), Refusal> {
    let whole = Whole::of(&steps);
    let steps = steps.into_iter().enumerate();
    let mut all: Vec<PlanStep<Live>> = steps.map(|(at, step)| whole.step(at, step)).collect();
    let Some((first, later)) = all.split_first_mut() else {
        return Err(Refusal::new(RefusalCode::Malformed, "a plan has steps"));
    };
    let later = later.iter().map(|step| Arc::clone(&step.content)).collect();
    let (content, opened) = first.content.with_later(later);
    first.content = content;
    Ok((all, opened))
}

/// The digest of a plan under what its servers list now; `None` if one of its steps is another one
/// now, or cannot be made any more.
pub(crate) fn current_digest(dispatch: &Dispatch, content: &Proposed) -> Option<Digest> {
    let opened = &content.opened;
    if opened.plan.is_none() || content.later.is_empty() {
        return open::current_digest(dispatch, opened);
    }
    let own = OpenedProposal {
        digest: own_digest(opened)?.to_string(),
        ..opened.clone()
    };
    let later = content.later.iter().map(|step| &step.opened);
    for step in std::iter::once(&own).chain(later) {
        let shown: Digest = step.digest.parse().ok()?;
        if open::current_digest(dispatch, step) != Some(shown) {
            return None;
        }
    }
    opened.digest.parse().ok()
}

/// The digest of the first step of a plan by itself.
fn own_digest(opened: &OpenedProposal) -> Option<Digest> {
    let to = opened.to.iter();
    let to: Vec<ParticipantId> = to.filter_map(|to| ParticipantId::new(to).ok()).collect();
    let (params, tool) = (opened.params.as_deref(), opened.tool.as_deref());
    content::digest(&to, &opened.method, params, tool).ok()
}

/// The turn of a step has come: it runs on the approval of its plan, if that can be recorded and still
/// counts for the call as it is now.
pub(crate) fn step_due(dispatch: &Arc<Dispatch>, step: &ProposalView) {
    let opened = &step.content.opened;
    dispatch.refresh_proposer(opened);
    let account = dispatch.audit.account(&step.by);
    let permit = dispatch.audit.reserve_on(account.as_ref()).ok();
    let fulfilment = dispatch.context.operation().to_string();
    // A step from inside the effect: the shell's answer to it.
    dispatch.take(Event::RunStep(RunStep {
        proposal: step.id,
        current: open::current_digest(dispatch, opened),
        fulfilment: &fulfilment,
        ruling: permit.map(|permit| Arc::new(Ruling::new(None, permit))),
    }));
}

/// The refusal of what is not done with a step of a plan, which people decide about as it is.
///
/// # Errors
/// If the proposal is a step of a plan.
pub(crate) fn check_single(opened: &OpenedProposal, what: &str) -> Result<(), Refusal> {
    if opened.plan.is_none() {
        return Ok(());
    }
    let refusal = Refusal::new(RefusalCode::Conflict, format!("a plan {what}"));
    Err(refusal.hint("approve it as it is, or reject it and have another one proposed"))
}

/// The reason for which an undecided step of a plan of before a restart ends now; `None` if it is no
/// such step, or its plan waits for a decision as a whole.
pub(super) fn stopped_by_restart(
    step: &KeptProposal,
    all: &[KeptProposal],
) -> Option<&'static str> {
    let plan = step.opened.plan.as_ref()?;
    if step.decided.is_some() || step.has_ended() {
        return None;
    }
    let find = |id: &String| all.iter().find(|one| one.opened.id == *id);
    let is_pending = |one: &KeptProposal| one.decided.is_none() && !one.has_ended();
    if plan.steps.iter().all(|id| find(id).is_some_and(is_pending)) {
        return None;
    }
    let first = plan.steps.first().and_then(find);
    let is_undecided = first.is_some_and(|first| first.decided.is_none());
    Some(match first.and_then(KeptProposal::ended_state) {
        Some(ProposalState::Rejected) => "the plan was rejected",
        Some(ProposalState::Withdrawn) => "the plan was withdrawn",
        Some(ProposalState::Expired) => "the plan expired",
        None if is_undecided => "a step of the plan has ended",
        _ => "the gateway was restarted while the plan ran",
    })
}
