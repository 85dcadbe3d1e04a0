//! The journal's part in one access request: what is written of it, and when.

use std::sync::Arc;

use model::OperationId;
use store::{Ledger, StoreError, not_written};
use tokio::sync::oneshot;

use super::desk::ApproverInForce;
use super::kept::{ApproverRecord, KeptAccessTask, KeptRequest, KeptRequests};
use crate::dispatch::Dispatch;

/// Writes down the access requests for one proposal. Without a journal nothing outlasts the gateway.
pub(super) struct RequestKeeper {
    pub(super) topic: String,
    proposal: String,
    ledger: Option<Ledger<KeptRequests>>,
}

impl RequestKeeper {
    pub(super) fn of(dispatch: &Arc<Dispatch>, proposal: OperationId) -> Self {
        let ledgers = dispatch.ledgers.as_ref();
        Self {
            topic: dispatch.name().to_string(),
            proposal: proposal.to_string(),
            ledger: ledgers.map(|ledgers| ledgers.approvers.clone()),
        }
    }

    /// Writes a request down, and waits until it is on disk. Returns whether it is.
    pub(super) async fn keep(&self, request: &KeptRequest) -> bool {
        let Some(ledger) = &self.ledger else {
            return true;
        };
        let (report, end) = oneshot::channel();
        let record = ApproverRecord::Requested(Box::new(request.clone()));
        ledger.submit(&[record], move |result| {
            // The errand may be over.
            _ = report.send(result);
        });
        match end.await {
            Ok(Ok(())) => true,
            Ok(Err(error)) => {
                log(&error);
                false
            }
            Err(_) => false,
        }
    }

    /// Writes down the service's task for the request with this key.
    pub(super) fn begin(&self, key: &str, task: &KeptAccessTask) {
        self.note(ApproverRecord::Task {
            proposal: self.proposal.clone(),
            key: key.to_owned(),
            task: task.clone(),
        });
    }

    /// Writes down that the request with this key is over.
    pub(super) fn forget(&self, key: &str) {
        self.note(ApproverRecord::Over {
            proposal: self.proposal.clone(),
            key: key.to_owned(),
        });
    }

    /// Writes a record for which nothing waits: without it a request is made once more under its key,
    /// or looked at once more.
    fn note(&self, record: ApproverRecord) {
        if let Some(ledger) = &self.ledger {
            note(ledger, record);
        }
    }
}

/// The requests of a topic that the journal has.
fn of_topic(dispatch: &Dispatch) -> Vec<KeptRequest> {
    let topic = dispatch.name().as_str();
    let ledgers = dispatch.ledgers.as_ref();
    ledgers.map_or_else(Vec::new, |ledgers| {
        let approvers = &ledgers.approvers;
        approvers.state(|kept| kept.of_topic(topic).cloned().collect())
    })
}

/// The requests of an earlier run of the gateway for proposals that wait, to go on with. The others
/// are over, and cancelled as far as the approver of now can.
pub(super) fn resumable(dispatch: &Arc<Dispatch>) -> Vec<KeptRequest> {
    let approver = dispatch.outside.approver();
    let waits = |request: &KeptRequest| {
        let id: Option<OperationId> = request.proposal.parse().ok();
        approver.is_some()
            && id.is_some_and(|id| dispatch.with(|topic| topic.is_undecided(id, |_| true)))
    };
    let (waiting, over): (Vec<_>, Vec<_>) = of_topic(dispatch).into_iter().partition(waits);
    forget(dispatch, &over);
    if let Some(approver) = approver
        && !over.is_empty()
    {
        dispatch.spawn(async move {
            for request in over {
                let cancel = request.task.and_then(|task| task.cancel);
                cancel_at(&approver, &request.proposal, cancel).await;
            }
        });
    }
    waiting
}

/// Forgets the requests of a topic: who made them cancels them.
pub(super) fn forget_all(dispatch: &Dispatch) {
    forget(dispatch, &of_topic(dispatch));
}

fn forget(dispatch: &Dispatch, requests: &[KeptRequest]) {
    let Some(ledgers) = &dispatch.ledgers else {
        return;
    };
    for KeptRequest { proposal, key, .. } in requests {
        let (proposal, key) = (proposal.clone(), key.clone());
        note(&ledgers.approvers, ApproverRecord::Over { proposal, key });
    }
}

/// Cancels a request that no one needs any more, if it has an address for that.
pub(super) async fn cancel_at(approver: &ApproverInForce, proposal: &str, address: Option<String>) {
    if let Some(address) = address
        && let Err(fault) = approver.client.cancel(&address).await
    {
        tracing::debug!(proposal, %fault, "not cancelled at the approver");
    }
}

fn note(ledger: &Ledger<KeptRequests>, record: ApproverRecord) {
    ledger.submit(&[record], |result| {
        if let Err(error) = result {
            log(&error);
        }
    });
}

fn log(error: &StoreError) {
    tracing::error!(error = %not_written(error), "the journal has no record of an access request");
}
