//! A proposal at one moment, as effects and queries show it.

use std::sync::Arc;

use model::{OperationId, ParticipantId, ProposalState};

use crate::Handles;

/// Participants that a [`ProposalView`] names as able to decide.
pub const DECIDERS_SHOWN_MAX: usize = 16;

/// A proposal at one moment, with what the shell gave with it.
#[derive(Debug, Clone)]
pub struct ProposalView<H: Handles> {
    /// Its id.
    pub id: OperationId,
    /// The proposer.
    pub by: ParticipantId,
    /// The id of the envelope that proposed.
    pub envelope: Arc<str>,
    /// What was proposed, in full.
    pub content: H::Content,
    /// Whether it was a held call.
    pub held: bool,
    /// Its state.
    pub state: ProposalState,
    /// Why it is over, in words for the proposer.
    pub reason: Option<Arc<str>>,
    /// The participant that decided.
    pub decided_by: Option<ParticipantId>,
    /// What came with the decision.
    pub ruling: Option<H::Ruling>,
    /// The envelope that fulfils it.
    pub fulfilment: Option<Arc<str>>,
    /// What it led to.
    pub answer: Option<H::Answer>,
    /// When its state changed last, on the clock of [`Topic::step`].
    pub updated_ms: u64,
    /// While it is pending, participants in the topic that could decide; [`DECIDERS_SHOWN_MAX`] at most. A list of proposals
    /// does not say.
    pub deciders: Vec<ParticipantId>,
}
