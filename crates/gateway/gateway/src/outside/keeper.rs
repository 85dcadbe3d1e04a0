//! The journal's part in one access request: what is written of it, and when.

use std::sync::Arc;

use model::OperationId;
use store::{Ledger, StoreError, not_written};
use tokio::sync::oneshot;

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

    /// The request that the journal has.
    pub(super) fn kept(&self) -> Option<KeptRequest> {
        let ledger = self.ledger.as_ref()?;
        ledger.state(|kept| kept.of_proposal(&self.proposal).cloned())
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

    /// Writes down the service's task for the request.
    pub(super) fn begin(&self, task: &KeptAccessTask) {
        self.note(ApproverRecord::Task {
            proposal: self.proposal.clone(),
            task: task.clone(),
        });
    }

    /// Writes down that there is nothing to go on with, unless the request is about another content by
    /// now.
    pub(super) fn forget(&self, digest: &str) {
        if self.kept().is_some_and(|kept| kept.digest == digest) {
            self.note(ApproverRecord::Over {
                proposal: self.proposal.clone(),
            });
        }
    }

    /// Writes a record for which nothing waits: without it a request is made once more under its key,
    /// or looked at once more.
    fn note(&self, record: ApproverRecord) {
        if let Some(ledger) = &self.ledger {
            note(ledger, record);
        }
    }
}

/// Forgets the requests of a topic for proposals about which nothing is left to decide.
pub(super) fn prune(dispatch: &Arc<Dispatch>) {
    let Some(ledgers) = &dispatch.ledgers else {
        return;
    };
    let topic = dispatch.name().as_str();
    let kept: Vec<String> = ledgers.approvers.state(|kept| {
        let all = kept.of_topic(topic);
        all.map(|request| request.proposal.clone()).collect()
    });
    let is_active = dispatch.outside.approver().is_some();
    for proposal in kept {
        let id: Option<OperationId> = proposal.parse().ok();
        let waits = id.is_some_and(|id| dispatch.with(|topic| topic.is_undecided(id, |_| true)));
        if !(waits && is_active) {
            note(&ledgers.approvers, ApproverRecord::Over { proposal });
        }
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
