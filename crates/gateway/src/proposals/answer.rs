//! Answers to callers that wait for a proposal: held calls, retries, built-in tools and `tasks/result`.

use std::sync::Arc;

use model::Answer;

use crate::call::Call;
use crate::dispatch::Dispatch;
use crate::live::ProposalView;

/// A proposal as its proposer sees it.
pub(crate) struct View<'v> {
    proposal: &'v ProposalView,
}

/// Answers a caller for now.
pub(crate) fn park(dispatch: &Arc<Dispatch>, call: &Arc<Call>, proposal: &ProposalView) {
    todo!()
}

/// Answers a caller with what the proposal came to.
pub(crate) fn report(dispatch: &Arc<Dispatch>, call: &Arc<Call>, proposal: &ProposalView) {
    todo!()
}

/// Answers a call that carried out a proposal.
pub(crate) fn settle(dispatch: &Arc<Dispatch>, call: &Arc<Call>, answer: Answer, proposal: &ProposalView) {
    todo!()
}
