//! Decisions about proposals: of the API, of built-in tools, and of envelopes that fulfil.

use std::sync::Arc;

use model::{Capabilities, Digest, OperationId, ParticipantId, Refusal};
use topic::Cause;
use wire::mcpx::Envelope;
use wire::mcpx::check;

use super::content::{Proposed, Ruling};
use crate::dispatch::Dispatch;
use crate::link::Link;

/// A participant's decision.
#[derive(Debug, Clone)]
pub enum Choice {
    /// The proposed request may run, once.
    Approve {
        /// The digest of what the reviewer was shown.
        digest: Digest,
        /// Other arguments than those that were proposed: a JSON object.
        arguments: Option<String>,
    },
    /// It never runs.
    Reject {
        /// Why, in words for the proposer.
        reason: Option<String>,
    },
    /// Its proposer withdraws it.
    Withdraw {
        /// Why.
        reason: Option<String>,
    },
}

/// A decision that does not count.
pub(crate) struct Refused {
    pub(crate) proposal: OperationId,
    pub(crate) content: Option<Arc<Proposed>>,
    pub(crate) by: ParticipantId,
    pub(crate) ruling: Arc<Ruling>,
    /// Whether calls that came with it are refused too.
    pub(crate) answered: bool,
    pub(crate) refusal: Box<Refusal>,
    pub(crate) cause: Cause,
}

impl Dispatch {
    /// Decides about a proposal, and waits until the decision is on disk.
    ///
    /// # Errors
    /// Why the decision does not count; of a proposal that the participant may not see, that there is none.
    pub async fn decide(
        self: &Arc<Self>,
        proposal: OperationId,
        by: &ParticipantId,
        outside: Option<&Arc<Capabilities>>,
        choice: Choice,
    ) -> Result<(), Refusal> {
        todo!()
    }
}

/// What comes with an envelope that may fulfil a proposal: the digest of what was proposed under what its server lists now.
/// `None` if the envelope names no proposal of another participant.
pub(crate) fn ruling_of(
    dispatch: &Arc<Dispatch>,
    link: &Arc<Link>,
    envelope: &Envelope,
    call: &check::Call,
) -> Option<(Option<Digest>, Arc<Ruling>)> {
    todo!()
}

/// Records a decision that does not count, and tells the participant.
pub(crate) fn refused(dispatch: &Arc<Dispatch>, refused: Refused) {
    todo!()
}

/// The refusal of a proposal that does not exist, or not for this participant.
pub fn unknown_proposal() -> Refusal {
    todo!()
}

/// Reads the digest that an approval names.
///
/// # Errors
/// If it is misspelled.
pub fn digest(text: &str) -> Result<Digest, Refusal> {
    todo!()
}
