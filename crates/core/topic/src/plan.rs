//! Plans: several proposals that are decided about as one, and run one after the other.

use std::sync::Arc;

use model::{Capabilities, Digest, OperationId, ParticipantId, ProposalState};

use crate::{
    Handles, Topic,
    decide::NamedBy,
    effect::{Cause, Effect},
    event::{CountedApproval, Decision, PlanPlace, PlanStep, ProposePlan, RunStep, Terms},
    proposals::{LastState, Phase, Proposal, Ruling},
    refusals,
};

/// The fewest steps of a plan.
pub const PLAN_STEPS_MIN: usize = 2;
/// The most steps of a plan: people read all of them before they decide.
pub const PLAN_STEPS_MAX: usize = 16;

/// The reason with which a step ends whose approval does not count when its turn comes.
const PROPOSER_PAUSED: &str = "its proposer is paused";
const NOT_APPROVED_ANY_MORE: &str =
    "the approval of the plan does not count any more: who gave it may not decide about this now";
/// The reason with which a step ends whose approval cannot be recorded.
const NOT_RECORDED: &str = "its approval could not be written down, so it was not run";

impl PlanPlace {
    /// The number of the step; the first is 1.
    pub fn number(&self) -> usize {
        self.at + 1
    }

    /// The number of steps.
    pub fn of(&self) -> usize {
        self.steps.len()
    }

    /// Whether it is the first step.
    pub fn is_first(&self) -> bool {
        self.at == 0
    }

    /// The steps after it.
    fn later(&self) -> &[OperationId] {
        self.steps.get(self.number()..).unwrap_or_default()
    }
}

/// The fate of the steps after one that ends.
pub(crate) enum Onward {
    /// The turn of this step has come.
    Next(OperationId),
    /// They never run, for this reason.
    Stop(Arc<[OperationId]>, Arc<str>),
}

impl<H: Handles> Topic<H> {
    /// Opens a plan: all its steps, or none. It is open to decisions once that is on disk.
    pub(crate) fn propose_plan(&mut self, proposed: ProposePlan<'_, H>) {
        let ProposePlan {
            by,
            outside,
            narrowing,
            steps,
        } = proposed;
        let granted = self.granted_to(by, outside, narrowing);
        let ids: Arc<[OperationId]> = steps.iter().map(|step| step.proposal).collect();
        let is_known = |id: &OperationId| self.proposals.known(*id).is_some();
        let Some(plan) = ids.first().copied().filter(|_| !ids.iter().any(is_known)) else {
            return;
        };
        let mut proposals = Vec::new();
        for (at, step) in steps.into_iter().enumerate() {
            let place = PlanPlace {
                plan,
                steps: Arc::clone(&ids),
                at,
            };
            proposals.push((step.proposal, step_of(step, place)));
        }
        let judged = self.may_propose_plan(by, &granted, &proposals);
        let mut proposals = proposals.into_iter();
        let Some((id, first)) = proposals.next() else {
            return;
        };
        if let Err(cause) = judged {
            let Proposal { terms, content, .. } = first;
            return self.not_proposed(id, terms.by, content, false, cause);
        }
        self.enter_proposal(id, first);
        for (id, mut step) in proposals {
            step.updated_ms = self.now_ms;
            self.proposals.insert(id, step);
        }
    }

    /// Whether the topic accepts a plan: its proposer may propose or make every step, and there is
    /// room for all.
    fn may_propose_plan(
        &self,
        by: &ParticipantId,
        granted: &Capabilities,
        steps: &[(OperationId, Proposal<H>)],
    ) -> Result<(), Cause> {
        if !(PLAN_STEPS_MIN..=PLAN_STEPS_MAX).contains(&steps.len()) {
            return Err(Cause::Malformed);
        }
        let is_own = |step: &Proposal<H>| step.terms.by == *by && self.may_still(granted, step);
        if !steps.iter().all(|(_, step)| is_own(step)) {
            return Err(Cause::NotAdmitted);
        }
        let terms: Vec<&Terms> = steps.iter().map(|(_, step)| &step.terms).collect();
        self.may_propose(&terms)
    }

