//! Calls whose callers wait for one answer, and can only leave.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::{call::Call, dispatch::Dispatch};

/// A call whose caller waits for its answer. It is cancelled if the caller leaves before, which
/// drops this.
pub struct AwaitedCall<'c> {
    dispatch: &'c Arc<Dispatch>,
    call: Option<Arc<Call>>,
}

impl<'c> AwaitedCall<'c> {
    /// An open call of this topic.
    #[must_use]
    pub fn new(dispatch: &'c Arc<Dispatch>, call: Arc<Call>) -> Self {
        Self {
            dispatch,
            call: Some(call),
        }
    }

    /// Waits for what the call's reply sends; `None` if the call was cancelled.
    pub async fn answer<T>(mut self, answered: oneshot::Receiver<T>) -> Option<T> {
        let answer = answered.await.ok();
        self.call = None;
        answer
    }
}

impl Drop for AwaitedCall<'_> {
    fn drop(&mut self) {
        if let Some(call) = self.call.take() {
            self.dispatch.abandon(&call);
        }
    }
}
