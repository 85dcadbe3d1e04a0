//! Changes of proposals that the journal writes.

use std::sync::Arc;

use model::{ParticipantId, ProposalState};

use crate::handles::Handles;

/// A change of a proposal that must be on disk before it has effects.
#[derive(Debug, Clone)]
pub enum Record<H: Handles> {
    /// A participant opened it.
    Opened,
    /// A participant decided about it. A rejected or withdrawn proposal is over; no [`Record::Ended`] follows.
    Decided {
        /// The participant that decided.
        by: ParticipantId,
        /// [`ProposalState::Running`] if it was approved, or rejected or withdrawn.
        state: ProposalState,
        /// The reason, in words for the proposer.
        reason: Option<Arc<str>>,
        /// The shell's part of the decision; `None` if the topic withdraws the proposal itself.
        ruling: Option<H::Ruling>,
    },
    /// It is over: completed, failed or expired, or withdrawn after it was approved and before it ran.
    Ended {
        /// Its last state.
        state: ProposalState,
        /// The reason, in words for the proposer.
        reason: Option<Arc<str>>,
        /// The answer of the server or participant that carried it out.
        answer: Option<H::Answer>,
    },
}
