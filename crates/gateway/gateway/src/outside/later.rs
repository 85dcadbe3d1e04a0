//! Proposals about which the approver outside could not be asked at once: it is when it can be.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use model::OperationId;
use tokio::time::sleep_until;

use super::desk::ApproverInForce;
use crate::dispatch::Dispatch;
use crate::judges::Judge;

/// Notes a proposal about which the approver cannot be asked now.
pub(super) fn skip(
    dispatch: &Arc<Dispatch>,
    approver: &Arc<ApproverInForce>,
    (proposal, by): (OperationId, &str),
    why: &'static str,
) {
    tracing::info!(%proposal, why, "the approver outside is asked later");
    dispatch.outside.skip(approver, proposal, by);
    if !approver.breaker.is_closed() {
        return after_pause(dispatch, approver);
    }
    // A place that came free meanwhile has no one look.
    if approver.requests.of(by).has_room(1) {
        let (looking, approver) = (Arc::clone(dispatch), Arc::clone(approver));
        dispatch.spawn(async move { look(&looking, &approver) });
    }
}

/// Has the approver asked about what was skipped, as far as it can be by now. One that has failed is
/// asked about one proposal, until it answers.
pub(super) fn look(dispatch: &Arc<Dispatch>, approver: &Arc<ApproverInForce>) {
    if dispatch.is_stopping() {
        return;
    }
    let desk = &dispatch.outside;
    for (proposal, by) in desk.skipped(approver) {
        if !approver.breaker.is_closed() {
            return after_pause(dispatch, approver);
        }
        if approver.breaker.is_on_trial() && approver.requests.taken() > 0 {
            return;
        }
        if approver.requests.of(&by).has_room(1) && desk.take_skipped(proposal) {
            desk.judge(dispatch, proposal);
        }
    }
}

/// Has one task look when the pause is over.
fn after_pause(dispatch: &Arc<Dispatch>, approver: &Arc<ApproverInForce>) {
    let Some(until) = approver.breaker.paused_until() else {
        return;
    };
    if approver.waits.swap(true, Ordering::SeqCst) {
        return;
    }
    let mut stopping = dispatch.stopping.subscribe();
    let (looking, approver) = (Arc::downgrade(dispatch), Arc::clone(approver));
    dispatch.spawn(async move {
        tokio::select! {
            biased;
            _ = stopping.wait_for(|stopping| *stopping) => return,
            () = sleep_until(until) => {}
        }
        approver.waits.store(false, Ordering::SeqCst);
        if let Some(dispatch) = looking.upgrade() {
            look(&dispatch, &approver);
        }
    });
}