    /// The requests that are decided about with a proposal: of a plan all its steps that are known, else
    /// its own.
    pub(crate) fn decided_with<'p>(
        &'p self,
        proposal: &'p Proposal<H>,
    ) -> impl Iterator<Item = &'p Proposal<H>> {
        let place = proposal.terms.plan.as_ref();
        let steps = place.into_iter().flat_map(|place| place.steps.iter());
        let steps = steps.filter_map(|id| self.proposals.known(*id));
        let single = place.is_none().then_some(proposal);
        single.into_iter().chain(steps)
    }

    /// Whether something holds of each request that is decided about with a proposal. It holds of none
    /// that is known no more.
    pub(crate) fn holds_of_all(
        &self,
        proposal: &Proposal<H>,
        holds: impl Fn(&Proposal<H>) -> bool,
    ) -> bool {
        let Some(place) = &proposal.terms.plan else {
            return holds(proposal);
        };
        let mut steps = place.steps.iter();
        steps.all(|id| self.proposals.known(*id).is_some_and(&holds))
    }

    /// The plan of which a proposal is a step.
    pub(crate) fn plan_of(&self, id: OperationId) -> Option<OperationId> {
        let place = self.proposals.known(id)?.terms.plan.as_ref()?;
        Some(place.plan)
    }

    /// The later steps of a plan, which wait for their turns; none of another proposal.
    fn later_steps(&self, id: OperationId) -> Vec<OperationId> {
        let place = self
            .proposals
            .known(id)
            .and_then(|one| one.terms.plan.as_ref());
        place.map_or_else(Vec::new, |place| place.later().to_vec())
    }

    /// Opens the later steps of a plan whose opening is on disk. They wait for their turns.
    pub(crate) fn open_later_steps(&mut self, first: OperationId) {
        for id in self.later_steps(first) {
            self.proposals.turn(id, Phase::Waiting);
        }
    }

    /// Shows the later steps of a plan, after its first one.
    pub(crate) fn show_later_steps(&mut self, first: OperationId) {
        for id in self.later_steps(first) {
            if let Some(proposal) = self.view_of(id) {
                self.effects.push(Effect::Proposed { proposal });
            }
        }
    }

    /// Removes the later steps of a plan whose opening cannot be written.
    pub(crate) fn remove_later_steps(&mut self, first: OperationId) {
        for id in self.later_steps(first) {
            self.proposals.remove(id);
        }
    }

    /// The later step that the withdrawal of a plan ends, with all after it, if the plan runs.
    pub(crate) fn rest_of_plan(&self, id: OperationId, ruling: &Ruling<H>) -> Option<OperationId> {
        let first = self.proposals.known(id)?;
        if ruling.state != ProposalState::Withdrawn || first.is_undecided() {
            return None;
        }
        let mut later = self.later_steps(id).into_iter();
        later.find(|id| self.is_waiting(*id))
    }

    fn is_waiting(&self, id: OperationId) -> bool {
        self.proposals.get(id).is_some_and(Proposal::is_waiting)
    }

    /// Withdraws a step that waits for its turn, and with it those after it. Before the plan is
    /// decided about, all of it is withdrawn.
    pub(crate) fn recall_step(&mut self, id: OperationId, reason: Arc<str>) {
        if let Some(plan) = self.plan_of(id)
            && self.proposals.get(plan).is_some_and(Proposal::is_undecided)
        {
            return self.recall(plan, reason);
        }
        self.ending(id, ProposalState::Withdrawn, Some(reason));
    }

    /// Has the approval of a plan count for its later steps too, when their turns come.
    pub(crate) fn carry_approval(
        &mut self,
        first: OperationId,
        by: ParticipantId,
        outside: Option<Arc<Capabilities>>,
    ) {
        let Some(proposal) = self.proposals.get(first) else {
            return;
        };
        if proposal.terms.is_later_step() {
            return;
        }
        let mut all = proposal.approved_by.clone();
        let outside = self.capabilities(&by).cloned().or(outside);
        all.push(CountedApproval {
            by,
            outside,
            shown: proposal.terms.digest,
            note: None,
        });
        for id in self.later_steps(first) {
            self.proposals.carry_approvals(id, &all);
        }
    }

    /// Runs a step of a plan whose turn has come, if the approval of the plan counts for it now.
    pub(crate) fn run_step(&mut self, step: RunStep<'_, H>) {
        let id = step.proposal;
        let proposal = self.proposals.get(id);
        let Some(proposal) = proposal.filter(|one| matches!(one.phase, Phase::Due)) else {
            return;
        };
        match self.step_approval(proposal, step) {
            Ok(ruling) => self.rule(id, ruling),
            Err(reason) => self.ending(id, ProposalState::Withdrawn, Some(reason)),
        }
    }

    /// The approval of a plan as that of one of its later steps.
    fn step_approval(
        &self,
        proposal: &Proposal<H>,
        step: RunStep<'_, H>,
    ) -> Result<Ruling<H>, Arc<str>> {
        let handle = step.ruling.ok_or(NOT_RECORDED)?;
        // What it has begun goes on when it is paused, and this step has not begun.
        if self.is_braked(&proposal.terms.by) {
            return Err(PROPOSER_PAUSED.into());
        }
        let count = proposal.approved_by.len();
        let is_approved = count >= proposal.terms.approvals.max(1)
            && proposal
                .approved_by
                .iter()
                .all(|one| self.may_run_on(proposal, one));
        let last = proposal.approved_by.last().filter(|_| is_approved);
        let last = last.ok_or(NOT_APPROVED_ANY_MORE)?;
        let in_words = |cause| Arc::from(&*refusals::of_decision(cause).message);
        self.may_run_step(proposal, step.current)
            .map_err(in_words)?;
        let approval = Decision::Approve {
            shown: proposal.terms.digest,
            current: step.current,
        };
        let mut ruling = Ruling::new(last.by.clone(), approval, Some(handle));
        ruling.outside.clone_from(&last.outside);
        ruling.fulfilment = Some(step.fulfilment.into());
        Ok(ruling)
    }

    /// Whether a participant that approved a plan may decide about one of its steps now.
    pub(crate) fn may_run_on(&self, step: &Proposal<H>, approval: &CountedApproval) -> bool {
        let granted = self
            .capabilities(&approval.by)
            .or(approval.outside.as_ref());
        let has_right = granted.is_some_and(|granted| {
            let mut names = [NamedBy::Servers, NamedBy::Clients].into_iter();
            names.any(|by| self.has_right_to_one(granted, step, by))
        });
        has_right && !self.is_braked(&approval.by)
    }

    /// Whether a step can be carried out as it was shown.
    fn may_run_step(&self, step: &Proposal<H>, current: Option<Digest>) -> Result<(), Cause> {
        if self.is_withheld(step) {
            return Err(Cause::ToolChanged);
        }
        if current != Some(step.terms.digest) {
            return Err(Cause::Redefined);
        }
        if self.are_away(&step.terms, &[]) {
            return Err(Cause::Away);
        }
        Ok(())
    }

    /// Goes on with a plan, or stops it, once a step of it is over.
    pub(crate) fn go_onward(&mut self, onward: Option<Onward>) {
        match onward {
            None => {}
            Some(Onward::Next(next)) => {
                self.proposals.turn(next, Phase::Due);
                if let Some(proposal) = self.view_of(next) {
                    self.effects.push(Effect::StepDue { proposal });
                }
            }
            Some(Onward::Stop(steps, why)) => {
                for step in steps.iter() {
                    if self.is_waiting(*step) {
                        self.ending(*step, ProposalState::Withdrawn, Some(Arc::clone(&why)));
                    }
                }
            }
        }
    }

    /// The fate of the later steps of a plan when this one ends. A step whose end is not on
    /// disk has an unknown outcome after a restart, so none follows it.
    pub(crate) fn onward(&self, id: OperationId, last: &LastState, stored: bool) -> Option<Onward> {
        let ended = self.proposals.get(id)?;
        let place = ended.terms.plan.as_ref()?;
        let next = *place.later().first()?;
        let has_succeeded = ended.answer.as_ref().is_some_and(H::is_success);
        if stored && last.state == ProposalState::Completed && has_succeeded {
            return self.is_waiting(next).then_some(Onward::Next(next));
        }
        let why = if stored {
            why_stopped(place, last.state)
        } else {
            let number = place.number();
            format!("the end of step {number} of the plan could not be written down")
        };
        Some(Onward::Stop(place.later().into(), why.into()))
    }
}

/// A step as a proposal that is not on disk.
fn step_of<H: Handles>(step: PlanStep<H>, place: PlanPlace) -> Proposal<H> {
    let PlanStep {
        mut terms,
        content,
        public,
        ..
    } = step;
    terms.plan = Some(place);
    let mut proposal = Proposal::new(terms, content, Phase::Opening);
    // It is a call as clients name it, and its server carries it out.
    proposal.held = true;
    proposal.public = public;
    proposal
}

/// The reason for which the steps after one never run.
fn why_stopped(place: &PlanPlace, state: ProposalState) -> String {
    let number = place.number();
    match state {
        ProposalState::Rejected => "the plan was rejected".to_owned(),
        ProposalState::Expired => "the plan expired".to_owned(),
        ProposalState::Withdrawn if place.is_first() => "the plan was withdrawn".to_owned(),
        ProposalState::Withdrawn => format!("step {number} of the plan was withdrawn"),
        ProposalState::Completed
        | ProposalState::Failed
        | ProposalState::Pending
        | ProposalState::Running => format!("step {number} of the plan failed"),
    }
}
