//! The end of a proposal's wait.

use std::time::Duration;

use platform::unix_ms;
use topic::PlanPlace;

use crate::by_rule::decided_by::rule_of;
use crate::dispatch::Dispatch;
use crate::hold_times::HoldEnd;
use crate::live::ProposalView;
use crate::traces::{self, WaitEnd};

/// Enters how long a proposal has waited, if it was decided or is over undecided now.
pub(crate) fn note(dispatch: &Dispatch, proposal: &ProposalView) {
    // Later steps of a plan are not decided about.
    let is_later = |place: &PlanPlace| !place.is_first();
    if proposal.plan.as_ref().is_some_and(is_later) {
        return;
    }
    if let Some(end) = HoldEnd::of(proposal.state, rule_of(proposal).is_some()) {
        let opened_ms = proposal.content.opened.at_ms;
        let waited_ms = unix_ms().saturating_sub(opened_ms);
        traces::waited(
            dispatch,
            proposal,
            &WaitEnd {
                decision: end.decision,
                by: end.by,
                waited_ms,
            },
        );
        let waited = Duration::from_millis(waited_ms);
        dispatch.context.holds.enter(end, waited);
    }
}
