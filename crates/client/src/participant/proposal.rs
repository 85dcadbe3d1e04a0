//! A proposal that was made: what becomes of it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use model::ProposalState;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use wire::rpc::Message;

use super::error::{CallError, RpcError};
use super::shared::Shared;
use super::waiting::News;

/// How long an answer may come after the gateway has told that the proposal is completed or failed.
const GRACE: Duration = Duration::from_secs(2);

/// A proposal of one's own. Dropping it stops the waiting, not the proposal.
pub struct Proposal {
    pub(super) id: String,
    pub(super) news: mpsc::Receiver<News>,
    pub(super) shared: Arc<Shared>,
    /// How it ended, until its answer comes.
    pub(super) ended: Option<(ProposalState, Option<String>)>,
}

impl Proposal {
    /// Its id: the id of the envelope, which everybody sees.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Waits for what becomes of it: the result of the request that fulfils it.
    ///
    /// It goes on through reconnects. After [`CallError::Timeout`] it may be asked again.
    ///
    /// # Errors
    /// [`CallError::Answered`] with the target's error; [`CallError::Ended`] when it was rejected, withdrawn, has expired, or
    /// was carried out without an answer being heard; [`CallError::Refused`] when the gateway did not take it.
    pub async fn outcome(&mut self, patience: Duration) -> Result<Box<RawValue>, CallError> {
        let mut end = Instant::now() + patience;
        loop {
            let news = match timeout_at(end, self.news.recv()).await {
                Ok(Some(news)) => news,
                Ok(None) => return Err(CallError::Lost),
                Err(_) => {
                    let ended = self.ended.take();
                    return Err(ended
                        .map_or(CallError::Timeout, |(state, reason)| CallError::Ended { state, reason }));
                }
            };
            match news {
                News::Answer(message) => return read(&message),
                News::Refused(told) => return Err(CallError::Refused(told)),
                News::State(ProposalState::Pending | ProposalState::Running, _) => {}
                News::State(state @ (ProposalState::Completed | ProposalState::Failed), reason) => {
                    self.ended = Some((state, reason));
                    end = end.min(Instant::now() + GRACE);
                }
                News::State(state, reason) => return Err(CallError::Ended { state, reason }),
            }
        }
    }
}

/// The result in an answer, or its error.
pub(super) fn read(message: &Message) -> Result<Box<RawValue>, CallError> {
    let raw = |bytes: &[u8]| serde_json::from_slice::<Box<RawValue>>(bytes).ok();
    if let Some(result) = message.result().and_then(raw) {
        return Ok(result);
    }
    let error = message.error().and_then(|error| serde_json::from_slice::<RpcError>(error).ok());
    Err(CallError::Answered(error.unwrap_or_else(|| RpcError::new(-32603, "the answer cannot be read"))))
}

impl Drop for Proposal {
    fn drop(&mut self) {
        self.shared.desk().waiting.forget(&self.id);
    }
}

impl fmt::Debug for Proposal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Proposal({})", self.id)
    }
}
