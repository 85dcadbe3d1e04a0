//! View of a proposal at one moment, for effects and queries.

use std::sync::Arc;

use model::{OperationId, ParticipantId, ProposalState};

use crate::Handles;

/// The most participants that a [`ProposalView`] names as able to decide.
pub const DECIDERS_SHOWN_MAX: usize = 16;

/// A proposal at one moment, with the shell's handles.
#[derive(Debug, Clone)]
pub struct ProposalView<H: Handles> {
    /// Its id.
    pub id: OperationId,
    /// The proposer.
    pub by: ParticipantId,
    /// The id of the envelope that proposed.
    pub envelope: Arc<str>,
    /// The proposed request, in full.
    pub content: H::Content,
    /// Whether it was a held call.
    pub held: bool,
    /// Its state.
    pub state: ProposalState,
    /// The reason for its end, in words for the proposer.
    pub reason: Option<Arc<str>>,
    /// The participant that decided.
    pub decided_by: Option<ParticipantId>,
    /// The shell's part of the decision.
    pub ruling: Option<H::Ruling>,
    /// The envelope that fulfils it.
    pub fulfilment: Option<Arc<str>>,
    /// The outcome and the answer.
    pub answer: Option<H::Answer>,
    /// The time of its latest change, on the clock of [`Topic::step`](crate::Topic::step).
    pub updated_ms: u64,
    /// While it is pending, participants in the topic that could decide; [`DECIDERS_SHOWN_MAX`] at most. Empty in lists of
    /// proposals.
    pub deciders: Vec<ParticipantId>,
}
