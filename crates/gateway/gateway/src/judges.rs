//! Deciders of proposals beside people: rules on their authors' authority, and an approver outside on
//! that of its participant. Each decides through the topic, as its participant, or leaves the proposal
//! to people.

use std::sync::Arc;

use model::{OperationId, ParticipantId};

use crate::dispatch::Dispatch;
use crate::proposals::content::Proposed;

/// Decides proposals on the authority of a participant.
pub(crate) trait Judge {
    /// Whether it judges proposals now.
    fn is_active(&self) -> bool;

    /// Judges an undecided proposal, and waits for nothing meanwhile. It may be judged again: with
    /// other rules, or another definition of its tool.
    fn judge(&self, dispatch: &Arc<Dispatch>, proposal: OperationId);

    /// A proposal is approved, and runs.
    fn approved(&self, proposal: OperationId);

    /// A proposal is over.
    fn conclude(&self, proposal: OperationId);
}

/// The judges of a topic, in the order in which they judge.
fn judges(dispatch: &Dispatch) -> [&dyn Judge; 2] {
    [&dispatch.rules, &dispatch.outside]
}

/// Has the judges judge one proposal. Without one that decides it, it stays with people.
pub(crate) fn one(dispatch: &Arc<Dispatch>, proposal: OperationId) {
    if is_in_plan(dispatch, proposal) {
        return;
    }
    for judge in judges(dispatch) {
        if judge.is_active() {
            judge.judge(dispatch, proposal);
        }
    }
}

/// Whether a proposal is a step of a plan: people decide about those.
fn is_in_plan(dispatch: &Dispatch, proposal: OperationId) -> bool {
    dispatch.with(|topic| {
        let proposed = topic.proposed(proposal);
        proposed.is_some_and(|(content, _)| content.opened.plan.is_some())
    })
}

/// Has the approver outside judge a proposal that needs more approvals: it could not while the one
/// before was written. Rules have judged what is proposed already.
pub(crate) fn after_approval(dispatch: &Arc<Dispatch>, proposal: OperationId) {
    if dispatch.outside.is_active() && !is_in_plan(dispatch, proposal) {
        dispatch.outside.judge(dispatch, proposal);
    }
}

/// Has the judges judge all proposals that wait for a decision.
pub(crate) fn all(dispatch: &Arc<Dispatch>) {
    some(dispatch, |_| true);
}

/// Has the judges judge the proposals for a server that has listed its tools.
pub(crate) fn of_server(dispatch: &Arc<Dispatch>, server: &ParticipantId) {
    some(dispatch, |content| {
        content.opened.to.iter().any(|to| to == server.as_str())
    });
}

fn some(dispatch: &Arc<Dispatch>, is_meant: impl Fn(&Proposed) -> bool) {
    if !judges(dispatch).iter().any(|judge| judge.is_active()) {
        return;
    }
    let mut waiting: Vec<OperationId> = dispatch.with(|topic| {
        let undecided = topic.undecided();
        let meant = undecided.filter(|(_, content)| is_meant(content));
        meant.map(|(id, _)| id).collect()
    });
    waiting.sort_unstable();
    for proposal in waiting {
        one(dispatch, proposal);
    }
}

/// Tells the judges that a proposal is approved.
pub(crate) fn approved(dispatch: &Dispatch, proposal: OperationId) {
    for judge in judges(dispatch) {
        judge.approved(proposal);
    }
}

/// Tells the judges that a proposal is over.
pub(crate) fn conclude(dispatch: &Dispatch, proposal: OperationId) {
    for judge in judges(dispatch) {
        judge.conclude(proposal);
    }
}
