//! The verdict about a participant's request or envelope, and the capability that admitted it.

use std::sync::Arc;

use model::{Capabilities, ParticipantId};

use super::cause::Cause;

/// The capability that admitted an act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The participant's capabilities.
    pub capabilities: Arc<Capabilities>,
    /// The place in them; `None` if the act needs no capability.
    pub at: Option<usize>,
}

impl Rule {
    /// The capability as it was written.
    pub fn as_str(&self) -> Option<&str> {
        self.capabilities.get(self.at?).map(model::Capability::as_str)
    }
}

/// The verdict about a step's event, if it was an act of a participant: a request, an envelope, a resumption.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on.
    Admitted {
        /// The server that has it; `None` for an envelope.
        to: Option<ParticipantId>,
        /// The server's own name or URI, if it differs from what was asked for.
        own: Option<Arc<str>>,
        /// The capability that admitted it.
        rule: Rule,
    },
    /// It is held as a proposal.
    Held {
        /// The server that would have it.
        to: ParticipantId,
        /// The server's own name or URI, if it differs.
        own: Option<Arc<str>>,
    },
    /// It is refused.
    Refused(Cause),
}
