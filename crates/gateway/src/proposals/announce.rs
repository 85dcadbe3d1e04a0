//! Announcements about proposals: to proposers, to the room, and into the audit log.

use std::sync::Arc;

use bytes::Bytes;
use model::{OperationId, ParticipantId, Refusal};
use topic::Cause;

use super::content::Proposed;
use crate::dispatch::Dispatch;
use crate::live::ProposalView;

/// The kind of the envelope that tells a proposer the state of its proposal.
pub const PROPOSAL_STATE: &str = "portmoot/proposal";

pub(crate) fn proposed(dispatch: &Arc<Dispatch>, proposal: &ProposalView) {
    todo!()
}

pub(crate) fn not_proposed(
    dispatch: &Arc<Dispatch>,
    id: OperationId,
    by: &ParticipantId,
    content: &Proposed,
    held: bool,
    refusal: &Refusal,
    cause: Cause,
) {
    todo!()
}

/// Tells a participant that its envelope proposes nothing.
pub(crate) fn no_proposal(dispatch: &Arc<Dispatch>, by: &ParticipantId, envelope: &str, why: &str) {
    todo!()
}

pub(crate) fn approved(dispatch: &Arc<Dispatch>, proposal: &ProposalView, servers: &[ParticipantId]) {
    todo!()
}

pub(crate) fn concluded(dispatch: &Arc<Dispatch>, proposal: &ProposalView) {
    todo!()
}

pub(crate) fn relay(dispatch: &Arc<Dispatch>, message: &Bytes, to: &ParticipantId) {
    todo!()
}
