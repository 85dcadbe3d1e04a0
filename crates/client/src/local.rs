//! A server in this process: it answers each message on the spot.
//!
//! Owns the form of a link for it. Must not know what is asked.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::contract::Inbox;

/// Answers one message; `None` for what needs no answer.
pub type Answerer = dyn Fn(Bytes) -> Option<Bytes> + Send + Sync;

/// A link to a server in this process.
pub struct LocalLink {
    answerer: Arc<Answerer>,
    inbox: Arc<dyn Inbox>,
}

impl fmt::Debug for LocalLink {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("LocalLink")
    }
}

impl LocalLink {
    pub(crate) fn new(answerer: Arc<Answerer>, inbox: Arc<dyn Inbox>) -> Self {
        Self { answerer, inbox }
    }

    pub(crate) fn send(&self, frame: Bytes, request: Option<u64>) {
        if let Some(answer) = (self.answerer)(frame) {
            // Nobody else speaks on this link: what follows an answer needs no stream.
            let _ = self.inbox.frame(answer, request);
        }
    }
}
