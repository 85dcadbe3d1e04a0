//! Changes of proposals that the journal writes.

use std::sync::Arc;

use model::{ParticipantId, ProposalState};

use crate::handles::Handles;

/// A change of a proposal that must be on disk before anything follows from it.
#[derive(Debug, Clone)]
pub enum Record<H: Handles> {
    /// It was made.
    Opened,
    /// It was decided. Rejected and withdrawn, it is over; no [`Record::Ended`] follows.
    Decided {
        /// The participant that decided.
        by: ParticipantId,
        /// [`ProposalState::Running`] if it was approved, or rejected or withdrawn.
        state: ProposalState,
        /// Why, in words for the proposer.
        reason: Option<Arc<str>>,
        /// What came with the decision; `None` if the topic withdraws the proposal itself.
        ruling: Option<H::Ruling>,
    },
    /// It is over: completed, failed or expired, or withdrawn after it was approved and before it ran.
    Ended {
        /// How.
        state: ProposalState,
        /// Why, in words for the proposer.
        reason: Option<Arc<str>>,
        /// The answer of the server or participant that carried it out.
        answer: Option<H::Answer>,
    },
}
