//! The verdict about a participant's request or envelope, and the capability that admitted it.

use std::sync::Arc;

use model::{Capabilities, ParticipantId};

use super::cause::Cause;

/// The capability that admitted a request or envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The participant's capabilities.
    pub capabilities: Arc<Capabilities>,
    /// The place in them; `None` if none is needed.
    pub at: Option<usize>,
}

impl Rule {
    /// The text of the capability.
    pub fn as_str(&self) -> Option<&str> {
        self.capabilities.get(self.at?).map(model::Capability::as_str)
    }
}

/// The verdict about a step's event, if a participant requested something: a request, an envelope, a resumption.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The request or envelope is admitted.
    Admitted {
        /// The server that gets it; `None` for an envelope.
        to: Option<ParticipantId>,
        /// The server's own name or URI, if it differs from the requested one.
        own: Option<Arc<str>>,
        /// The capability that admitted it.
        rule: Rule,
    },
    /// The request is held as a proposal.
    Held {
        /// The server that it is for.
        to: ParticipantId,
        /// The server's own name or URI, if it differs.
        own: Option<Arc<str>>,
    },
    /// The request or envelope is refused.
    Refused(Cause),
}
