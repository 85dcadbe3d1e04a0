//! Links to servers in this process.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::inbox::Inbox;

/// Answers one message; `None` for a message that needs no answer.
pub type AnswerFn = dyn Fn(Bytes) -> Option<Bytes> + Send + Sync;

/// A link to a server in this process.
pub(crate) struct LocalLink {
    answer: Arc<AnswerFn>,
    inbox: Arc<dyn Inbox>,
}

impl fmt::Debug for LocalLink {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("LocalLink")
    }
}

impl LocalLink {
    pub(crate) fn new(answer: Arc<AnswerFn>, inbox: Arc<dyn Inbox>) -> Self {
        Self { answer, inbox }
    }

    pub(crate) fn send(&self, frame: Bytes, request: Option<u64>) {
        if let Some(answer) = (self.answer)(frame) {
            // One answer is all that this link ever receives for a request.
            let _ = self.inbox.frame(answer, request);
        }
    }
}
