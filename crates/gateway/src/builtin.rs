//! Built-in tools and services: what the gateway's own participant does for a caller.

use std::sync::Arc;

use upstream::Manifest;

use crate::call::Call;
use crate::config::BuiltIn;
use crate::dispatch::Dispatch;
use crate::live::ProposalView;

/// Serves a call that the topic delivered to the gateway's own participant.
pub(crate) fn serve(_dispatch: &Arc<Dispatch>, _call: &Arc<Call>, _proposal: Option<&ProposalView>) {
    todo!()
}

/// What the gateway's own participant lists with these groups of tools.
pub(crate) fn manifest(_builtin: &[BuiltIn]) -> Manifest {
    todo!()
}
