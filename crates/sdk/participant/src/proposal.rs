//! Proposals of a participant, and their outcome.

use std::{fmt, time::Duration};

use model::ProposalState;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use wire::rpc::Message;

use crate::error::{CallError, RpcError};
use crate::{pending::ProposalUpdate, shared::Pending};

/// How much later than the state `completed` or `failed` the answer may arrive.
const GRACE: Duration = Duration::from_secs(2);

/// A proposal that this participant made; [`Participant::withdraw`](crate::Participant::withdraw)
/// takes it back. Dropping it stops the waiting, not the proposal.
pub struct Proposal {
    pub(crate) pending: Pending,
    pub(crate) updates: mpsc::Receiver<ProposalUpdate>,
    /// How it ended, until its answer arrives.
    pub(crate) ended: Option<(ProposalState, Option<String>)>,
}

impl Proposal {
    /// Its id, which is the id of its envelope.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.pending.id
    }

    /// Waits up to `limit` for the result of the request that fulfils it.
    ///
    /// The wait continues through reconnects. After [`CallError::Timeout`] the function may be
    /// called again.
    ///
    /// # Errors
    /// [`CallError::Answered`] with the error of the request; [`CallError::Ended`] when the
    /// proposal was rejected or withdrawn, has expired, or was fulfilled without an answer that
    /// reached this participant; [`CallError::Refused`] when the gateway refused it.
    pub async fn outcome(&mut self, limit: Duration) -> Result<Box<RawValue>, CallError> {
        let mut end = Instant::now() + limit;
        loop {
            let update = match timeout_at(end, self.updates.recv()).await {
                Ok(Some(update)) => update,
                Ok(None) => return Err(CallError::Lost),
                Err(_) => {
                    let ended = self.ended.take();
                    return Err(ended.map_or(CallError::Timeout, |(state, reason)| {
                        CallError::Ended { state, reason }
                    }));
                }
            };
            match update {
                ProposalUpdate::Answer(message) => return result(&message),
                ProposalUpdate::Refused(error) => return Err(CallError::Refused(error)),
                ProposalUpdate::State(ProposalState::Pending | ProposalState::Running, _) => {}
                ProposalUpdate::State(
                    state @ (ProposalState::Completed | ProposalState::Failed),
                    reason,
                ) => {
                    self.ended = Some((state, reason));
                    end = end.min(Instant::now() + GRACE);
                }
                ProposalUpdate::State(state, reason) => {
                    return Err(CallError::Ended { state, reason });
                }
            }
        }
    }
}

/// The result in an answer, or its error.
pub(crate) fn result(answer: &Message) -> Result<Box<RawValue>, CallError> {
    let raw = |bytes: &[u8]| serde_json::from_slice::<Box<RawValue>>(bytes).ok();
    if let Some(result) = answer.result().and_then(raw) {
        return Ok(result);
    }
    let error = answer
        .error()
        .and_then(|error| serde_json::from_slice::<RpcError>(error).ok());
    Err(CallError::Answered(error.unwrap_or_else(|| {
        RpcError::new(-32603, "the answer cannot be read")
    })))
}

impl fmt::Debug for Proposal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Proposal({})", self.pending.id)
    }
}
